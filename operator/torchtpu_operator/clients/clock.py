"""The time, as an argument: nothing below `__main__` asks the operating system for it."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time in UTC, with its time zone."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)
