"""A day in virtual time: the real reconcilers and work queue between an in-memory Kubernetes, the simulated GKE and Ray."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import looptime

from sim.gke import ClusterManager, InProcessClusterManagerClient
from sim.gke import Settings as GkeSettings
from sim.nodes import TPU_RESOURCE, NodeSpec
from tests.sim.rig_calls import Calls
from tests.sim.rig_kube import SimKube
from tests.sim.rig_kuberay import SimKubeRay
from tests.sim.rig_ray import SimRay
from torchtpu_operator.clients.gke import GkeClient, GkeCluster
from torchtpu_operator.clients.gke_limit import OperationLimit
from torchtpu_operator.clients.kinds import CLASSES, JOBS, NAMESPACES, NODES, PODS, RAY_CLUSTERS, SLICES
from torchtpu_operator.controller.caches import ALLOCATION, Caches
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.reconcile import Reconciler
from torchtpu_operator.controller.resync import Resync
from torchtpu_operator.controller.watching import SELECTORS
from torchtpu_operator.controller.workqueue import Key, WorkQueue
from torchtpu_operator.controller.world import World
from torchtpu_operator.plan.actions import Event
from torchtpu_operator.plan.observed import Settings

EPOCH = datetime(2026, 11, 30, tzinfo=UTC)
NAMESPACE = "ml"
WORKERS = 4
FOLD_ALLOCATION = 0.05
T = TypeVar("T")


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a loop whose clock jumps over every wait."""
    loop = looptime.new_event_loop(noop_cycles=1)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(_end_all())
        loop.close()


async def _end_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def now() -> float:
    return asyncio.get_running_loop().time()


class LoopClock:
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=now())


@dataclass
class SimHost:
    """Implements `NodeHost`: Node objects in the in-memory API."""

    kube: SimKube
    silent_seconds: float = 40.0
    """From the death of a host until its Node turns NotReady."""
    dead: set[str] = field(default_factory=set)
    """Names of hosts on which nothing runs any more; Ray notices long before Kubernetes does."""

    async def add(self, node: NodeSpec) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.name, "labels": dict(node.labels)},
            "spec": {},
        }
        await self.kube.create(NODES, manifest)
        self.dead.discard(node.name)
        self._mark(node.name, ready=True, chips=0)
        asyncio.get_running_loop().call_later(0.5, lambda: self._mark(node.name, ready=True, chips=node.tpu_chips))

    async def remove(self, name: str, *, abrupt: bool = False) -> None:
        node = self.kube.peek(NODES, name)
        if node is None:
            return
        if abrupt:
            self.dead.add(name)
            later = asyncio.get_running_loop().call_later
            later(self.silent_seconds, lambda: self._mark(name, ready=False, chips=0, uid=node["metadata"]["uid"]))
            return
        await self.kube.delete(NODES, name, uid=node["metadata"]["uid"])

    def _mark(self, name: str, *, ready: bool, chips: int, uid: str = "") -> None:
        node = self.kube.peek(NODES, name)
        if node is None or (uid and node["metadata"]["uid"] != uid):
            return
        status = {
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
            "allocatable": {TPU_RESOURCE: str(chips)},
        }
        self.kube.put_status(NODES, name, status)


@dataclass
class Recorder:
    """What `EventRecorder` is to the reconcilers."""

    events: list[tuple[float, str, str]] = field(default_factory=list)
    """(time, reason, message)"""

    def record(self, about: Mapping[str, Any], event: Event) -> None:
        del about
        self.events.append((now(), event.reason, event.message))


class Outside:
    """All that outlives the operator's process."""

    def __init__(self, *, gke: GkeSettings | None = None, **ray: Any) -> None:
        clock = LoopClock()
        self.kube = SimKube(clock=clock.now)
        self.host = SimHost(self.kube)
        self.gke = ClusterManager(self.host, settings=gke or GkeSettings(), clock=clock.now)
        self.kuberay = SimKubeRay(self.kube)
        self.ray = SimRay(self.kube, dead=self.host.dead, **ray)
        self.calls = Calls()
        self.recorder = Recorder()
        self.tasks: list[asyncio.Task[None]] = []
        self.deaths = 0
        self.chip_limit: int | None = None
        """More chips than so many must never be asked for at one time."""
        self.watch_seconds = 0.0
        """How far the operator's watches are behind."""
        self.phases: list[str] = []
        """Phases of the jobs, as they were written."""
        self.overlaps: list[str] = []
        """Moments in which a promise did not hold."""
        self.kube.watch(JOBS, self._job_seen)
        self.kube.watch(SLICES, self._slice_seen)
        self.kube.watch(PODS, self._pod_seen)

    # --- what people do

    async def prepare(self, **class_spec: Any) -> None:
        for name in ("kube-system", NAMESPACE, "torchtpu-system"):
            await self.kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        spec = {"offers": [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"]}]} | class_spec
        await self.kube.create(
            CLASSES,
            {
                "apiVersion": "torchtpu.dev/v1alpha1",
                "kind": "TPUSliceClass",
                "metadata": {"name": "default", "annotations": {"torchtpu.dev/is-default-class": "true"}},
                "spec": spec,
            },
        )

    async def apply(self, name: str = "llama", **spec: Any) -> None:
        fields = {
            "accelerator": "v6e",
            "topology": "2x4",
            "chipsPerHost": 4,
            "image": "example.com/ray-torchtpu:2.60.0",
            "entrypoint": "python train.py",
            "logRetentionSeconds": 0,
            "stopGracePeriodSeconds": 5,
        }
        await self.kube.create(
            JOBS,
            {
                "apiVersion": "torchtpu.dev/v1alpha1",
                "kind": "TorchTPUJob",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": fields | spec,
            },
        )

    async def delete(self, name: str = "llama") -> None:
        job = self.job(name)
        if job is not None:
            await self.kube.delete(JOBS, name, uid=job["metadata"]["uid"], namespace=NAMESPACE)

    async def change(self, name: str = "llama", **spec: Any) -> None:
        await self.kube.merge(JOBS, name, {"spec": spec}, namespace=NAMESPACE)

    # --- what is there

    def job(self, name: str = "llama") -> dict[str, Any] | None:
        return self.kube.peek(JOBS, name, namespace=NAMESPACE)

    def phase(self, name: str = "llama") -> str:
        return str(((self.job(name) or {}).get("status") or {}).get("phase") or "")

    def said(self, name: str = "llama") -> str:
        return str(((self.job(name) or {}).get("status") or {}).get("message") or "")

    def left(self) -> dict[str, list[str]]:
        """What costs money or shows that something was forgotten."""
        return {
            "pools": sorted(self.gke.pools),
            "slices": [each["metadata"]["name"] for each in self.kube.view(SLICES)],
            "nodes": [each["metadata"]["name"] for each in self.kube.view(NODES)],
            "rayClusters": [each["metadata"]["name"] for each in self.kube.view(RAY_CLUSTERS)],
            "pods": [each["metadata"]["name"] for each in self.kube.view(PODS)],
        }

    def creations(self) -> list[str]:
        """Names of the pools that GKE was asked for and accepted."""
        return [
            call.body["nodePool"]["name"]
            for call in self.gke.calls.mutating
            if call.method == "CreateNodePool" and call.outcome == "OK"
        ]

    async def after(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def until(self, what: Callable[[], bool], *, seconds: float = 600, step: float | None = None) -> None:
        """Looked at every `step`; without one every half second, later less often. Raises AssertionError with the state of things at the end."""
        began = now()
        end = began + seconds
        while not what():
            for task in self.tasks:
                if task.done():
                    task.result()
            if now() >= end:
                job = (self.job() or {}).get("status")
                slices = [each.get("status") for each in self.kube.view(SLICES)]
                raise AssertionError(f"not within {seconds} s\njob: {job}\nslices: {slices}\nleft: {self.left()}")
            await asyncio.sleep(step or max(0.5, (now() - began) / 50))

    # --- promises that hold at every moment

    def _job_seen(self, event: str, obj: dict[str, Any]) -> None:
        phase = (obj.get("status") or {}).get("phase")
        if phase and event != "DELETED" and (not self.phases or self.phases[-1] != phase):
            self.phases.append(phase)

    def _slice_seen(self, event: str, obj: dict[str, Any]) -> None:
        del event, obj
        chips = 8 * len(self.kube.view(SLICES))  # the rig's jobs are all of one shape
        if self.chip_limit is not None and chips > self.chip_limit:
            self.overlaps.append(f"{now():.1f}: {chips} chips, the limit is {self.chip_limit}")
        held: dict[str, int] = {}
        for each in self.kube.view(SLICES):
            claim = each["spec"].get("claimRef")
            if claim and not each["metadata"].get("deletionTimestamp"):
                held[claim["uid"]] = held.get(claim["uid"], 0) + 1
        for job in self.kube.view(JOBS):
            if held.get(job["metadata"]["uid"], 0) > job["spec"].get("numSlices", 1):
                self.overlaps.append(f"{now():.1f}: job {job['metadata']['name']} holds too many slices")

    def _pod_seen(self, event: str, obj: dict[str, Any]) -> None:
        if event != "ADDED":
            return
        labels = obj["metadata"]["labels"]
        for pod in self.kube.view(PODS):
            other = pod["metadata"]["labels"]
            same = other["torchtpu.dev/job-uid"] == labels["torchtpu.dev/job-uid"]
            if same and other["torchtpu.dev/attempt"] != labels["torchtpu.dev/attempt"]:
                self.overlaps.append(f"{now():.1f}: pods of two attempts live")


class Operator:
    """One process: empty memory, first lists, watches, workers. No resync: looks and events alone must do."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        calls = outside.calls
        self._kube = calls.watched(outside.kube, "kube")
        self._queue = WorkQueue(jitter=lambda: 0.5)
        self._caches = Caches(wake=self._wake)
        cluster = GkeCluster(project="demo", location="us-east5", cluster="bench")

        async def connect(_: GkeCluster) -> Any:
            return InProcessClusterManagerClient(outside.gke)

        gke = GkeClient(cluster, limit=OperationLimit(monotonic=now), connect=connect)
        self._world = World(
            kube=self._kube,
            gke=calls.watched(gke, "gke"),
            ray=calls.watched(outside.ray, "ray"),
            heads=RayHeads(self._kube),
            caches=self._caches,
            clock=LoopClock(),
            settings=Settings(installation="0123456789abcdef", namespace="torchtpu-system", gke_parent=cluster.path),
            new_token=lambda: "token",
        )
        self._tasks: list[asyncio.Task[Any]] = []
        self._alive = True
        self._stream: asyncio.Queue[tuple[float, Any, str, dict[str, Any]]] = asyncio.Queue()

    async def run(self) -> None:
        """Until it is killed."""
        resync = Resync(self._kube, self._caches, self._queue, every=300, monotonic=now)
        await resync.fill()
        for kind in SELECTORS:
            self._outside.kube.watch(kind, partial(self._told, kind))
        # what came between the lists and the watches, as a watch from the lists' version shows it
        for kind in SELECTORS:
            if kind != RAY_CLUSTERS:
                for obj in self._outside.kube.all(kind):
                    self._told(kind, "MODIFIED", obj)
        reconcile = Reconciler(self._world, self._outside.recorder, wake=self._wake)
        self._tasks = [asyncio.create_task(self._queue.work(reconcile)) for _ in range(WORKERS)]
        self._tasks += [asyncio.create_task(resync.watch_kuberay()), asyncio.create_task(self._read_watches())]
        await asyncio.gather(*self._tasks)

    def kill(self) -> None:
        self._alive = False
        for task in self._tasks:
            task.cancel()

    def _told(self, kind: Any, event: str, obj: dict[str, Any]) -> None:
        if self._alive:
            self._stream.put_nowait((now() + self._outside.watch_seconds, kind, event, obj))

    async def _read_watches(self) -> None:
        while True:
            due, kind, event, obj = await self._stream.get()
            if due > now():
                await asyncio.sleep(due - now())
            self._take(kind, event, obj)

    def _take(self, kind: Any, event: str, obj: dict[str, Any]) -> None:
        if not self._alive:
            return
        key, _, value = SELECTORS[kind].partition("=")
        labels = obj["metadata"].get("labels") or {}
        if key and (key not in labels or (value and labels[key] != value)):
            return
        if kind == RAY_CLUSTERS:
            self._caches.wake_job_of(labels.get("torchtpu.dev/job-uid", ""))
        elif event == "DELETED":
            self._caches.of(kind).forget(obj)
        else:
            self._caches.of(kind).remember(obj)

    def _wake(self, key: Key) -> None:
        if not self._alive:
            return
        if key == ALLOCATION:
            self._queue.add_after(key, FOLD_ALLOCATION)
        else:
            self._queue.add(key)


async def _keep_running(outside: Outside, *, down_seconds: float) -> None:
    """A process after the other: whenever one dies, the next begins with an empty memory."""
    while True:
        operator = Operator(outside)
        running = asyncio.create_task(operator.run())
        died = asyncio.create_task(outside.calls.died.wait())
        try:
            await asyncio.wait({running, died}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            operator.kill()
            running.cancel()
            died.cancel()
            await asyncio.gather(running, died, return_exceptions=True)
        outside.deaths += 1
        outside.calls.die_at = None
        outside.calls.died.clear()
        await asyncio.sleep(down_seconds)


@contextlib.asynccontextmanager
async def a_cluster(*, down_seconds: float = 3.0, watch_seconds: float = 0.0, **options: Any) -> AsyncIterator[Outside]:
    """The outside world with an operator in it that is started again whenever it dies."""
    outside = Outside(**options)
    outside.watch_seconds = watch_seconds
    tasks = outside.tasks = [
        asyncio.create_task(outside.kuberay.run()),
        asyncio.create_task(_keep_running(outside, down_seconds=down_seconds)),
    ]
    try:
        yield outside
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await outside.gke.stop()
