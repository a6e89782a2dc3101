"""All kubelets of a bench: what the simulated GKE asks to add hosts and to take them away."""

from pathlib import Path
from types import TracebackType
from typing import Self

from sim.images import ImageTable
from sim.kubelet.settings import ClusterAccess, KubeletSettings, NodeCertifier
from sim.network import Network
from sim.nodes import NodeSpec


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
        raise NotImplementedError

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Kill every container at once, leave the objects in the apiserver as they are."""

    async def add(self, node: NodeSpec) -> None: ...

    async def remove(self, name: str, *, abrupt: bool = False) -> None: ...
