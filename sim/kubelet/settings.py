"""What a bench tells its kubelets: where the apiserver is, who they are, and how fast things go."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """PEM files of a certificate and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, kw_only=True)
class NodeCredentials:
    client: KeyPair
    """User `system:node:<name>`, group `system:nodes`."""
    server: KeyPair
    """For the kubelet's endpoint; the node's address is a subject alternative name."""


class NodeCertifier(Protocol):
    """Issues what a node needs to speak with the apiserver, and the other way round."""

    def issue(self, node: str, *, address: str) -> NodeCredentials:
        """Credentials of node `node`, whose InternalIP is `address`."""


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """The apiserver as the kubelets reach it."""

    url: str
    """For example https://10.96.0.1:443."""
    ca: Path
    """PEM bundle that signs the apiserver's certificate; given to pods as ca.crt through kube-root-ca.crt anyway."""
    kubelet_client_ca: Path
    """PEM bundle that signs the apiserver's client certificate towards kubelets."""
    cloud: KeyPair
    """Client certificate of the cloud provider: may cordon and delete Nodes and delete pods on them."""


@dataclass(frozen=True, kw_only=True)
class KubeletSettings:
    """Durations are seconds. The defaults are a real kubelet's where a person would notice the difference."""

    back_off_base: float = 10.0
    """First wait of a crashing container and of an image pull; doubles to `back_off_limit`."""
    back_off_limit: float = 300.0
    back_off_reset: float = 600.0
    """A container that ran this long starts over with the first wait."""
    lease_period: float = 10.0
    lease_duration: int = 40
    node_status_period: float = 60.0
    volume_sync_period: float = 60.0
    """How often ConfigMaps, Secrets and labels in volumes follow their sources."""
    config_retry: float = 3.0
    """Wait before a container with a missing ConfigMap, Secret or volume is tried again."""
    shutdown_grace: float = 30.0
    """How long pods of a host that is taken away gracefully may take to end."""
    cluster_dns: str = "10.96.0.10"
    cluster_domain: str = "cluster.local"
    service_host: str = "10.96.0.1"
    service_port: int = 443
    max_pods: int = 110
    kubelet_version: str = "v1.36.3"
    image_pull_seconds: float = 0.0
    """How long the first pull of an image takes on each node. Later containers there find it present."""
