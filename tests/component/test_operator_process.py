"""The operator process, with the rights of its own table, on a real kube-apiserver."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sim.control_plane import ApiServer
from tests.doubles.cluster_rig import Rig, cluster_rig, grant
from torchtpu_operator.clients.kinds import CLASSES, JOBS, LEASES, SLICES

pytestmark = pytest.mark.timeout(400)

ROOT = Path(__file__).parents[2]

CLASS: dict[str, Any] = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TPUSliceClass",
    "metadata": {"name": "default", "annotations": {"torchtpu.dev/is-default-class": "true"}},
    "spec": {"offers": [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"]}]},
}


def a_job(name: str, *, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "torchtpu.dev/v1alpha1",
        "kind": "TorchTPUJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accelerator": "v6e",
            "topology": "4x4",
            "image": "ray:2.60.0",
            "entrypoint": "python train.py",
            "logRetentionSeconds": 0,
        },
    }


@dataclass
class Operator:
    process: asyncio.subprocess.Process
    lines: list[dict[str, Any]] = field(default_factory=list)

    async def read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(json.loads(line))

    async def until_says(self, words: str, *, seconds: float = 120) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            while True:
                for line in self.lines:
                    if words in line["message"]:
                        return line
                if self.process.returncode is not None:
                    raise AssertionError(f"the operator ended without saying {words!r}: {self.lines[-3:]}")
                await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def an_operator(environment: Mapping[str, str], kubeconfig: Path) -> AsyncIterator[Operator]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "torchtpu_operator",
        "--kubeconfig",
        str(kubeconfig),
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "operator"), **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    operator = Operator(process)
    reading = asyncio.create_task(operator.read())
    try:
        yield operator
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
        for line in operator.lines:  # shown by pytest where the test fails
            print({key: value for key, value in line.items() if key != "logger"})


async def probe(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


@pytest.fixture
async def rig(api_server: ApiServer) -> AsyncIterator[Rig]:
    async with cluster_rig(api_server, namespace="process") as rig:
        yield rig
    api_server.kubectl("delete", "namespace", "process", "--wait=true")


async def test_a_job_is_walked_to_its_end_and_nothing_is_left(rig: Rig) -> None:
    async with an_operator(rig.environment(POD_NAME="one"), rig.kubeconfig) as operator:
        ports = await operator.until_says("listening")
        await operator.until_says("this replica holds the lease")
        await rig.api.create(CLASSES, CLASS)
        await rig.api.create(JOBS, a_job("llama", namespace=rig.namespace))
        running = await rig.until_phase("llama", "Running")
        healthy = [await probe(ports["health"], path) for path in ("/healthz", "/readyz")]
        figures = (await probe(ports["metrics"], "/metrics"))[1]
        submissions = len(rig.head().submissions)
        rig.finish()
        done = await rig.until_phase("llama", "Succeeded")
        await rig.until_gone(SLICES)
        operator.process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(operator.process.wait(), 5)
        lease = await rig.api.get(LEASES, "torchtpu-operator", namespace="torchtpu-system")
    got = {
        "status while it ran": (running["status"]["attempt"]["number"], running["status"]["slicesReady"]),
        "submissions": submissions,
        "complete": [c["status"] for c in done["status"]["conditions"] if c["type"] == "Complete"],
        "pools": list(rig.gke.manager.pools),
        "healthy": healthy,
        "leader": "torchtpu_leader 1.0" in figures,
        "exit code": code,
        "lease": lease and lease["spec"].get("holderIdentity"),
        "troubles": [line for line in operator.lines if line["level"] not in ("INFO", "DEBUG")],
    }
    assert got == {
        "status while it ran": (1, "1/1"),
        "submissions": 1,
        "complete": ["True"],
        "pools": [],
        "healthy": [(200, "ok"), (200, "ok")],
        "leader": True,
        "exit code": 0,
        "lease": "",
        "troubles": [],
    }


async def test_a_second_replica_stands_by_and_takes_over(rig: Rig) -> None:
    first_environment, second_environment = rig.environment(POD_NAME="first"), rig.environment(POD_NAME="second")
    async with (
        an_operator(first_environment, rig.kubeconfig) as first,
        an_operator(second_environment, rig.kubeconfig) as second,
    ):
        await asyncio.wait(
            {
                asyncio.create_task(first.until_says("holds the lease")),
                asyncio.create_task(second.until_says("holds the lease")),
            },
            return_when=asyncio.FIRST_COMPLETED,
        )
        acts, waits = (first, second) if said(first, "this replica holds") else (second, first)
        await waits.until_says("standing by")
        ports = await waits.until_says("listening")
        ready = await probe(ports["health"], "/readyz")
        acts.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(acts.process.wait(), 5)
        await waits.until_says("this replica holds the lease", seconds=30)
        await rig.api.create(CLASSES, CLASS)
        await rig.api.create(JOBS, a_job("after", namespace=rig.namespace))
        await rig.until_phase("after", "Running")
    assert ready == (200, "ok")


async def test_a_leader_that_was_frozen_wakes_up_leaves_and_takes_nothing_back(rig: Rig) -> None:
    async with an_operator(rig.environment(POD_NAME="first"), rig.kubeconfig) as first:
        await first.until_says("this replica holds the lease")
        async with an_operator(rig.environment(POD_NAME="second"), rig.kubeconfig) as second:
            await second.until_says("standing by")
            first.process.send_signal(signal.SIGSTOP)
            await second.until_says("this replica holds the lease")
            first.process.send_signal(signal.SIGCONT)
            code = await asyncio.wait_for(first.process.wait(), 15)
            await rig.api.create(CLASSES, CLASS)
            await rig.api.create(JOBS, a_job("after", namespace=rig.namespace))
            await rig.until_phase("after", "Running")
            lease = await rig.api.get(LEASES, "torchtpu-operator", namespace="torchtpu-system")
    assert (code, lease and lease["spec"]["holderIdentity"]) == (1, "second")


def said(operator: Operator, words: str) -> bool:
    return any(words in line["message"] for line in operator.lines)


async def test_missing_kinds_and_rights_are_named_and_waited_for(api_server: ApiServer) -> None:
    async with cluster_rig(api_server, namespace="missing") as rig:
        api_server.kubectl("delete", "clusterrolebinding", "operator")
        api_server.kubectl("delete", "crd", "tpuslices.torchtpu.dev")
        async with an_operator(rig.environment(POD_NAME="one"), rig.kubeconfig) as operator:
            crds = await operator.until_says("CRDs not served")
            ports = await operator.until_says("listening")
            unready = await probe(ports["health"], "/readyz")
            api_server.kubectl("create", "-f", str(ROOT / "crds" / "torchtpu.dev_tpuslices.yaml"))
            rights = await operator.until_says("service account may not")
            grant(api_server)
            await operator.until_says("this replica holds the lease")
            ready = await probe(ports["health"], "/readyz")
    got = (
        "tpuslices.torchtpu.dev" in crds["message"],
        unready[0],
        "tpuslices.torchtpu.dev" in unready[1],
        "get, list, watch, create, patch, delete tpuslices.torchtpu.dev" in rights["message"],
        ready,
    )
    assert got == (True, 503, True, True, (200, "ok"))


async def test_settings_that_are_missing_are_named_all_at_once() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "torchtpu_operator",
        env={"PYTHONPATH": str(ROOT / "operator"), "TORCHTPU_GKE_INSECURE": "perhaps"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, text = await process.communicate()
    names = ["TORCHTPU_GKE_PROJECT", "TORCHTPU_GKE_LOCATION", "TORCHTPU_GKE_CLUSTER", "TORCHTPU_GKE_INSECURE"]
    assert (process.returncode, [name for name in names if name.encode() not in text]) == (2, [])
