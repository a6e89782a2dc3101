"""The operator process: `python -m torchtpu_operator`."""

import argparse
import asyncio
import concurrent.futures
import contextlib
import logging
import os
import random
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence

import aiohttp
from prometheus_client import disable_created_metrics

from torchtpu_operator.clients.clock import SystemClock
from torchtpu_operator.clients.gke import GkeClient
from torchtpu_operator.clients.gke_limit import OperationLimit
from torchtpu_operator.clients.kube_config import load_configuration
from torchtpu_operator.clients.ray_jobs import HttpRayJobs, build_session
from torchtpu_operator.controller import logs
from torchtpu_operator.controller.metrics import Metrics
from torchtpu_operator.controller.process import Outside, Surroundings, run
from torchtpu_operator.settings import OperatorSettings, SettingsError

log = logging.getLogger("torchtpu_operator")

_TOKEN_BYTES = 32
_THREADS = 32  # for name resolution alone: a slow DNS server must not stop it for everybody


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torchtpu-operator", description="Runs TorchTPUJobs on Cloud TPU slices.")
    parser.add_argument("--kubeconfig", help="for development: use this file instead of the pod's own account")
    flags = parser.parse_args(arguments)
    try:
        settings = OperatorSettings.from_environment(
            os.environ, hostname=socket.gethostname(), kubeconfig=flags.kubeconfig
        )
    except SettingsError as error:
        print(f"torchtpu-operator cannot start:\n{error}", file=sys.stderr)
        return 2
    logs.configure(settings.log_level)
    try:
        return asyncio.run(_serve(settings))
    except (asyncio.CancelledError, KeyboardInterrupt):
        return 0  # asked to stop before it acted


async def _serve(settings: OperatorSettings) -> int:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="resolve"))
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):  # kopf takes them over once it runs
        loop.add_signal_handler(number, task.cancel)
    disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the number of series
    metrics = Metrics()
    async with contextlib.AsyncExitStack() as stack:
        session: aiohttp.ClientSession = await stack.enter_async_context(build_session())
        limit = OperationLimit(monotonic=time.monotonic, changed=metrics.operations)
        gke = GkeClient(settings.gke, limit=limit, seen=metrics.called)
        stack.push_async_callback(gke.close)
        outside = Outside(
            kubernetes=await load_configuration(kubeconfig=settings.kubeconfig),
            gke=gke,
            ray=HttpRayJobs(session, base_url=settings.ray_base_url, seen=metrics.called),
        )
        surroundings = Surroundings(
            clock=SystemClock(),
            monotonic=time.monotonic,
            jitter=random.random,
            new_token=lambda: secrets.token_urlsafe(_TOKEN_BYTES),
            leave_within=_leave_within,
        )
        log.info(
            "starting", extra={"cluster": settings.gke.path, "identity": settings.identity, "workers": settings.workers}
        )
        asked = await run(settings, outside, metrics=metrics, surroundings=surroundings)
    log.info("stopped")
    return 0 if asked else 1


def _leave_within(seconds: float) -> None:
    """The last resort, on a thread of its own: the event loop may be what hangs."""
    watchdog = threading.Timer(seconds, os._exit, (1,))
    watchdog.daemon = True
    watchdog.start()


if __name__ == "__main__":
    sys.exit(main())
