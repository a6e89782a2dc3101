# ruff: noqa: ARG002 - signatures of a Protocol
"""What a job reconcile sees beside its caches: lost nodes, the live slices of a job that ends, the runner's result."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.builders import NOW, a_class, a_job, a_slice
from tests.doubles.kube import MemoryKube
from torchtpu_operator.clients.kinds import CLASSES, JOBS, NODES, PODS, SLICES, Kind
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.caches import Caches
from torchtpu_operator.controller.observe_job import observe_job
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import World
from torchtpu_operator.plan.job import JobObserved
from torchtpu_operator.plan.observed import Settings


class Clock:
    def now(self) -> datetime:
        return NOW


class NobodyWaits:
    def of(self, job_uid: str) -> None:
        return None


class Rig:
    def __init__(self) -> None:
        unused: Any = None
        self.kube = MemoryKube(clock=lambda: datetime(2026, 11, 30, tzinfo=UTC))
        self.caches = Caches(wake=lambda _: None)
        self.world = World(
            kube=self.kube,
            gke=unused,
            ray=unused,
            heads=RayHeads(self.kube),
            caches=self.caches,
            clock=Clock(),
            settings=Settings(installation="i", namespace="n", gke_parent="p"),
            new_token=lambda: "t",
        )

    async def cached(self, kind: Kind, obj: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
        await self.kube.create(kind, obj)
        meta = obj["metadata"]
        made = self.kube.put_status(kind, meta["name"], status or {}, namespace=meta.get("namespace"))
        self.caches.of(kind).remember(made)
        return made

    async def look(self, job: Any) -> JobObserved:
        key = Key("job", job.metadata.namespace, job.metadata.name)
        return await observe_job(self.world, job, key=key, waits=NobodyWaits(), outcomes=())


def a_pod(name: str, uid: str, *, node: str, node_type: str = "worker") -> dict[str, Any]:
    labels = {"torchtpu.dev/job-uid": uid, "ray.io/node-type": node_type}
    return {"metadata": {"name": name, "namespace": "ml", "labels": labels}, "spec": {"nodeName": node}}


def ready(status: str = "True") -> dict[str, Any]:
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}


NODE_LABELS = {"cloud.google.com/gke-nodepool": "p", "cloud.google.com/gke-tpu-accelerator": "x"}


async def test_a_pod_is_lost_when_its_host_is_gone_or_not_ready() -> None:
    rig, job = Rig(), a_job().build()
    uid = job.metadata.uid
    await rig.cached(NODES, {"metadata": {"name": "good", "labels": NODE_LABELS}}, ready())
    await rig.cached(NODES, {"metadata": {"name": "silent", "labels": NODE_LABELS}}, ready("Unknown"))
    for name in ("good", "silent", "gone"):
        await rig.cached(PODS, a_pod(f"on-{name}", uid, node=name), ready())
    await rig.cached(PODS, a_pod("unbound", uid, node=""), {"phase": "Pending"})
    observed = await rig.look(job)
    assert {pod.name: pod.lost_node for pod in observed.pods} == {
        "on-good": False,
        "on-silent": True,
        "on-gone": True,
        "unbound": False,
    }


async def test_a_heads_node_is_asked_live_only_when_the_head_looks_ill() -> None:
    rig, job = Rig(), a_job().build()
    uid = job.metadata.uid
    await rig.kube.create(NODES, {"metadata": {"name": "cpu-good"}})
    rig.kube.put_status(NODES, "cpu-good", ready())
    await rig.cached(PODS, a_pod("well", uid, node="cpu-gone", node_type="head"), ready())
    await rig.cached(PODS, a_pod("ill", uid, node="cpu-good", node_type="head"), ready("False"))
    await rig.cached(PODS, a_pod("lost", uid, node="cpu-gone", node_type="head"), ready("False"))
    rig.kube.calls.clear()
    observed = await rig.look(job)
    asked = sorted(name for verb, plural, name in rig.kube.calls if plural == "nodes")
    lost = {pod.name: pod.lost_node for pod in observed.pods}
    assert (lost, asked) == ({"well": False, "ill": False, "lost": True}, ["cpu-gone", "cpu-good"])


async def test_a_job_that_ends_counts_its_slices_live() -> None:
    rig = Rig()
    job = a_job().deleted().build()
    held = a_slice().to_object()
    for name in ("metadata",):
        held[name].pop("resourceVersion", None)
    made = await rig.kube.create(SLICES, held)
    stale = await rig.cached(CLASSES, a_class().to_object())
    seen = await rig.look(job)
    await rig.kube.merge(SLICES, made["metadata"]["name"], {"spec": {"claimRef": None}, "metadata": {}})
    later = await rig.look(job)
    claimed = made["spec"]["claimRef"]["uid"] == job.metadata.uid
    assert stale
    assert (claimed, len(seen.slices), len(later.slices)) == (True, 1, 0)


async def test_a_list_that_fails_is_no_empty_list() -> None:
    rig = Rig()

    def unreachable(verb: str, kind: Kind, name: str) -> None:
        if (verb, kind) == ("list", SLICES):
            raise KubeError("no answer", call="GET", status=0)

    rig.kube.before = unreachable
    with pytest.raises(KubeError):
        await rig.look(a_job().deleted().build())


CLASSES_AND_NAMES = {
    "the only default class": ((True, False), None, "class-0", 1),
    "no default class": ((False, False), None, None, 0),
    "two default classes": ((True, True), None, None, 2),
    "the named one": ((True, False), "class-1", "class-1", 1),
    "one that is not there": ((True, False), "class-9", None, 1),
}


@pytest.mark.parametrize(("defaults", "named", "want", "count"), CLASSES_AND_NAMES.values(), ids=CLASSES_AND_NAMES)
async def test_the_class_of_a_job(defaults: tuple[bool, ...], named: str | None, want: str | None, count: int) -> None:
    rig = Rig()
    for number, default in enumerate(defaults):
        manifest = a_class(f"class-{number}").to_object()
        manifest["metadata"].pop("resourceVersion", None)
        manifest["metadata"]["annotations"] = {"torchtpu.dev/is-default-class": str(default).lower()}
        await rig.cached(CLASSES, manifest)
    job = a_job().spec(slice_class_name=named).build()
    observed = await rig.look(job)
    found = observed.slice_class.metadata.name if observed.slice_class else None
    assert (found, observed.default_classes) == (want, count)


async def test_kuberay_is_what_discovery_said() -> None:
    rig = Rig()
    before = (await rig.look(a_job().build())).kuberay
    rig.caches.set_kuberay(True)
    assert (before, (await rig.look(a_job().build())).kuberay) == (False, True)


def test_kinds_have_paths() -> None:
    got = [
        JOBS.path(),
        JOBS.path(namespace="ml", name="a", subresource="status"),
        PODS.path(namespace="ml"),
        NODES.path(namespace="ignored", name="n"),
    ]
    assert got == [
        "/apis/torchtpu.dev/v1alpha1/torchtpujobs",
        "/apis/torchtpu.dev/v1alpha1/namespaces/ml/torchtpujobs/a/status",
        "/api/v1/namespaces/ml/pods",
        "/api/v1/nodes/n",
    ]
