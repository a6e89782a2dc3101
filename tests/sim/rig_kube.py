"""The in-memory Kubernetes API with pods that take time to end, as a kubelet makes them."""

import asyncio
import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.kube import MemoryKube, Name
from torchtpu_operator.clients.kinds import PODS, Kind

KUBELET = "sim/kubelet"  # stands for the kubelet's part in a pod's deletion


@dataclass
class SimKube(MemoryKube):
    """`MemoryKube`, but a pod is gone only when its kubelet says so, or by force (grace 0)."""

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        uid: str,
        namespace: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> dict[str, Any] | None:
        if kind == PODS and grace_seconds == 0:
            self.bury(name, namespace=namespace or "")
        return await super().delete(
            kind,
            name,
            uid=uid,
            namespace=namespace,
            resource_version=resource_version,
            grace_seconds=grace_seconds,
        )

    async def create(self, kind: Kind, obj: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        made = await super().create(kind, obj, dry_run=dry_run)
        owners = {owner["uid"] for owner in made["metadata"].get("ownerReferences") or ()}
        if owners and not dry_run:
            known = {each["metadata"]["uid"] for each in self._objects.values()}
            if not owners & known:  # the garbage collector finds no owner
                key = (kind.plural, made["metadata"].get("namespace") or "", made["metadata"]["name"])
                asyncio.get_running_loop().call_later(1.0, self._collect, key, kind)
        return made

    def _collect(self, key: Name, kind: Kind) -> None:
        if key in self._objects:
            self._remove(key, kind)

    def view(self, kind: Kind) -> list[dict[str, Any]]:
        """All objects of a kind as they are: only to be read."""
        return [obj for key, obj in sorted(self._objects.items()) if key[0] == kind.plural]

    def bury(self, name: str, *, namespace: str) -> None:
        """The kubelet (or whoever acts in its place) confirms that nothing of the pod runs any more."""
        key = (PODS.plural, namespace, name)
        if (there := self._objects.get(key)) is not None:
            changed = copy.deepcopy(there)
            changed["metadata"]["finalizers"] = []
            self._update(key, PODS, there, changed)

    def _update(self, key: Name, kind: Kind, there: dict[str, Any], new: dict[str, Any]) -> None:
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self._objects[key] = {**there, "metadata": {**there["metadata"], "finalizers": []}}
        super()._update(key, kind, there, new)

    def _remove(self, key: Name, kind: Kind) -> None:
        there = self._objects[key]
        if there["metadata"].get("finalizers"):  # a child that goes with its owner still has to end
            leaving = copy.deepcopy(there)
            leaving["metadata"]["deletionTimestamp"] = self.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
            leaving["metadata"]["deletionGracePeriodSeconds"] = 30
            self._update(key, kind, there, leaving)
            return
        super()._remove(key, kind)
