"""One reconcile: observe, plan, write the status, perform, tell; again at once while there was something to do."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from torchtpu_operator.api import JobStatus, Reason, SliceStatus, TorchTPUJob, TPUSlice
from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.clients.kinds import JOBS, SLICES, Kind
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.cache import ObjectCache
from torchtpu_operator.controller.caches import ALLOCATION, Known, job_key
from torchtpu_operator.controller.executor import perform
from torchtpu_operator.controller.logs import about
from torchtpu_operator.controller.observe_allocation import Waits, observe_allocation
from torchtpu_operator.controller.observe_job import observe_job
from torchtpu_operator.controller.observe_slice import observe_slice
from torchtpu_operator.controller.status import write_status
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import Target, World, refresh
from torchtpu_operator.plan.actions import Event, Plan
from torchtpu_operator.plan.allocation import plan_allocation
from torchtpu_operator.plan.job import plan_job
from torchtpu_operator.plan.observed import Outcome
from torchtpu_operator.plan.slice import plan_slice

log = logging.getLogger(__name__)

MAX_ROUNDS = 8  # a plan that never comes to rest must not hold a worker; it goes on after a second
NEXT_TURN = 1.0

M = TypeVar("M", bound=ApiObject)
S = TypeVar("S", bound=BaseModel)
Json = dict[str, Any]


class Recorder(Protocol):
    """Told of what happened to an object; never blocks, never raises."""

    def record(self, about: Mapping[str, Any], event: Event) -> None: ...


class _ObjectReconciler(Generic[M, S]):
    """The loop for one object with a status: jobs and slices."""

    def __init__(
        self,
        world: World,
        recorder: Recorder,
        *,
        kind: Kind,
        cache: ObjectCache[Known[M]],
        plan: Callable[[Key, M, tuple[Outcome, ...]], Awaitable[Plan[S]]],
        status_of: Callable[[M], S],
    ) -> None:
        self._world, self._recorder, self._kind, self._cache = world, recorder, kind, cache
        self._plan, self._status_of = plan, status_of

    async def __call__(self, key: Key) -> float | None:
        outcomes: tuple[Outcome, ...] = ()
        for _ in range(MAX_ROUNDS):
            known = self._cache.get(key.name, namespace=key.namespace)
            if known is None:
                return None
            target = Target(key=key, kind=self._kind, raw=known.raw)
            if known.parsed is None:
                self._recorder.record(self._reference(target), _unreadable(known.problem))
            model = known.model
            plan = await self._plan(key, model, outcomes)
            if plan.status != self._status_of(model) and not await self._write(target, plan.status):
                continue  # somebody was faster: look again, and do not forget what the last actions answered
            outcomes = await perform(self._world, target, plan.actions)
            for event in plan.events:
                self._recorder.record(self._reference(target), event)
            if not plan.actions:
                return plan.look_again
        return NEXT_TURN

    async def _write(self, target: Target, status: S) -> bool:
        meta = target.raw["metadata"]
        self._world.check_acts()
        try:
            target.raw = await write_status(self._world.kube, self._kind, target.raw, status)
        except KubeError as error:
            if not (error.is_conflict or error.is_absent):
                raise
            await refresh(self._world, self._kind, meta["name"], namespace=target.namespace, by=target.key)
            return False
        self._world.caches.remember(self._kind, target.raw, by=target.key)
        return True

    def _reference(self, target: Target) -> Json:
        """Items of a list carry no apiVersion and kind; an event needs them."""
        return {"apiVersion": self._kind.api_version, "kind": self._kind.name, "metadata": target.raw["metadata"]}


def _unreadable(problem: str) -> Event:
    text = f"{problem}; this operator does not understand it: install the operator and CRDs of one version"
    return Event(type="Warning", reason=Reason.OBJECT_UNREADABLE.value, message=text)


class Reconciler:
    """What the work queue calls."""

    def __init__(self, world: World, recorder: Recorder, *, wake: Callable[[Key], None]) -> None:
        """`wake` is asked to run a job whose reason to wait has changed."""
        self._world, self._wake = world, wake
        self._waits = Waits()
        self._jobs: _ObjectReconciler[TorchTPUJob, JobStatus] = _ObjectReconciler(
            world, recorder, kind=JOBS, cache=world.caches.jobs, plan=self._plan_job, status_of=lambda job: job.status
        )
        self._slices: _ObjectReconciler[TPUSlice, SliceStatus] = _ObjectReconciler(
            world,
            recorder,
            kind=SLICES,
            cache=world.caches.slices,
            plan=self._plan_slice,
            status_of=lambda slice_: slice_.status,
        )

    async def __call__(self, key: Key) -> float | None:
        if key == ALLOCATION:
            with about(reconciler="allocation"):
                return await self._allocate()
        if key.kind == "slice":
            with about(slice=key.name, pool=key.name):
                return await self._slices(key)
        with about(job=f"{key.namespace}/{key.name}", attempt=self._attempt(key)):
            return await self._jobs(key)

    async def _plan_job(self, key: Key, job: TorchTPUJob, outcomes: tuple[Outcome, ...]) -> Plan[JobStatus]:
        observed = await observe_job(self._world, job, key=key, waits=self._waits, outcomes=outcomes)
        return plan_job(observed, now=self._world.clock.now(), settings=self._world.settings)

    async def _plan_slice(self, key: Key, slice_: TPUSlice, outcomes: tuple[Outcome, ...]) -> Plan[SliceStatus]:
        observed = await observe_slice(self._world, slice_, key=key, outcomes=outcomes)
        return plan_slice(observed, now=self._world.clock.now(), settings=self._world.settings)

    async def _allocate(self) -> float | None:
        outcomes: tuple[Outcome, ...] = ()
        target = Target(key=ALLOCATION, raw={})
        for _ in range(MAX_ROUNDS):
            observed = observe_allocation(self._world, outcomes=outcomes)
            plan = plan_allocation(observed, now=self._world.clock.now(), settings=self._world.settings)
            for uid in self._waits.publish(plan.waits):
                for job in self._world.caches.jobs.by("uid", uid):
                    self._wake(job_key(job.raw))
            outcomes = await perform(self._world, target, plan.actions)
            if not plan.actions:
                return plan.look_again
        return NEXT_TURN

    def _attempt(self, key: Key) -> str:
        known = self._world.caches.jobs.get(key.name, namespace=key.namespace)
        attempt = known.parsed.status.attempt if known and known.parsed else None
        return str(attempt.number) if attempt else ""
