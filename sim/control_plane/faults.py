"""Faults of the control plane's programs: dead for a while, or hanging."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from sim.control_plane.control_plane import ControlPlane
from sim.control_plane.daemon import Daemon
from sim.faults import FaultError, FaultRegistry


def register_program_faults(registry: FaultRegistry, control_plane: ControlPlane, thread: Executor) -> None:
    """`thread` is the one that started the programs."""
    commands = _Commands(control_plane, thread)
    for name, help_text, function in (
        ("program-kill", "SIGKILL a control plane program; it starts again after `seconds`.", commands.kill),
        ("program-hang", "A control plane program stops answering for `seconds`.", commands.hang),
        ("kuberay-install", "Not a fault: install KubeRay in a bench that came up without it.", commands.install),
    ):
        registry.register(name, help_text, function)


class _Commands:
    def __init__(self, control_plane: ControlPlane, thread: Executor) -> None:
        self._control_plane, self._thread = control_plane, thread
        self._later: set[asyncio.Task[None]] = set()

    async def kill(self, name: str = "kube-apiserver", seconds: str = "0") -> str:
        daemon, after = self._find(name), _seconds(seconds)
        self._control_plane.held_down.add(daemon.name)
        daemon.kill()

        async def revive() -> None:
            self._control_plane.held_down.discard(daemon.name)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._control_plane.restart_dead)

        self._after(after, revive)
        return f"{name} is dead; it starts again after {after:g} s"

    async def hang(self, name: str = "kube-apiserver", seconds: str = "10") -> str:
        daemon, after = self._find(name), _seconds(seconds)
        daemon.signal(signal.SIGSTOP)

        async def go_on() -> None:
            daemon.signal(signal.SIGCONT)

        self._after(after, go_on)
        return f"{name} hangs for {after:g} s"

    async def install(self) -> str:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._control_plane.install_kuberay)
        return "KubeRay is installed"

    def _find(self, name: str) -> Daemon:
        daemon = self._control_plane.daemon(name)
        if daemon is None:
            known = ", ".join(each.name for each in self._control_plane.daemons)
            raise FaultError(f"no program {name!r}; there are {known}")
        if daemon.exit_code is not None:
            raise FaultError(f"{name} is down already")
        return daemon

    def _after(self, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        async def later() -> None:
            await asyncio.sleep(seconds)
            await act()

        task = asyncio.create_task(later())
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise FaultError(f"seconds={text!r}: a number such as 2.5") from error
