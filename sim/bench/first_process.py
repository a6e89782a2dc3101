"""The first process of a bench: `python -m sim.bench.first_process FOLDER`.

    first process (host)      holds the folder's lock, listens on the host's loopback, hands listeners in
      process 1 of the bench  makes the namespaces, reaps orphans
        inside.py             control plane, network, GKE, kubelets, admin endpoint

The first process stays in the host's namespaces: only from there can further loopback ports be opened. Each process
dies with its parent, and with process 1 the kernel kills whatever is left in the pid namespace.
"""

import argparse
import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType

from sim.bench import namespaces
from sim.bench.folder import BenchError, BenchFolder, BenchState
from sim.bench.namespaces import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
)
from sim.tools.catalogue import REPOSITORY

NAMESERVER = "10.96.0.10"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sim.bench.first_process", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0, help="host loopback port for the apiserver; 0: any")
    parser.add_argument("--lifeline", type=int, help="descriptor of a pipe; the bench ends when its other end closes")
    arguments = parser.parse_args(argv)
    folder = BenchFolder(arguments.folder)
    lock = -1
    try:
        lock = folder.acquire()
        return _run(folder, port=arguments.port, lifeline=arguments.lifeline)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        if lock >= 0:
            folder.say(f"FAILED {error}")
        return 1


def _run(folder: BenchFolder, *, port: int, lifeline: int | None) -> int:
    for path in (folder.logs, folder.tmp, folder.pods):
        path.mkdir()
    listener = listen(port)
    control, inner_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    user_namespace = _enter_pid_namespace()
    # A pipe beside PDEATHSIG: the parent may die before the child has asked for the signal.
    alive_read, alive_write = os.pipe()
    init = os.fork()
    if init == 0:
        os.close(alive_write)
        control.close()
        _be_process_one(folder, listener=listener, control=inner_control, alive=alive_read)
    os.close(alive_read)
    inner_control.close()
    api_port = listener.getsockname()[1]
    listener.close()
    folder.write_state(
        BenchState(
            pid=os.getpid(),
            init_pid=init,
            user_namespace=user_namespace,
            api_port=api_port,
            started_at=time.time(),
        )
    )
    return _supervise(init, control=control, lifeline=lifeline)


def listen(port: int) -> socket.socket:
    """A listening socket on the host's loopback. Raises BenchError if the port is taken."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=128)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise BenchError(f"port {port} on 127.0.0.1: {why}; choose another, or 0 for any that is free") from error


def _enter_pid_namespace() -> bool:
    """Children of this process live in a new pid namespace. Returns whether a user namespace was needed for it."""
    try:
        if os.getuid() == 0:
            try:
                namespaces.unshare(CLONE_NEWPID)
                return False
            except PermissionError:
                # Root of a container without CAP_SYS_ADMIN is an ordinary user in this respect.
                pass
        namespaces.enter_user_namespace(CLONE_NEWPID)
    except OSError as error:
        raise BenchError(namespaces.explain_refusal(error)) from error
    return True


def _supervise(init: int, *, control: socket.socket, lifeline: int | None) -> int:
    """Until process 1 is gone: pass listeners in; stop the bench at a signal or when the lifeline closes."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _noted)
    with selectors.DefaultSelector() as selector:
        selector.register(os.pidfd_open(init), selectors.EVENT_READ, "ended")
        selector.register(wake_read, selectors.EVENT_READ, "signal")
        selector.register(control, selectors.EVENT_READ, "control")
        if lifeline is not None:
            selector.register(lifeline, selectors.EVENT_READ, "lifeline")
        while True:
            events = [key.data for key, _ in selector.select()]
            if "ended" in events:
                return os.waitstatus_to_exitcode(os.waitpid(init, 0)[1])
            if "control" in events and not _serve_listener(control):
                selector.unregister(control)
            if "signal" in events or "lifeline" in events:
                # Nothing in a bench is worth a farewell: all that it holds goes with it.
                os.kill(init, signal.SIGKILL)
                os.waitpid(init, 0)
                return 0


def _serve_listener(control: socket.socket) -> bool:
    """Open one loopback port that the inside asks for, and hand it in. False: the inside has closed."""
    request = control.recv(4096)
    if not request:
        return False
    try:
        with listen(json.loads(request)["port"]) as listener:
            answer = {"port": listener.getsockname()[1]}
            socket.send_fds(control, [json.dumps(answer).encode()], [listener.fileno()])
    except BenchError as error:
        control.send(json.dumps({"error": str(error)}).encode())
    return True


def _noted(number: int, frame: FrameType | None) -> None:
    """The wake-up descriptor tells the loop; without a handler the signal would end the process."""


def _be_process_one(folder: BenchFolder, *, listener: socket.socket, control: socket.socket, alive: int) -> None:
    """Make the remaining namespaces, start the inside, reap. Never returns."""
    code = 1
    try:
        namespaces.die_with_parent()
        os.set_blocking(alive, False)
        try:
            if os.read(alive, 1) == b"":
                os._exit(1)
        except BlockingIOError:
            pass
        os.setsid()
        namespaces.unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC)
        socket.sethostname("bench")
        _prepare_mounts(folder)
        code = _reap_until_ended(_start_inside(folder, listener=listener, control=control))
    except OSError as error:
        folder.say(f"FAILED {error.filename or 'namespaces'}: {error.strerror}")
        print(f"error: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _prepare_mounts(folder: BenchFolder) -> None:
    namespaces.mount("none", Path("/"), flags=MS_REC | MS_PRIVATE)
    try:
        namespaces.mount("proc", Path("/proc"), kind="proc", flags=MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except PermissionError as error:
        # The kernel forbids a fresh /proc where the present one has parts masked, as in most containers.
        hint = "in a container: docker run --privileged, or --security-opt systempaths=unconfined"
        raise OSError(error.errno, f"{error.strerror}; {hint}", error.filename) from error
    # Shared memory that nobody unlinks would stay behind in the machine's own.
    if (shared_memory := Path("/dev/shm").resolve()).is_dir():
        namespaces.mount("tmpfs", shared_memory, kind="tmpfs", flags=MS_NOSUID | MS_NODEV)
    resolv_conf = folder.path / "resolv.conf"
    resolv_conf.write_text(f"nameserver {NAMESERVER}\noptions ndots:2\n")
    target = Path("/etc/resolv.conf").resolve()
    run = Path("/run")
    needed = (folder.path, Path(sys.prefix).resolve(), REPOSITORY)
    if run.is_dir() and not any(path.is_relative_to(run) for path in needed):
        # Tools that keep state in /run (named network namespaces, locks) keep it in the bench.
        namespaces.mount("tmpfs", run, kind="tmpfs", flags=MS_NOSUID | MS_NODEV, data="mode=755")
        if target.is_relative_to(run):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
    if target.exists():
        # Without the file a resolver asks 127.0.0.1, where CoreDNS listens as well.
        namespaces.mount(str(resolv_conf), target, flags=MS_BIND)


def _start_inside(folder: BenchFolder, *, listener: socket.socket, control: socket.socket) -> int:
    pid = os.fork()
    if pid == 0:
        listener.set_inheritable(True)
        control.set_inheritable(True)
        module = ["-m", "sim.bench.inside", str(folder.path), str(listener.fileno()), str(control.fileno())]
        os.chdir(REPOSITORY)
        # Whatever is forked here is another program a moment later; gRPC need not prepare for it, nor say so.
        own = {"TMPDIR": str(folder.tmp), "GRPC_ENABLE_FORK_SUPPORT": "false"}
        os.execve(sys.executable, [sys.executable, *module], {**os.environ, **own})
    listener.close()
    control.close()
    return pid


def _reap_until_ended(main_pid: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == main_pid:
            return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
