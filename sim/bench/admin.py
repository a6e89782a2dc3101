"""The bench's admin endpoint: JSON over HTTP on a unix socket in its folder, for `sim` and for tests."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aiohttp import web

from sim.bench.folder import BenchError
from sim.control_plane import ApiError, StartError
from sim.faults import FaultError, FaultRegistry

_log = logging.getLogger(__name__)


class Subject(Protocol):
    """What the endpoint speaks for."""

    @property
    def faults(self) -> FaultRegistry: ...

    def status(self) -> dict[str, Any]:
        """JSON for `sim status`."""

    def gke_calls(self) -> dict[str, Any]:
        """JSON of what the GKE API was asked."""

    async def forward(self, host: str, port: int, host_port: int) -> int:
        """Open a loopback port of the host that leads to host:port inside; returns its number. BenchError if taken."""

    async def account_kubeconfig(self, namespace: str, name: str, *, outside: bool) -> str:
        """Path of a kubeconfig with that ServiceAccount's rights. ApiError if there is none."""


def build_application(subject: Subject) -> web.Application:
    """Errors answer 400 with {"error": what is wrong}."""

    async def status(_: web.Request) -> web.Response:
        return web.json_response(subject.status())

    async def gke_calls(_: web.Request) -> web.Response:
        return web.json_response(subject.gke_calls())

    async def faults(_: web.Request) -> web.Response:
        found = [{"name": fault.name, "help": fault.help, "usage": fault.usage} for fault in subject.faults.list()]
        return web.json_response({"faults": found})

    async def inject(request: web.Request) -> web.Response:
        name, parameters = request.match_info["name"], await request.json()
        message = await subject.faults.inject(name, parameters)
        _log.info("fault %s %s: %s", name, parameters, message)
        return web.json_response({"message": message})

    async def forward(request: web.Request) -> web.Response:
        body = await request.json()
        port = await subject.forward(str(body["host"]), int(body["port"]), int(body.get("host_port", 0)))
        return web.json_response({"port": port})

    async def account_kubeconfig(request: web.Request) -> web.Response:
        body = await request.json()
        path = await subject.account_kubeconfig(body["namespace"], body["name"], outside=bool(body["outside"]))
        return web.json_response({"path": path})

    application = web.Application(middlewares=[_explain])
    application.add_routes(
        [
            web.get("/status", status),
            web.get("/gke/calls", gke_calls),
            web.get("/faults", faults),
            web.post("/faults/{name}", inject),
            web.post("/forward", forward),
            web.post("/account-kubeconfig", account_kubeconfig),
        ]
    )
    return application


@web.middleware
async def _explain(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except (FaultError, BenchError, ApiError, StartError) as error:
        return web.json_response({"error": str(error)}, status=400)
