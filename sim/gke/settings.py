"""What the simulated GKE knows of its project, and how long everything takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DEFAULT_ZONES = ("us-east5-a", "us-east5-b", "us-east5-c")


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """TPU hosts that were bought ahead; `hosts` is all of them, used ones included."""

    machine_type: str
    zone: str
    hosts: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Durations in seconds. The defaults suit a demonstration; `realistic()` has what people report of GKE."""

    project: str = "demo"
    project_number: str = "123456789012"
    """GKE's links carry the number of the project, not its id."""
    location: str = "us-east5"
    """The cluster's region or zone."""
    cluster: str = "bench"
    zones: tuple[str, ...] = DEFAULT_ZONES
    """The cluster's zones: where a pool without `locations` puts `initialNodeCount` nodes each."""
    version: str = "1.36.3-gke.1000000"
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "UNSPECIFIED"] = "REGULAR"

    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    """By name, or by `projects/OWNER/reservations/NAME` for one that is shared by another project."""
    workload_policies: Mapping[str, str] = field(default_factory=dict)
    """Compute resource policies of type workload policy: name -> accelerator topology."""
    capacity: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Hosts that (zone, machine type) has beside reservations; not listed: without end."""
    machines_by_zone: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Machine types that a zone offers; a zone that is not listed offers all."""

    pending_seconds: float = 0.2
    """From the accepted call until the operation runs."""
    create_seconds: float = 3.0
    """From running until the machines exist."""
    node_seconds: float = 1.0
    """From the machines' existence until their nodes register."""
    create_lag_seconds: float = 0.3
    """From the last node's registration until the operation is DONE."""
    tpu_ready_seconds: float = 0.5
    """From Ready until the device plugin publishes the chips."""
    delete_seconds: float = 2.0
    resize_seconds: float = 2.0
    stockout_seconds: float = 6.0
    """How long a create that finds no capacity keeps trying before its operation ends."""
    fulfilment_seconds: float | None = None
    """A pool left in ERROR by a stock-out becomes RUNNING this long after capacity is back; None: never."""
    repair_seconds: float | None = 60.0
    """From the loss of a host until auto-repair has begun to recreate its group; None: never."""

    max_operations: int = 5
    """Mutating operations that may run on the cluster at once."""
    exclusive_operations: bool = False
    """One mutating operation at a time on the cluster, not only on the pool."""
    stockout_locks_cluster: bool = True
    """While a create looks for capacity every other operation on the cluster is incompatible with it."""
    flex_with_queueing: bool = False
    """Google's sources disagree whether TPU flex-start pools may have queued provisioning."""
    cancellable: frozenset[str] = frozenset({"UPGRADE_NODES"})
    """Operation types that CancelOperation stops."""
    seed: int = 0
    """Of the random parts of operation, instance and group names."""

    @property
    def cluster_path(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/clusters/{self.cluster}"

    @property
    def region(self) -> str:
        parts = self.location.split("-")
        return "-".join(parts[:2])

    def pool_path(self, pool: str) -> str:
        return f"{self.cluster_path}/nodePools/{pool}"

    def operation_path(self, operation: str) -> str:
        return f"projects/{self.project}/locations/{self.location}/operations/{operation}"

    def link(self, path: str) -> str:
        """The self link or target link of a path under `projects/<id>/`."""
        return f"https://container.googleapis.com/v1/projects/{self.project_number}/" + path.split("/", 2)[2]


def realistic(**changes: object) -> Settings:
    """Durations as reported of GKE, for simulations in virtual time; `changes` as for Settings."""
    durations: dict[str, object] = {
        "pending_seconds": 2.0,
        "create_seconds": 150.0,
        "node_seconds": 60.0,
        "create_lag_seconds": 15.0,
        "tpu_ready_seconds": 20.0,
        "delete_seconds": 120.0,
        "resize_seconds": 150.0,
        "stockout_seconds": 2100.0,
        "repair_seconds": 600.0,
    }
    return Settings(**(durations | changes))  # type: ignore[arg-type]
