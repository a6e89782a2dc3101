"""From a process' raw output to lines that are safe to log, bounded in length, memory and rate."""

import threading
from collections import deque
from collections.abc import Callable

MAX_LINE_BYTES = 16 * 1024
"""Longer lines are cut into several: log collectors split at 16 KiB, at places of their own choice."""
TAIL_LINES = 40
TAIL_LINE_CHARS = 512

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127) if chr(code) not in "\t\x1b"}


def clean(raw: bytes) -> str:
    """One line as text: what is not UTF-8 or would control a terminal (colours stay) becomes an escape."""
    return raw.decode(errors="backslashreplace").translate(_CONTROL)


class LineSplitter:
    """Cuts a byte stream into lines. A carriage return overwrites, as on a terminal, so progress bars stay one line."""

    def __init__(self) -> None:
        self._partial = b""

    @property
    def has_partial(self) -> bool:
        return bool(self._partial)

    def feed(self, data: bytes) -> list[str]:
        """Lines completed by `data`."""
        *whole, self._partial = (self._partial + data).split(b"\n")
        lines = [piece for raw in whole for piece in self._pieces(raw)]
        if len(self._partial) > MAX_LINE_BYTES:
            cut = self._cut_at(self._partial)
            lines += self._pieces(self._partial[:cut])
            self._partial = self._partial[cut:]
        return lines

    def flush(self) -> list[str]:
        """The unfinished line, if any: at the end, or when it has been waiting for long."""
        raw, self._partial = self._partial, b""
        return self._pieces(raw) if raw.strip(b"\r") else []

    @staticmethod
    def _cut_at(raw: bytes) -> int:
        """A multiple of MAX_LINE_BYTES at most, moved back to the start of a UTF-8 character."""
        cut = len(raw) // MAX_LINE_BYTES * MAX_LINE_BYTES
        back = cut
        while cut - back < 4 and back < len(raw) and raw[back] & 0xC0 == 0x80:
            back -= 1
        return back if back > 0 and cut - back < 4 else cut

    def _pieces(self, raw: bytes) -> list[str]:
        raw = raw.rstrip(b"\r").rpartition(b"\r")[2]
        pieces = []
        while len(raw) > MAX_LINE_BYTES:
            cut = self._cut_at(raw[: MAX_LINE_BYTES + 1])
            pieces.append(clean(raw[:cut]))
            raw = raw[cut:]
        return [*pieces, clean(raw)]


class OutputBuffer:
    """Lines between one process and the driver: bounded memory, bounded rate, the last lines always kept.

    Never blocks the process: a driver that is slow, or a process that prints without end, costs lines in the middle,
    and a line says how many, since a training step must not wait for its log. Thread-safe.
    """

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float]) -> None:
        """`rate` in bytes per second over the long run, `burst` in bytes at once and held in memory at most."""
        self._rate, self._burst, self._clock = rate, burst, clock
        self._budget, self._at = float(burst), clock()
        self._lines: deque[str] = deque()
        self._held = 0
        self._dropped = 0
        self._closed = False
        self._nudged = False
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._changed = threading.Condition()

    def put(self, lines: list[str]) -> None:
        with self._changed:
            now = self._clock()
            self._budget = min(self._burst, self._budget + (now - self._at) * self._rate)
            self._at = now
            for line in lines:
                self._tail.append(line if len(line) <= TAIL_LINE_CHARS else line[: TAIL_LINE_CHARS - 3] + "...")
                size = len(line) + 1
                if size > self._budget or self._held + size > self._burst:
                    self._dropped += 1
                    continue
                self._say_dropped()
                self._budget -= size
                self._append(line)
            self._changed.notify_all()

    def nudge(self) -> None:
        """Make take() return now: there is news beside the lines."""
        with self._changed:
            self._nudged = True
            self._changed.notify_all()

    def close(self) -> None:
        """No line comes any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self, *, wait: float, linger: float, limit: int) -> tuple[list[str], bool]:
        """Up to `limit` bytes of lines, and whether those were the last.

        Waits up to `wait` seconds for the first one, then `linger` seconds for company.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._dropped or self._closed or self._nudged, wait)
            if linger and not (self._closed or self._nudged):
                self._changed.wait_for(lambda: self._closed or self._nudged or self._held >= limit, linger)
            self._nudged = False
            self._say_dropped()
            lines: list[str] = []
            size = 0
            while self._lines and (not lines or size + len(self._lines[0]) < limit):
                line = self._lines.popleft()
                size += len(line) + 1
                lines.append(line)
            self._held -= size
            return lines, self._closed and not self._lines

    def tail(self) -> list[str]:
        """The last lines, dropped ones included."""
        with self._changed:
            return list(self._tail)

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._held += len(line) + 1

    def _say_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._append(f"... {dropped} lines left out here: more than {self._rate / 1024:.0f} KiB/s of output")
