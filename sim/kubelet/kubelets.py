"""All kubelets of a bench: what the simulated GKE asks to add hosts and to take them away."""

import asyncio
import logging
import resource
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import aiohttp

from sim.images import ImageTable
from sim.kubelet.api import ApiClient, ApiError, pod_path
from sim.kubelet.node import NodeAgent
from sim.kubelet.process import probe_root_kind
from sim.kubelet.sandbox import RootKind
from sim.kubelet.settings import ClusterAccess, KubeletSettings, NodeCertifier
from sim.network import NODE_NETWORK, Network
from sim.nodes import NodeSpec

_OPEN_FILES: Final = 1_048_576

_log = logging.getLogger("sim.kubelet")


class Kubelets:
    """Implements `sim.nodes.NodeHost`. Use as an async context manager inside the bench's namespaces.

    `folder` holds the pods' volumes and logs and must be empty; `network` must be started.
    """

    def __init__(
        self,
        *,
        access: ClusterAccess,
        certifier: NodeCertifier,
        network: Network,
        images: ImageTable,
        folder: Path,
        settings: KubeletSettings | None = None,
    ) -> None:
        self._access, self._certifier, self._network, self._images = access, certifier, network, images
        self._folder, self._settings = folder, settings or KubeletSettings()
        self._agents: dict[str, NodeAgent] = {}
        self._stack = AsyncExitStack()
        self._cloud = ApiClient(url=access.url, ca=access.ca, identity=access.cloud)
        self._http: aiohttp.ClientSession | None = None
        self._root = RootKind.OVERLAY
        self._count = 0
        self.image_pull_seconds = self._settings.image_pull_seconds
        """How long first pulls take on hosts that are added from now on."""

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Users of containers walk through here to their volumes.
        self._folder.chmod(0o755)
        _raise_file_limit()
        self._root = await asyncio.to_thread(probe_root_kind)
        await self._stack.enter_async_context(self._cloud)
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        self._http = await self._stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Kill every container at once, leave the objects in the apiserver as they are."""
        await asyncio.gather(*(agent.stop() for agent in self._agents.values()))
        self._agents.clear()
        await self._stack.aclose()

    @property
    def nodes(self) -> dict[str, NodeAgent]:
        """The hosts that are up, by name."""
        return dict(self._agents)

    async def add(self, node: NodeSpec) -> None:
        """See NodeHost. Raises ValueError for a name that runs already."""
        if node.name in self._agents:
            raise ValueError(f"node {node.name} is up already")
        if self._http is None:
            raise RuntimeError("Kubelets must be entered before nodes are added")
        self._count += 1
        address = str(NODE_NETWORK[self._count])
        credentials = await asyncio.to_thread(self._certifier.issue, node.name, address=address)
        agent = NodeAgent(
            node,
            address=address,
            access=self._access,
            credentials=credentials,
            network=self._network,
            images=self._images,
            http=self._http,
            root=self._root,
            folder=self._folder,
            settings=self._settings,
        )
        agent.images.seconds = self.image_pull_seconds
        self._agents[node.name] = agent
        try:
            await agent.start()
        except BaseException:
            del self._agents[node.name]
            await agent.stop()
            raise

    async def remove(self, name: str, *, abrupt: bool = False) -> None:
        """See NodeHost."""
        agent = self._agents.pop(name, None)
        if agent is None:
            return
        if not abrupt:
            await self._drain(agent)
        await agent.stop()
        if not abrupt:
            await self._cloud.delete(f"/api/v1/nodes/{name}")

    async def forget(self, name: str) -> None:
        """Delete the Node object of a host that is gone, as the cloud's node controller does."""
        await self._cloud.delete(f"/api/v1/nodes/{name}")

    async def _drain(self, agent: NodeAgent) -> None:
        """Cordon, delete the pods, and wait for their end, but no longer than the shutdown grace."""
        name = agent.spec.name
        try:
            await self._cloud.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}}, kind="merge-patch")
        except ApiError as error:
            if error.code != 404:
                raise
        for worker in list(agent.workers.values()):
            metadata = worker.pod["metadata"]
            await self._cloud.delete(pod_path(worker.pod), uid=metadata["uid"])
        try:
            await asyncio.wait_for(agent.drained(), self._settings.shutdown_grace)
        except TimeoutError:
            _log.warning("node %s: pods still run after %g s", name, self._settings.shutdown_grace)


def _raise_file_limit() -> None:
    """Containers inherit what a container runtime gives them: Ray opens thousands of files."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    except (ValueError, OSError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
