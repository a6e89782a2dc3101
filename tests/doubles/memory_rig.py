"""The whole operator in memory and in virtual time: its real queue, caches, planners and executor between doubles of
Kubernetes, GKE and Ray. It can be killed at any call that changes something, and started again with nothing but what the
doubles hold."""

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sim.gke import ClusterManager, InProcessClusterManagerClient, Settings
from tests.doubles.cluster_rig import head_of
from tests.doubles.kube import MemoryKube
from tests.doubles.kuberay import KubeRay
from tests.doubles.node_objects import NodeObjects
from tests.doubles.ray_jobs import MemoryRay
from torchtpu_operator.clients.gke import GkeClient, GkeCluster
from torchtpu_operator.clients.gke_limit import OperationLimit
from torchtpu_operator.clients.kinds import NAMESPACES, SECRETS, Kind
from torchtpu_operator.controller.caches import ALLOCATION, Caches
from torchtpu_operator.controller.events import EventRecorder
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.reconcile import Reconciler
from torchtpu_operator.controller.resync import Resync
from torchtpu_operator.controller.watching import CACHED
from torchtpu_operator.controller.workqueue import Key, WorkQueue
from torchtpu_operator.controller.world import World
from torchtpu_operator.plan.observed import Settings as PlanSettings

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
CLUSTER = GkeCluster(project="demo", location="us-east5", cluster="bench")
NAMESPACE = "ml"

CHANGING = frozenset(
    {"create", "merge", "apply", "replace", "delete", "create_node_pool", "delete_node_pool", "submit", "stop"}
)
"""Methods of the clients that change the world; events and dry runs do not count."""


class KilledError(BaseException):
    """The process ends here. Not an Exception: nothing may catch it and go on."""


class Kill:
    """Ends the process at the n-th changing call (from 1), before or after it has taken effect."""

    def __init__(self, at: int | None = None, *, after: bool = False) -> None:
        self._at, self._after = at, after
        self.calls: list[str] = []
        self.happened = asyncio.Event()

    def wrap(self, client: Any) -> Any:
        return _Wrapped(client, self)

    async def around(self, name: str, call: Callable[[], Any], label: str) -> Any:
        if self.happened.is_set():
            raise KilledError(label)
        self.calls.append(label)
        due = len(self.calls) == self._at
        if due and not self._after:
            self.happened.set()
            raise KilledError(label)
        answer = await call()
        if due:
            self.happened.set()
            raise KilledError(label)
        return answer


class _Wrapped:
    def __init__(self, client: Any, kill: Kill) -> None:
        self._client, self._kill = client, kill

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name not in CHANGING:
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            kind = args[0] if args and isinstance(args[0], Kind) else None
            if kwargs.get("dry_run") or (kind and kind.plural == "events"):
                return await method(*args, **kwargs)
            label = f"{name} {kind.plural}" if kind else name
            return await self._kill.around(name, lambda: method(*args, **kwargs), label)

        return call


class VirtualClock:
    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())


@dataclass
class MemoryRig:
    kube: MemoryKube
    gke: ClusterManager
    ray: MemoryRay
    clock: VirtualClock
    hosts: NodeObjects
    created_pools: list[str] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def operator(self, kill: Kill | None = None, *, workers: int = 4) -> AsyncIterator[Kill]:
        """One life of the operator; it ends with the context, at once and without a word."""
        kill = kill or Kill()
        process = _Operator(self, kill)
        await process.start(workers)
        try:
            yield kill
        finally:
            await process.end()

    def phase(self, kind: Kind, name: str, *, namespace: str | None = NAMESPACE) -> str:
        """status.phase, or "gone"."""
        obj = self.kube.peek(kind, name, namespace=namespace)
        return (obj.get("status") or {}).get("phase") or "" if obj else "gone"

    async def until(self, check: Callable[[], bool], *, seconds: float = 600) -> None:
        async with asyncio.timeout(seconds):
            while not check():
                await asyncio.sleep(0.1)

    @property
    def submissions(self) -> list[str]:
        return [each["submission_id"] for head in self.ray.heads.values() for each in head.submissions]


class _Operator:
    def __init__(self, rig: MemoryRig, kill: Kill) -> None:
        self._rig, self._tasks, self._alive = rig, list[asyncio.Task[Any]](), True
        loop = asyncio.get_running_loop()
        self._queue = WorkQueue(jitter=lambda: 0.5)
        self._caches = Caches(wake=self._wake)
        kube = kill.wrap(rig.kube)

        async def connect(_: GkeCluster) -> Any:
            return InProcessClusterManagerClient(rig.gke)

        gke = GkeClient(CLUSTER, limit=OperationLimit(monotonic=loop.time), connect=connect)
        self._resync = Resync(kube, self._caches, self._queue, every=300, monotonic=loop.time)
        self._recorder = EventRecorder(kube, clock=rig.clock, identity="test", monotonic=loop.time)
        tokens = itertools.count(1)
        world = World(
            kube=kube,
            gke=kill.wrap(gke),
            ray=kill.wrap(rig.ray),
            heads=RayHeads(kube),
            caches=self._caches,
            clock=rig.clock,
            settings=PlanSettings(
                installation="0123456789abcdef",
                namespace="torchtpu-system",
                gke_parent=CLUSTER.path,
                runner_files={"main.py": "pass\n"},
            ),
            new_token=lambda: f"token-{next(tokens)}",
        )
        self._reconcile = Reconciler(world, self._recorder, wake=self._wake)

    async def start(self, workers: int) -> None:
        for kind in CACHED:
            self._rig.kube.watch(kind, self._told(kind))
        self._rig.kube.watch(_RAY_CLUSTERS, self._ray_cluster_told)
        await self._resync.fill()
        jobs = [self._recorder.write(), self._resync.run(), self._resync.watch_kuberay()]
        jobs += [self._queue.work(self._reconcile) for _ in range(workers)]
        self._tasks = [asyncio.create_task(job) for job in jobs]

    async def end(self) -> None:
        self._alive = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _told(self, kind: Kind) -> Callable[[str, dict[str, Any]], None]:
        def told(event: str, obj: dict[str, Any]) -> None:
            selector = CACHED[kind]
            if self._alive and (not selector or selector in (obj["metadata"].get("labels") or {})):
                cache = self._caches.of(kind)
                (cache.forget if event == "DELETED" else cache.remember)(obj)

        return told

    def _ray_cluster_told(self, event: str, obj: dict[str, Any]) -> None:
        if self._alive:
            self._caches.wake_job_of((obj["metadata"].get("labels") or {}).get("torchtpu.dev/job-uid", ""))

    def _wake(self, key: Key) -> None:
        self._queue.add_after(key, 0.05) if key == ALLOCATION else self._queue.add(key)


_RAY_CLUSTERS = Kind("ray.io", "v1", "rayclusters", "RayCluster")


@contextlib.asynccontextmanager
async def memory_rig(*, settings: Settings | None = None) -> AsyncIterator[MemoryRig]:
    """The world without an operator. Needs a loop with virtual time."""
    clock = VirtualClock()
    kube, ray = MemoryKube(clock=clock.now), MemoryRay()

    def put_status(kind: Kind, name: str, status: Mapping[str, Any], namespace: str) -> None:
        kube.put_status(kind, name, status, namespace=namespace or None)

    hosts = NodeObjects(kube, put_status=put_status)
    gke = ClusterManager(hosts, settings=settings, clock=clock.now)
    for name in ("kube-system", NAMESPACE):
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def appeared(cluster: Mapping[str, Any]) -> None:
        head = head_of(cluster)
        head.token = _token(kube, cluster)
        ray.heads[f"{cluster['metadata']['name']}-head-svc"] = head

    double = asyncio.create_task(KubeRay(kube, put_status=put_status, appeared=appeared).run(every=0.5))
    try:
        yield MemoryRig(kube=kube, gke=gke, ray=ray, clock=clock, hosts=hosts)
    finally:
        double.cancel()
        await asyncio.gather(double, return_exceptions=True)
        await gke.stop()


def _token(kube: MemoryKube, cluster: Mapping[str, Any]) -> str:
    """The token in the Secret that the head's env names."""
    container = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    source = next(v["valueFrom"]["secretKeyRef"] for v in container["env"] if v["name"] == "RAY_AUTH_TOKEN")
    secret = kube.peek(SECRETS, source["name"], namespace=cluster["metadata"]["namespace"])
    assert secret is not None, "the RayCluster was made before its Secret"
    return base64.b64decode(secret["data"][source["key"]]).decode()
