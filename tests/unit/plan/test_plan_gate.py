"""The gate before a submission: what pods and Ray still lack, in words."""

from dataclasses import replace

import pytest

from tests.builders import a_job, a_pod, some_pods, some_ray_nodes
from torchtpu_operator.plan import names
from torchtpu_operator.plan.gate import WorkerGroup, pods_missing, ray_missing
from torchtpu_operator.plan.observed import PodSeen, RayNodeSeen

JOB = a_job()
SHAPE = JOB.shape
CLUSTER = names.ray_cluster_name("llama", job_uid=JOB.job.metadata.uid, attempt=1)
GROUPS = (WorkerGroup(name="s0", tpu_name=names.tpu_name(CLUSTER, slice_index=0)),)
TPU = GROUPS[0].tpu_name
WHOLE = some_pods()
NODES = some_ray_nodes()

PODS = {
    "head and all hosts are ready": (WHOLE, None),
    "nothing is there yet": ((), "the Ray head pod is not there yet"),
    "the head is not ready, and why": (
        (a_pod(node_type="head", ready=False, problem="no node fits"), *WHOLE[1:]),
        "the Ray head pod head is not Ready: no node fits",
    ),
    "the head leaves": ((a_pod(node_type="head", terminating=True), *WHOLE[1:]), "the Ray head pod head is not Ready"),
    "a host is missing": (WHOLE[:-1], "3 of 4 worker pods of group s0 are Ready"),
    "a host is not ready, and why": (
        (*WHOLE[:-1], a_pod(host=3, ready=False, problem="image not found")),
        "3 of 4 worker pods of group s0 are Ready: image not found",
    ),
    "an old incarnation still terminates beside the new one": (
        (*WHOLE, a_pod("old", terminating=True, replica="s0-old")),
        "1 old worker pods of group s0 still terminate",
    ),
    "one host too many": ((*WHOLE, a_pod("fifth", host=4)), "group s0 has 5 worker pods instead of 4"),
    "hosts of two incarnations": (
        (*WHOLE[:-1], a_pod(host=3, replica="s0-other")),
        "the worker pods of group s0 belong to different replicas",
    ),
}


@pytest.mark.parametrize(("pods", "want"), PODS.values(), ids=PODS)
def test_what_pods_lack(pods: tuple[PodSeen, ...], want: str | None) -> None:
    assert pods_missing(GROUPS, pods, shape=SHAPE) == want


RAY = {
    "every host once, with all its chips": (NODES, None),
    "hosts of other slices do not matter": ((*NODES, replace(NODES[0], slice_name="other")), None),
    "the head among the nodes does not matter": (
        (*NODES, replace(NODES[0], slice_name="", worker_id="", tpus=0.0)),
        None,
    ),
    "a dead node does not count, nor does it disturb": ((*NODES, replace(NODES[0], alive=False)), None),
    "nothing is there yet": ((), f"Ray shows 0 of 4 hosts of slice {TPU}; missing worker id 0, 1, 2, 3"),
    "a host is missing": (NODES[:-1], f"Ray shows 3 of 4 hosts of slice {TPU}; missing worker id 3"),
    "a host is dead": (
        (*NODES[:-1], replace(NODES[-1], alive=False)),
        f"Ray shows 3 of 4 hosts of slice {TPU}; missing worker id 3",
    ),
    "a worker id twice": (
        (*NODES, replace(NODES[0], node_id="ghost")),
        f"Ray shows worker id 0 of slice {TPU} more than once (a lost host not yet forgotten)",
    ),
    "a worker id that no host has": (
        (*NODES, replace(NODES[0], worker_id="4")),
        f"Ray shows unexpected worker id 4 in slice {TPU}",
    ),
    "a host without its chips": (
        (*NODES[:-1], replace(NODES[-1], tpus=1.0)),
        f"host 3 of slice {TPU} offers 1 TPU to Ray instead of 4",
    ),
    "a host of another shape": (
        (*NODES[:-1], replace(NODES[-1], pod_type="v6e-8")),
        f"host 3 of slice {TPU} calls itself v6e-8 instead of v6e-16",
    ),
}


@pytest.mark.parametrize(("nodes", "want"), RAY.values(), ids=RAY)
def test_what_ray_lacks(nodes: tuple[RayNodeSeen, ...], want: str | None) -> None:
    assert ray_missing(GROUPS, nodes, shape=SHAPE) == want


def test_every_slice_must_be_whole() -> None:
    job = a_job(num_slices=2)
    groups = tuple(
        WorkerGroup(name=names.worker_group_name(index), tpu_name=names.tpu_name(CLUSTER, slice_index=index))
        for index in range(2)
    )
    nodes = some_ray_nodes(job)
    assert (
        ray_missing(groups, nodes, shape=SHAPE),
        ray_missing(groups, nodes[:-1], shape=SHAPE),
        pods_missing(groups, some_pods(groups=2), shape=SHAPE),
        pods_missing(groups, some_pods(groups=1), shape=SHAPE),
    ) == (
        None,
        f"Ray shows 3 of 4 hosts of slice {groups[1].tpu_name}; missing worker id 3",
        None,
        "0 of 4 worker pods of group s1 are Ready",
    )


def test_a_host_of_two_devices_per_chip_offers_devices() -> None:
    job = a_job(accelerator="v7x", topology="2x2x1")
    groups = (WorkerGroup(name="s0", tpu_name=TPU),)
    nodes = some_ray_nodes(job)
    assert ([node.tpus for node in nodes], ray_missing(groups, nodes, shape=job.shape)) == ([8.0], None)
