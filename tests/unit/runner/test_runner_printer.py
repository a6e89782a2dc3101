"""The driver's lines also reach the container's log, and never wait for it."""

import os
from pathlib import Path

import pytest

from torchtpu_operator.runner.printer import MAX_PENDING_BYTES, ContainerLog, Printer


def test_lines_go_to_stdout_and_to_the_container_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text("from process 1\n")
    printer = Printer(container=ContainerLog.open(str(path)))
    printer.lines(["[rank 0] ü"])
    printer.message("two\nlines")
    said = "[rank 0] ü\n[torchtpu] two\n[torchtpu] lines\n"
    assert (capsys.readouterr().out, path.read_text()) == (said, "from process 1\n" + said)


def test_a_log_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    assert ContainerLog.open(str(tmp_path / "no" / "such")) is None


def test_a_log_that_nobody_reads_drops_lines_and_does_not_wait() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    log = ContainerLog(writer)
    line = "x" * 1023 + "\n"
    for _ in range(2 * MAX_PENDING_BYTES // len(line)):
        log.write(line)
    os.set_blocking(reader, False)
    held = len(os.read(reader, 1 << 20))
    log.write("last\n")
    after = os.read(reader, 2 << 20)
    os.close(reader)
    log.write("nobody there\n")
    os.close(writer)
    assert (held > 0, after.startswith(b"x"), len(after) <= MAX_PENDING_BYTES) == (True, True, True)
