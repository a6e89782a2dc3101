"""One node: its registration, heartbeats, watch of pods, and the workers that run them."""

import asyncio
import logging
import uuid
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp

from sim.images import ImageTable
from sim.kubelet.api import ApiClient, ApiError, ApiUnreachableError, pod_path
from sim.kubelet.container_config import HostView
from sim.kubelet.env import build_service_env
from sim.kubelet.events import EventRecorder
from sim.kubelet.images import ImagePuller
from sim.kubelet.node_object import LEASE_NAMESPACE, build_capacity, build_lease, build_node, build_node_status
from sim.kubelet.pod import NodeContext, PodWorker
from sim.kubelet.sandbox import RootKind
from sim.kubelet.server import KubeletServer
from sim.kubelet.settings import ClusterAccess, KubeletSettings, NodeCredentials
from sim.network import Network
from sim.nodes import NodeSpec

Json = dict[str, Any]

_RETRY: Final = 1.0
_WATCH_PAUSE: Final = 0.1
_REFUSALS: Final = 30
_PARTIAL_ACCELERATOR: Final = "tpu7x"
_ENDED: Final = ("Succeeded", "Failed")

_log = logging.getLogger("sim.kubelet.node")


class NodeAgent:
    """The kubelet of one node. Start it once, stop it once."""

    def __init__(
        self,
        spec: NodeSpec,
        *,
        address: str,
        access: ClusterAccess,
        credentials: NodeCredentials,
        network: Network,
        images: ImageTable,
        http: aiohttp.ClientSession,
        root: RootKind,
        folder: Path,
        settings: KubeletSettings,
    ) -> None:
        self.spec, self.address = spec, address
        self.images = ImagePuller(images, seconds=settings.image_pull_seconds)
        self.workers: dict[str, PodWorker] = {}
        self._settings, self._network = settings, network
        self._api = ApiClient(url=access.url, ca=access.ca, identity=credentials.client)
        self._events = EventRecorder(self._api, node=spec.name)
        self._server = KubeletServer(
            address=address, identity=credentials.server, client_ca=access.kubelet_client_ca, find=self.find
        )
        self._context = NodeContext(
            name=spec.name,
            address=address,
            chips=spec.tpu_chips,
            partial_chips=spec.labels.get("cloud.google.com/gke-tpu-accelerator") == _PARTIAL_ACCELERATOR,
            api=self._api,
            http=http,
            network=network,
            images=self.images,
            events=self._events,
            settings=settings,
            host=HostView(
                root=root,
                allocatable=build_capacity(spec, chips_published=True, max_pods=settings.max_pods),
                tpu_env=spec.tpu_env,
                service_env=build_service_env(host=settings.service_host, port=settings.service_port),
            ),
            folder=folder,
        )
        self._dead: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._pod_tasks: dict[str, asyncio.Task[None]] = {}
        self._stack = AsyncExitStack()
        self._booted = datetime.now(UTC)
        self._boot_id = str(uuid.uuid4())
        self._chips_published = spec.tpu_ready_after_seconds <= 0
        self._node_uid = ""
        self._lease: Json | None = None

    async def start(self) -> None:
        """Register; returns when the Node is Ready. Raises ApiError when the apiserver refuses the node."""
        await self._network.add_address(self.address)
        await self._stack.enter_async_context(self._api)
        await self._server.start()
        node = await _insist(self._register)
        self._node_uid = node["metadata"]["uid"]
        await _insist(self._renew)
        await _insist(self._post_status)
        self._tasks = [
            asyncio.create_task(work)
            for work in (self._heartbeat(), self._report(), self._follow_pods(), self._events.run())
        ]
        if not self._chips_published:
            self._tasks.append(asyncio.create_task(self._publish_chips()))

    async def stop(self) -> None:
        """Power off: containers are killed, nothing more is written. The Node object stays."""
        for task in (*self._tasks, *self._pod_tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._pod_tasks.values(), return_exceptions=True)
        self.workers.clear()
        await self._server.stop()
        await self._stack.aclose()
        await self._network.remove_address(self.address)

    def find(self, namespace: str, name: str) -> PodWorker | None:
        """The worker of a pod, for logs and exec."""
        return next(
            (
                worker
                for worker in self.workers.values()
                if worker.pod["metadata"]["namespace"] == namespace and worker.pod["metadata"]["name"] == name
            ),
            None,
        )

    async def drained(self) -> None:
        """Until no pod is left on the node."""
        while self._pod_tasks:
            await asyncio.wait(list(self._pod_tasks.values()))

    async def _register(self) -> Json:
        try:
            return await self._api.create("/api/v1/nodes", build_node(self.spec))
        except ApiError as error:
            if error.code != 409:
                raise
            # A host that comes back under its name keeps its object, as a rebooted machine does.
            return await self._api.get(f"/api/v1/nodes/{self.spec.name}")

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(self._settings.lease_period)
            await _insist(self._renew)

    async def _renew(self) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"
        lease = build_lease(
            self.spec.name, node_uid=self._node_uid, seconds=self._settings.lease_duration, now=datetime.now(UTC)
        )
        try:
            await self._api.patch(f"{path}/{self.spec.name}", {"spec": lease["spec"]}, kind="merge-patch")
        except ApiError as error:
            if error.code != 404:
                raise
            await self._api.create(path, lease)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._settings.node_status_period)
            await _insist(self._post_status)

    async def _post_status(self) -> None:
        status = build_node_status(
            self.spec,
            address=self.address,
            chips_published=self._chips_published,
            max_pods=self._settings.max_pods,
            version=self._settings.kubelet_version,
            booted=self._booted,
            now=datetime.now(UTC),
            boot_id=self._boot_id,
        )
        try:
            await self._api.patch(f"/api/v1/nodes/{self.spec.name}/status", status)
        except ApiError as error:
            if error.code != 404:
                raise
            _log.warning("node %s: its object is gone", self.spec.name)

    async def _publish_chips(self) -> None:
        await asyncio.sleep(self.spec.tpu_ready_after_seconds)
        self._chips_published = True
        await _insist(self._post_status)

    async def _follow_pods(self) -> None:
        """List and watch, again and again: every start of a pod and every end comes from here."""
        selector = f"spec.nodeName={self.spec.name}"
        while True:
            try:
                found = await self._api.get("/api/v1/pods", fieldSelector=selector)
                self._reconcile(found["items"])
                version = found["metadata"]["resourceVersion"]
                while True:
                    async for event in self._api.watch("/api/v1/pods", version=version, fieldSelector=selector):
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            self._handle(event["object"], deleted=event["type"] == "DELETED")
                    # A stream that ends at once, again and again, must not become a storm.
                    await asyncio.sleep(_WATCH_PAUSE)
            except ApiError as error:
                if error.code != 410:
                    _log.warning("node %s: watch of pods refused: %s", self.spec.name, error)
            except ApiUnreachableError as error:
                _log.info("node %s: watch of pods broken: %s", self.spec.name, error)
            await asyncio.sleep(_RETRY)

    def _reconcile(self, pods: list[Json]) -> None:
        present = {pod["metadata"]["uid"] for pod in pods}
        for uid, worker in self.workers.items():
            if uid not in present:
                worker.stop(grace=0, gone=True)
        for pod in pods:
            self._handle({"apiVersion": "v1", "kind": "Pod", **pod}, deleted=False)

    def _handle(self, pod: Json, *, deleted: bool) -> None:
        uid = pod["metadata"]["uid"]
        worker = self.workers.get(uid)
        if deleted:
            self._dead.add(uid)
            if worker is not None:
                worker.stop(grace=0, gone=True)
        elif worker is not None:
            worker.update(pod)
        elif uid not in self._dead:
            self._begin(pod)

    def _begin(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp") or (pod.get("status") or {}).get("phase") in _ENDED:
            # It never ran here, or ran in an earlier life of this host: nothing to end, only to confirm.
            self._dead.add(uid)
            if pod["metadata"].get("deletionTimestamp"):
                self._pod_tasks[uid] = asyncio.create_task(self._confirm(pod))
            return
        worker = self.workers[uid] = PodWorker(pod, node=self._context)
        self._pod_tasks[uid] = asyncio.create_task(self._run(uid, worker), name=f"pod {pod['metadata']['name']}")

    async def _run(self, uid: str, worker: PodWorker) -> None:
        try:
            await worker.run()
        except Exception:  # noqa: BLE001 - the top level of a pod: a bug must not take the node down
            _log.exception("pod %s: its worker broke", worker.pod["metadata"]["name"])
        finally:
            self._dead.add(uid)
            self.workers.pop(uid, None)
            self._pod_tasks.pop(uid, None)

    async def _confirm(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        try:
            await _insist(lambda: self._api.delete(pod_path(pod), uid=uid, grace=0))
        finally:
            self._pod_tasks.pop(uid, None)


async def _insist(call: Any) -> Any:
    """Call until the apiserver answers; an answer that cannot change is raised (4xx but 429 and 403: rights of a new
    node come with a delay)."""
    tries = 0
    while True:
        try:
            return await call()
        except ApiUnreachableError as error:
            _log.info("again in 1 s: %s", error)
        except ApiError as error:
            tries += 1
            if (error.code < 500 and error.code not in (403, 429)) or tries > _REFUSALS:
                raise
            _log.info("again in 1 s: %s", error)
        await asyncio.sleep(_RETRY)
