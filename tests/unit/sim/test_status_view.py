"""`sim status` for people."""

from typing import Any

import pytest
from rich.console import Console

from sim.cli.status_view import age, build_view, size

NOW = 1_800_000_000.0
CREATED = "2027-01-15T07:58:00Z"  # two minutes before NOW

STATUS: dict[str, Any] = {
    "programs": [
        {"name": "etcd", "pid": 6, "running": True, "exit_code": None, "restarts": 0, "rss_bytes": 5e7, "started_at": NOW - 30},
        {"name": "coredns", "pid": 9, "running": False, "exit_code": 1, "restarts": 2, "rss_bytes": 0, "started_at": NOW},
    ],
    "pools": [
        {"name": "p", "status": "RUNNING", "machine_type": "ct6e-standard-4t", "topology": "4x4", "zones": ["z"], "nodes": ["a"]}
    ],
}  # fmt: skip

LABELS = {
    "cloud.google.com/gke-nodepool": "p",
    "cloud.google.com/gke-tpu-topology": "4x4",
    "topology.kubernetes.io/zone": "us-east5-b",
}
NODE = {
    "kind": "Node",
    "metadata": {"name": "n1", "creationTimestamp": CREATED, "labels": LABELS},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"google.com/tpu": "4"},
        "addresses": [{"type": "InternalIP", "address": "10.245.0.1"}],
    },
}


def _pod(**status: Any) -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "ml", "creationTimestamp": CREATED}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [{}], "nodeName": "n1"}, "status": status}


def _lines(status: dict[str, Any], objects: list[dict[str, Any]]) -> list[list[str]]:
    console = Console(width=200, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(build_view(status, objects, now=NOW))
    return [line.split() for line in captured.get().splitlines() if line.strip() and "──" not in line]


def test_programs_nodes_pools_and_pods() -> None:
    container = {"ready": True, "restartCount": 1, "state": {"running": {}}}
    pod = _pod(phase="Running", podIP="10.244.1.1", containerStatuses=[container])
    assert _lines(STATUS, [NODE, pod]) == [
        ["programs", "·", "50", "MB"],
        ["program", "state", "pid", "memory", "age", "restarts"],
        ["etcd", "running", "6", "50", "MB", "30s", "0"],
        ["coredns", "ended", "1", "9", "0", "MB", "0s", "2"],
        ["nodes"],
        ["node", "state", "zone", "TPU", "chips", "address", "age"],
        ["n1", "Ready", "us-east5-b", "4x4", "4", "10.245.0.1", "2m"],
        ["TPU", "node", "pools", "(GKE)"],
        ["pool", "status", "machine", "topology", "zones", "nodes"],
        ["p", "RUNNING", "ct6e-standard-4t", "4x4", "z", "1"],
        ["pods"],
        ["namespace", "pod", "state", "ready", "restarts", "node", "address", "age"],
        ["ml", "w", "Running", "1/1", "1", "n1", "10.244.1.1", "2m"],
    ]


STATES = {
    "a phase, if nothing says more": (_pod(phase="Pending"), "Pending"),
    "why a container waits": (
        _pod(phase="Pending", containerStatuses=[{"ready": False, "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]),
        "ImagePullBackOff",
    ),
    "no status yet": (_pod(), "Unknown"),
    "on its way out": ({**_pod(phase="Running"), "metadata": {**_pod()["metadata"], "deletionTimestamp": CREATED}}, "Terminating"),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "want"), STATES.values(), ids=STATES)
def test_a_pods_state_is_what_kubectl_would_show(pod: dict[str, Any], want: str) -> None:
    assert _lines({"programs": [], "pools": []}, [pod])[-1][2] == want


AGES = {0.0: "0s", 119.0: "119s", 120.0: "2m", 7200.0: "2h", 86400.0: "1d", 200000.0: "2d", -3.0: "0s"}


@pytest.mark.parametrize(("seconds", "want"), AGES.items())
def test_ages(seconds: float, want: str) -> None:
    assert age(seconds) == want


@pytest.mark.parametrize(("count", "want"), [(0, "0 MB"), (5e7, "50 MB"), (1.25e9, "1.25 GB")])
def test_sizes(count: float, want: str) -> None:
    assert size(count) == want
