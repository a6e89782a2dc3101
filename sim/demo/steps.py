"""The demo's own steps, from the bench's start to its end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Step:
    name: str
    began: float
    """Monotonic seconds."""
    seconds: float | None = None
    """None while it runs."""
    failed: bool = False
    detail: str = ""
    """What it waits for."""


class Steps:
    """Written by the demo, read by whoever draws it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.all: list[Step] = []
        self.changed: Callable[[Step], None] = lambda _: None
        self._clock = clock

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[str], None]]:
        """Times a step; what it yields takes details."""
        step = Step(name=name, began=self._clock())
        self.all.append(step)
        self.changed(step)

        def tell(detail: str) -> None:
            if detail != step.detail:
                step.detail = detail
                self.changed(step)

        try:
            yield tell
        except BaseException:
            step.failed = True
            raise
        finally:
            step.seconds = self._clock() - step.began
            self.changed(step)
