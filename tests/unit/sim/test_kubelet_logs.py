"""Container logs: what is written, and what `kubectl logs` gets of it."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sim.kubelet.exec_socket import build_exec_status
from sim.kubelet.logs import LogQuery, LogWriter, last_text, parse_query, read

LOG = b"""2026-01-01T10:00:00.000000000Z stdout F one
2026-01-01T10:00:01.000000000Z stderr F two
2026-01-01T10:00:02.000000000Z stdout P thr
2026-01-01T10:00:02.500000000Z stdout F ee
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "0.log"
    path.write_bytes(LOG)
    return path


async def _text(path: Path, query: LogQuery) -> str:
    return b"".join([block async for block in read(path, query, is_open=lambda: False)]).decode()


QUERIES = {
    "everything": (LogQuery(), "one\ntwo\nthree\n"),
    "the last line, of parts": (LogQuery(tail=1), "three\n"),
    "the last two": (LogQuery(tail=2), "two\nthree\n"),
    "more than there are": (LogQuery(tail=9), "one\ntwo\nthree\n"),
    "none": (LogQuery(tail=0), ""),
    "since a moment": (LogQuery(since=datetime(2026, 1, 1, 10, 0, 1, tzinfo=UTC)), "two\nthree\n"),
    "with times": (
        LogQuery(tail=2, timestamps=True),
        "2026-01-01T10:00:01.000000000Z two\n2026-01-01T10:00:02.000000000Z thr2026-01-01T10:00:02.500000000Z ee\n",
    ),
    "so many bytes": (LogQuery(limit_bytes=5), "one\nt"),
    "followed to its end": (LogQuery(follow=True), "one\ntwo\nthree\n"),
}


@pytest.mark.parametrize(("query", "want"), QUERIES.values(), ids=QUERIES)
async def test_read(log: Path, query: LogQuery, want: str) -> None:
    assert await _text(log, query) == want


async def test_follow_gets_what_comes_later_and_ends_with_the_log(log: Path) -> None:
    answers = iter([True, False])

    def is_open() -> bool:
        if answer := next(answers):
            with log.open("ab") as file:
                file.write(b"2026-01-01T10:00:03.000000000Z stdout F four\n")
        return answer

    assert [block async for block in read(log, LogQuery(follow=True, tail=0), is_open=is_open)] == [b"four\n"]


async def test_writer_splits_lines_and_marks_parts(tmp_path: Path) -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"a\n\n" + b"x" * 20000 + b"\nrest")
    stream.feed_eof()
    writer = LogWriter(tmp_path / "logs" / "0.log")
    await writer.copy(stream, name="stdout")
    writer.close()
    entries = [line.split(b" ", 3) for line in (tmp_path / "logs" / "0.log").read_bytes().splitlines()]
    assert all(re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", entry[0]) for entry in entries)
    assert [(name, tag, len(text)) for _, name, tag, text in entries] == [
        (b"stdout", b"F", 1),
        (b"stdout", b"F", 0),
        (b"stdout", b"P", 16384),
        (b"stdout", b"F", 3616),
        (b"stdout", b"F", 4),
    ]


def test_last_text_for_a_termination_message(log: Path, tmp_path: Path) -> None:
    assert (
        last_text(log, lines=2, size=100),
        last_text(log, lines=2, size=3),
        last_text(tmp_path / "no", lines=1, size=9),
    ) == (
        "two\nthree\n",
        "ee\n",
        "",
    )


def test_parse_query() -> None:
    now = datetime(2026, 1, 1, 10, 0, 0, tzinfo=UTC)
    query = {"follow": "true", "tailLines": "5", "sinceSeconds": "60", "timestamps": "true", "limitBytes": "9"}
    assert parse_query(query, now=now) == LogQuery(
        follow=True, tail=5, since=datetime(2026, 1, 1, 9, 59, 0, tzinfo=UTC), timestamps=True, limit_bytes=9
    )


EXITS = {"success": (0, "Success", None), "failure": (7, "Failure", "7")}


@pytest.mark.parametrize(("code", "status", "cause"), EXITS.values(), ids=EXITS)
def test_exec_status_carries_the_exit_code(code: int, status: str, cause: str | None) -> None:
    built = build_exec_status(code)
    assert (built["status"], built.get("details", {}).get("causes", [{"message": None}])[0]["message"]) == (
        status,
        cause,
    )
