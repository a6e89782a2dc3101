"""The simulated cloud: the GKE API, and the kubelets of the hosts that it makes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from sim.bench.folder import BenchFolder
from sim.bench.nodes import build_cpu_node
from sim.bench.options import BenchOptions
from sim.control_plane.control_plane import API_URL, ControlPlane
from sim.control_plane.pki import KeyPair as ControlPlaneKeyPair
from sim.faults import FaultRegistry
from sim.gke import GkeServer, Settings
from sim.gke.fault_commands import register_gke_faults
from sim.gke.memory_host import MemoryHost
from sim.images import OPERATOR_VERSION, default_images
from sim.kubelet import ClusterAccess, KeyPair, Kubelets, NodeCredentials, register_kubelet_faults
from sim.network import Network
from sim.nodes import NodeHost

GKE_ADDRESS = "10.96.0.20"
GKE_PORT = 443


class Cloud:
    def __init__(
        self, folder: BenchFolder, options: BenchOptions, *, network: Network, control_plane: ControlPlane
    ) -> None:
        self._folder, self._options = folder, options
        self._network, self._control_plane = network, control_plane
        self._gke: GkeServer | None = None

    @asynccontextmanager
    async def run(self, faults: FaultRegistry) -> AsyncIterator[None]:
        """Hosts and API are there within the context. Raises OSError when a port cannot be bound."""
        async with AsyncExitStack() as stack:
            host: NodeHost = MemoryHost()
            if self._options.kubelet:
                kubelets = await stack.enter_async_context(self._kubelets())
                register_kubelet_faults(faults, kubelets)
                host = kubelets
            settings = self._options.gke_settings or Settings()
            for number in range(self._options.cpu_nodes):
                zone = settings.zones[number % len(settings.zones)]
                await host.add(build_cpu_node(number, zone=zone, region=settings.region, cluster=settings.cluster))
            if self._options.gke:
                self._gke = GkeServer(host, settings=settings)
                await self._gke.start(GKE_ADDRESS, GKE_PORT)
                stack.push_async_callback(self._gke.stop)
                register_gke_faults(faults, self._gke.manager)
            yield

    def pools(self) -> list[dict[str, Any]]:
        """TPU node pools for `sim status`."""
        if self._gke is None:
            return []
        manager = self._gke.manager
        return [
            {
                "name": name,
                "status": pool.status.name,
                "message": pool.status_message,
                "machine_type": pool.config.machine_type,
                "topology": pool.placement_policy.tpu_topology,
                "zones": list(pool.locations),
                "nodes": manager.nodes_of(name),
            }
            for name, pool in manager.pools.items()
        ]

    def calls(self) -> dict[str, Any]:
        """What the GKE API was asked, as JSON."""
        if self._gke is None:
            return {}
        calls = self._gke.manager.calls
        return {
            "counts": calls.summary(),
            "refused": {f"{method} {code}": count for (method, code), count in sorted(calls.refused.items())},
            "forbidden": calls.forbidden,
            "mutating": [
                {
                    "at": call.at.isoformat(),
                    "method": call.method,
                    "pool": call.pool,
                    "body": call.body,
                    "outcome": call.outcome,
                    "answer_lost": call.answer_lost,
                }
                for call in calls.mutating
            ],
        }

    def _kubelets(self) -> Kubelets:
        identities = self._control_plane.identities
        access = ClusterAccess(
            url=API_URL,
            ca=identities.ca.certificate,
            kubelet_client_ca=identities.ca.certificate,
            cloud=_converted(identities.cloud),
        )
        return Kubelets(
            access=access,
            certifier=_Certifier(self._control_plane),
            network=self._network,
            images=default_images(operator_tags=(OPERATOR_VERSION, *self._options.operator_tags)),
            folder=self._folder.pods,
            settings=self._options.kubelet_settings,
        )


class _Certifier:
    """The cluster's authority as the kubelets want it."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._identities = control_plane.identities

    def issue(self, node: str, *, address: str) -> NodeCredentials:
        client, server = self._identities.node(node, address=address)
        return NodeCredentials(client=_converted(client), server=_converted(server))


def _converted(pair: ControlPlaneKeyPair) -> KeyPair:
    return KeyPair(certificate=pair.certificate, key=pair.key)
