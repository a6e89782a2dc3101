"""GKE's operations: which may run beside which, PENDING -> RUNNING -> DONE, and how they end."""

import asyncio
import logging
import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.cloud import container_v1 as gke
from google.rpc import code_pb2, status_pb2

from sim.gke.creation_failures import Failure
from sim.gke.errors import Code, GkeError, busy, invalid, not_found, too_many_operations
from sim.gke.settings import Settings

_log = logging.getLogger(__name__)
_Status = gke.Operation.Status


@dataclass(kw_only=True, eq=False)
class Entry:
    message: Any
    pool: str
    on_failure: Callable[[Failure], None]
    """Told however the operation fails: by its work, by a break of the bench, by being cancelled."""
    locks_cluster: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return str(self.message.name)

    @property
    def is_done(self) -> bool:
        return bool(self.message.status == _Status.DONE)


Work = Callable[[Entry], Awaitable[Failure | None]]


class Operations:
    """All operations of the cluster. Work runs as a task; how it ends is written into the operation."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]],
        rng: random.Random,
    ) -> None:
        self._settings, self._clock, self._sleep, self._rng = settings, clock, sleep, rng
        self._entries: dict[str, Entry] = {}

    def running(self) -> list[Entry]:
        return [entry for entry in self._entries.values() if not entry.is_done]

    def check_free(self, pool: str) -> None:
        """Raise GkeError if no mutating operation on `pool` may begin now."""
        running = self.running()
        for entry in running:
            if entry.pool == pool or entry.locks_cluster or self._settings.exclusive_operations:
                raise busy(entry.name)
        if len(running) >= self._settings.max_operations:
            raise too_many_operations(self._settings.max_operations)

    def start(self, kind: str, pool: str, work: Work, *, on_failure: Callable[[Failure], None]) -> Any:
        """The new operation, PENDING. Call check_free first, without an await between."""
        now = self._clock()
        unique = uuid.UUID(int=self._rng.getrandbits(128), version=4)
        name = f"operation-{int(now.timestamp() * 1000)}-{unique}"
        message = gke.Operation(
            name=name,
            operation_type=kind,
            status=_Status.PENDING,
            location=self._settings.location,
            zone=self._settings.location,
            start_time=_timestamp(now),
            self_link=self._settings.link(self._settings.operation_path(name)),
            target_link=self._settings.link(self._settings.pool_path(pool)),
        )
        entry = Entry(message=message, pool=pool, on_failure=on_failure)
        self._entries[name] = entry
        entry.task = asyncio.create_task(self._run(entry, work), name=name)
        return message

    async def _run(self, entry: Entry, work: Work) -> None:
        message = entry.message
        await self._sleep(self._settings.pending_seconds)
        message.status = _Status.RUNNING
        try:
            failure = await work(entry)
        except Exception as error:  # noqa: BLE001 - the top of a task: whatever broke, the operation must end
            _log.exception("operation %s broke", entry.name)
            failure = Failure(code=Code.INTERNAL, message=f"Internal error: {error!r}")
        self._finish(entry, failure)

    def _finish(self, entry: Entry, failure: Failure | None) -> None:
        message = entry.message
        if failure is not None:
            message.error = status_pb2.Status(code=int(failure.code), message=failure.message)
            message.status_message = message.detail = failure.message
            if failure.condition:
                # Deprecated by Google but still filled.
                message.nodepool_conditions = [build_condition(failure)]
            entry.on_failure(failure)
        message.end_time = _timestamp(self._clock())
        message.status = _Status.DONE
        entry.locks_cluster = False

    def get(self, path: str) -> Any:
        return self._entry(path).message

    async def finished(self, name: str) -> Any:
        """The operation once it is DONE, for tests and simulations: no call, no polling."""
        entry = self._entry(self._settings.operation_path(name))
        if entry.task is not None:
            await asyncio.wait([entry.task])
        return entry.message

    def all(self) -> list[Any]:
        return [entry.message for entry in self._entries.values()]

    def forget(self, pattern_end: str = "") -> int:
        """Finished operations whose name ends so are gone, as GKE drops them after days; returns how many."""
        gone = [name for name, entry in self._entries.items() if name.endswith(pattern_end) and entry.is_done]
        for name in gone:
            del self._entries[name]
        return len(gone)

    async def cancel(self, path: str) -> None:
        entry = self._entry(path)
        kind = gke.Operation.Type(entry.message.operation_type).name
        if entry.is_done:
            raise GkeError(Code.FAILED_PRECONDITION, f"Operation {entry.name} is already done.")
        if kind not in self._settings.cancellable or entry.task is None:
            raise invalid(f"Operation {entry.name} of type {kind} cannot be cancelled.")
        entry.message.status = _Status.ABORTING
        entry.task.cancel()
        self._finish(entry, Failure(code=Code.CANCELLED, message="Operation was aborted."))

    def stop(self) -> list[asyncio.Task[None]]:
        """End the work of every running operation; returns the tasks to wait for."""
        tasks = [entry.task for entry in self.running() if entry.task is not None]
        for task in tasks:
            task.cancel()
        return tasks

    def _entry(self, path: str) -> Entry:
        prefix, _, name = path.rpartition("/")
        if not name or prefix != self._settings.operation_path("x").rpartition("/")[0]:
            raise not_found(path)
        if name not in self._entries:
            raise not_found(path)
        return self._entries[name]


def build_condition(failure: Failure) -> Any:
    return gke.StatusCondition(
        code=gke.StatusCondition.Code[failure.condition] if failure.condition else gke.StatusCondition.Code.UNKNOWN,
        canonical_code=code_pb2.Code.Value(failure.code.name),
        message=failure.message,
    )


def _timestamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
