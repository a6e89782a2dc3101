"""Everything that a bench writes lies in one folder; a lock in it says whether the bench lives."""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

_PROBE_SECONDS = 0.5
"""Somebody who asks whether the bench lives holds the lock for a moment, too."""


class BenchError(Exception):
    """The bench cannot do what was asked; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class BenchState:
    """What the first process tells the world."""

    pid: int
    """The first process: when it dies, everything dies."""
    init_pid: int
    """Process 1 of the bench as seen from outside; its namespaces are the bench's."""
    user_namespace: bool
    """Whether the bench has a user namespace of its own: it was started by an ordinary user."""
    api_port: int
    """Port on the host's loopback that leads to the apiserver."""
    started_at: float


class BenchFolder:
    """The paths of one bench, and its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.kubeconfig = self.path / "kubeconfig"
        """For use outside the bench."""
        self.inside_kubeconfig = self.path / "inside.kubeconfig"
        self.logs = self.path / "logs"
        self.log = self.path / "bench.log"
        """What the bench's own processes print; it is there before the logs' folder is."""
        self.tmp = self.path / "tmp"
        self.pods = self.path / "pods"
        self.options = self.path / "options.pickle"
        self.progress = self.path / "progress"
        """Lines for whoever waits for the bench to come up; the last is READY or begins with FAILED."""
        self._lock = self.path / ".torchtpu-bench"
        self._state = self.path / "state.json"
        self._socket_name = "admin.sock"

    def acquire(self) -> int:
        """Make the folder ours and empty. Returns a descriptor that holds the lock until it is closed.

        Raises BenchError when another bench lives in it, or when it is not a bench's folder.
        """
        self.mark()
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        deadline = time.monotonic() + _PROBE_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(descriptor)
                    raise BenchError(f"a bench already runs in {self.path}; stop it with `sim down`") from None
                time.sleep(0.01)
        # Options and log were put there for the bench that is about to start.
        self._remove_all_but(self._lock, self.options, self.log)
        return descriptor

    def mark(self) -> None:
        """Make the folder and its lock file. Raises BenchError when there is something else in it."""
        if self.path.exists() and not self._lock.exists() and any(self.path.iterdir()):
            raise BenchError(f"{self.path} is not empty and not a bench's folder; choose another")
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock.touch(mode=0o600)

    def is_alive(self) -> bool:
        """Whether a first process holds the lock."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def read_state(self) -> BenchState:
        """Raises BenchError if no bench runs here."""
        with contextlib.suppress(FileNotFoundError):
            if self.is_alive():
                return BenchState(**json.loads(self._state.read_text()))
        raise BenchError(f"no bench runs in {self.path}; start one with `sim up`")

    def write_state(self, state: BenchState) -> None:
        scratch = self._state.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(state)))
        scratch.replace(self._state)

    def say(self, line: str) -> None:
        """Tell whoever waits."""
        with self.progress.open("a") as file:
            file.write(line.replace("\n", "\\n") + "\n")

    @contextlib.contextmanager
    def socket_path(self) -> Iterator[str]:
        """The admin socket by a short name: a socket's path may have 107 bytes, a folder's more."""
        descriptor = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{descriptor}/{self._socket_name}"
        finally:
            os.close(descriptor)

    def copy_logs(self, target: Path) -> None:
        """Logs of the programs, of the bench itself, and of the pods that there are."""
        shutil.copytree(self.logs, target, dirs_exist_ok=True)
        shutil.copy(self.log, target)
        for log in self.pods.rglob("logs/*/*.log"):
            copy = target / "pods" / log.relative_to(self.pods)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, copy)

    def remove(self, *, seconds: float = 5.0) -> None:
        """Remove it all. Absent is not an error. Raises BenchError for a folder that is not a bench's.

        A killed bench's mounts go a moment after its processes, so a busy folder is tried again for a while.
        """
        if self.path.exists() and not self._lock.exists() and any(self.path.iterdir()):
            raise BenchError(f"{self.path} is not a bench's folder; nothing was removed")
        deadline = time.monotonic() + seconds
        while self.path.exists():
            try:
                # The lock goes last: it marks what is left as a bench's if this is broken off.
                self._remove_all_but(self._lock)
                shutil.rmtree(self.path)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _remove_all_but(self, *kept: Path) -> None:
        for leftover in self.path.iterdir():
            if leftover in kept:
                continue
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()
