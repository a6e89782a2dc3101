"""The wire of the simulated GKE: google.container.v1.ClusterManager over gRPC, plaintext."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import grpc
from google.cloud import container_v1 as gke

from sim.gke.cluster_manager import ClusterManager, utc_now
from sim.gke.errors import GkeError
from sim.gke.settings import Settings
from sim.nodes import NodeHost

SERVICE = "google.container.v1.ClusterManager"
REQUESTS: dict[str, Any] = {
    "CreateNodePool": gke.CreateNodePoolRequest,
    "GetNodePool": gke.GetNodePoolRequest,
    "ListNodePools": gke.ListNodePoolsRequest,
    "DeleteNodePool": gke.DeleteNodePoolRequest,
    "SetNodePoolSize": gke.SetNodePoolSizeRequest,
    "GetOperation": gke.GetOperationRequest,
    "ListOperations": gke.ListOperationsRequest,
    "CancelOperation": gke.CancelOperationRequest,
    "GetCluster": gke.GetClusterRequest,
}
OPTIONS = (
    # Without it a second bench would share the port instead of failing.
    ("grpc.so_reuseport", 0),
    # Google's front end lets clients ping while a call waits; grpc's default server hangs up on them.
    ("grpc.http2.max_ping_strikes", 0),
)
HARMLESS = ("Get", "List", "Check")
"""What a method begins with that changes nothing."""

_log = logging.getLogger(__name__)


class GkeServer:
    """A GKE API for one cluster whose pools become nodes of `host`.

    The core is `manager`: `manager.calls`, `manager.faults`, `manager.pools`.
    """

    def __init__(
        self,
        host: NodeHost,
        *,
        settings: Settings | None = None,
        clock: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.manager = ClusterManager(host, settings=settings, clock=clock, sleep=sleep)
        self._server: grpc.aio.Server | None = None

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> int:
        """Listen; returns the port. Raises OSError if it cannot be bound."""
        server = grpc.aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((_Handlers(self.manager),))
        try:
            bound = server.add_insecure_port(f"{address}:{port}")
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}:{port} for the GKE API: {error}") from error
        await server.start()
        self._server = server
        return int(bound)

    async def stop(self) -> None:
        """Close the port and end what runs; machines stay as they are. Not started is not an error."""
        if self._server is not None:
            await self._server.stop(grace=None)
            self._server = None
        await self.manager.stop()


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers what ClusterManager can and keeps a record of what nobody may ask."""

    def __init__(self, manager: ClusterManager) -> None:
        self._manager = manager

    def service(self, handler_call_details: Any) -> Any:
        service, _, method = handler_call_details.method.lstrip("/").partition("/")
        if service != SERVICE:
            return None
        if method not in REQUESTS:
            if not method.startswith(HARMLESS):
                _log.error("%s is not for this project's operator", method)
                self._manager.calls.forbidden.append(method)
            return None

        async def answer(request: Any, context: Any) -> Any:
            try:
                return await self._manager.call(method, request)
            except GkeError as error:
                await context.abort(grpc.StatusCode[error.code.name], error.message)

        return grpc.unary_unary_rpc_method_handler(
            answer, request_deserializer=REQUESTS[method].deserialize, response_serializer=_serialize
        )


def _serialize(message: Any) -> bytes:
    # CancelOperation's Empty is a plain protobuf message, all others are proto-plus.
    plain = getattr(message, "SerializeToString", None)
    return bytes(plain() if plain is not None else type(message).serialize(message))
