"""The HTTPS endpoint of a node, which the apiserver calls for `kubectl logs` and `kubectl exec`."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from sim.kubelet.container import ContainerRunner
from sim.kubelet.exec_socket import serve_exec
from sim.kubelet.logs import parse_query, read
from sim.kubelet.node_object import KUBELET_PORT
from sim.kubelet.pod import PodWorker
from sim.kubelet.settings import KeyPair

FindPod = Callable[[str, str], PodWorker | None]


class KubeletServer:
    """Serves one node. Only clients with a certificate of the cluster's authority are let in."""

    def __init__(self, *, address: str, identity: KeyPair, client_ca: Path, find: FindPod) -> None:
        self._address, self._find = address, find
        self._ssl = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client_ca))
        self._ssl.load_cert_chain(identity.certificate, identity.key)
        self._ssl.verify_mode = ssl.CERT_REQUIRED
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        for path in ("/exec/{namespace}/{pod}/{container}", "/exec/{namespace}/{pod}/{uid}/{container}"):
            app.router.add_get(path, self._exec)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._address, KUBELET_PORT, ssl_context=self._ssl).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        runner = self._container(request)
        try:
            query = parse_query(dict(request.query), now=datetime.now(UTC))
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        previous = request.query.get("previous") == "true"
        path = runner.log_path(previous=previous)
        if not path.exists():
            what = "previous terminated container" if previous else "container"
            state = "" if previous else " is waiting to start"
            raise web.HTTPBadRequest(
                text=f'{what} "{runner.name}" in pod "{request.match_info["pod"]}"{state or " not found"}'
            )
        restarts = runner.state.restarts
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)

        def is_open() -> bool:
            # A client that has gone away is not told by a log that stays silent.
            connected = request.transport is not None and not request.transport.is_closing()
            return connected and not previous and runner.state.restarts == restarts and runner.process is not None

        async for block in read(path, query, is_open=is_open):
            await response.write(block)
        return response

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        runner = self._container(request)
        if runner.process is None or not runner.process.is_running:
            raise web.HTTPBadRequest(text=f'container "{runner.name}" is not running')
        return await serve_exec(request, process=runner.process)

    def _container(self, request: web.Request) -> ContainerRunner:
        where = request.match_info
        worker = self._find(where["namespace"], where["pod"])
        if worker is None:
            raise web.HTTPNotFound(text=f'pod "{where["pod"]}" does not run on this node')
        runner = worker.container(where["container"])
        if runner is None:
            raise web.HTTPNotFound(text=f'pod "{where["pod"]}" has no container "{where["container"]}"')
        return runner
