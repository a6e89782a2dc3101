"""The life of one pod on a node: admission, network, volumes, containers in order, termination, removal."""

import asyncio
import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from pyroute2 import NetlinkError

from sim.kubelet import pod_files
from sim.kubelet.api import ApiClient, ApiError, ApiUnreachableError, pod_path
from sim.kubelet.container import ContainerRunner
from sim.kubelet.container_config import HostView, admission_error
from sim.kubelet.events import EventRecorder
from sim.kubelet.images import ImagePuller
from sim.kubelet.projection import VolumeError
from sim.kubelet.sandbox import Mount
from sim.kubelet.settings import KubeletSettings
from sim.kubelet.state import Terminated
from sim.kubelet.status import PodView
from sim.kubelet.status_writer import StatusWriter
from sim.kubelet.volumes import PodVolumes
from sim.network import Network, PodNetwork

Json = dict[str, Any]

_log = logging.getLogger("sim.kubelet.pod")


@dataclass(frozen=True, kw_only=True)
class NodeContext:
    """What all pods of a node share."""

    name: str
    address: str
    chips: int
    partial_chips: bool
    api: ApiClient
    http: aiohttp.ClientSession
    network: Network
    images: ImagePuller
    events: EventRecorder
    settings: KubeletSettings
    host: HostView
    folder: Path


class PodWorker:
    """Runs one pod, identified by its uid, from its binding until its object is gone."""

    def __init__(self, pod: Json, *, node: NodeContext) -> None:
        self.api, self.settings, self.images, self.host = node.api, node.settings, node.images, node.host
        self.http = node.http
        self.folder = node.folder / pod["metadata"]["uid"]
        self._node = node
        self._pod = pod
        self._network: PodNetwork | None = None
        self._volumes = PodVolumes(
            pod=pod, folder=self.folder / "volumes", api=node.api, allocatable=node.host.allocatable
        )
        self._files: Sequence[Mount] = ()
        self._started = datetime.now(UTC)
        self._failed: tuple[str, str] | None = None
        self._ended = False
        self._stopping = asyncio.Event()
        self._grace = 0.0
        self._gone = False
        self._status = StatusWriter(self.api, view=self._view, written=self.update)
        spec = pod["spec"]
        self.init = [
            ContainerRunner(c, role="sidecar" if c.get("restartPolicy") == "Always" else "init", context=self)
            for c in spec.get("initContainers") or ()
        ]
        self.main = [ContainerRunner(c, role="main", context=self) for c in spec["containers"]]

    @property
    def pod(self) -> Json:
        """The object, with the addresses that its containers may ask for."""
        addresses = {"hostIP": self._node.address, "hostIPs": [{"ip": self._node.address}]}
        if self._network is not None:
            addresses |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        return {**self._pod, "status": {**(self._pod.get("status") or {}), **addresses}}

    @property
    def address(self) -> str:
        return self._network.address if self._network is not None else ""

    @property
    def namespace_descriptor(self) -> int:
        if self._network is None:
            raise RuntimeError("the pod has no network yet")
        return self._network.namespace

    @property
    def containers(self) -> list[ContainerRunner]:
        return [*self.init, *self.main]

    def container(self, name: str) -> ContainerRunner | None:
        return next((runner for runner in self.containers if runner.name == name), None)

    def mounts(self, container: Json, *, env: Mapping[str, str]) -> Sequence[Mount]:
        return [*self._files, *self._volumes.mounts(container, env=env)]

    def changed(self) -> None:
        self._status.changed()

    def event(self, kind: str, reason: str, message: str, *, container: str = "") -> None:
        field = ""
        if container:
            part = "initContainers" if any(c.name == container for c in self.init) else "containers"
            field = f"spec.{part}{{{container}}}"
        self._node.events.emit(self._pod, kind=kind, reason=reason, message=message, field=field)

    def update(self, pod: Json) -> None:
        """A newer object. A deletion begins the end; a shorter grace hurries it."""
        if int(pod["metadata"]["resourceVersion"]) < int(self._pod["metadata"]["resourceVersion"]):
            return
        self._pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            default = pod["spec"].get("terminationGracePeriodSeconds", 30)
            self.stop(grace=pod["metadata"].get("deletionGracePeriodSeconds", default))

    def stop(self, *, grace: float, gone: bool = False, failed: tuple[str, str] | None = None) -> None:
        """End the pod; `gone` when there is no object any more, `failed` when the kubelet itself gives the pod up."""
        self._gone = self._gone or gone
        self._failed = self._failed or failed
        if not self._stopping.is_set():
            self._grace = grace
            self._stopping.set()
        elif grace < self._grace:
            self._grace = grace
            asyncio.get_running_loop().call_later(grace, self.kill)

    def kill(self) -> None:
        """SIGKILL every container now."""
        for runner in self.containers:
            runner.kill()

    async def run(self) -> None:
        """Until the pod's object is gone, or the pod is to be forgotten."""
        writing = asyncio.create_task(self._status.run())
        life = asyncio.create_task(self._live())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({life, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not life.done():
                life.cancel()
            with suppress(asyncio.CancelledError):
                await life
            await self._terminate()
            self._ended = True
            if not self._gone:
                await self._status.flush()
            await self._remove_sandbox()
            await stopping
            if not self._gone and self._pod["metadata"].get("deletionTimestamp"):
                await self._status.flush()
                await self._delete()
        finally:
            for task in (writing, life, stopping):
                task.cancel()
            self.kill()
            await self._remove_sandbox(logs=True)

    async def _live(self) -> None:
        """From admission to the end of the last container; cancelled when the pod is to stop."""
        if message := admission_error(self._pod, chips=self._node.chips, partial=self._node.partial_chips):
            self._failed = ("UnexpectedAdmissionError", message)
            self.event("Warning", "UnexpectedAdmissionError", message)
            return
        await self._status.flush()
        self._network = await self._add_network()
        settings = self.settings
        self._files = pod_files.write(
            self.folder / "etc",
            self._pod,
            address=self.address,
            dns=settings.cluster_dns,
            cluster_domain=settings.cluster_domain,
        )
        # The address is in the status before any container runs: peers resolve it by DNS.
        await self._status.flush()
        await self._prepare_volumes()
        refreshing = asyncio.create_task(self._refresh_volumes())
        sidecars: list[asyncio.Task[Terminated]] = []
        mains: list[asyncio.Task[Terminated]] = []
        try:
            for runner in self.init:
                task = asyncio.create_task(runner.run())
                if runner.role == "sidecar":
                    sidecars.append(task)
                    await runner.has_started.wait()
                else:
                    sidecars.append(task)
                    if (await task).exit_code != 0:
                        return
            mains = [asyncio.create_task(runner.run()) for runner in self.main]
            await asyncio.gather(*mains)
        finally:
            tasks = [refreshing, *sidecars, *mains]
            for pending in tasks:
                pending.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _add_network(self) -> PodNetwork:
        while True:
            try:
                return await self._node.network.add_pod()
            except (OSError, NetlinkError) as error:
                self.event("Warning", "FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}")
                await asyncio.sleep(self.settings.config_retry)

    async def _prepare_volumes(self) -> None:
        while True:
            try:
                await self._volumes.prepare(self.pod)
            except (VolumeError, ApiUnreachableError) as error:
                self.event("Warning", "FailedMount", f"MountVolume.SetUp failed: {error}")
                await asyncio.sleep(self.settings.config_retry)
            else:
                return

    async def _refresh_volumes(self) -> None:
        while True:
            await asyncio.sleep(self.settings.volume_sync_period)
            try:
                await self._volumes.refresh(self.pod)
            except ApiUnreachableError as error:
                _log.info("pod %s: volumes not refreshed: %s", self._pod["metadata"]["name"], error)

    async def _terminate(self) -> None:
        """End all containers at the same time, sidecars after them, the last first."""
        began = asyncio.get_running_loop().time()
        mains = [runner for runner in self.containers if runner.role != "sidecar"]
        sidecars = [runner for runner in reversed(self.init) if runner.role == "sidecar"]
        grace = self._grace if self._stopping.is_set() else self._pod["spec"].get("terminationGracePeriodSeconds", 30)
        for group in (mains, *([sidecar] for sidecar in sidecars)):
            left = max(0.0, grace - (asyncio.get_running_loop().time() - began))
            await asyncio.gather(*(r.stop(grace=left, reason=f"Stopping container {r.name}") for r in group))

    async def _remove_sandbox(self, *, logs: bool = False) -> None:
        if self._network is not None:
            await self._node.network.remove_pod(self._network)
        await self._volumes.close()
        if logs:
            await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _delete(self) -> None:
        """Confirm the end to the apiserver, which then forgets the object."""
        while True:
            try:
                await self.api.delete(pod_path(self._pod), uid=self._pod["metadata"]["uid"], grace=0)
            except (ApiError, ApiUnreachableError) as error:
                _log.warning("pod %s: deletion not confirmed, again in 1 s: %s", self._pod["metadata"]["name"], error)
                await asyncio.sleep(1.0)
            else:
                return

    def _view(self) -> PodView:
        return PodView(
            pod=self._pod,
            init=[runner.state for runner in self.init],
            main=[runner.state for runner in self.main],
            host_ip=self._node.address,
            pod_ip=self.address,
            started=self._started,
            failed=self._failed,
            ended=self._ended,
        )
