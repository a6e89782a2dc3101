"""A keyed work queue: one run per key at a time; wake-ups that come while it runs fold into one more run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

log = logging.getLogger(__name__)


class Key(NamedTuple):
    """What one reconcile is about. Stable: it is an asyncio and metrics label, never a path."""

    kind: str
    """job, slice or allocation."""
    namespace: str
    """"" when cluster-scoped."""
    name: str


Reconcile = Callable[[Key], Awaitable[float | None]]
"""Returns the seconds until the next look without an event, or None."""


class QueueSeen(Protocol):
    def __call__(self, *, kind: str, result: str, seconds: float) -> None:
        """One finished run; `result` is ok or error."""


def _unseen(*, kind: str, result: str, seconds: float) -> None:
    del kind, result, seconds


class WorkQueue:
    """Level-triggered, as controller-runtime's: an event for a key that is backing off runs it at once, so hard limits
    (attempts, cloud calls) belong into status. Must be used from one event loop."""

    def __init__(
        self,
        *,
        jitter: Callable[[], float],
        first_backoff: float = 1.0,
        longest_backoff: float = 300.0,
        expected: tuple[type[Exception], ...] = (),
        seen: QueueSeen = _unseen,
    ) -> None:
        """`jitter` gives numbers in [0, 1). Errors that are `expected` are logged in one line, others with their trace."""
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._dirty: dict[Key, float] = {}
        self._running: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._jitter, self._first, self._longest = jitter, first_backoff, longest_backoff
        self._expected, self._seen = expected, seen
        self._stopped = False

    def add(self, key: Key) -> None:
        """Run the key as soon as a worker is free."""
        if timer := self._timers.pop(key, None):
            timer.cancel()
        if key not in self._dirty:
            self._dirty[key] = asyncio.get_running_loop().time()
            if key not in self._running:
                self._ready.put_nowait(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Run the key in `seconds` at the latest: of several wishes the earliest wins."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        if timer := self._timers.get(key):
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self.add, key)

    def forget(self, key: Key) -> None:
        """The object is gone: neither timers nor a failure count outlive it."""
        self._failures.pop(key, None)
        if timer := self._timers.pop(key, None):
            timer.cancel()

    @property
    def depth(self) -> int:
        """Keys that wait for a worker, those that run and are dirty again included."""
        return len(self._dirty)

    @property
    def oldest_seconds(self) -> float:
        """How long the key that waits longest has waited."""
        if not self._dirty:
            return 0.0
        return asyncio.get_running_loop().time() - min(self._dirty.values())

    @property
    def idle(self) -> bool:
        """Nothing is due and nothing runs; timers may be set."""
        return not self._dirty and not self._running

    def stop(self) -> None:
        """No worker begins another run; those that wait still have to be cancelled."""
        self._stopped = True

    async def work(self, reconcile: Reconcile) -> None:
        """One worker; start as many as keys shall run at a time. Ends by cancellation, or after its run once stopped."""
        while not self._stopped:
            key = await self._ready.get()
            self._dirty.pop(key, None)
            self._running.add(key)
            try:
                again = await self._run(key, reconcile)
            finally:
                self._running.discard(key)
                if key in self._dirty:
                    self._ready.put_nowait(key)
            if again is not None and key not in self._dirty:
                self.add_after(key, again)

    async def _run(self, key: Key, reconcile: Reconcile) -> float | None:
        loop = asyncio.get_running_loop()
        started, result = loop.time(), "error"
        try:
            again = await reconcile(key)
            result = "ok"
            self._failures.pop(key, None)
        except Exception as error:  # the one place where any error means: again, later
            count = self._failures[key] = self._failures.get(key, 0) + 1
            again = min(self._longest, self._first * 2.0 ** min(count - 1, 16)) * (0.8 + 0.4 * self._jitter())
            expected = isinstance(error, self._expected)
            log.log(
                logging.WARNING if expected else logging.ERROR,
                "reconcile of %s failed %d times in a row, again in %.1f s: %s",
                "/".join(part for part in key if part),
                count,
                again,
                error,
                exc_info=None if expected else error,
            )
        finally:
            self._seen(kind=key.kind, result=result, seconds=loop.time() - started)
        return again
