"""A NodeHost that makes Node objects in a Kubernetes API, real or in memory; nothing runs on them."""

from collections.abc import Mapping
from typing import Any

from sim.nodes import TPU_RESOURCE, NodeSpec
from torchtpu_operator.clients.kinds import NODES, Kind


class NodeObjects:
    def __init__(self, api: Any, *, put_status: Any) -> None:
        self._api, self._put_status = api, put_status

    async def add(self, node: NodeSpec) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.name, "labels": dict(node.labels), "annotations": dict(node.annotations)},
            "spec": {
                "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints]
            },
        }
        await self._api.create(NODES, manifest)
        await self.mark(node.name, ready=True, chips=node.tpu_chips)

    async def mark(self, name: str, *, ready: bool, chips: int) -> None:
        """What the kubelet, or the node controller in its place, says of the host."""
        status = {
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Test"}],
            "capacity": {TPU_RESOURCE: str(chips)},
            "allocatable": {TPU_RESOURCE: str(chips)},
        }
        await _put(self._put_status, NODES, name, status)

    async def remove(self, name: str, *, abrupt: bool = False) -> None:
        if abrupt:
            await self.mark(name, ready=False, chips=0)
            return
        if (node := await self._api.get(NODES, name)) is not None:
            await self._api.delete(NODES, name, uid=node["metadata"]["uid"])


async def _put(put_status: Any, kind: Kind, name: str, status: Mapping[str, Any]) -> None:
    answer = put_status(kind, name, status, "")
    if hasattr(answer, "__await__"):
        await answer
