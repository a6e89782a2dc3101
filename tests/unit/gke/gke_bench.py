"""What the tests of the simulated GKE stand on."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud import container_v1 as gke

from sim.gke import ClusterManager, InProcessClusterManagerClient, Settings
from sim.gke.memory_host import MemoryHost

EPOCH = datetime(2026, 11, 30, tzinfo=UTC)


def loop_clock() -> datetime:
    """The loop's time, real or virtual, as a date."""
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


def a_pool(name: str = "pool-a", **changes: Any) -> dict[str, Any]:
    """The JSON body of a v6e 4x4 pool. `changes` replace keys at its top; those of `config` are merged in."""
    body: dict[str, Any] = {
        "name": name,
        "initialNodeCount": 4,
        "locations": ["us-east5-b"],
        "config": {"machineType": "ct6e-standard-4t"},
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
    }
    config = body["config"] | changes.pop("config", {})
    return {key: value for key, value in (body | changes | {"config": config}).items() if value is not None}


class GkeBench:
    """A simulated GKE with an in-memory host and a client that reaches it without a wire."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.host = MemoryHost()
        self.manager = ClusterManager(self.host, settings=settings, clock=loop_clock)
        self.client = InProcessClusterManagerClient(self.manager)

    async def create(self, body: dict[str, Any]) -> Any:
        pool = gke.NodePool.from_json(json.dumps(body))
        return await self.client.create_node_pool(parent=self.settings.cluster_path, node_pool=pool)

    async def delete(self, pool: str) -> Any:
        return await self.client.delete_node_pool(name=self.settings.pool_path(pool))

    async def operation(self, name: str) -> Any:
        return await self.client.get_operation(name=self.settings.operation_path(name))

    async def pool(self, name: str) -> Any:
        return await self.client.get_node_pool(name=self.settings.pool_path(name))

    async def finished(self, operation: Any) -> Any:
        """The operation once it is DONE."""
        await self.manager.operations.finished(operation.name)
        return await self.operation(operation.name)
