"""Where the driver's lines go: its own stdout, which Ray keeps, and the head container's, which Kubernetes keeps."""

import contextlib
import os
import sys
import threading
from collections.abc import Sequence

from .constants import MESSAGE_PREFIX

CONTAINER_STDOUT = "/proc/1/fd/1"
MAX_PENDING_BYTES = 1 << 20
"""What a slow container runtime may hold back before lines for it are dropped."""


class ContainerLog:
    """The stdout of the container's first process. Never blocks: the job must not wait for a log collector."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending = b""

    @classmethod
    def open(cls, path: str = CONTAINER_STDOUT) -> "ContainerLog | None":
        """None where it cannot be written or is the very file that our own stdout goes to."""
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            return None
        # A stdout without a descriptor (io.UnsupportedOperation, an OSError) is another one for sure.
        with contextlib.suppress(OSError):
            if os.path.sameopenfile(fd, sys.stdout.fileno()):
                os.close(fd)
                return None
        return cls(fd)

    def write(self, text: str) -> None:
        """Whole lines. Those that find no room are dropped."""
        data = text.encode(errors="backslashreplace")
        if len(self._pending) + len(data) <= MAX_PENDING_BYTES:
            self._pending += data
        with contextlib.suppress(OSError):
            while self._pending:
                self._pending = self._pending[os.write(self._fd, self._pending) :]


class Printer:
    """Writes lines as they come; a full disk costs lines, not the job. Thread-safe."""

    def __init__(self, *, container: ContainerLog | None = None) -> None:
        self._container = container
        self._lock = threading.Lock()

    @property
    def has_container_log(self) -> bool:
        return self._container is not None

    def lines(self, lines: Sequence[str]) -> None:
        """One line each, in one piece."""
        if not lines:
            return
        text = "".join(f"{line}\n" for line in lines)
        with self._lock:
            with contextlib.suppress(OSError):
                sys.stdout.write(text)
                sys.stdout.flush()
            if self._container is not None:
                self._container.write(text)

    def message(self, text: str) -> None:
        """The runner's own words."""
        self.lines([f"{MESSAGE_PREFIX}{line}" for line in text.splitlines()])
