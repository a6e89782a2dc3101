"""What is kept of pods and nodes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from torchtpu_operator.controller.facts import NodeFact, PodFact, read_node, read_pod
from torchtpu_operator.plan.observed import NodeSeen, PodSeen


def a_pod(status: dict[str, Any], **meta: Any) -> dict[str, Any]:
    labels = {
        "torchtpu.dev/job-uid": "u1",
        "torchtpu.dev/attempt": "2",
        "ray.io/node-type": "worker",
        "ray.io/group": "s0",
        "ray.io/worker-group-replica-name": "s0-abcde",
        "ray.io/replica-host-index": "3",
    }
    return {
        "metadata": {"name": "p", "namespace": "ml", "uid": "p1", "labels": labels, **meta},
        "spec": {"nodeName": "n1"},
        "status": status,
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {"phase": "Pending", "containerStatuses": [{"name": "ray", "state": state}]}


def test_a_worker_pod_that_runs() -> None:
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "ray", "restartCount": 1, "state": {"running": {}}}],
    }
    want = PodSeen(
        name="p",
        namespace="ml",
        uid="p1",
        phase="Running",
        ready=True,
        node="n1",
        node_type="worker",
        group="s0",
        attempt=2,
        replica="s0-abcde",
        host_index="3",
        terminating=True,
        restarts=1,
    )
    assert read_pod(a_pod(status, deletionTimestamp="2026-11-30T12:00:00Z")) == PodFact(job_uid="u1", seen=want)


# the end of what `ray start` of 2.60.0 prints (tests/ray holds it against the real one)
MISMATCH = (
    "    raise RuntimeError(error_message)\nRuntimeError: Version mismatch: The cluster was started with:\n"
    "    Ray: 2.60.0\n    Python: 3.11.7\nThis process on node 10.244.0.9 was started with:\n"
    "    Ray: 2.59.0\n    Python: 3.12.1\n\n"
)

PROBLEMS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "a worker of another Ray than the head": (
        {
            "phase": "Failed",
            "containerStatuses": [{"name": "ray", "state": {"terminated": {"exitCode": 1, "message": MISMATCH}}}],
        },
        ("RayVersionMismatch", "it has Ray 2.59.0 and Python 3.12.1, the head has Ray 2.60.0 and Python 3.11.7"),
    ),
    "an image that is not there": (
        waiting("ImagePullBackOff", 'Back-off pulling image "x"'),
        ("ImagePullBackOff", 'container ray: ImagePullBackOff: Back-off pulling image "x"'),
    ),
    "a container on its way is no problem": (waiting("ContainerCreating"), ("", "")),
    "nowhere to run": (
        {
            "phase": "Pending",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/4 nodes are available",
                }
            ],
        },
        ("Unschedulable", "Unschedulable: 0/4 nodes are available"),
    ),
    "an init container that fails": (
        {
            "phase": "Failed",
            "initContainerStatuses": [
                {"name": "wait-gcs-ready", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
            ],
        },
        ("Error", "container wait-gcs-ready: Error, exit code 1"),
    ),
    "killed for its memory": (
        {
            "phase": "Failed",
            "containerStatuses": [{"name": "ray", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}],
        },
        ("OOMKilled", "container ray: OOMKilled, exit code 137"),
    ),
    "evicted": (
        {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
        ("Evicted", "The node was low on resource: memory."),
    ),
    "nothing is known yet": ({}, ("", "")),
}


@pytest.mark.parametrize(("status", "want"), PROBLEMS.values(), ids=PROBLEMS)
def test_why_a_pod_does_not_run(status: dict[str, Any], want: tuple[str, str]) -> None:
    seen = read_pod(a_pod(status)).seen
    assert (seen.problem_reason, seen.problem) == want


def a_node(*, ready: str = "True", allocatable: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "n1",
            "uid": "n-uid",
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "labels": {"cloud.google.com/gke-nodepool": "pool-a"},
        },
        "spec": spec,
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {"google.com/tpu": "4"} if allocatable is None else allocatable,
        },
    }


NODES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a whole host": (a_node(), {"ready": True, "chips": 4}),
    "one whose device plugin is not there yet": (a_node(allocatable={"cpu": "8"}), {"ready": True, "chips": 0}),
    "one that nobody hears of": (a_node(ready="Unknown"), {"ready": False, "chips": 4}),
    "one that GKE is about to take": (
        a_node(taints=[{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}]),
        {"ready": True, "chips": 4, "terminating": True},
    ),
}


@pytest.mark.parametrize(("node", "want"), NODES.values(), ids=NODES)
def test_a_host(node: dict[str, Any], want: dict[str, Any]) -> None:
    created = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    seen = NodeSeen(name="n1", uid="n-uid", created_at=created, **want)
    assert read_node(node) == NodeFact(pool="pool-a", seen=seen)
