"""What a bench is made of. Handed to its first process as a pickle, since it holds other parts' settings."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Only for types: these import gRPC and take most of a second, which `sim --help` should not.
    from sim.gke.settings import Settings as GkeSettings
    from sim.kubelet.settings import KubeletSettings


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    port: int = 0
    """Port on the host's loopback for the apiserver; 0: any that is free."""
    kuberay: bool = True
    """Install KubeRay's CRDs and run its operator."""
    gke: bool = True
    """Serve the GKE API at 10.96.0.20:443."""
    kubelet: bool = True
    """Run pods; without it, nodes are only names."""
    cpu_nodes: int = 2
    """Nodes of the standing pool `cpu-pool` for Ray heads and the operator."""
    operator_tags: tuple[str, ...] = ()
    """Further tags of the operator's image that the registry has; none: only this version's."""
    gke_settings: "GkeSettings | None" = field(default=None)
    kubelet_settings: "KubeletSettings | None" = field(default=None)
