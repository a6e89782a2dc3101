"""What GKE refuses of a TPU pool at once, and what slice a pool forms."""

from dataclasses import dataclass
from typing import Any

from google.cloud import container_v1 as gke

from sim.gke.errors import invalid
from sim.gke.machines import Machine, Topology, catalogue
from sim.gke.pool_rules import effective_zones
from sim.gke.settings import Settings

RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_Affinity = gke.ReservationAffinity.Type
_Placement = gke.NodePool.PlacementPolicy.Type


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The hosts of a pool."""

    machine_type: str
    machine: Machine | None
    """None: no such machine; GKE says so in the operation."""
    zones: tuple[str, ...]
    topology: Topology | None = None
    """Of the slice; of each host alone if the pool is not multi-host; None for CPU machines."""
    hosts: int = 0
    """Of the slice: the only size but 0 that a multi-host pool can have. 0: any size."""

    @property
    def is_multi_host(self) -> bool:
        return self.hosts > 1


def resolve_shape(pool: Any, settings: Settings) -> Shape:
    """The pool's shape. Raises GkeError for what is refused before an operation begins."""
    zones = effective_zones(pool, settings)
    machine_type = pool.config.machine_type or "e2-medium"
    machine = catalogue().machines.get(machine_type)
    if machine is None:
        return Shape(machine_type=machine_type, machine=None, zones=zones)
    check_consumption(pool, machine, settings)
    check_boot_disk(pool.config, machine)
    topology, is_slice = _placement_topology(pool, machine, settings)
    shape = Shape(
        machine_type=machine_type,
        machine=machine,
        zones=zones,
        topology=topology,
        hosts=topology.chips // machine.chips if topology and is_slice else 0,
    )
    if shape.is_multi_host:
        _check_multi_host(pool, shape)
    return shape


def _placement_topology(pool: Any, machine: Machine, settings: Settings) -> tuple[Topology | None, bool]:
    """The topology, and whether the pool as a whole forms it."""
    policy = pool.placement_policy
    compact = policy.type_ == _Placement.COMPACT
    if machine.generation is None:
        if policy.tpu_topology:
            raise invalid(f"TPU topology cannot be specified for machine type {machine.name}: it has no TPU.")
        return None, False
    if not (compact or policy.tpu_topology or policy.policy_name):
        return Topology.parse(machine.single_host_topology), False
    if policy.policy_name and compact:
        raise invalid("Placement policy name and placement policy type are mutually exclusive.")
    text = policy.tpu_topology
    if policy.policy_name:
        text = _policy_topology(policy, machine, settings)
    if not text:
        raise invalid(f"TPU topology must be specified for COMPACT placement of machine type {machine.name}.")
    topology = catalogue().slice_topology(machine, text)
    if topology is None:
        raise invalid(f"TPU topology '{text}' is invalid for machine type {machine.name}.")
    if topology.chips == machine.chips:
        raise invalid(f"TPU topology '{text}' cannot be specified for single-host TPU machine type {machine.name}.")
    if compact and pool.upgrade_settings.strategy == gke.NodePoolUpdateStrategy.BLUE_GREEN:
        raise invalid("BLUE_GREEN upgrades are not supported with COMPACT placement.")
    return topology, True


def _policy_topology(policy: Any, machine: Machine, settings: Settings) -> str:
    name = policy.policy_name
    if machine.generation is None or not machine.generation.workload_policy:
        raise invalid(f"Workload policy '{name}' is not supported by machine type {machine.name}.")
    text = settings.workload_policies.get(name)
    if text is None:
        raise invalid(f"Resource policy '{name}' was not found in region {settings.region}.")
    if policy.tpu_topology and policy.tpu_topology != text:
        raise invalid(f"TPU topology '{policy.tpu_topology}' differs from '{text}' of resource policy '{name}'.")
    return text


def _check_multi_host(pool: Any, shape: Shape) -> None:
    if len(shape.zones) != 1:
        raise invalid(f"A multi-host TPU node pool must have exactly one zone, got {len(shape.zones)}.")
    scaling = pool.autoscaling
    if not scaling.enabled:
        return
    # GKE looks at the per-zone pair alone: with the total pair the maximum reads as 0.
    if scaling.max_node_count != shape.hosts:
        raise _bad_size("Maximum", scaling.max_node_count, shape)
    if scaling.min_node_count not in (0, shape.hosts):
        raise _bad_size("Minimum", scaling.min_node_count, shape)


def _bad_size(which: str, count: int, shape: Shape) -> Exception:
    return invalid(f"{which} node count {count} is not a valid size of TPU pod slice with topology {shape.topology}.")


def check_consumption(pool: Any, machine: Machine, settings: Settings) -> None:
    config, affinity = pool.config, pool.config.reservation_affinity
    kind = affinity.consume_reservation_type
    if config.spot and config.flex_start:
        raise invalid("Spot and flex-start are mutually exclusive.")
    if config.spot and kind not in (_Affinity.UNSPECIFIED, _Affinity.NO_RESERVATION):
        raise invalid("Spot node pools cannot consume reservations.")
    if kind == _Affinity.SPECIFIC_RESERVATION:
        if affinity.key != RESERVATION_KEY or len(affinity.values) != 1:
            raise invalid(f"A specific reservation needs the key {RESERVATION_KEY} and exactly one value.")
    elif affinity.key or affinity.values:
        raise invalid("Reservation key and values are allowed with SPECIFIC_RESERVATION alone.")
    if config.flex_start:
        _check_flex_start(pool, machine, settings)
    if pool.queued_provisioning.enabled and (pool.initial_node_count or not pool.autoscaling.enabled):
        raise invalid("Queued provisioning needs autoscaling and no initial nodes.")


def _check_flex_start(pool: Any, machine: Machine, settings: Settings) -> None:
    affinity = pool.config.reservation_affinity.consume_reservation_type
    if machine.generation is not None and not machine.generation.flex_start:
        raise invalid(f"Flex start is not supported by machine type {machine.name}.")
    if pool.queued_provisioning.enabled and machine.generation is not None and not settings.flex_with_queueing:
        raise invalid("Flex start node pools don't support TPUs with queued provisioning.")
    if affinity != _Affinity.NO_RESERVATION:
        raise invalid("Flex start node pools need reservation affinity NO_RESERVATION.")
    if pool.initial_node_count or not pool.autoscaling.enabled:
        raise invalid("Flex start node pools need autoscaling and an initial node count of 0.")
    if pool.management.auto_repair or "management" not in pool:
        raise invalid("Flex start node pools need auto-repair to be off.")


def check_boot_disk(config: Any, machine: Machine) -> None:
    kinds = {kind for kind in (config.boot_disk.disk_type, config.disk_type) if kind}
    if len(kinds) > 1:
        raise invalid("bootDisk.diskType and diskType differ.")
    if machine.generation is None:
        return
    for kind in kinds.difference(machine.generation.boot_disk_types):
        allowed = ", ".join(machine.generation.boot_disk_types)
        raise invalid(f"Disk type {kind} is not supported by machine type {machine.name}; supported: {allowed}.")
