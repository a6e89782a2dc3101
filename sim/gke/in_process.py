"""The GKE client's calls without a wire: for simulations in virtual time, where a socket has no place."""

import asyncio
from typing import Any

import grpc
from google.api_core import exceptions
from google.cloud import container_v1 as gke

from sim.gke.cluster_manager import ClusterManager
from sim.gke.errors import GkeError


class InProcessClusterManagerClient:
    """What `ClusterManagerAsyncClient` offers of the simulated methods, with its exceptions.

    `retry` and `metadata` are taken and not used: nothing is retried. `timeout` is in seconds of the loop's clock.
    """

    def __init__(self, manager: ClusterManager) -> None:
        self._manager = manager

    async def create_node_pool(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("CreateNodePool", gke.CreateNodePoolRequest, request, fields)

    async def get_node_pool(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("GetNodePool", gke.GetNodePoolRequest, request, fields)

    async def list_node_pools(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("ListNodePools", gke.ListNodePoolsRequest, request, fields)

    async def delete_node_pool(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("DeleteNodePool", gke.DeleteNodePoolRequest, request, fields)

    async def set_node_pool_size(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("SetNodePoolSize", gke.SetNodePoolSizeRequest, request, fields)

    async def get_operation(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("GetOperation", gke.GetOperationRequest, request, fields)

    async def list_operations(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("ListOperations", gke.ListOperationsRequest, request, fields)

    async def cancel_operation(self, request: Any = None, **fields: Any) -> None:
        await self._call("CancelOperation", gke.CancelOperationRequest, request, fields)

    async def get_cluster(self, request: Any = None, **fields: Any) -> Any:
        return await self._call("GetCluster", gke.GetClusterRequest, request, fields)

    async def _call(self, method: str, kind: Any, request: Any, fields: dict[str, Any]) -> Any:
        timeout = fields.pop("timeout", None)
        for unused in ("retry", "metadata"):
            fields.pop(unused, None)
        message = kind(request or {}, **fields)
        try:
            async with asyncio.timeout(timeout if isinstance(timeout, int | float) else None):
                return await self._manager.call(method, message)
        except TimeoutError as error:
            raise exceptions.DeadlineExceeded("Deadline Exceeded") from error
        except GkeError as error:
            raise exceptions.from_grpc_status(grpc.StatusCode[error.code.name], error.message) from error
