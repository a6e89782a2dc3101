"""The admin endpoint's answers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from sim.bench.admin import build_application
from sim.bench.folder import BenchError
from sim.control_plane import ApiError, StartError
from sim.faults import FaultRegistry

Client = TestClient[web.Request, web.Application]


class Subject:
    def __init__(self) -> None:
        self.faults = FaultRegistry()
        self.faults.register("slow", "Everything takes longer.", self._slow)

    async def _slow(self, seconds: str = "1") -> str:
        if seconds == "never":
            raise StartError("etcd ended with 1")
        return f"slower by {seconds} s"

    def status(self) -> dict[str, Any]:
        return {"phase": "ready"}

    def gke_calls(self) -> dict[str, Any]:
        return {"counts": {}}

    async def forward(self, host: str, port: int, host_port: int) -> int:
        if host_port == 80:
            raise BenchError("port 80 on 127.0.0.1: Permission denied")
        return host_port or int(host.split(".")[-1]) * 4000 + port

    async def account_kubeconfig(self, namespace: str, name: str, *, outside: bool) -> str:
        if name == "nobody":
            raise ApiError("not found", status=404)
        return f"/{namespace}/{name}/{outside}"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with TestClient(TestServer(build_application(Subject()))) as made:
        yield made


ANSWERS: dict[str, tuple[str, dict[str, Any] | None, tuple[int, dict[str, Any]]]] = {
    "status": ("/status", None, (200, {"phase": "ready"})),
    "calls of GKE": ("/gke/calls", None, (200, {"counts": {}})),
    "what can be broken": (
        "/faults",
        None,
        (200, {"faults": [{"name": "slow", "help": "Everything takes longer.", "usage": "slow [seconds=1]"}]}),
    ),
    "a fault": ("/faults/slow", {"seconds": "2"}, (200, {"message": "slower by 2 s"})),
    "an unknown fault": ("/faults/slower", {}, (400, {"error": "no fault 'slower'; there are slow"})),
    "a fault that fails": ("/faults/slow", {"seconds": "never"}, (400, {"error": "etcd ended with 1"})),
    "a port": ("/forward", {"host": "10.244.1.1", "port": 8265}, (200, {"port": 12265})),
    "a port that is taken": (
        "/forward",
        {"host": "10.244.1.1", "port": 1, "host_port": 80},
        (400, {"error": "port 80 on 127.0.0.1: Permission denied"}),
    ),
    "an account": (
        "/account-kubeconfig",
        {"namespace": "ml", "name": "a", "outside": True},
        (200, {"path": "/ml/a/True"}),
    ),
    "an account that is not there": (
        "/account-kubeconfig",
        {"namespace": "ml", "name": "nobody", "outside": True},
        (400, {"error": "not found"}),
    ),
}


@pytest.mark.parametrize(("path", "body", "want"), ANSWERS.values(), ids=ANSWERS)
async def test_answers(
    path: str, body: dict[str, Any] | None, want: tuple[int, dict[str, Any]], client: Client
) -> None:
    async with client.request("GET" if body is None else "POST", path, json=body) as response:
        assert (response.status, await response.json()) == want
