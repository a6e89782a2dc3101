"""/healthz, /readyz and /metrics over aiohttp."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from aiohttp import web

_LAG_EVERY = 1.0


@dataclass
class Health:
    """What the process knows about itself; written by its parts, read by the probes."""

    problems: dict[str, str] = field(default_factory=dict)
    """Why it is not ready, by concern (crds, permissions, lease, ...); each line names the next action."""
    alive: Callable[[], str] = lambda: ""
    """"" while the process can still do its work, else why only a restart helps."""

    def set(self, concern: str, problem: str = "") -> None:
        """A concern's problem, or that it has none any more."""
        if problem:
            self.problems[concern] = problem
        else:
            self.problems.pop(concern, None)


@dataclass(frozen=True)
class Ports:
    health: int
    metrics: int


@contextlib.asynccontextmanager
async def served(
    health: Health, *, metrics: Callable[[], bytes], health_port: int, metrics_port: int
) -> AsyncIterator[Ports]:
    """Serves while the context lasts, on all interfaces; 0 picks a free port on loopback; equal ports share a server."""

    async def healthz(_: web.Request) -> web.Response:
        problem = health.alive()
        return web.Response(text=problem or "ok", status=503 if problem else 200)

    async def readyz(_: web.Request) -> web.Response:
        problems = [f"{concern}: {text}" for concern, text in sorted(health.problems.items())]
        return web.Response(text="\n".join(problems) or "ok", status=503 if problems else 200)

    async def exposed(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    probes, figures = web.Application(), web.Application()
    shared = health_port == metrics_port and health_port != 0
    probes.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    (probes if shared else figures).add_routes([web.get("/metrics", exposed)])
    async with contextlib.AsyncExitStack() as stack:
        first = await stack.enter_async_context(_listening(probes, health_port))
        second = first if shared else await stack.enter_async_context(_listening(figures, metrics_port))
        yield Ports(health=first, metrics=second)


@contextlib.asynccontextmanager
async def _listening(app: web.Application, port: int) -> AsyncIterator[int]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    # With port 0 and all interfaces IPv4 and IPv6 would get different ports.
    site = web.TCPSite(runner, None if port else "127.0.0.1", port)
    try:
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def watch_lag(told: Callable[[float], None]) -> None:
    """Tells how late the event loop is, every second: a blocking call anywhere shows here."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_EVERY
        await asyncio.sleep(_LAG_EVERY)
        told(max(0.0, loop.time() - due))
