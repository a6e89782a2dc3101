"""Launcher Driver: the job's own command runs as under Ray alone, and its output is in the head's log as well."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchtpu_operator.runner.command import Copy
from torchtpu_operator.runner.printer import ContainerLog

START = """
import sys
from torchtpu_operator.runner import command, printer
copy = command.Copy(command.own_log(), printer.ContainerLog.open(sys.argv[1]))
sys.exit(command.run(["bash", "-c", sys.argv[2]], copy))
"""


def start(folder: Path, command: str, *, program: str = START) -> "subprocess.Popen[bytes]":
    """As Ray starts it: stdout and stderr are a file that has lines already; the container's log is a second file."""
    (folder / "container").touch()
    (folder / "log").write_text("Running entrypoint\n")
    with (folder / "log").open("a") as log:
        argv = [sys.executable, "-c", program, str(folder / "container"), command]
        return subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT)


def read(folder: Path) -> tuple[str, str]:
    """Ray's log and the container's."""
    return (folder / "log").read_text(), (folder / "container").read_text()


COMMANDS = {
    "output and errors, in order": ("echo one; echo two >&2; printf three", 0, "one\ntwo\nthree"),
    "its exit code": ("echo no; exit 3", 3, "no\n"),
    "its signal": ("kill -KILL $$", 137, ""),
    "nothing to say": ("true", 0, ""),
}


@pytest.mark.parametrize(("command", "code", "said"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_ends_as_by_itself(tmp_path: Path, command: str, code: int, said: str) -> None:
    got = start(tmp_path, command).wait(timeout=30)
    assert (got, *read(tmp_path)) == (
        code,
        f"Running entrypoint\n{said}",
        said if not said or said[-1] == "\n" else said + "\n",
    )


def test_lines_are_there_while_it_runs_and_the_last_ones_after_a_stop(tmp_path: Path) -> None:
    command = "trap 'echo saved; exit 5' TERM; echo started; while :; do sleep 0.1; done"
    process = start(tmp_path, command)
    deadline = time.monotonic() + 30
    while not read(tmp_path)[1]:
        assert time.monotonic() < deadline, "the first line never came"
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in (process.pid, *map(int, children)):  # Ray's stop tells every process
        os.kill(pid, signal.SIGTERM)
    assert (process.wait(timeout=30), read(tmp_path)[1]) == (5, "started\nsaved\n")


def test_a_program_saves_though_its_shell_dies_and_nothing_is_left_for_ray_to_wait_for(tmp_path: Path) -> None:
    program = (
        "import signal, time; "
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1), print('saved'), exit(0))); "
        "print('up', flush=True); time.sleep(1000)"
    )
    process = start(tmp_path, f'{sys.executable} -c "{program}"; echo never')
    deadline = time.monotonic() + 30
    while not read(tmp_path)[1]:
        assert time.monotonic() < deadline, "the first line never came"
        time.sleep(0.05)
    told = [process.pid]
    for pid in told:
        told += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    assert len(told) == 3, "this, the shell and the program"
    for pid in told:
        os.kill(pid, signal.SIGTERM)
    assert (process.wait(timeout=30), read(tmp_path)[1]) == (143, "up\nsaved\n")
    assert not [pid for pid in told if Path(f"/proc/{pid}").exists()]


def test_a_process_that_it_leaves_behind_does_not_keep_it(tmp_path: Path) -> None:
    process = start(tmp_path, "sleep 60 & echo $!; exit 0")
    assert process.wait(timeout=30) == 0
    os.kill(int(read(tmp_path)[1]), signal.SIGKILL)


def test_a_log_that_cannot_be_read_costs_lines_not_the_command(tmp_path: Path) -> None:
    folder_instead = 'os.dup2(os.open("/", os.O_RDONLY), copy._log.fileno())'
    process = start(
        tmp_path,
        "echo one; exit 3",
        program=START.replace("import sys", "import os, sys").replace("sys.exit(", f"{folder_instead}\nsys.exit("),
    )
    assert (process.wait(timeout=30), *read(tmp_path)) == (3, "Running entrypoint\none\n", "")


class Endless(io.FileIO):
    """A log that grows faster than it is read."""

    def read(self, size: int | None = -1) -> bytes:
        with Path(os.fsdecode(self.name)).open("a") as log:
            log.write("more\n")
        assert Path(os.fsdecode(self.name)).stat().st_size < 1000, "it was followed without end"
        return super().read(5 if size is None else min(size, 5))


def test_a_log_that_grows_for_ever_is_left_where_it_was(tmp_path: Path, container: ContainerLog) -> None:
    log = tmp_path / "log"
    log.touch()
    with Endless(log) as reader:
        copy = Copy(reader, container)
        log.write_text("more\nmore\n")
        copy.advance()
        copy.finish()
    assert (tmp_path / "container").read_text().count("more") == 4


def test_without_a_log_of_the_container_it_is_bash_alone(tmp_path: Path) -> None:
    (tmp_path / "entrypoint").write_text("echo $0 | grep -c entrypoint; exit 4")
    env = {**os.environ, "TORCHTPU_ENTRYPOINT_FILE": str(tmp_path / "entrypoint")}
    env.pop("RAY_CLUSTER_NAME", None)
    argv = [sys.executable, "-m", "torchtpu_operator.runner.command"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (4, "1\n", "")


@pytest.fixture
def container(tmp_path: Path) -> ContainerLog:
    (tmp_path / "container").touch()
    log = ContainerLog.open(str(tmp_path / "container"))
    assert log is not None
    return log


def test_a_line_is_copied_once_it_is_whole(tmp_path: Path, container: ContainerLog) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before\nunfini")
    with log.open("rb", buffering=0) as reader, log.open("ab", buffering=0) as writer:
        copy = Copy(reader, container)
        seen = []
        for written in (b"shed\n10 %\r20 %\n", b"half", b" a line\n\x07bell"):
            writer.write(written)
            copy.advance()
            seen.append((tmp_path / "container").read_text())
        copy.finish()
    assert seen == ["shed\n20 %\n", "shed\n20 %\n", "shed\n20 %\nhalf a line\n"]
    assert (tmp_path / "container").read_text().endswith("half a line\n\\x07bell\n")


TOLD = {
    "the callback in the script itself": ("[torchtpu] Ray 2.60 has no callback", False),
    "the callback in Ray Train's controller beside it": ("(TrainController pid=7) [torchtpu] order now", False),
    "the same in colour": ("\x1b[36m(TrainController pid=7)\x1b[0m TORCHTPU_ORDER {}", False),
    "a callback on another host, whose log has it": ("(TrainController pid=7, ip=10.0.0.9) TORCHTPU_ORDER {}", True),
    "a line that mentions it": ("see [torchtpu] in the docs", True),
    "a worker's line": ("\x1b[36m(RayTrainWorker pid=8)\x1b[0m epoch 0  loss 1.0", True),
}


@pytest.mark.parametrize(("line", "copied"), TOLD.values(), ids=TOLD)
def test_what_the_callback_wrote_there_itself_is_not_told_twice(
    tmp_path: Path, container: ContainerLog, line: str, copied: bool
) -> None:
    log = tmp_path / "log"
    log.touch()
    with log.open("rb", buffering=0) as reader:
        copy = Copy(reader, container)
        log.write_text(f"{line}\n")
        copy.finish()
    assert (tmp_path / "container").read_text() == (f"{line}\n" if copied else "")
