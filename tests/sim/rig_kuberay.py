"""KubeRay, the scheduler and the kubelets in virtual time: a RayCluster's pods appear, bind, become Ready, end."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.sim.rig_kube import KUBELET, SimKube
from torchtpu_operator.clients.kinds import NODES, PODS, RAY_CLUSTERS
from torchtpu_operator.clients.kube_errors import KubeError

Obj = dict[str, Any]

REACTION = 0.2
POD_READY = 1.0
POD_END = 1.0


class SimKubeRay:
    """Reacts to changes; one pass looks at everything."""

    def __init__(self, kube: SimKube) -> None:
        self._kube = kube
        self._dirty = asyncio.Event()
        self._incarnations: dict[tuple[str, str], int] = {}
        self.broken_images: set[str] = set()
        """Pods of these images never become Ready."""
        self.ended: dict[str, dict[str, Any]] = {}
        """Image -> the status with which its pods end at once."""
        for kind in (RAY_CLUSTERS, PODS, NODES):
            kube.watch(kind, lambda _event, _obj: self._dirty.set())

    async def run(self) -> None:
        while True:
            await self._dirty.wait()
            await asyncio.sleep(REACTION)
            self._dirty.clear()
            await self._look()

    async def _look(self) -> None:
        nodes = {node["metadata"]["name"]: node for node in self._kube.view(NODES)}
        clusters = {cluster["metadata"]["uid"]: cluster for cluster in self._kube.view(RAY_CLUSTERS)}
        pods = self._kube.view(PODS)
        for pod in pods:
            self._tend(pod, nodes)
        for cluster in clusters.values():
            if cluster["metadata"].get("deletionTimestamp"):
                continue
            try:
                await self._make(cluster, nodes, [pod for pod in pods if _owner(pod) == cluster["metadata"]["uid"]])
            except KubeError:
                self._dirty.set()  # it changed under our hands

    def _tend(self, pod: Obj, nodes: Mapping[str, Obj]) -> None:
        """What kubelet, node controller and pod garbage collector do to one pod."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        bound = pod["spec"].get("nodeName", "")
        cpu = bound.startswith("cpu")
        node = nodes.get(bound)
        if bound and not cpu and node is None:
            self._end(name, namespace)  # garbage of a node that is gone
        elif bound and not cpu and not _ready(node):
            if _ready(pod):
                self._status(pod, ready=False)
        elif pod["metadata"].get("deletionTimestamp"):
            self._later(POD_END, lambda: self._kube.bury(name, namespace=namespace))

    def _end(self, name: str, namespace: str) -> None:
        pod = self._kube.peek(PODS, name, namespace=namespace)
        if pod is None:
            return
        if not pod["metadata"].get("deletionTimestamp"):
            self._kube._remove((PODS.plural, namespace, name), PODS)
        self._kube.bury(name, namespace=namespace)

    async def _make(self, cluster: Obj, nodes: Mapping[str, Obj], mine: list[Obj]) -> None:
        meta, spec = cluster["metadata"], cluster["spec"]
        if not cluster.get("status", {}).get("head"):
            status = {"head": {"serviceName": f"{meta['name']}-head-svc"}, "state": "ready"}
            self._kube.put_status(RAY_CLUSTERS, meta["name"], status, namespace=meta["namespace"])
        wanted = {f"{meta['name']}-head": ("", 0, spec["headGroupSpec"]["template"])}
        for group in spec.get("workerGroupSpecs") or ():
            for host in range(int(group.get("replicas") or 0) * int(group.get("numOfHosts") or 1)):
                wanted[f"{meta['name']}-{group['groupName']}-{host}"] = (group["groupName"], host, group["template"])
        there = {pod["metadata"]["name"]: pod for pod in mine}
        for name, pod in there.items():
            if name not in wanted and not pod["metadata"].get("deletionTimestamp"):
                await self._kube.delete(PODS, name, uid=pod["metadata"]["uid"], namespace=meta["namespace"])
        for name, (group, host, template) in wanted.items():
            if name not in there:
                await self._create(cluster, name, group, host, template)
            elif not there[name]["spec"].get("nodeName"):
                self._bind(there[name], nodes, [*self._kube.view(PODS)])

    async def _create(self, cluster: Obj, name: str, group: str, host: int, template: Obj) -> None:
        meta = cluster["metadata"]
        labels = {
            **(template.get("metadata") or {}).get("labels", {}),
            "ray.io/node-type": "worker" if group else "head",
        }
        if group:
            key = (meta["uid"], group)
            siblings = [pod for pod in self._kube.view(PODS) if _owner(pod) == meta["uid"] and _group(pod) == group]
            if not siblings:
                self._incarnations[key] = self._incarnations.get(key, 0) + 1
            labels |= {
                "ray.io/group": group,
                "ray.io/worker-group-replica-name": f"{group}-{self._incarnations.get(key, 1):05d}",
                "ray.io/replica-host-index": str(host),
            }
        spec: Obj = {
            "containers": template["spec"]["containers"],
            "nodeSelector": template["spec"].get("nodeSelector") or {},
        }
        if not group:
            spec["nodeName"] = "cpu-0"
        await self._kube.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": meta["namespace"],
                    "labels": labels,
                    "finalizers": [KUBELET],
                    "ownerReferences": [{"kind": "RayCluster", "name": meta["name"], "uid": meta["uid"]}],
                },
                "spec": spec,
            },
        )
        if not group:
            self._start_later(name, meta["namespace"])

    def _bind(self, pod: Obj, nodes: Mapping[str, Obj], pods: list[Obj]) -> None:
        taken = {other["spec"].get("nodeName") for other in pods}
        for name, node in sorted(nodes.items()):
            labels = node["metadata"].get("labels") or {}
            fits = all(labels.get(key) == value for key, value in pod["spec"]["nodeSelector"].items())
            if fits and name not in taken and _ready(node):
                key = (PODS.plural, pod["metadata"]["namespace"], pod["metadata"]["name"])
                there = self._kube._objects[key]
                bound = {**there, "spec": {**there["spec"], "nodeName": name}, "metadata": dict(there["metadata"])}
                self._kube._update(key, PODS, there, bound)
                self._start_later(pod["metadata"]["name"], pod["metadata"]["namespace"])
                return

    def _start_later(self, name: str, namespace: str) -> None:
        def start() -> None:
            pod = self._kube.peek(PODS, name, namespace=namespace)
            if pod is None or pod["metadata"].get("deletionTimestamp"):
                return
            if pod["spec"]["containers"][0]["image"] in self.broken_images:
                waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
                state = {"name": "ray", "restartCount": 0, "state": {"waiting": waiting}}
                status = {"phase": "Pending", "containerStatuses": [state]}
                self._kube.put_status(PODS, name, status, namespace=namespace)
                return
            if ended := self.ended.get(pod["spec"]["containers"][0]["image"]):
                self._kube.put_status(PODS, name, ended, namespace=namespace)
                return
            self._status(pod, ready=True)

        self._later(POD_READY, start)

    def _status(self, pod: Obj, *, ready: bool) -> None:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
        self._kube.put_status(PODS, pod["metadata"]["name"], status, namespace=pod["metadata"]["namespace"])

    def _later(self, seconds: float, what: Any) -> None:
        asyncio.get_running_loop().call_later(seconds, what)


def _owner(pod: Obj) -> str:
    return str((pod["metadata"].get("ownerReferences") or [{"uid": ""}])[0]["uid"])


def _group(pod: Obj) -> str:
    return str((pod["metadata"].get("labels") or {}).get("ray.io/group", ""))


def _ready(obj: Obj | None) -> bool:
    conditions = ((obj or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
