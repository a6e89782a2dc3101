"""KubeRay and the kubelets in one: a RayCluster gets its head service and its pods, all Ready at once, each on its node."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from torchtpu_operator.clients.kinds import NODES, PODS, RAY_CLUSTERS, Kind
from torchtpu_operator.clients.kube_errors import KubeError

Obj = Mapping[str, Any]
PutStatus = Callable[[Kind, str, Mapping[str, Any], str], Any]


class KubeRay:
    """Reconciles by looking at everything, over any `KubeApi`; `put_status` writes another component's status."""

    def __init__(self, api: Any, *, put_status: PutStatus, appeared: Callable[[Obj], None] = lambda _: None) -> None:
        """`appeared` is told of each RayCluster once its pods are Ready: the moment for its fake head to exist."""
        self._api, self._put_status, self._appeared = api, put_status, appeared
        self._known: set[str] = set()

    async def run(self, *, every: float) -> None:
        while True:
            with contextlib.suppress(KubeError):  # its kind is not installed yet
                await self.look()
            await asyncio.sleep(every)

    async def look(self) -> None:
        clusters = await self._api.list(RAY_CLUSTERS)
        nodes = await self._api.list(NODES)
        pods = await self._api.list(PODS)
        for cluster in clusters:
            with contextlib.suppress(KubeError):  # it went meanwhile
                await self._look_at(cluster, nodes=nodes, pods=pods)
        live = {cluster["metadata"]["uid"] for cluster in clusters}
        for pod in pods:
            owner = (pod["metadata"].get("ownerReferences") or [{"uid": ""}])[0]["uid"]
            if owner and owner not in live:
                await self._delete(pod)

    async def _look_at(self, cluster: Obj, *, nodes: list[Any], pods: list[Any]) -> None:
        meta = cluster["metadata"]
        mine = {pod["metadata"]["name"]: pod for pod in pods if _owner(pod) == meta["uid"]}
        wanted = dict(_pods(cluster, nodes))
        for name, pod in mine.items():
            if name not in wanted:
                await self._delete(pod)
        for name, manifest in wanted.items():
            if name not in mine:
                await self._api.create(PODS, manifest)
                await _maybe(self._put_status(PODS, name, _RUNNING, meta["namespace"]))
        if meta["uid"] not in self._known:
            self._known.add(meta["uid"])
            self._appeared(cluster)
            status = {"state": "ready", "head": {"serviceName": f"{meta['name']}-head-svc", "podIP": "10.0.0.1"}}
            await _maybe(self._put_status(RAY_CLUSTERS, meta["name"], status, meta["namespace"]))

    async def _delete(self, pod: Obj) -> None:
        meta = pod["metadata"]
        with contextlib.suppress(KubeError):
            await self._api.delete(PODS, meta["name"], uid=meta["uid"], namespace=meta["namespace"], grace_seconds=0)


_RUNNING: Mapping[str, Any] = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
}


async def _maybe(answer: Any) -> None:
    if asyncio.iscoroutine(answer):
        await answer


def _owner(pod: Obj) -> str:
    owners = pod["metadata"].get("ownerReferences") or [{"uid": ""}]
    return str(owners[0]["uid"])


def _pods(cluster: Obj, nodes: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Head and workers by name, the workers bound to the nodes that their group's nodeSelector picks."""
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    pods = [_pod(cluster, f"{name}-head", spec["headGroupSpec"]["template"], {"ray.io/node-type": "head"}, node="")]
    for group in spec.get("workerGroupSpecs") or ():
        selector = group["template"]["spec"].get("nodeSelector") or {}
        fitting = sorted(
            node["metadata"]["name"]
            for node in nodes
            if all((node["metadata"].get("labels") or {}).get(key) == value for key, value in selector.items())
        )
        hosts = int(group.get("numOfHosts") or 1) * int(group.get("replicas") or 0)
        for index in range(hosts):
            labels = {
                "ray.io/node-type": "worker",
                "ray.io/group": group["groupName"],
                "ray.io/worker-group-replica-name": f"{group['groupName']}-abcde",
                "ray.io/replica-host-index": str(index),
            }
            node = fitting[index] if index < len(fitting) else ""
            pods.append(_pod(cluster, f"{name}-{group['groupName']}-{index}", group["template"], labels, node=node))
    return [(pod["metadata"]["name"], pod) for pod in pods]


def _pod(cluster: Obj, name: str, template: Obj, labels: Mapping[str, str], *, node: str) -> dict[str, Any]:
    meta = cluster["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), **labels},
            "ownerReferences": [
                {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": meta["name"], "uid": meta["uid"]}
            ],
        },
        "spec": {
            "containers": [{"name": "ray", "image": "none"}],
            "terminationGracePeriodSeconds": 0,
            **({"nodeName": node} if node else {}),
        },
    }
