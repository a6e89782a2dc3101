"""The bench proves itself without our operator: a RayCluster and a RayJob written by hand, as a user has them today.

KubeRay's real operator brings the cluster up on a hand-made v6e 4x4 pool, a job asks Ray for the slice by
`slice_placement_group`, and sixteen one-chip actors answer. It is also the reference for speed: the product's own
way from apply to RUNNING is measured against it.
"""

import functools
import json
import time
from collections.abc import Iterator

import pytest

from sim.bench import Bench
from tests.e2e.bare_cluster import RAY, Cluster, Obj

READY_SECONDS = 240.0
"""Ray's own starts take most of it; an idle machine needs a tenth."""

SCRIPT = """
import json, os, socket, time
import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from ray.util.tpu import slice_placement_group

ray.init()
began = time.monotonic()
slice_group = slice_placement_group(topology="4x4", accelerator_version="v6e", resources_per_bundle={"TPU": 1, "CPU": 1})
group = slice_group.placement_group
ray.get(group.ready(), timeout=120)
reserved = time.monotonic() - began

@ray.remote(num_cpus=1, resources={"TPU": 1})
class Chip:
    def where(self):
        return [socket.gethostname(), os.environ["TPU_WORKER_ID"], os.environ["TPU_VISIBLE_CHIPS"]]

actors = [
    Chip.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=i)).remote()
    for i in range(16)
]
chips = ray.get([actor.where.remote() for actor in actors])
print("RESULT " + json.dumps({"reserved": reserved, "answered": time.monotonic() - began, "chips": chips}), flush=True)
"""


def build_ray_cluster_spec() -> Obj:
    """One head and one group of four hosts; nothing that KubeRay 1.5 lacks, default probes."""
    limits = {"cpu": "8", "memory": "16Gi"}
    worker_id = {"fieldRef": {"fieldPath": "metadata.labels['ray.io/replica-host-index']"}}
    head = {
        "name": "ray-head",
        "image": RAY,
        "ports": [
            {"containerPort": 6379, "name": "gcs-server"},
            {"containerPort": 8265, "name": "dashboard"},
            {"containerPort": 10001, "name": "client"},
        ],
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": [{"name": "code", "mountPath": "/code"}],
    }
    worker = {
        "name": "ray-worker",
        "image": RAY,
        "resources": {kind: {**limits, "google.com/tpu": "4"} for kind in ("limits", "requests")},
        "env": [{"name": "TPU_NAME", "value": "reference-s0"}, {"name": "TPU_WORKER_ID", "valueFrom": worker_id}],
    }
    small_store = {"object-store-memory": "200000000"}
    return {
        "rayVersion": "2.60.0",
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0", **small_store},
            "template": {
                "spec": {
                    "nodeSelector": {"cloud.google.com/gke-nodepool": "cpu-pool"},
                    "containers": [head],
                    "volumes": [{"name": "code", "configMap": {"name": "code"}}],
                }
            },
        },
        "workerGroupSpecs": [
            {
                "groupName": "s0",
                "replicas": 1,
                "minReplicas": 1,
                "maxReplicas": 1,
                "numOfHosts": 4,
                "rayStartParams": small_store,
                "template": {
                    "spec": {
                        "nodeSelector": {
                            "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                            "cloud.google.com/gke-tpu-topology": "4x4",
                        },
                        "tolerations": [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}],
                        "containers": [worker],
                    }
                },
            }
        ],
    }


def build_ray_job(name: str) -> Obj:
    """A RayJob with its own cluster, submitted by KubeRay's default: a Kubernetes Job."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {"entrypoint": "python /code/job.py", "rayClusterSpec": build_ray_cluster_spec()},
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Bench(tmp_path_factory.mktemp("reference") / "bench") as bench:
        running = Cluster(bench, seconds=READY_SECONDS)
        running.make_pool()
        yield running


def _job(cluster: Cluster) -> Obj:
    found = cluster.get("rayjob", "reference")
    assert found is not None
    status: Obj = found.get("status", {})
    return status


def _has_reached(cluster: Cluster, states: tuple[str, ...]) -> bool:
    return _job(cluster).get("jobStatus") in states


def _submitter_log(cluster: Cluster) -> str:
    return cluster.bench.kubectl("logs", "-l", "job-name=reference", "--tail=-1")


@pytest.mark.timeout(600)
def test_a_hand_written_rayjob_gets_its_slice(cluster: Cluster) -> None:
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"job.py": SCRIPT}}
    began = time.monotonic()
    cluster.apply(code, build_ray_job("reference"))
    seconds = {}
    for word, reached in {
        "RUNNING": ("RUNNING", "SUCCEEDED", "FAILED"),
        "end": ("SUCCEEDED", "FAILED", "STOPPED"),
    }.items():
        cluster.until(f"the job is {word}", functools.partial(_has_reached, cluster, reached))
        seconds[f"apply to {word}"] = round(time.monotonic() - began, 1)
    print(f"\nreference: {seconds}")
    assert _job(cluster)["jobStatus"] == "SUCCEEDED", _submitter_log(cluster)
    # KubeRay's submitter copies the driver's output behind the job's status.
    cluster.until("the submitter has printed the result", lambda: "RESULT " in _submitter_log(cluster))
    lines = _submitter_log(cluster).splitlines()
    result = json.loads(next(line for line in lines if "RESULT " in line).split("RESULT ", 1)[1])
    hosts = {host: worker for host, worker, _ in result["chips"]}
    assert sorted(hosts.values()) == ["0", "1", "2", "3"]
    assert sorted((worker, chip) for _, worker, chip in result["chips"]) == [
        (str(worker), str(chip)) for worker in range(4) for chip in range(4)
    ]
    cluster.bench.kubectl("delete", "rayjob", "reference", "--timeout=60s")
    cluster.until("no pod is left", lambda: not cluster.all("pods"))
