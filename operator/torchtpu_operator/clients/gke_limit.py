"""How many changes of one GKE cluster we have under way at a time.

GKE runs five operations per cluster and answers RESOURCE_EXHAUSTED to the sixth, whoever sent the others. Creates leave
room for people and autoscalers; one more place is kept for deletes, since a create that waits for capacity may take half
an hour and a delete ends spending.
"""

import contextlib
from collections.abc import Callable, Iterator

from torchtpu_operator.plan.observed import CallFailed, FailureClass

MAX_IN_FLIGHT = 3
EXTRA_FOR_DELETES = 1
_FORGET_AFTER = 2 * 3600.0  # an operation whose end nobody asked about; GKE's own verdict on a create takes 35 minutes
_LOOK_AGAIN = 10.0


class OperationLimit:
    """Counts operations from the accepted call (or the first sight after a restart) until one is seen to be over."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        max_in_flight: int = MAX_IN_FLIGHT,
        changed: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._monotonic, self._max, self._changed = monotonic, max_in_flight, changed
        self._calling = 0
        self._running: dict[str, float] = {}

    @contextlib.contextmanager
    def place(self, *, deleting: bool) -> Iterator[bool]:
        """Holds a place for the length of a call; False: all are taken."""
        limit = self._max + (EXTRA_FOR_DELETES if deleting else 0)
        if self.in_flight >= limit:
            yield False
            return
        self._calling += 1
        try:
            yield True
        finally:
            self._calling -= 1

    def started(self, operation: str) -> None:
        self._running.setdefault(_short(operation), self._monotonic())
        self._changed(self.in_flight)

    def ended(self, operation: str) -> None:
        self._running.pop(_short(operation), None)
        self._changed(self.in_flight)

    @property
    def in_flight(self) -> int:
        oldest = self._monotonic() - _FORGET_AFTER
        self._running = {name: since for name, since in self._running.items() if since > oldest}
        return len(self._running) + self._calling

    def refusal(self, call: str) -> CallFailed:
        return CallFailed(
            call=call,
            failure=FailureClass.BUSY,
            message=f"{self.in_flight} operations of ours are under way on the GKE cluster; waiting for one to end",
            retry_after=_LOOK_AGAIN,
        )


def _short(operation: str) -> str:
    return operation.rsplit("/", 1)[-1]
