"""Whom a change wakes."""

from typing import Any

import pytest

from torchtpu_operator.clients.kinds import CLASSES, JOBS, NAMESPACES, NODES, PODS, SLICES, Kind
from torchtpu_operator.controller.caches import ALLOCATION, Caches, UnreadableError, slice_key
from torchtpu_operator.controller.workqueue import Key

JOB, OTHER, SLICE = Key("job", "ml", "a"), Key("job", "ml", "b"), slice_key("s")
SPEC = {"accelerator": "v6e", "topology": "4x4", "entrypoint": "x", "image": "i"}


def obj(name: str, version: int, *, namespace: str | None = None, uid: str = "", **rest: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version), **rest.pop("meta", {})}
    if namespace:
        meta["namespace"] = namespace
    return {"metadata": meta, **rest}


def a_job(name: str, version: int) -> dict[str, Any]:
    return obj(name, version, namespace="ml", spec=SPEC)


def a_slice(version: int, *, claimed_by: str | None) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "sliceClassName": "default",
        "accelerator": "v6e",
        "topology": "4x4",
        "offer": {"name": "od", "type": "OnDemand", "zone": "us-east5-b"},
        "nodePool": {"name": "s"},
    }
    if claimed_by:
        spec["claimRef"] = {
            "namespace": "ml",
            "name": claimed_by,
            "uid": f"uid-{claimed_by}",
            "sliceIndex": 0,
            "claimedAt": "2026-11-30T12:00:00Z",
        }
    return obj("s", version, spec=spec)


def a_node(version: int) -> dict[str, Any]:
    labels = {"cloud.google.com/gke-nodepool": "s"}
    return obj("n", version, meta={"labels": labels, "creationTimestamp": "2026-11-30T12:00:00Z"})


def a_pod(version: int) -> dict[str, Any]:
    return obj("p", version, namespace="ml", meta={"labels": {"torchtpu.dev/job-uid": "uid-a"}})


def a_namespace(version: int, **labels: str) -> dict[str, Any]:
    return obj("ml", version, meta={"labels": labels})


class World:
    """Jobs a and b; slice s, claimed by a."""

    def __init__(self) -> None:
        self.woken: list[Key] = []
        self.caches = Caches(wake=self.woken.append)
        self.caches.jobs.remember(a_job("a", 1))
        self.caches.jobs.remember(a_job("b", 2))
        self.caches.slices.remember(a_slice(3, claimed_by="a"))
        self.caches.namespaces.remember(a_namespace(4))
        self.caches.classes.remember(obj("old", 5, spec={}))
        self.woken.clear()


CHANGES: dict[str, tuple[Kind, dict[str, Any], set[Key]]] = {
    "a job that changes its demand wakes itself, allocation and the slices that it holds": (
        JOBS,
        {**a_job("a", 10), "status": {"demand": {"slices": 0}}},
        {JOB, SLICE, ALLOCATION},
    ),
    "a job that asks for the same wakes no slice": (
        JOBS,
        {**a_job("a", 10), "status": {"message": "runs"}},
        {JOB, ALLOCATION},
    ),
    "a slice wakes itself, allocation and its job": (SLICES, a_slice(10, claimed_by="a"), {SLICE, JOB, ALLOCATION}),
    "a slice that changes hands wakes both jobs": (
        SLICES,
        a_slice(10, claimed_by="b"),
        {SLICE, JOB, OTHER, ALLOCATION},
    ),
    "a slice that is released wakes the job that had it": (
        SLICES,
        a_slice(10, claimed_by=None),
        {SLICE, JOB, ALLOCATION},
    ),
    "a node wakes the slice of its pool and that one's job": (NODES, a_node(10), {SLICE, JOB}),
    "a pod wakes its job": (PODS, a_pod(10), {JOB}),
    "a class wakes allocation and every job": (CLASSES, obj("default", 10, spec={}), {ALLOCATION, JOB, OTHER}),
    "a class of which only the status changed wakes allocation alone": (
        CLASSES,
        obj("old", 10, spec={}, status={"message": "x"}),
        {ALLOCATION},
    ),
    "new labels of a namespace wake its jobs and allocation": (
        NAMESPACES,
        a_namespace(10, team="x"),
        {ALLOCATION, JOB, OTHER},
    ),
    "a namespace that changes in nothing we read wakes nobody": (NAMESPACES, a_namespace(10), set()),
    "an older version wakes nobody": (JOBS, a_job("a", 1), set()),
}


@pytest.mark.parametrize(("kind", "changed", "want"), CHANGES.values(), ids=CHANGES)
def test_a_change_wakes(kind: Kind, changed: dict[str, Any], want: set[Key]) -> None:
    world = World()
    world.caches.of(kind).remember(changed)
    assert (set(world.woken), len(world.woken)) == (want, len(want))


def test_a_deleted_slice_wakes_its_job() -> None:
    world = World()
    world.caches.slices.forget(a_slice(10, claimed_by="a"))
    assert set(world.woken) == {SLICE, JOB, ALLOCATION}


def test_the_answer_to_a_keys_own_write_wakes_the_others_but_not_itself() -> None:
    world = World()
    world.caches.remember(SLICES, a_slice(10, claimed_by="a"), by=SLICE)
    assert set(world.woken) == {JOB, ALLOCATION}


def test_kuberays_coming_wakes_every_job_once() -> None:
    world = World()
    world.caches.set_kuberay(True)
    world.caches.set_kuberay(True)
    assert world.woken == [JOB, OTHER]


def test_an_object_that_cannot_be_read_is_neither_absent_nor_guessed() -> None:
    world = World()
    world.caches.jobs.remember(obj("a", 10, uid="uid-a", namespace="ml", spec={"accelerator": 7}))
    known = world.caches.jobs.get("a", namespace="ml")
    assert known is not None
    with pytest.raises(UnreadableError, match="TorchTPUJob ml/a cannot be read"):
        _ = known.model
