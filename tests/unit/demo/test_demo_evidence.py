"""Log lines for people."""

from dataclasses import dataclass

import pytest

from sim.demo.evidence import readable


@dataclass(frozen=True)
class Case:
    line: str
    want: str


CASES = {
    "a line that is no JSON stays": Case(
        line="Traceback (most recent call last):", want="Traceback (most recent call last):"
    ),
    "JSON of somebody else stays": Case(line='{"a": 1}', want='{"a": 1}'),
    "time, level, message, and then the fields": Case(
        line='{"time": "2026-11-30T14:20:08+0000", "level": "INFO", "logger": "x.y", "message": "DeleteSlice", "slice": "s"}',
        want="14:20:08 INFO    DeleteSlice slice=s",
    ),
    "a traceback keeps its lines": Case(
        line='{"time": "2026-11-30T14:20:08+0000", "level": "ERROR", "message": "broken", "exc_info": "Traceback:\\n  a"}',
        want="14:20:08 ERROR   broken\nTraceback:\n  a",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_readable(case: Case) -> None:
    assert readable(case.line) == case.want
