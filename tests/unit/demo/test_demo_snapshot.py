"""From the apiserver's objects to what the demo shows."""

from dataclasses import dataclass
from typing import Any

import pytest

from sim.demo.snapshot import Event, Node, parse_events, parse_node, parse_pods
from tests.builders import at

CREATED = "2026-11-30T12:00:00Z"


def a_pod_object(name: str, role: str = "worker", job: str = "llama", **status: Any) -> dict[str, Any]:
    labels = {"ray.io/node-type": role, "torchtpu.dev/job": job}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED, "labels": labels},
        "spec": {"nodeName": "n"},
        "status": status,
    }


@dataclass(frozen=True)
class Case:
    status: dict[str, Any]
    want: tuple[str, bool]


STATES = {
    "nothing known yet": Case(status={}, want=("Pending", False)),
    "the first init container runs": Case(
        status={
            "phase": "Pending",
            "initContainerStatuses": [{"state": {"running": {}}}],
            "containerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}],
        },
        want=("Init:0/1", False),
    ),
    "an image that does not exist": Case(
        status={"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
        want=("ImagePullBackOff", False),
    ),
    "running and ready": Case(
        status={
            "phase": "Running",
            "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}}],
            "containerStatuses": [{"state": {"running": {}}}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": CREATED}],
        },
        want=("Running", True),
    ),
}


@pytest.mark.parametrize("case", STATES.values(), ids=STATES)
def test_state_of_a_pod(case: Case) -> None:
    (pod,) = parse_pods([a_pod_object("p", **case.status)], job="llama")
    assert (pod.state, pod.ready) == case.want


def test_a_pod_that_is_deleted_terminates_whatever_its_phase() -> None:
    obj = a_pod_object("p", phase="Running")
    obj["metadata"]["deletionTimestamp"] = CREATED
    assert [pod.state for pod in parse_pods([obj], job="llama")] == ["Terminating"]


def test_the_head_comes_first_and_strangers_are_left_out() -> None:
    objects = [a_pod_object("a"), a_pod_object("z", "head"), a_pod_object("other", job="b"), a_pod_object("odd", "")]
    assert [pod.name for pod in parse_pods(objects, job="llama")] == ["z", "a"]


def test_a_node_without_its_device_plugin_has_no_chips() -> None:
    obj = {
        "metadata": {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "pool"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "1"}},
    }
    assert parse_node(obj) == Node(name="n", pool="pool", ready=True, chips=0)


def test_events_of_the_operator_in_order() -> None:
    def an_object(uid: str, second: int, component: str = "torchtpu-operator", count: int = 1) -> dict[str, Any]:
        return {
            "metadata": {"uid": uid, "creationTimestamp": CREATED},
            "lastTimestamp": f"2026-11-30T12:00:{second:02d}Z",
            "reportingComponent": component,
            "involvedObject": {"kind": "TPUSlice", "name": "s"},
            "type": "Warning",
            "reason": "Stockout",
            "message": "no chips",
            "count": count,
        }

    def want(uid: str, second: int, count: int) -> Event:
        return Event(
            key=f"{uid}/{count}",
            at=at(second),
            warning=True,
            kind="TPUSlice",
            name="s",
            reason="Stockout",
            message="no chips",
            count=count,
        )

    objects = [an_object("b", 9, count=3), an_object("a", 5), an_object("c", 1, component="kubelet")]
    assert parse_events(objects, component="torchtpu-operator") == (want("a", 5, 1), want("b", 9, 3))
