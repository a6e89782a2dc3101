"""One program's progress: a line that moves on a terminal, a line every few seconds in a log."""

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

_BAR = 20
_LOG_EVERY_SECONDS = 15.0


def duration(seconds: float) -> str:
    """`48 s`, `3 min 20 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Progress:
    """Draws from a thread of its own, since linking is silent for many seconds."""

    def __init__(self, title: str, *, expected_seconds: int, out: TextIO | None = None) -> None:
        self._title, self._expected, self._out = title, expected_seconds, out or sys.stdout
        self._terminal = self._out.isatty()
        self._stage, self._steps, self._done, self._last = "", 0, 0, ""
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        took = duration(time.monotonic() - self._started)
        sign, words = ("✓", f"built in {took}") if kind is None else ("✗", f"broken off after {took}")
        self._write(f"  {sign} {self._title:<20} {words}", last=True)

    def stage(self, name: str, *, steps: int = 0) -> None:
        """Begin a stage; with steps, each reported line counts as one of them."""
        self._stage, self._steps, self._done, self._last = name, steps, 0, ""

    def step(self, line: str) -> None:
        self._done += 1
        self._last = line.removeprefix("go: ")

    def _draw(self) -> None:
        wait = 0.2 if self._terminal else _LOG_EVERY_SECONDS
        while not self._ended.wait(wait):
            self._write(self._line(), last=False)

    def _line(self) -> str:
        elapsed = time.monotonic() - self._started
        # Packages already in Go's cache are not reported, so the share of time may be ahead of the share of packages.
        share = min(0.99, max(elapsed / self._expected * 0.9, self._done / self._steps if self._steps else 0.0))
        filled = round(share * _BAR)
        bar = "█" * filled + "░" * (_BAR - filled)
        time_ = f"{duration(elapsed)} of about {duration(self._expected)}"
        if elapsed > self._expected:
            time_ = f"{duration(elapsed)}, more than the {duration(self._expected)} it took where it was measured"
        if not self._terminal:
            packages = f" {min(self._done, self._steps)} of {self._steps} packages" if self._steps else ""
            return f"  · {self._title:<20} {self._stage}{packages}, {time_}"
        return f"  · {self._title:<20} {bar} {time_} · {self._stage} {self._last}"

    def _write(self, line: str, *, last: bool) -> None:
        if self._terminal:
            import shutil

            width = shutil.get_terminal_size().columns - 1
            self._out.write(f"\r\x1b[2K{line[:width]}" + ("\n" if last else ""))
        else:
            self._out.write(line + "\n")
        self._out.flush()
