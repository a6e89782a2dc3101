"""One rank's process, real: output, exit codes, stopping, and that nothing of it stays behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchtpu_operator.runner import guard
from torchtpu_operator.runner.worker import COORDS_PREFIX, RankWorker, original_env, parse_coords

GUARD_SOURCE = Path(guard.__file__).read_text()
LIMIT_SECONDS = 60.0
"""Only ends a test that hangs."""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.02)


class Rank:
    """A worker with its process, read to the end."""

    def __init__(
        self, entrypoint: str, *, cwd: str | None = None, contract: dict[str, str | None] | None = None
    ) -> None:
        self.worker = RankWorker(GUARD_SOURCE)
        self.worker.start(entrypoint, contract=contract or {}, cwd=cwd, rate=1e9, burst=1 << 24)
        self.lines: list[str] = []

    def read(self, until_line: str) -> None:
        """Read until that line."""
        until(lambda: self._more() or until_line in self.lines)

    def finish(self) -> dict[str, object]:
        """Read to the end; how it ended."""
        until(self._more)
        return self.end

    def _more(self) -> bool:
        answer = self.worker.poll(wait=0.5, linger=0, limit=1 << 20)
        self.lines += answer["lines"]
        self.end = {name: value for name, value in answer["end"].items() if name != "at"}
        return bool(answer["finished"])


@pytest.fixture
def ranks() -> Iterator[list[Rank]]:
    started: list[Rank] = []
    yield started
    for rank in started:
        rank.worker.stop(0)
        rank.finish()


ENDS = {
    "success": ("echo hi", 0, ["hi"]),
    "the exit code is the entrypoint's": ("echo hi; exit 7", 7, ["hi"]),
    "killed by a signal": ("kill -SEGV $$", 139, []),
    "stdout and stderr in the order of writing": ("echo 1; echo 2 >&2; echo 3", 0, ["1", "2", "3"]),
    "several commands, the last decides": ("false; true", 0, []),
    "and": ("true && false", 1, []),
    "quotes, variables, substitution and a heredoc reach bash as written": (
        "A='it''s'\ncat <<'EOF' | tr a-z A-Z\n\"$A\" $(no) `no`\nEOF\necho \"$A\" $((1+1)) $(echo sub) 'a  b' # ü",
        0,
        ['"$A" $(NO) `NO`', "its 2 sub a  b"],
    ),
    "a command that is not there": (
        "no-such-command-here",
        127,
        ["bash: line 1: no-such-command-here: command not found"],
    ),
    "no input to wait for": ("cat; echo over", 0, ["over"]),
    "a long entrypoint": ("echo start\n" + "# " + "x" * 50_000 + "\necho end", 0, ["start", "end"]),
}


@pytest.mark.parametrize(("entrypoint", "code", "lines"), ENDS.values(), ids=ENDS)
def test_how_it_ends(ranks: list[Rank], entrypoint: str, code: int, lines: list[str]) -> None:
    ranks.append(rank := Rank(entrypoint))
    assert (rank.finish(), rank.lines) == ({"exit": code}, lines)


def test_its_environment_and_directory(ranks: list[Rank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_NNODES", "9")
    contract = {"RANK": "3", "PET_NNODES": None}
    ranks.append(
        rank := Rank('echo "$RANK ${PET_NNODES-unset} $PYTHONUNBUFFERED $PWD"', cwd=str(tmp_path), contract=contract)
    )
    rank.finish()
    assert rank.lines == [f"3 unset 1 {tmp_path}"]


def test_a_directory_that_is_not_there_is_named(ranks: list[Rank]) -> None:
    ranks.append(rank := Rank("true", cwd="/no/such/folder"))
    assert rank.finish() == {
        "error": "cannot start 'bash' in /no/such/folder: [Errno 2] No such file or directory: '/no/such/folder'"
    }


def test_a_prompt_without_line_end_is_shown_while_it_waits(ranks: list[Rank]) -> None:
    ranks.append(rank := Rank("printf waiting; exec sleep 1000"))
    rank.read("waiting")
    rank.worker.stop(30)
    assert rank.finish() == {"exit": 143}


def test_sigterm_lets_it_save_and_choose_its_exit_code(ranks: list[Rank]) -> None:
    ranks.append(rank := Rank("trap 'echo saving; exit 9' TERM; echo up; while :; do sleep 0.05; done"))
    rank.read("up")
    rank.worker.stop(30)
    assert (rank.finish(), rank.lines[-1]) == ({"exit": 9}, "saving")


def test_a_program_saves_in_its_time_though_its_shell_dies_at_once(ranks: list[Rank]) -> None:
    program = "import signal,time; signal.signal(signal.SIGTERM, lambda *_: (time.sleep(3), print('saved', flush=True), exit(0))); print('up', flush=True); time.sleep(1000)"
    ranks.append(rank := Rank(f'{sys.executable} -c "{program}"; echo never'))
    rank.read("up")
    rank.worker.stop(60)
    assert (rank.finish(), rank.lines) == ({"exit": 143}, ["up", "saved"])


STUCK = """
import threading, time
def waits_for_a_peer(is_there):
    is_there()
    time.sleep(1000)
other = threading.Event()
threading.Thread(target=waits_for_a_peer, args=[other.set]).start()
other.wait()
waits_for_a_peer(lambda: print("up", flush=True))
"""


@pytest.mark.parametrize(("launch", "code"), [("exec {python} -c '{code}'", 134), ("{python} -c '{code}'; exit 9", 9)])
def test_a_program_that_hangs_tells_where_each_of_its_threads_is(ranks: list[Rank], launch: str, code: int) -> None:
    ranks.append(rank := Rank(launch.format(python=sys.executable, code=STUCK.strip())))
    rank.read("up")
    rank.worker.dump()
    assert rank.finish() == {"exit": code}
    assert sum("in waits_for_a_peer" in line for line in rank.lines) == 2


def test_a_stop_that_comes_with_the_start_is_not_lost(ranks: list[Rank]) -> None:
    for _ in range(5):
        ranks.append(rank := Rank("exec sleep 1000"))
        rank.worker.stop(30)
        assert rank.finish() == {"exit": 143}


def test_a_touched_heartbeat_file_is_seen(ranks: list[Rank], tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    ranks.append(rank := Rank("sleep 1000", contract={"TORCHTPU_HEARTBEAT_FILE": str(file)}))
    never = rank.worker.poll(wait=0, linger=0, limit=1)["beat"]
    file.touch()
    os.utime(file, (17, 17))
    assert (never, rank.worker.poll(wait=0, linger=0, limit=1)["beat"]) == (0.0, 17.0)


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(1000)"], start_new_session=True)
print("pids", os.getpid(), child.pid, flush=True)
time.sleep(1000)
"""


def start_stubborn(ranks: list[Rank], prefix: str = "") -> tuple[Rank, list[int]]:
    """A process that ignores SIGTERM with a child in a session of its own that does too, as torchrun has them."""
    ranks.append(rank := Rank(f"{prefix}{sys.executable} - <<'EOF'\n{STUBBORN}\nEOF"))
    rank.read("deaf")
    until(lambda: rank._more() or any(line.startswith("pids") for line in rank.lines))
    return rank, [int(pid) for line in rank.lines if line.startswith("pids") for pid in line.split()[1:]]


def test_what_ignores_sigterm_is_killed_after_the_grace_with_all_its_children(ranks: list[Rank]) -> None:
    rank, pids = start_stubborn(ranks)
    assert all(alive(pid) for pid in pids)
    rank.worker.stop(0.3)
    assert (rank.finish(), [alive(pid) for pid in pids]) == ({"exit": 143}, [False, False])


def test_processes_left_in_the_background_do_not_outlive_it_nor_hold_its_end(ranks: list[Rank]) -> None:
    ranks.append(rank := Rank("setsid sleep 1000 & echo $!; sleep 1000 & echo $!; exit 3"))
    end = rank.finish()
    assert (end, [alive(int(pid)) for pid in rank.lines]) == ({"exit": 3}, [False, False])


OWNER = """
import sys, time
from torchtpu_operator.runner.worker import RankWorker
worker = RankWorker(sys.argv[1])
worker.start("setsid sleep 1001 & echo $$ $!; exec sleep 1002", contract={}, cwd=None, rate=1e9, burst=1000)
while not (lines := worker.poll(wait=1, linger=0, limit=1000)["lines"]):
    pass
print(worker._guard.pid, lines[0], flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("victim", ["owner", "guard"])
def test_it_dies_with_the_ray_worker_and_with_its_guard(victim: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, GUARD_SOURCE], stdout=subprocess.PIPE, text=True, env={**os.environ}
    ) as owner:
        assert owner.stdout is not None
        guard_pid, *pids = [int(pid) for pid in owner.stdout.readline().split()]
        os.kill(owner.pid if victim == "owner" else guard_pid, signal.SIGKILL)
        until(lambda: not alive(guard_pid) and not alive(pids[0]))
        if victim == "owner":
            until(lambda: not alive(pids[1]))
        else:
            os.kill(pids[1], signal.SIGKILL)
        owner.kill()


def test_a_port_that_is_taken_is_found() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert RankWorker("").busy_ports([port]) == [port]
    assert RankWorker("").busy_ports([port]) == []


COORDS = {
    "a line among others": (f"libtpu says hi\n{COORDS_PREFIX}[2, 0, 1, 0]\nbye\n", [2, 0, 1, 0]),
    "no line": ("nothing\n", None),
    "not JSON": (f"{COORDS_PREFIX}[2, 0\n", None),
    "not numbers": (f'{COORDS_PREFIX}["x", "y"]\n', None),
    "too few": (f"{COORDS_PREFIX}[2]\n", None),
}


@pytest.mark.parametrize(("stdout", "want"), COORDS.values(), ids=COORDS)
def test_coordinates(stdout: str, want: list[int] | None) -> None:
    assert parse_coords(stdout) == want


def test_the_chips_are_asked_with_the_hosts_view_of_them_not_with_rays_view_of_one() -> None:
    environ = {"TPU_VISIBLE_CHIPS": "3", "TPU_CHIPS_PER_HOST_BOUNDS": "1,1,1", "TPU_HOST_BOUNDS": "1,1,1", "A": "1"}
    at_exec = b"A=0\0TPU_CHIPS_PER_HOST_BOUNDS=2,2,1\0TPU_NAME=s0\0"
    assert original_env(environ, at_exec) == {"A": "1", "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1"}
