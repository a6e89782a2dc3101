"""What GKE finds out only after it accepted a create: the operation ends with an error and the pool stays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.cloud import container_v1 as gke

from sim.gke.errors import Code
from sim.gke.settings import Settings
from sim.gke.tpu_rules import Shape

_SPECIFIC = gke.ReservationAffinity.Type.SPECIFIC_RESERVATION


@dataclass(frozen=True, kw_only=True)
class Failure:
    """How an operation ends, and in what state it leaves the pool."""

    code: Code
    message: str
    condition: str = ""
    """StatusCondition.Code by name, "" for none."""
    pool_status: str = "ERROR"
    nodes: int = 0
    """Nodes that exist all the same (RUNNING_WITH_ERROR)."""
    for_capacity: bool = False
    """GKE looks for capacity until it gives up, and may find it later."""


def gang_failure(count: int, shape: Shape) -> Failure:
    return Failure(
        code=Code.INVALID_ARGUMENT,
        message=f"Requested invalid target size '{count}' for a Managed Instance Group in the gang mode of size "
        f"'{shape.hosts}'. Should be equal to the gang size.",
    )


def stockout_failure(*, project: str, zone: str, hosts: int, nodes: int = 0) -> Failure:
    return Failure(
        code=Code.RESOURCE_EXHAUSTED,
        message=f"Google Compute Engine: Not all instances running in IGM after 35m0s. Expected {hosts}, running "
        f"{nodes}, transitioning {hosts - nodes}. Current errors: [GCE_STOCKOUT]: the zone "
        f"'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request "
        "(ZONE_RESOURCE_POOL_EXHAUSTED).",
        condition="GCE_STOCKOUT",
        pool_status="RUNNING_WITH_ERROR" if nodes else "ERROR",
        nodes=nodes,
        for_capacity=True,
    )


def size_failure(pool: Any, shape: Shape, count: int) -> Failure | None:
    """Why `count` nodes per zone cannot be made, from the request alone."""
    machine, policy = shape.machine, pool.placement_policy
    if shape.is_multi_host and machine is not None and machine.generation is not None:
        if not machine.generation.compact_placement and not policy.policy_name:
            return Failure(
                code=Code.INVALID_ARGUMENT,
                message=f"Creation of a managed instance group with {shape.machine_type} machine type with placement "
                "policy is not supported. Use workload policy instead.",
            )
        if count not in (0, shape.hosts):
            return gang_failure(count, shape)
    return None


def creation_failure(
    pool: Any, shape: Shape, count: int, *, settings: Settings, hosts_used: Callable[[str], int]
) -> Failure | None:
    """Why `count` nodes per zone cannot be made. `hosts_used`: reservation or "zone/machine type" -> hosts taken."""
    for zone in shape.zones:
        offered = settings.machines_by_zone.get(zone)
        if shape.machine is None or (offered is not None and shape.machine_type not in offered):
            return Failure(
                code=Code.INVALID_ARGUMENT,
                message=f"Machine type with name '{shape.machine_type}' does not exist in zone '{zone}'.",
            )
    failure = size_failure(pool, shape, count)
    if failure is not None:
        return failure
    if pool.config.reservation_affinity.consume_reservation_type == _SPECIFIC:
        return _reservation_failure(pool, shape, count, settings, hosts_used)
    for zone in shape.zones:
        capacity = settings.capacity.get((zone, shape.machine_type))
        if capacity is not None and hosts_used(f"{zone}/{shape.machine_type}") + count > capacity:
            return stockout_failure(project=settings.project, zone=zone, hosts=count)
    return None


def reservation_of(pool: Any, settings: Settings) -> str:
    """The reservation that a pool draws on, as Settings names it and without its block; "" for none."""
    affinity = pool.config.reservation_affinity
    if affinity.consume_reservation_type != _SPECIFIC or not affinity.values:
        return ""
    name = str(affinity.values[0]).split("/reservationBlocks/")[0]
    return name.removeprefix(f"projects/{settings.project}/reservations/")


def _reservation_failure(
    pool: Any, shape: Shape, count: int, settings: Settings, hosts_used: Callable[[str], int]
) -> Failure | None:
    value, name = str(pool.config.reservation_affinity.values[0]), reservation_of(pool, settings)
    reservation = settings.reservations.get(name)
    # Of the cluster's own project the plain name is wanted; the path form serves TPUs of other projects and blocks.
    if reservation is None or value == f"projects/{settings.project}/reservations/{name}":
        return Failure(
            code=Code.INVALID_ARGUMENT,
            message=f"Could not find the given reservation with the following name: {value}.",
        )
    if shape.zones != (reservation.zone,) or shape.machine_type != reservation.machine_type:
        return Failure(
            code=Code.INVALID_ARGUMENT,
            message=f"Reservation '{name}' is incorrect for the requested resources.",
        )
    if hosts_used(name) + count > reservation.hosts:
        return Failure(
            code=Code.RESOURCE_EXHAUSTED,
            message=f"Reservation '{name}' does not have sufficient capacity for the requested resources.",
            for_capacity=True,
        )
    return None
