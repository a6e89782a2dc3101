"""Raw output to lines: bounds, junk, carriage returns, rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtpu_operator.runner.output import MAX_LINE_BYTES, TAIL_LINES, LineSplitter, OutputBuffer, clean

LINES = {
    "lines": (b"a\nb\n", ["a", "b"]),
    "an empty line": (b"a\n\nb\n", ["a", "", "b"]),
    "the last line without its end": (b"a\nb", ["a", "b"]),
    "a progress bar overwrites itself": (b"10%\r50%\r100%\ndone\n", ["100%", "done"]),
    "lines as Windows ends them": (b"a\r\nb\r\n", ["a", "b"]),
    "colours stay, what would move the cursor or ring does not": (
        b"\x1b[31mred\x1b[0m\x07\x08\n",
        ["\x1b[31mred\x1b[0m\\x07\\x08"],
    ),
    "binary junk": (b"\x00\xff\xfe\n", ["\\x00\\xff\\xfe"]),
    "umlauts": ("Größe\n".encode(), ["Größe"]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("data", "want"), LINES.values(), ids=LINES)
def test_lines(data: bytes, want: list[str]) -> None:
    splitter = LineSplitter()
    assert splitter.feed(data) + splitter.flush() == want


@given(st.lists(st.binary(max_size=40)))
def test_any_bytes_in_any_pieces_give_the_lines_of_the_whole(pieces: list[bytes]) -> None:
    splitter, whole = LineSplitter(), LineSplitter()
    in_pieces = [line for piece in pieces for line in splitter.feed(piece)] + splitter.flush()
    at_once = whole.feed(b"".join(pieces)) + whole.flush()
    assert in_pieces == at_once


@given(st.text(alphabet="aü€😀", min_size=1, max_size=20), st.integers(1, 3), st.integers(1000, 70_000))
def test_long_lines_are_cut_between_characters_and_lose_nothing(pattern: str, length: int, step: int) -> None:
    text = pattern * (length * MAX_LINE_BYTES // len(pattern.encode()))
    data = text.encode() + b"\nend\n"
    splitter = LineSplitter()
    lines = [line for i in range(0, len(data), step) for line in splitter.feed(data[i : i + step])]
    assert lines[-1] == "end"
    assert "".join(lines[:-1]) == text
    assert max(len(line.encode()) for line in lines) <= MAX_LINE_BYTES


@given(st.binary(max_size=200))
def test_a_clean_line_is_one_line_without_control_characters(raw: bytes) -> None:
    text = clean(raw)
    assert not [ch for ch in text if (ord(ch) < 32 and ch not in "\t\x1b") or ord(ch) == 127]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def take(buffer: OutputBuffer, *, limit: int = 1 << 20) -> tuple[list[str], bool]:
    return buffer.take(wait=0, linger=0, limit=limit)


def test_a_process_that_prints_too_much_loses_lines_in_the_middle_and_is_told() -> None:
    clock = Clock()
    buffer = OutputBuffer(rate=1024, burst=30, clock=clock)
    buffer.put([f"line {i}" for i in range(6)])  # 7 bytes each
    clock.now = 1.0
    buffer.put(["line 6"])
    first = take(buffer)
    clock.now = 10.0
    buffer.put(["line 7"])
    buffer.close()
    assert (first, take(buffer)) == (
        (
            [
                "line 0",
                "line 1",
                "line 2",
                "line 3",
                "... 3 lines left out here: more than 1 KiB/s of output",
            ],
            False,
        ),
        (["line 7"], True),
    )


def test_the_tail_keeps_the_last_lines_also_of_those_left_out() -> None:
    buffer = OutputBuffer(rate=1, burst=10, clock=Clock())
    buffer.put([f"line {i}" for i in range(TAIL_LINES + 5)] + ["x" * 2000])
    assert buffer.tail() == [f"line {i}" for i in range(6, TAIL_LINES + 5)] + ["x" * 509 + "..."]


def test_a_reader_takes_at_most_what_it_asks_for_but_at_least_one_line() -> None:
    buffer = OutputBuffer(rate=1e9, burst=1000, clock=Clock())
    buffer.put(["a" * 30, "b" * 30, "c" * 30])
    buffer.close()
    assert [take(buffer, limit=70), take(buffer, limit=10)] == [(["a" * 30, "b" * 30], False), (["c" * 30], True)]


def test_a_nudge_wakes_the_reader_without_lines() -> None:
    buffer = OutputBuffer(rate=1e9, burst=1000, clock=Clock())
    buffer.nudge()
    assert buffer.take(wait=60, linger=60, limit=100) == ([], False)
