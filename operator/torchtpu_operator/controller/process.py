"""The operator as one process: checks, lease, first lists, workers, watches; any end means: leave."""

import asyncio
import contextlib
import importlib.resources
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, cast

import kopf
from kubernetes.aio.client import ApiClient, Configuration

from torchtpu_operator.clients.clock import Clock
from torchtpu_operator.clients.gke import Gke
from torchtpu_operator.clients.kube import Kube
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.clients.ray_jobs import RayJobs
from torchtpu_operator.controller.caches import ALLOCATION, Caches, UnreadableError
from torchtpu_operator.controller.events import EventRecorder
from torchtpu_operator.controller.health import Health, served, watch_lag
from torchtpu_operator.controller.lease import Lease
from torchtpu_operator.controller.metrics import Metrics
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.reconcile import Reconciler
from torchtpu_operator.controller.resync import Resync
from torchtpu_operator.controller.startup import kube_system_uid, until_ready
from torchtpu_operator.controller.tasks import ended
from torchtpu_operator.controller.watching import CACHED, build_registry
from torchtpu_operator.controller.workqueue import Key, WorkQueue
from torchtpu_operator.controller.world import NotActingError, World
from torchtpu_operator.plan.names import installation_id
from torchtpu_operator.plan.observed import Settings
from torchtpu_operator.settings import OperatorSettings

log = logging.getLogger(__name__)

_LEASE_CALL_SECONDS = 5.0  # well below the renewal deadline
_FILL_AGAIN = 2.0
_LONGEST_BACKOFF = 60.0  # an apiserver that was away for long is noticed within a minute of its return
_FOLD_ALLOCATION = 0.05  # a burst of changes is one allocation
_FLUSH_SECONDS = 0.5  # SIGTERM: gone fast
_LEAVE_SECONDS = 8.0  # a replica that lost its lease must be gone, not half alive


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a process takes from its machine; tests give their own."""

    clock: Clock
    monotonic: Callable[[], float]
    jitter: Callable[[], float]
    """Numbers in [0, 1)."""
    new_token: Callable[[], str]
    leave_within: Callable[[float], None] = lambda _: None
    """Told that the process is ending: it must be gone after so many seconds, whatever hangs."""


@dataclass(frozen=True, kw_only=True)
class Outside:
    """How the world is reached."""

    kubernetes: Configuration
    gke: Gke
    ray: RayJobs


async def run(
    settings: OperatorSettings,
    outside: Outside,
    *,
    metrics: Metrics,
    surroundings: Surroundings,
) -> bool:
    """Runs until a signal, a lost lease or an error of kopf; whether the end was asked for."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(ApiClient(outside.kubernetes))
        lease_client = await stack.enter_async_context(ApiClient(outside.kubernetes))  # never queues behind work
        kube = Kube(client, seen=metrics.called)
        leader = _Leader(settings, outside, kube=kube, metrics=metrics, surroundings=surroundings)
        stack.callback(metrics.leader, False)
        ports = await stack.enter_async_context(
            served(
                leader.health,
                metrics=leader.exposition,
                health_port=settings.health_port,
                metrics_port=settings.metrics_port,
            )
        )
        log.info("listening", extra={"health": ports.health, "metrics": ports.metrics})
        await until_ready(kube, health=leader.health, namespace=settings.namespace)
        lease = Lease(
            Kube(lease_client, timeout=_LEASE_CALL_SECONDS, seen=metrics.called),
            namespace=settings.namespace,
            identity=settings.identity,
            clock=surroundings.clock,
            monotonic=surroundings.monotonic,
            jitter=surroundings.jitter,
        )
        await lease.acquire()
        metrics.leader(True)
        try:
            return await leader.lead(lease)
        finally:
            if lease.held:  # a lost one is another replica's by now
                await lease.release()


class _Leader:
    """The parts of the replica that acts."""

    def __init__(
        self, settings: OperatorSettings, outside: Outside, *, kube: Kube, metrics: Metrics, surroundings: Surroundings
    ) -> None:
        self._settings, self._outside, self._kube = settings, outside, kube
        self._metrics, self._surroundings = metrics, surroundings
        self._queue = WorkQueue(
            jitter=surroundings.jitter,
            longest_backoff=_LONGEST_BACKOFF,
            expected=(KubeError, UnreadableError, NotActingError),
            seen=metrics.reconciled,
        )
        self._caches = Caches(wake=self._wake)
        self._resync: Resync | None = None
        self.health = Health(alive=lambda: self._resync.problem if self._resync else "")

    def exposition(self) -> bytes:
        """The metrics, with what is measured only when somebody looks."""
        self._metrics.queue(depth=self._queue.depth, oldest_seconds=self._queue.oldest_seconds)
        if self._resync:
            self._metrics.resync_age(self._resync.age)
        for kind in CACHED:
            self._metrics.objects(kind=kind.plural, count=len(self._caches.of(kind)))
        return self._metrics.text()

    async def lead(self, lease: Lease) -> bool:
        """Whether it ended because somebody asked for it."""
        held = asyncio.create_task(lease.hold(), name="lease")
        support: list[asyncio.Task[None]] = [held]
        workers: list[asyncio.Task[None]] = []
        operator: asyncio.Task[None] | None = None
        recorder = EventRecorder(
            self._kube,
            clock=self._surroundings.clock,
            identity=self._settings.identity,
            monotonic=self._surroundings.monotonic,
            seen=self._metrics.event,
        )
        try:
            world = await _unless_over(held, self._look_around(lease))
            if world is None:
                return False
            reconcile = Reconciler(world, recorder, wake=self._wake)
            support += self._support(recorder)
            count = self._settings.workers
            workers += [asyncio.create_task(self._queue.work(reconcile), name=f"worker-{n}") for n in range(count)]
            registry = build_registry(self._caches, self._outside.kubernetes)
            # After ours: kopf cancels every task that was created after it has started.
            operator = asyncio.create_task(
                # An identity of ours: kopf would ask for a user name, which the image's bare uid does not have.
                kopf.operator(
                    registry=registry,
                    clusterwide=True,
                    standalone=True,
                    identity=cast(Any, self._settings.identity),  # kopf keeps its NewType private
                ),
                name="kopf",
            )
            done, _ = await asyncio.wait({operator, *support, *workers}, return_when=asyncio.FIRST_COMPLETED)
            return _explain(done, operator)
        finally:
            self._surroundings.leave_within(_LEAVE_SECONDS)
            self._queue.stop()
            await ended(workers)  # from here on nothing acts
            if not held.done():
                await recorder.flush(seconds=_FLUSH_SECONDS)
            await ended([*support, *([operator] if operator else [])])

    def _support(self, recorder: EventRecorder) -> list[asyncio.Task[None]]:
        assert self._resync is not None
        jobs: Mapping[str, Coroutine[Any, Any, None]] = {
            "events": recorder.write(),
            "resync": self._resync.run(),
            "kuberay": self._resync.watch_kuberay(),
            "lag": watch_lag(self._metrics.loop_lag),
        }
        return [asyncio.create_task(job, name=name) for name, job in jobs.items()]

    async def _look_around(self, lease: Lease) -> World:
        resync = Resync(
            self._kube,
            self._caches,
            self._queue,
            every=self._settings.resync_seconds,
            monotonic=self._surroundings.monotonic,
            missed=lambda kind, count: self._metrics.missed(kind=kind, count=count),
        )
        while True:
            try:
                uid = await kube_system_uid(self._kube)
                await resync.fill()
                break
            except KubeError as error:
                log.warning("the first lists are not finished, again in %.0f s: %s", _FILL_AGAIN, error)
                await asyncio.sleep(_FILL_AGAIN)
        self._resync = resync
        return World(
            kube=self._kube,
            gke=self._outside.gke,
            ray=self._outside.ray,
            heads=RayHeads(self._kube),
            caches=self._caches,
            clock=self._surroundings.clock,
            settings=Settings(
                installation=installation_id(kube_system_uid=uid, namespace=self._settings.namespace),
                namespace=self._settings.namespace,
                gke_parent=self._settings.gke.path,
                runner_files=runner_files(),
            ),
            new_token=self._surroundings.new_token,
            acts=lambda: lease.held,
        )

    def _wake(self, key: Key) -> None:
        if key == ALLOCATION:
            self._queue.add_after(key, _FOLD_ALLOCATION)
        else:
            self._queue.add(key)


def runner_files() -> dict[str, str]:
    """The runner's modules, file name -> text: what an attempt's ConfigMap carries."""
    folder = importlib.resources.files("torchtpu_operator.runner")
    return {
        module.name: module.read_text()
        for module in sorted(folder.iterdir(), key=lambda module: module.name)
        if module.name.endswith(".py")
    }


async def _unless_over(held: asyncio.Task[None], work: Coroutine[Any, Any, World]) -> World | None:
    """The work's result, or None where the lease was lost meanwhile."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task, held}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await ended([task])


def _explain(done: set[asyncio.Task[None]], operator: asyncio.Task[None]) -> bool:
    """Say why the process ends; only kopf's own quiet end, after a signal, was asked for."""
    for task in done:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("%s ended with an error; the process leaves", task.get_name(), exc_info=error)
        elif task is not operator:
            log.error("%s ended; the process leaves", task.get_name())
    return done == {operator} and not operator.cancelled() and operator.exception() is None
