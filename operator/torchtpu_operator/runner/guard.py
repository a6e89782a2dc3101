"""Runs one command and sees to it that nothing of it outlives its owner.

A program of its own, started as `python -I -S -c <this text> <fd>`: stdlib only, no import of the package. `fd` is a
stream socket to the owner. First the owner sends one line of JSON `{"argv", "env", "cwd"}`, later `{"stop": seconds}`
(SIGTERM to the command's group, SIGKILL to all its processes after that many seconds), or `{"dump": true}` (SIGABRT to
all its processes but shells, at which Python's fault handler prints the stacks of all threads). The guard sends `{"exit":
code, "at": unix time}` when the command ends (128 + n for signal n), or `{"error": text}` if it cannot start; then it
ends what the command left behind, and exits. If the owner dies, the socket closes and the guard stops everything.

It is a subreaper, so that processes which left the command's session (torchrun starts each worker in its own) are
found.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ORPHAN_GRACE_SECONDS = 2.0
LEFTOVER_GRACE_SECONDS = 2.0
SHELLS = {"bash", "sh", "dash"}


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def live_parents() -> dict[int, int]:
    """Process -> parent of everything alive, by /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state != b"Z":
            parents[int(entry.name)] = int(parent)
    return parents


def descendants() -> list[int]:
    """Live processes below this one."""
    parents = live_parents()
    found: list[int] = []
    level = [os.getpid()]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found


def send_signal(pids: list[int], signum: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def dump_stacks() -> None:
    """End the programs by SIGABRT; not the shells around them, whose end would have the programs killed while they print."""
    for pid in descendants():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() not in SHELLS:
                os.kill(pid, signal.SIGABRT)


def reap() -> dict[int, int]:
    """Exit codes of the children that ended."""
    codes: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return codes
        if pid == 0:
            return codes
        code = os.waitstatus_to_exitcode(status)
        codes[pid] = code if code >= 0 else 128 - code


class Owner:
    """The socket to whoever started this guard."""

    def __init__(self, fd: int) -> None:
        self.socket = socket.socket(fileno=fd)
        self.buffer = b""
        self.gone = False

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> list[dict[str, Any]]:
        """Whole messages after one read; sets `gone` at the end."""
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        self.gone = not data
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def send(self, message: dict[str, Any]) -> None:
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.gone = True


def prepare_child() -> None:
    """Between fork and exec; single-threaded here, so that is safe."""
    # If the guard itself is killed, the command goes too.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Ignored and blocked signals survive exec: what Ray's worker or this guard does with them is not the command's.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        spec["argv"],
        env=spec["env"],
        cwd=spec["cwd"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=prepare_child,
    )


def supervise(owner: Owner, child: int, wakeup: int, graces: list[float]) -> tuple[int, float | None]:
    """Exit code of the command, and if it was being stopped the time until which its processes may take.

    `graces` of stops that came together with the command.
    """
    kill_at = None
    while True:
        if graces:
            limit = time.monotonic() + min(graces)
            if kill_at is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGTERM)
            kill_at = limit if kill_at is None else min(kill_at, limit)
        code = reap().get(child)
        if code is not None:
            return code, kill_at
        now = time.monotonic()
        if kill_at is not None and now >= kill_at:
            send_signal(descendants(), signal.SIGKILL)
            kill_at = now + 1.0
        graces = wait(owner, wakeup, None if kill_at is None else kill_at - now)


def wait(owner: Owner, wakeup: int, seconds: float | None) -> list[float]:
    """Until a child ended, the owner spoke or the time is over; the graces of the stops that were asked for."""
    sources: list[Any] = [wakeup] if owner.gone else [wakeup, owner]
    ready = select.select(sources, [], [], None if seconds is None else max(0.0, seconds))[0]
    if wakeup in ready:
        os.read(wakeup, 512)
    if owner not in ready:
        return []
    messages = owner.receive()
    if any("dump" in message for message in messages):
        dump_stacks()
    graces = graces_in(messages)
    return [*graces, ORPHAN_GRACE_SECONDS] if owner.gone else graces


def graces_in(messages: list[dict[str, Any]]) -> list[float]:
    return [message["stop"] for message in messages if "stop" in message]


def clean_up(owner: Owner, child: int, wakeup: int, kill_at: float | None) -> None:
    """End what the command left behind, however it hid.

    What was being stopped already keeps its time: a shell dies of the SIGTERM that its program uses to save. Only
    orphans that left the group get a signal of their own, others heard it from the group or hear it from their parent.
    """
    parents = live_parents()
    orphans = [pid for pid in descendants() if parents.get(pid) == os.getpid()]
    for pid in orphans:
        with contextlib.suppress(ProcessLookupError):
            if kill_at is None or os.getpgid(pid) != child:
                os.kill(pid, signal.SIGTERM)
    limit = time.monotonic() + LEFTOVER_GRACE_SECONDS if kill_at is None else kill_at
    while True:
        reap()
        rest = descendants()
        if not rest:
            return
        if time.monotonic() >= limit:
            send_signal(rest, signal.SIGKILL)
        graces = wait(owner, wakeup, 0.05)
        if graces:
            limit = min(limit, time.monotonic() + min(graces))


def main(fd: int) -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)
    wakeup, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    owner = Owner(fd)
    messages: list[dict[str, Any]] = []
    while not messages and not owner.gone:
        messages = owner.receive()
    if not messages:
        return
    try:
        child = start(messages[0])
    except (OSError, subprocess.SubprocessError) as e:
        owner.send({"error": f"cannot start {messages[0]['argv'][0]!r} in {messages[0]['cwd'] or Path.cwd()}: {e}"})
        return
    # The pipe must end with the command's processes, not with this one.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    code, kill_at = supervise(owner, child.pid, wakeup, graces_in(messages[1:]))
    owner.send({"exit": code, "at": time.time()})
    clean_up(owner, child.pid, wakeup, kill_at)


if __name__ == "__main__":
    main(int(sys.argv[1]))
