"""Ray heads as their dashboards answer, behind one aiohttp server: `http://127.0.0.1:PORT/<head service>/api/...`.

Answers as Ray 2.60 does: 404 text for an unknown id, HTTP 500 and a traceback for a second POST of one id, 401 without a
token and 403 with a wrong one.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], web.Response | None]


@dataclass
class Head:
    """One head's state; a test sets it as it likes."""

    session_name: str = "session_1"
    version: str = "2.60.0"
    token: str | None = None
    nodes: list[dict[str, Any]] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    submissions: list[dict[str, Any]] = field(default_factory=list)
    """Every accepted POST."""
    stopped: list[str] = field(default_factory=list)
    first_status: str = "PENDING"
    """Of a job that was just accepted."""
    intercept: Answer | None = None
    """Answers instead of Ray, before anything takes effect."""
    lose_submit_answer: bool = False
    """Take the next submission, but answer nothing that can be read."""
    hangs: bool = False
    """Takes requests and never answers."""
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    """(method, path, Authorization) of every request."""

    def finish(self, submission_id: str, status: str, **fields: Any) -> None:
        self.jobs[submission_id] |= {"status": status, **fields}


def ray_node(slice_name: str, worker_id: int, *, chips: float, pod_type: str, topology: str) -> dict[str, Any]:
    """One host of a slice, as /api/v0/nodes lists it."""
    return {
        "node_id": f"{slice_name}-{worker_id}",
        "node_ip": f"10.0.0.{worker_id + 1}",
        "state": "ALIVE",
        "is_head_node": False,
        "resources_total": {"CPU": 8.0, "TPU": chips},
        "labels": {
            "ray.io/tpu-slice-name": slice_name,
            "ray.io/tpu-worker-id": str(worker_id),
            "ray.io/tpu-pod-type": pod_type,
            "ray.io/tpu-topology": topology,
        },
    }


@dataclass
class RayServer:
    heads: dict[str, Head] = field(default_factory=dict)
    """By head service."""
    port: int = 0

    @property
    def base_url(self) -> str:
        """The template for the operator's settings."""
        return f"http://127.0.0.1:{self.port}/{{head_service}}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        head = self.heads.get(request.match_info["service"])
        if head is None:
            return web.Response(status=503, text="no such head")
        path = "/" + request.match_info["path"]
        given = request.headers.get("Authorization")
        head.seen.append((request.method, path, given))
        if head.hangs:
            await asyncio.sleep(3600)
        if head.intercept and (answer := head.intercept(request)) is not None:
            return answer
        if head.token is not None and given != f"Bearer {head.token}":
            return web.Response(status=403 if given else 401, text="Unauthorized")
        return await _answer(head, request, path)


async def _answer(head: Head, request: web.Request, path: str) -> web.StreamResponse:
    match request.method, path.strip("/").split("/"):
        case "GET", ["api", "version"]:
            return web.json_response({"version": "4", "ray_version": head.version, "session_name": head.session_name})
        case "GET", ["api", "v0", "nodes"]:
            return web.json_response({"result": True, "data": {"result": {"result": head.nodes}}})
        case "GET", ["api", "v0", "logs", "file"]:
            return web.Response(text=head.logs.get(request.query["submission_id"], ""))
        case "POST", ["api", "jobs"]:
            return await _submit(head, request)
        case "GET", ["api", "jobs", name] if name in head.jobs:
            return web.json_response(head.jobs[name])
        case "POST", ["api", "jobs", name, "stop"] if name in head.jobs:
            head.stopped.append(name)
            running = head.jobs[name]["status"] in ("PENDING", "RUNNING")
            if running:
                head.finish(name, "STOPPED")
            return web.json_response({"stopped": running})
        case _, ["api", "jobs", name, *_]:
            return web.Response(status=404, text=f"Job {name} does not exist")
    return web.Response(status=404, text="404: Not Found")


async def _submit(head: Head, request: web.Request) -> web.Response:
    body = await request.json()
    name = body["submission_id"]
    if name in head.jobs:
        text = (
            "Traceback (most recent call last):\n  File ...\n"
            f"ValueError: Job with submission_id {name} already exists. Please use a different submission_id.\n"
        )
        return web.Response(status=500, text=text)
    head.submissions.append(body)
    head.jobs[name] = {
        "type": "SUBMISSION",
        "submission_id": name,
        "status": head.first_status,
        "message": "",
        "metadata": body.get("metadata") or {},
        "driver_exit_code": None,
        "error_type": None,
    }
    if head.lose_submit_answer:
        head.lose_submit_answer = False
        return web.Response(status=502, text="Bad Gateway")
    return web.Response(text=json.dumps({"job_id": name, "submission_id": name}), content_type="application/json")


@contextlib.asynccontextmanager
async def ray_server() -> AsyncIterator[RayServer]:
    server = RayServer()
    app = web.Application()
    app.router.add_route("*", "/{service}/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)
