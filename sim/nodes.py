"""The seam between the simulated GKE, which decides that hosts exist, and the kubelet, which makes them exist."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

TPU_RESOURCE = "google.com/tpu"


@dataclass(frozen=True, kw_only=True)
class Taint:
    key: str
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One host as GKE would register it."""

    name: str
    """Node name, a DNS label."""
    labels: Mapping[str, str]
    """Every label of the Node object but kubernetes.io/hostname, which the kubelet adds."""
    taints: Sequence[Taint] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cpu: int = 8
    """Allocatable cores as Kubernetes sees them (GKE's machine size, not this machine's)."""
    memory_gib: int = 32
    tpu_chips: int = 0
    """Chips of the host: capacity and allocatable `google.com/tpu`; 0 for a CPU node."""
    tpu_env: Mapping[str, str] = field(default_factory=dict)
    """What GKE's device plugin puts into every container that requests `google.com/tpu` (the pod's own env wins)."""
    tpu_ready_after_seconds: float = 0.0
    """The device plugin publishes its chips some time after the node turned Ready."""


class NodeHost(Protocol):
    """What the simulated GKE asks of the kubelet."""

    async def add(self, node: NodeSpec) -> None:
        """Register the Node and begin to run pods bound to it; returns once the Node is Ready (chips may follow)."""

    async def remove(self, name: str, *, abrupt: bool = False) -> None:
        """Take the host away. Graceful: SIGTERM to its pods, then the Node object goes. Abrupt: its pods and
        heartbeats die at once and the Node object stays, as after a host error. Absent is not an error."""
