"""Process 2 of a bench, in its namespaces: brings everything up and serves until it is told to stop."""

import argparse
import asyncio
import contextlib
import logging
import os
import pickle
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from aiohttp import web

from sim.bench.admin import build_application
from sim.bench.folder import BenchError, BenchFolder
from sim.bench.forward import Target, forward
from sim.bench.host_ports import HostPorts
from sim.bench.memory import resident_bytes
from sim.bench.options import BenchOptions
from sim.control_plane import ApiError, StartError
from sim.control_plane.control_plane import API_ADDRESS, DNS_ADDRESS, ControlPlane
from sim.control_plane.faults import register_program_faults
from sim.faults import FaultRegistry
from sim.network import Network

GKE_ADDRESS = "10.96.0.20"

_log = logging.getLogger("sim.bench")


class Inside:
    """The parts of a running bench, and what the admin endpoint tells of them."""

    def __init__(self, folder: BenchFolder, options: BenchOptions, *, api_listener: socket.socket, ports: HostPorts):
        self.faults = FaultRegistry()
        self._folder, self._options = folder, options
        self._api_listener, self._ports = api_listener, ports
        self._api_port: int = api_listener.getsockname()[1]
        self._phase = "starting"
        self._started_at = time.time()
        self._forwards: dict[int, Target] = {}
        self._servers: list[asyncio.Server] = []
        self._cloud: Any = None
        self._control_plane = ControlPlane(folder.path, with_kuberay=options.kuberay, say=self._say)

    async def run(self) -> None:
        """Until cancelled. Raises StartError, ApiError or OSError when a part does not come up."""
        async with AsyncExitStack() as stack:
            runner = web.AppRunner(build_application(self), access_log=None)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            with self._folder.socket_path() as path:
                await web.UnixSite(runner, path).start()
            network = Network()
            await network.start()
            for address in (API_ADDRESS, DNS_ADDRESS, GKE_ADDRESS):
                await network.add_address(address)
            await self._open(self._api_listener, Target(host=API_ADDRESS, port=443))
            await self._start_control_plane(stack)
            await self._start_cloud(stack, network)
            self._phase = "ready"
            self._say(f"ready after {time.time() - self._started_at:.1f} s")
            self._folder.say("READY")
            await asyncio.Event().wait()

    def status(self) -> dict[str, Any]:
        programs = [
            {
                "name": daemon.name,
                "pid": daemon.pid,
                "running": daemon.pid is not None and daemon.exit_code is None,
                "exit_code": daemon.exit_code,
                "restarts": daemon.restarts,
                "rss_bytes": resident_bytes(daemon.pid),
                "started_at": daemon.started_at,
                "log": str(daemon.log),
            }
            for daemon in self._control_plane.daemons
        ]
        own = {
            "name": "bench",
            "pid": 2,
            "running": True,
            "exit_code": None,
            "restarts": 0,
            "rss_bytes": resident_bytes(os.getpid()),
            "started_at": self._started_at,
            "log": str(self._folder.log),
        }
        return {
            "phase": self._phase,
            "started_at": self._started_at,
            "programs": [own, *programs],
            "pools": self._cloud.pools() if self._cloud is not None else [],
            "forwards": {str(port): f"{target.host}:{target.port}" for port, target in self._forwards.items()},
        }

    def gke_calls(self) -> dict[str, Any]:
        calls: dict[str, Any] = self._cloud.calls() if self._cloud is not None else {}
        return calls

    async def forward(self, host: str, port: int, host_port: int) -> int:
        return await self._open(await self._ports.listen(host_port), Target(host=host, port=port))

    async def account_kubeconfig(self, namespace: str, name: str, *, outside: bool) -> str:
        url = self._outside_url if outside else None
        make = self._control_plane.service_account_kubeconfig
        return str(await asyncio.to_thread(make, namespace, name, url=url))

    @property
    def _outside_url(self) -> str:
        return f"https://127.0.0.1:{self._api_port}"

    async def _start_control_plane(self, stack: AsyncExitStack) -> None:
        # A thread of its own for good: the programs die with the thread that started them.
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="control-plane")
        loop = asyncio.get_running_loop()
        stack.callback(self._control_plane.stop)
        identities = self._control_plane.identities
        identities.admin_kubeconfig(self._folder.inside_kubeconfig)
        starting = loop.run_in_executor(thread, self._control_plane.start)
        await asyncio.to_thread(_import_cloud)
        await starting
        identities.admin_kubeconfig(self._folder.kubeconfig, url=self._outside_url)
        register_program_faults(self.faults, self._control_plane, thread)
        keeper = asyncio.create_task(self._keep_control_plane(thread))
        stack.callback(keeper.cancel)

    async def _keep_control_plane(self, thread: ThreadPoolExecutor) -> None:
        """Restart what dies, as a node's kubelet does with a real cluster's control plane."""
        while True:
            await asyncio.sleep(1.0)
            await asyncio.get_running_loop().run_in_executor(thread, self._control_plane.restart_dead)

    async def _start_cloud(self, stack: AsyncExitStack, network: Network) -> None:
        from sim.bench.cloud import Cloud

        cloud = Cloud(self._folder, self._options, network=network, control_plane=self._control_plane)
        await stack.enter_async_context(cloud.run(self.faults))
        self._cloud = cloud

    async def _open(self, listener: socket.socket, target: Target) -> int:
        port: int = listener.getsockname()[1]
        self._servers.append(await forward(listener, target))
        self._forwards[port] = target
        return port

    def _say(self, message: str) -> None:
        _log.info(message)
        self._folder.say(message)


def _import_cloud() -> None:
    """While the apiserver starts there is time for a second of imports."""
    import sim.bench.cloud  # noqa: F401


async def _serve(inside: Inside) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await inside.run()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sim.bench.inside", description="Started by the first process.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("listener", type=int, help="descriptor of the host's listening socket for the apiserver")
    parser.add_argument("control", type=int, help="descriptor of the socket to the first process")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    folder = BenchFolder(arguments.folder)
    options: BenchOptions = pickle.loads(folder.options.read_bytes()) if folder.options.exists() else BenchOptions()
    inside = Inside(
        folder,
        options,
        api_listener=socket.socket(fileno=arguments.listener),
        ports=HostPorts(socket.socket(fileno=arguments.control)),
    )
    try:
        asyncio.run(_serve(inside))
    except (StartError, ApiError, BenchError, OSError) as error:
        _log.exception("the bench did not come up")
        folder.say(f"FAILED {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
