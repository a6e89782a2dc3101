"""Many slices as worker groups: the real KubeRay makes one pod per host, each with its place in its slice."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sim import tools
from sim.control_plane import ApiServer, programs
from sim.control_plane.api_client import wait_until
from sim.control_plane.api_server import free_ports
from sim.control_plane.daemon import Daemon, stop
from sim.control_plane.programs import Address
from tests.spec_cases import job
from torchtpu_operator.api import TorchTPUJob
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.api.validate import parse
from torchtpu_operator.plan.ray_cluster import WorkerPool, build_auth_secret, build_ray_cluster, build_runner_config_map

pytestmark = pytest.mark.timeout(300)

Json = dict[str, Any]
COUNTS = (1, 2, 8, 16)
HOSTS: dict[int, Json] = {1: {"topology": "2x4", "launcher": "Driver"}, 2: {"topology": "2x4", "chipsPerHost": 4}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An apiserver with the real KubeRay: no scheduler and no kubelet, so that its pods stay Pending."""
    folder: Path = tmp_path_factory.mktemp("groups")
    with ApiServer(folder / "data") as started:
        for file in sorted(tools.kuberay_crds().glob("*.yaml")):
            started.kubectl("create", "--validate=false", "-f", str(file))
        metrics, probe = free_ports(2)
        argv = programs.kuberay_argv(
            metrics=Address(host="127.0.0.1", port=metrics), probe=Address(host="127.0.0.1", port=probe)
        )
        kuberay = Daemon("kuberay", argv, log=folder / "kuberay.log", env={"KUBECONFIG": str(started.kubeconfig)})
        kuberay.start()
        yield started
        stop([kuberay])


def named(count: int, hosts: int) -> TorchTPUJob:
    document = job(name=f"s{count}-h{hosts}", numSlices=count, rayVersion="2.60.0", **HOSTS[hosts])
    document["metadata"]["uid"] = f"{count:08}-0000-0000-0000-{hosts:012}"
    parsed = parse(document)
    assert isinstance(parsed, TorchTPUJob)
    return parsed


def pools(job: TorchTPUJob) -> list[str]:
    return [f"{job.metadata.name}-pool-{index}" for index in range(job.spec.num_slices)]


def objects(job: TorchTPUJob) -> list[Json]:
    cluster = build_ray_cluster(
        job, defaults=JobDefaults(), pools=[WorkerPool(name=name) for name in pools(job)], attempt=1
    )
    made = [build_runner_config_map(job, attempt=1), build_auth_secret(job, attempt=1, token="t"), cluster]
    for each in made:
        each["metadata"].pop("ownerReferences")  # nobody else is here
    return made


def seen(pod: Json) -> tuple[str, str, str, str]:
    """Group, place in the slice, TPU_WORKER_ID's source, and the pool that it is pinned to."""
    labels, spec = pod["metadata"]["labels"], pod["spec"]
    env = {each["name"]: each for each in spec["containers"][0]["env"]}
    worker_id = env["TPU_WORKER_ID"]
    source = worker_id.get("value") or worker_id["valueFrom"]["fieldRef"]["fieldPath"]
    index = labels.get("ray.io/replica-host-index", "")
    return labels["ray.io/group"], index, source, spec["nodeSelector"]["cloud.google.com/gke-nodepool"]


def wanted(job: TorchTPUJob, *, hosts: int) -> list[tuple[str, str, str, str]]:
    source = "metadata.labels['ray.io/replica-host-index']" if hosts > 1 else "0"
    return sorted(
        (f"s{index}", str(host) if hosts > 1 else "", source, pool)
        for index, pool in enumerate(pools(job))
        for host in range(hosts)
    )


def test_kuberay_makes_a_pod_for_each_host_of_each_slice_with_its_group_place_and_pool(server: ApiServer) -> None:
    jobs = {(count, hosts): named(count, hosts) for count in COUNTS for hosts in HOSTS}
    items = [each for job in jobs.values() for each in objects(job)]
    server.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    most = sum(count * hosts for count, hosts in jobs)
    found: list[Json] = []

    def all_there() -> bool:
        found[:] = json.loads(server.kubectl("get", "pods", "-l", "ray.io/node-type=worker", "-o", "json"))["items"]
        return len(found) >= most

    wait_until(all_there, what="the workers' pods", seconds=120, check=lambda: None)
    got = {
        key: sorted(seen(pod) for pod in found if pod["metadata"]["labels"]["torchtpu.dev/job"] == job.metadata.name)
        for key, job in jobs.items()
    }
    assert got == {key: wanted(job, hosts=key[1]) for key, job in jobs.items()}
    for pod in found:
        labels = pod["metadata"]["labels"]
        assert max(len(value) for value in labels.values()) <= 63
