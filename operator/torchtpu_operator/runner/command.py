"""Launcher Driver: runs the job's own command, and copies what it prints into the head container's log.

`python -m torchtpu_runner.command`. The command writes to Ray's log file itself, as if it were started by Ray: nothing
is in its way, and what goes wrong with the copy costs lines, not the job. Standard library only, so that it begins at
once.
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from . import constants as c
from .guard import PR_SET_CHILD_SUBREAPER, descendants, prctl, reap
from .output import LineSplitter
from .printer import ContainerLog

LOOK_SECONDS = 0.25
READ_BYTES = 1 << 20
TOLD_ALREADY = re.compile(
    rf"^(?:(?:\x1b\[\d+m)?\(\w+ pid=\d+\)(?:\x1b\[\d+m)? )?"
    rf"(?:{re.escape(c.MESSAGE_PREFIX)}|{c.ORDER_PREFIX}|{c.WORLD_PREFIX})"
)
"""What the train callback wrote to the head container itself, here or in a process of this host that Ray forwards; of
other hosts (`pid=7, ip=10.0.0.9`) it went to theirs."""


class Copy:
    """What is appended to `log` after now, line by line, into `container`."""

    def __init__(self, log: BinaryIO, container: ContainerLog) -> None:
        self._log, self._container = log, container
        self._splitter = LineSplitter()
        log.seek(0, os.SEEK_END)

    def advance(self) -> None:
        """Up to the end of what is there now; an unfinished line waits."""
        with contextlib.suppress(OSError):  # tried again at the next look
            size = os.fstat(self._log.fileno()).st_size
            while self._log.tell() < size and (data := self._log.read(READ_BYTES)):
                self._write(self._splitter.feed(data))

    def finish(self) -> None:
        """The rest, with a last line that has no end."""
        self.advance()
        self._write(self._splitter.flush())

    def _write(self, lines: list[str]) -> None:
        # An empty write too: what found no room the last time may find it now.
        self._container.write("".join(f"{line}\n" for line in lines if not TOLD_ALREADY.match(line)))


def own_log() -> BinaryIO | None:
    """The file behind our stdout, for reading; None where it is none."""
    path = Path(f"/proc/self/fd/{sys.stdout.fileno()}")
    try:
        return path.open("rb", buffering=0) if path.is_file() else None
    except OSError:
        return None


def run(argv: list[str], copy: Copy) -> int:
    """Exit code of the command, 128 + n for signal n."""
    # Ray's stop reaches every process of the job. A shell dies of it at once; what it ran may take the grace, its last lines
    # count most, and somebody has to reap it: Ray waits for all that it told to stop.
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    stops: list[int] = []
    wakeup, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for signum in (signal.SIGTERM, signal.SIGINT):  # handlers: an ignored signal would stay ignored in the command
        signal.signal(signum, lambda number, _: stops.append(number))
    child = subprocess.Popen(argv)
    code: int | None = None
    while True:
        code = reap().get(child.pid, code)
        copy.advance()
        if code is not None and not (stops and descendants()):
            copy.finish()
            return code
        if select.select([wakeup], [], [], LOOK_SECONDS)[0]:
            os.read(wakeup, 512)


def main() -> int:
    """Exit code of the Ray job."""
    argv = ["bash", os.environ.get(c.ENV_ENTRYPOINT_FILE) or f"{c.MOUNT_PATH}/{c.ENTRYPOINT_KEY}"]
    container = ContainerLog.open() if "RAY_CLUSTER_NAME" in os.environ else None
    log = own_log()
    if container is None or log is None:
        os.execvp(argv[0], argv)
    with log:
        return run(argv, Copy(log, container))


if __name__ == "__main__":
    sys.exit(main())
