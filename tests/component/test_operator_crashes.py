"""The operator ends at every call that changes something, before and after it takes effect, and a new one goes on."""

import asyncio
from typing import Any

import pytest

from tests.doubles.memory_rig import NAMESPACE, Kill, MemoryRig, memory_rig
from torchtpu_operator.clients.kinds import CLASSES, JOBS, PODS, RAY_CLUSTERS, SLICES

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(900)]

CLASS: dict[str, Any] = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TPUSliceClass",
    "metadata": {"name": "default", "annotations": {"torchtpu.dev/is-default-class": "true"}},
    "spec": {"offers": [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"]}]},
}
JOB: dict[str, Any] = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TorchTPUJob",
    "metadata": {"name": "llama", "namespace": NAMESPACE},
    "spec": {
        "accelerator": "v6e",
        "topology": "4x4",
        "image": "ray:2.60.0",
        "entrypoint": "python train.py",
        "logRetentionSeconds": 5,
    },
}
WANT = {
    "phase": "Succeeded",
    "submissions": 1,
    "attempts": 1,
    "pools ever created": 1,
    "pools left": [],
    "slices left": [],
    "clusters left": [],
    "pods left": [],
}


async def finish_what_runs(rig: MemoryRig) -> None:
    """Every Ray job succeeds five seconds after it was submitted."""
    begun: dict[str, float] = {}
    while True:
        now = asyncio.get_running_loop().time()
        for head in rig.ray.heads.values():
            for name, job in head.jobs.items():
                if now - begun.setdefault(name, now) >= 5 and job["status"] == "RUNNING":
                    head.finish(name, "SUCCEEDED", driver_exit_code=0)
        await asyncio.sleep(0.5)


async def walk(kill: Kill) -> tuple[dict[str, Any], list[str]]:
    """One job from its creation until nothing is left of it, with one death on the way; what is left, and the calls."""
    async with memory_rig() as rig:
        users = asyncio.create_task(finish_what_runs(rig))
        await rig.kube.create(CLASSES, CLASS)
        async with rig.operator(kill):
            await rig.kube.create(JOBS, JOB)
            dead = asyncio.create_task(kill.happened.wait())
            over = asyncio.create_task(rig.until(lambda: is_over(rig)))
            await asyncio.wait({dead, over}, return_when=asyncio.FIRST_COMPLETED)
            dead.cancel()
        async with rig.operator():
            await over
        users.cancel()
        creates = [call for call in rig.gke.calls.of("CreateNodePool") if call.outcome == "OK"]
        job = rig.kube.peek(JOBS, "llama", namespace=NAMESPACE) or {}
        result = {
            "phase": rig.phase(JOBS, "llama"),
            "submissions": len(rig.submissions),
            "attempts": job.get("status", {}).get("attempt", {}).get("number"),
            "pools ever created": len(creates),
            "pools left": list(rig.gke.pools),
            "slices left": rig.kube.all(SLICES),
            "clusters left": rig.kube.all(RAY_CLUSTERS),
            "pods left": rig.kube.all(PODS),
        }
        return result, kill.calls


def is_over(rig: MemoryRig) -> bool:
    over = rig.phase(JOBS, "llama") in ("Succeeded", "Failed")
    return over and not rig.kube.all(SLICES) and not rig.gke.pools and not rig.kube.all(RAY_CLUSTERS)


async def test_without_a_death() -> None:
    assert (await walk(Kill()))[0] == WANT


@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call, its answer lost"])
async def test_a_death_at_every_changing_call(after: bool) -> None:
    calls = (await walk(Kill()))[1]
    wrong: dict[str, Any] = {}
    for at, label in enumerate(calls, start=1):
        kill = Kill(at, after=after)
        try:
            result, _ = await walk(kill)
        except TimeoutError:
            result = {"phase": "never over"}
        assert kill.happened.is_set(), f"nobody died at call {at}, {label}"
        if result != WANT:
            wrong[f"{at} {label}"] = {key: value for key, value in result.items() if value != WANT[key]}
    assert wrong == {}
