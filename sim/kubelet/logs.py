"""Container logs in the CRI format, one file per start of a container, and how `kubectl logs` reads them.

A line is `<RFC 3339 time> <stdout|stderr> <F|P> <text>`; P marks a part of a line longer than 16 KiB. Files are not
rotated: a bench lives for minutes and its folder goes with it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BufferedWriter
from pathlib import Path
from typing import Final

_LONGEST_LINE: Final = 16 * 1024
_FOLLOW_PERIOD: Final = 0.1
_BLOCK: Final = 256 * 1024


class LogWriter:
    """Appends what a container prints. Lines appear when they are complete."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BufferedWriter = path.open("wb")

    async def copy(self, stream: asyncio.StreamReader, *, name: str) -> None:
        """Copy a stream to its end."""
        pending = b""
        while block := await stream.read(65536):
            pending = self._write(pending + block, name=name)
        if pending:
            self._line(pending, name=name, whole=True)
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _write(self, text: bytes, *, name: str) -> bytes:
        *lines, rest = text.split(b"\n")
        for line in lines:
            while len(line) > _LONGEST_LINE:
                self._line(line[:_LONGEST_LINE], name=name, whole=False)
                line = line[_LONGEST_LINE:]
            self._line(line, name=name, whole=True)
        while len(rest) > _LONGEST_LINE:
            self._line(rest[:_LONGEST_LINE], name=name, whole=False)
            rest = rest[_LONGEST_LINE:]
        self._file.flush()
        return rest

    def _line(self, text: bytes, *, name: str, whole: bool) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        self._file.write(f"{now} {name} {'F' if whole else 'P'} ".encode() + text + b"\n")


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """What `kubectl logs` asks for."""

    follow: bool = False
    tail: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


def parse_query(query: dict[str, str], *, now: datetime) -> LogQuery:
    """From the parameters of /containerLogs. ValueError for what is no number or time."""
    since = None
    if seconds := query.get("sinceSeconds"):
        since = now - timedelta(seconds=int(seconds))
    elif moment := query.get("sinceTime"):
        since = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    return LogQuery(
        follow=query.get("follow") == "true",
        tail=int(query["tailLines"]) if "tailLines" in query else None,
        since=since,
        timestamps=query.get("timestamps") == "true",
        limit_bytes=int(query["limitBytes"]) if "limitBytes" in query else None,
    )


async def read(path: Path, query: LogQuery, *, is_open: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Blocks of text for a client. With `follow`, until the log is complete: `is_open` tells whether more may come."""
    left = query.limit_bytes
    with path.open("rb") as file:
        lines = file.read().split(b"\n")
        rest = lines.pop()
        entries = list(_select(lines, query))
        if query.tail is not None:
            entries = _last_lines(entries, query.tail)
        text = b"".join(_render(entry, timestamps=query.timestamps) for entry in entries)
        while True:
            if left is not None:
                text, left = text[:left], left - min(left, len(text))
            for start in range(0, len(text), _BLOCK):
                yield text[start : start + _BLOCK]
            if not query.follow or left == 0:
                return
            last_round = not is_open()
            *lines, rest = (rest + file.read()).split(b"\n")
            text = b"".join(_render(line, timestamps=query.timestamps) for line in _select(lines, query))
            if not text:
                if last_round:
                    return
                await asyncio.sleep(_FOLLOW_PERIOD)


def last_text(path: Path, *, lines: int, size: int) -> str:
    """The end of a log as a termination message shows it."""
    if not path.exists():
        return ""
    entries = _last_lines([line for line in path.read_bytes().split(b"\n") if line], lines)
    return b"".join(_render(entry, timestamps=False) for entry in entries)[-size:].decode(errors="replace")


def _select(lines: Iterable[bytes], query: LogQuery) -> Iterable[bytes]:
    bound = query.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").encode() if query.since else b""
    return (line for line in lines if line and line >= bound)


def _last_lines(entries: list[bytes], count: int) -> list[bytes]:
    """The last `count` whole lines: parts count with the line that they belong to."""
    start, seen = len(entries), 0
    while start > 0:
        if _is_whole(entries[start - 1]):
            if seen == count:
                break
            seen += 1
        start -= 1
    return entries[start:]


def _is_whole(entry: bytes) -> bool:
    return entry.split(b" ", 3)[2] == b"F"


def _render(entry: bytes, *, timestamps: bool) -> bytes:
    moment, _, tag, text = entry.split(b" ", 3)
    end = b"\n" if tag == b"F" else b""
    return (moment + b" " if timestamps else b"") + text + end
