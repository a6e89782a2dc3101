"""A program that runs until it is stopped, with its output in a log file."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# The kernel kills the program with the thread that started it. By a word before the command and not by preexec_fn: that
# runs Python between fork and exec, which gRPC's threads and fork handlers in this process do not survive.
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")

_UNLESS_ORPHANED = ("sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')
"""The starter may have died before the kernel was told; its pid follows, then the program."""

_TAIL_BYTES = 4000

_RESTARTS_WHILE_STARTING = 3


class StartError(Exception):
    """A program did not come up; the message has its last lines and where its log lies."""


class Daemon:
    """One program. It dies with the thread that starts it, even when that one is killed."""

    def __init__(
        self, name: str, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name, self.argv, self.log = name, [str(argument) for argument in argv], log
        self._env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.started_at: float | None = None
        """Seconds since the epoch."""
        self.restarts = -1
        """How often it was started again; -1 before the first start."""

    def start(self) -> None:
        """Start it; a log that is there is appended to. Raises StartError if it cannot be executed."""
        if shutil.which(self.argv[0]) is None:
            raise StartError(f"{self.name}: {self.argv[0]} is not there or cannot be executed")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    [*_DIE_WITH_PARENT, *_UNLESS_ORPHANED, str(os.getpid()), *self.argv],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **self._env},
                    # A group of its own: Ctrl-C in a terminal is for the bench, which then stops its programs in order.
                    process_group=0,
                )
            except OSError as error:
                raise StartError(f"{self.name}: {error}") from error
        self.started_at = time.time()
        self.restarts += 1

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def exit_code(self) -> int | None:
        """None while it runs or before it was started."""
        return self._process.poll() if self._process is not None else None

    def check(self) -> None:
        """Raises StartError if it has ended."""
        if self.exit_code is not None:
            raise StartError(f"{self.name} ended with {self.exit_code}; {self.log} ends with:\n{self.tail()}")

    def tail(self) -> str:
        """The end of its log, for messages."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return log.read().decode(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. Ended is not an error."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL without waiting. Ended is not an error."""
        self.signal(signal.SIGKILL)

    def wait(self) -> None:
        if self._process is not None:
            self._process.wait()


def revive(daemons: Sequence[Daemon]) -> None:
    """Start again what has ended while a cluster comes up. Raises StartError for what ends again and again.

    On a starved machine kube-apiserver gives up on an etcd that is merely slow, and counts on being restarted.
    """
    for daemon in daemons:
        if daemon.exit_code is not None:
            if daemon.restarts >= _RESTARTS_WHILE_STARTING:
                daemon.check()
            daemon.start()


def stop(daemons: Sequence[Daemon]) -> None:
    """Kill all at once: nothing of what they hold outlives a bench, so none needs to be asked first."""
    for daemon in daemons:
        daemon.kill()
    for daemon in daemons:
        daemon.wait()
