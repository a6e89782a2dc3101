"""The folder of a bench and its lock."""

import os
from pathlib import Path

import pytest

from sim.bench.folder import BenchError, BenchFolder, BenchState

STATE = BenchState(pid=1, init_pid=2, user_namespace=False, api_port=3, started_at=4.0)


@pytest.fixture
def folder(tmp_path: Path) -> BenchFolder:
    return BenchFolder(tmp_path / "bench")


def test_the_lock_says_whether_it_lives(folder: BenchFolder) -> None:
    before = folder.is_alive()
    lock = folder.acquire()
    during = folder.is_alive()
    os.close(lock)
    assert (before, during, folder.is_alive()) == (False, True, False)


def test_a_second_bench_in_the_same_folder_is_refused(folder: BenchFolder) -> None:
    lock = folder.acquire()
    with pytest.raises(BenchError, match=r"a bench already runs in .*/bench; stop it with `sim down`"):
        folder.acquire()
    os.close(lock)


def test_what_a_dead_bench_left_is_removed(folder: BenchFolder) -> None:
    os.close(folder.acquire())
    (folder.path / "etcd" / "member").mkdir(parents=True)
    (folder.path / "link").symlink_to("/nowhere")
    folder.options.write_bytes(b"for the next one")
    os.close(folder.acquire())
    assert sorted(path.name for path in folder.path.iterdir()) == [".torchtpu-bench", "options.pickle"]


def test_a_folder_with_other_things_in_it_is_left_alone(folder: BenchFolder) -> None:
    folder.path.mkdir()
    (folder.path / "thesis.txt").write_text("years of work")
    with pytest.raises(BenchError, match="is not empty and not a bench's folder"):
        folder.acquire()
    assert [path.name for path in folder.path.iterdir()] == ["thesis.txt"]


def test_removing_refuses_a_folder_that_is_not_a_benchs(folder: BenchFolder) -> None:
    folder.path.mkdir()
    (folder.path / "thesis.txt").write_text("years of work")
    with pytest.raises(BenchError, match="is not a bench's folder"):
        folder.remove()
    assert (folder.path / "thesis.txt").exists()


def test_the_state_is_read_while_it_lives(folder: BenchFolder) -> None:
    lock = folder.acquire()
    folder.write_state(STATE)
    read = folder.read_state()
    os.close(lock)
    assert read == STATE


def test_the_state_of_a_dead_bench_is_nobodys(folder: BenchFolder) -> None:
    lock = folder.acquire()
    folder.write_state(STATE)
    os.close(lock)
    with pytest.raises(BenchError, match=r"no bench runs in .*; start one with `sim up`"):
        folder.read_state()


def test_the_socket_has_a_short_name_in_a_deep_folder(tmp_path: Path) -> None:
    folder = BenchFolder(tmp_path / ("d" * 120))
    os.close(folder.acquire())
    with folder.socket_path() as path:
        Path(path).touch()
        assert (len(path) < 108, (folder.path / "admin.sock").exists()) == (True, True)


def test_removing_an_absent_folder_is_no_error(folder: BenchFolder) -> None:
    folder.remove()
    assert not folder.path.exists()
