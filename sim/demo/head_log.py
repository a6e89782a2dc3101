"""Reads the output of the ranks while it is written, in a thread."""

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from typing import Final

from sim.bench import Bench
from sim.demo.cluster import ClusterError, ClusterReader
from sim.demo.output import Output, read_line
from sim.demo.snapshot import Snapshot
from sim.tools import path as tool_path
from torchtpu_operator.api import Launcher

CONTAINER: Final = "ray"
_AGAIN_SECONDS = 1.0


class HeadLog:
    """Follows the youngest head. Under PerDevice and PerHost the container's log has all that the ranks print.

    A Ray driver of the user's own (launcher Driver) prints into a file of Ray's alone, which is read by exec.
    """

    def __init__(self, bench: Bench, reader: ClusterReader, *, namespace: str) -> None:
        self._bench, self._reader, self._namespace = bench, reader, namespace
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._output = Output()
        self._followed = ""
        self._tail: subprocess.Popen[str] | None = None

    def look(self, snapshot: Snapshot) -> Output:
        """What was read so far; begins to read when there is something new to read."""
        head, attempt = snapshot.head(), snapshot.job.status.attempt if snapshot.job is not None else None
        if snapshot.job is not None and head is not None and attempt is not None and attempt.submission_id:
            by_exec = snapshot.job.spec.launcher is Launcher.DRIVER
            if head.name != self._followed:
                self._follow(head.name, driver_of=attempt.submission_id if by_exec else None)
        with self._lock:
            return self._output

    def stop(self) -> None:
        self._stopped.set()
        if self._tail is not None:
            self._tail.kill()
            self._tail.wait()

    def _follow(self, pod: str, *, driver_of: str | None) -> None:
        self._followed = pod
        name = f"log-of-{pod}"
        threading.Thread(target=self._read, args=(pod, driver_of), name=name, daemon=True).start()

    def _read(self, pod: str, driver_of: str | None) -> None:
        """From the beginning again after every break: the log is short, and so no line is lost or doubled."""
        while not self._stopped.is_set() and self._followed == pod:
            output = Output()
            with contextlib.suppress(ClusterError):
                for line in self._lines(pod, driver_of):
                    output = read_line(output, line)
                    with self._lock:
                        # What is read again is shown once it has come as far as before.
                        if self._followed == pod and (output.count >= self._output.count or not self._is_same(output)):
                            self._output = output
            self._stopped.wait(_AGAIN_SECONDS)

    def _is_same(self, output: Output) -> bool:
        """Whether both are of one attempt: the ranks' places differ from attempt to attempt."""
        return not output.workers or output.workers == self._output.workers

    def _lines(self, pod: str, driver_of: str | None) -> Iterator[str]:
        if driver_of is None:
            yield from self._reader.follow_log(pod, container=CONTAINER)
            return
        file = f"/tmp/ray/session_latest/logs/job-driver-{driver_of}.log"
        argv = [str(tool_path("kubectl")), "exec", f"--namespace={self._namespace}", pod, f"--container={CONTAINER}"]
        self._tail = subprocess.Popen(
            [*argv, "--", "tail", "--lines=+1", "--follow=name", "--retry", file],
            env=self._bench.outside_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
        assert self._tail.stdout is not None
        for line in self._tail.stdout:
            yield line.rstrip("\n")
