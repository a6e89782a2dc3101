"""Programs of the control plane as processes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sim.control_plane.api_client import wait_until
from sim.control_plane.daemon import Daemon, StartError, revive, stop
from sim.control_plane.seed import build_stored_object, read_seed
from sim.tools.catalogue import REPOSITORY


def _daemon(script: str, folder: Path) -> Daemon:
    return Daemon("program", ["sh", "-c", script], log=folder / "logs" / "program.log", env={"WORD": "hello"})


def test_output_goes_to_the_log_and_the_environment_is_extended(tmp_path: Path) -> None:
    daemon = _daemon('echo "$WORD"; echo "$PATH" >&2', tmp_path)
    daemon.start()
    daemon.wait()
    assert daemon.tail().splitlines()[0] == "hello"


def test_one_that_ended_is_named_with_its_last_words(tmp_path: Path) -> None:
    daemon = _daemon("echo bad flag; exit 3", tmp_path)
    daemon.start()
    daemon.wait()
    with pytest.raises(StartError) as caught:
        daemon.check()
    assert str(caught.value) == f"program ended with 3; {tmp_path}/logs/program.log ends with:\nbad flag\n"


def test_one_that_cannot_be_executed_is_named(tmp_path: Path) -> None:
    daemon = Daemon("program", [tmp_path / "none"], log=tmp_path / "log")
    with pytest.raises(StartError, match=r"program: .*/none is not there"):
        daemon.start()


def test_stop_leaves_none_running_and_ended_ones_are_no_error(tmp_path: Path) -> None:
    daemons = [_daemon("trap '' TERM; sleep 100", tmp_path), _daemon("exit 0", tmp_path)]
    for daemon in daemons:
        daemon.start()
    daemons[1].wait()
    stop(daemons)
    assert [daemon.exit_code for daemon in daemons] == [-signal.SIGKILL, 0]


def test_a_restart_is_counted(tmp_path: Path) -> None:
    daemon = _daemon("exit 0", tmp_path)
    counts = [daemon.restarts]
    for _ in range(2):
        daemon.start()
        daemon.wait()
        counts.append(daemon.restarts)
    assert counts == [-1, 0, 1]


def test_what_ends_while_it_starts_gets_three_more_chances(tmp_path: Path) -> None:
    daemon = _daemon("echo again; exit 1", tmp_path)
    daemon.start()
    for _ in range(3):
        daemon.wait()
        revive([daemon])
    daemon.wait()
    with pytest.raises(StartError, match=r"program ended with 1;(.|\n)*again\nagain\nagain\nagain\n$"):
        revive([daemon])


def test_it_dies_with_the_one_who_started_it(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from sim.control_plane.daemon import Daemon;"
        "d = Daemon('p', ['sleep', '100'], log=Path(sys.argv[1])); d.start(); print(d.pid, flush=True); time.sleep(100)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "log")]
    with subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.kill()
    wait_until(lambda: not _is_running(pid), what="the end of the daemon", seconds=30.0, check=lambda: None)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_waiting_ends_with_the_name_of_what_did_not_come() -> None:
    with pytest.raises(StartError, match=r"^etcd is not ready after 0 s$"):
        wait_until(lambda: False, what="etcd", seconds=0.0, check=lambda: None)


def test_waiting_ends_when_the_program_does() -> None:
    def ended() -> None:
        raise StartError("etcd ended with 1")

    with pytest.raises(StartError, match="etcd ended with 1"):
        wait_until(lambda: False, what="etcd", seconds=60.0, check=ended)


def test_a_stored_object_has_no_resource_version() -> None:
    crd = {"kind": "CustomResourceDefinition", "metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}
    assert build_stored_object(crd) == {"kind": "CustomResourceDefinition", "metadata": {"name": "a", "uid": "u"}}


def test_there_may_be_no_seed_yet(tmp_path: Path) -> None:
    assert read_seed(tmp_path / "none.json") == {}
