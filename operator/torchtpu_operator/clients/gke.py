"""Node pools and operations of one GKE cluster through `google-cloud-container`'s async client."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import google.auth
import google.auth.exceptions
import grpc
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import container_v1
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcAsyncIOTransport
from google.protobuf.json_format import ParseError

from torchtpu_operator.clients.calls import CallSeen, unseen
from torchtpu_operator.clients.gke_errors import CODES, failed
from torchtpu_operator.clients.gke_limit import OperationLimit
from torchtpu_operator.plan.observed import (
    CallFailed,
    FailureClass,
    OperationSeen,
    OperationStarted,
    Performed,
)

Json = Mapping[str, Any]

_READ_SECONDS = 15.0
_WRITE_SECONDS = 45.0  # GKE's own default for creates; a shorter one would often not know whether it took effect
_CONCURRENT_CALLS = 16
_CLUSTER_ABSENT = re.compile(r"clusters/[^/\s\"']+[\"'.]*\s*$")  # "Not found: projects/P/locations/L/clusters/C."
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# A connection that something in between dropped silently is noticed within 40 s instead of after TCP's quarter of an hour.
_KEEPALIVE = (("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000))


@dataclass(frozen=True, kw_only=True)
class GkeCluster:
    """Which cluster, and how its API is reached."""

    project: str
    location: str
    """Region or zone of the cluster itself; a pool's zones are in its own body."""
    cluster: str
    endpoint: str = ""
    """host or host:port; "" is container.googleapis.com."""
    insecure: bool = False
    """Plain text and no credentials: for a simulated GKE."""

    @property
    def location_path(self) -> str:
        return f"projects/{self.project}/locations/{self.location}"

    @property
    def path(self) -> str:
        return f"{self.location_path}/clusters/{self.cluster}"

    def pool_path(self, name: str) -> str:
        """Full resource name of a node pool; a full one is taken as it is."""
        return name if name.startswith("projects/") else f"{self.path}/nodePools/{name}"

    def operation_path(self, name: str) -> str:
        return name if name.startswith("projects/") else f"{self.location_path}/operations/{name}"


class Gke(Protocol):
    """What observers and executor need of GKE. No method raises for what GKE answers."""

    async def create_node_pool(self, request: Json) -> OperationStarted | CallFailed: ...

    async def delete_node_pool(self, name: str) -> OperationStarted | Performed | CallFailed:
        """`Performed` where there is no such pool."""

    async def get_node_pool(self, name: str) -> Json | CallFailed | None:
        """The NodePool as proto3 JSON, enums by name; None where there is no such pool."""

    async def get_operation(self, name: str) -> OperationSeen | CallFailed | None:
        """None where GKE has forgotten it (operations expire)."""

    async def find_operation(self, pool: str) -> OperationSeen | CallFailed | None:
        """The running, else the newest, operation on a pool: for a name that was lost in a crash."""


class GkeClient:
    """`Gke` over gRPC. Connects on the first call, so that missing credentials are an answer and not a crash."""

    def __init__(
        self,
        cluster: GkeCluster,
        *,
        limit: OperationLimit,
        seen: CallSeen = unseen,
        connect: Callable[[GkeCluster], Awaitable[Any]] | None = None,
    ) -> None:
        """`connect` makes the package's client; another one serves simulations without a wire."""
        self._cluster, self._limit, self._seen, self._connect = cluster, limit, seen, connect or _connect
        self._client: Any = None
        self._connecting = asyncio.Lock()
        self._calls = asyncio.Semaphore(_CONCURRENT_CALLS)

    async def create_node_pool(self, request: Json) -> OperationStarted | CallFailed:
        call = "CreateNodePool"
        try:
            message = container_v1.CreateNodePoolRequest.from_json(json.dumps(request))
        except (ParseError, TypeError, ValueError) as error:
            return CallFailed(call=call, failure=FailureClass.INVALID, message=f"not a {call} request: {error}")
        with self._limit.place(deleting=False) as place:
            if not place:
                return self._limit.refusal(call)
            answer = await self._call(call, lambda client: client.create_node_pool, message, seconds=_WRITE_SECONDS)
            if isinstance(answer, CallFailed):
                return answer
            return self._started(answer)

    async def delete_node_pool(self, name: str) -> OperationStarted | Performed | CallFailed:
        call = "DeleteNodePool"
        request = container_v1.DeleteNodePoolRequest(name=self._cluster.pool_path(name))
        with self._limit.place(deleting=True) as place:
            if not place:
                return self._limit.refusal(call)
            answer = await self._call(call, lambda client: client.delete_node_pool, request, seconds=_WRITE_SECONDS)
            if isinstance(answer, CallFailed):
                return Performed(call=call) if _pool_absent(answer) else answer
            return self._started(answer)

    async def get_node_pool(self, name: str) -> Json | CallFailed | None:
        request = container_v1.GetNodePoolRequest(name=self._cluster.pool_path(name))
        answer = await self._call("GetNodePool", lambda client: client.get_node_pool, request)
        if isinstance(answer, CallFailed):
            return None if _pool_absent(answer) else answer
        text = container_v1.NodePool.to_json(
            answer, use_integers_for_enums=False, always_print_fields_with_no_presence=False
        )
        pool: Json = json.loads(text)
        return pool

    async def get_operation(self, name: str) -> OperationSeen | CallFailed | None:
        request = container_v1.GetOperationRequest(name=self._cluster.operation_path(name))
        answer = await self._call("GetOperation", lambda client: client.get_operation, request)
        if isinstance(answer, CallFailed):
            if answer.failure is not FailureClass.NOT_FOUND:
                return answer
            self._limit.ended(name)
            return None
        return self._operation(answer)

    async def find_operation(self, pool: str) -> OperationSeen | CallFailed | None:
        request = container_v1.ListOperationsRequest(parent=self._cluster.location_path)
        answer = await self._call("ListOperations", lambda client: client.list_operations, request)
        if isinstance(answer, CallFailed):
            return answer
        target = f"/clusters/{self._cluster.cluster}/nodePools/{pool.rsplit('/', 1)[-1]}"
        candidates = [operation for operation in answer.operations if operation.target_link.endswith(target)]
        if not candidates:
            return None
        newest = max(candidates, key=lambda operation: (operation.status.name != "DONE", operation.start_time))
        return self._operation(newest)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.transport.close()

    def _started(self, operation: Any) -> OperationStarted:
        if operation.status.name != "DONE":
            self._limit.started(operation.name)
        return OperationStarted(name=operation.name, kind=operation.operation_type.name)

    def _operation(self, operation: Any) -> OperationSeen:
        done = operation.status.name == "DONE"
        kind = operation.operation_type.name
        if done:
            self._limit.ended(operation.name)
        else:
            self._limit.started(operation.name)
        error = None
        if done and "error" in operation:  # a message field is truthy even when it is not set
            error = failed(
                call=kind,
                code=CODES.get(operation.error.code, ""),
                message=operation.error.message or operation.status_message,
                asynchronous=True,
            )
        return OperationSeen(name=operation.name, kind=kind, done=done, error=error)

    async def _call(
        self,
        call: str,
        method: Callable[[Any], Callable[..., Awaitable[Any]]],
        request: Any,
        *,
        seconds: float = _READ_SECONDS,
    ) -> Any:
        code = "OK"
        try:
            async with self._calls:
                client = await self._connected()
                # The package's default retry would go on for 20 s whatever `timeout` says.
                return await method(client)(request=request, retry=None, timeout=seconds)
        except GoogleAPICallError as error:
            code = error.grpc_status_code.name if error.grpc_status_code else str(error.code)
            return failed(call=call, code=code, message=error.message or str(error), retry_after=_retry_after(error))
        except google.auth.exceptions.DefaultCredentialsError as error:
            code = "NO_CREDENTIALS"
            return CallFailed(call=call, failure=FailureClass.PERMISSION, message=f"no Google credentials: {error}")
        except (google.auth.exceptions.GoogleAuthError, grpc.RpcError, OSError, TimeoutError) as error:
            code = "NO_ANSWER"
            return CallFailed(call=call, failure=FailureClass.TRANSIENT, message=str(error) or type(error).__name__)
        finally:
            self._seen(target="gke", verb=call, code=code)

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect(self._cluster)
            return self._client


async def _connect(cluster: GkeCluster) -> container_v1.ClusterManagerAsyncClient:
    if cluster.insecure:
        channel = grpc.aio.insecure_channel(cluster.endpoint, options=_KEEPALIVE)
        transport = ClusterManagerGrpcAsyncIOTransport(channel=channel)
        return container_v1.ClusterManagerAsyncClient(transport=transport)
    # Asks the metadata server, blocking, for seconds where there is none.
    credentials, _ = await asyncio.to_thread(google.auth.default, scopes=[_SCOPE])
    options = ClientOptions(api_endpoint=cluster.endpoint or None)
    return container_v1.ClusterManagerAsyncClient(credentials=credentials, client_options=options)


def _pool_absent(answer: CallFailed) -> bool:
    """Whether a refusal says that the node pool is not there, and not that the whole cluster is not.

    Both are NOT_FOUND; taking a mistyped cluster for "the pool is gone" would let go of pools that still cost money.
    """
    return answer.failure is FailureClass.NOT_FOUND and not _CLUSTER_ABSENT.search(answer.message)


def _retry_after(error: GoogleAPICallError) -> float | None:
    """Seconds of a google.rpc.RetryInfo among the error's details."""
    for detail in error.details or ():
        delay = getattr(detail, "retry_delay", None)
        if delay is not None:
            return float(delay.seconds + delay.nanos / 1e9)
    return None
