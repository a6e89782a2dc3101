"""The Node that a host of a pool registers: GKE's labels, taints and annotations, the device plugin's environment."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from google.cloud import container_v1 as gke

from sim.gke.creation_failures import reservation_of
from sim.gke.machines import CHIP_GRID, Generation, Machine, Topology
from sim.gke.settings import Settings
from sim.gke.tpu_rules import Shape
from sim.nodes import NodeSpec, Taint

GKE = "cloud.google.com/"
TERMINATION_ANNOTATION = "node.gke.io/machine-termination-datetime"
FIRST_METRICS_PORT = 8431
TORUS_SIDE_2D = 16
"""A 2D mesh wraps around only where it is as long as the pod."""
_EFFECTS: dict[Any, Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]] = {
    gke.NodeTaint.Effect.NO_SCHEDULE: "NoSchedule",
    gke.NodeTaint.Effect.PREFER_NO_SCHEDULE: "PreferNoSchedule",
    gke.NodeTaint.Effect.NO_EXECUTE: "NoExecute",
}


def build_node_spec(
    pool: Any, shape: Shape, *, name: str, zone: str, settings: Settings, terminates_at: datetime | None = None
) -> NodeSpec:
    """The host `name` of `pool` (a NodePool as GKE stores it). `terminates_at`: the end of its maxRunDuration."""
    machine = shape.machine
    if machine is None:
        raise ValueError(f"{shape.machine_type} is no machine that could run")
    return NodeSpec(
        name=name,
        labels=_labels(pool, shape, machine, zone, settings),
        taints=_taints(pool, machine),
        annotations={} if terminates_at is None else {TERMINATION_ANNOTATION: terminates_at.isoformat()},
        cpu=machine.vcpu,
        memory_gib=machine.memory_gb,
        tpu_chips=machine.chips,
        tpu_env=_tpu_env(machine, shape.topology),
        tpu_ready_after_seconds=settings.tpu_ready_seconds if machine.chips else 0.0,
    )


def _labels(pool: Any, shape: Shape, machine: Machine, zone: str, settings: Settings) -> dict[str, str]:
    config = pool.config
    labels = dict(config.labels) | {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.name,
        "topology.kubernetes.io/region": settings.region,
        "topology.kubernetes.io/zone": zone,
        GKE + "gke-nodepool": pool.name,
        GKE + "gke-os-distribution": "cos",
        GKE + "gke-container-runtime": "containerd",
        GKE + "gke-boot-disk": config.boot_disk.disk_type or config.disk_type,
        GKE + "gke-max-pods-per-node": str(pool.max_pods_constraint.max_pods_per_node),
        GKE + "gke-provisioning": _provisioning(config),
        GKE + "machine-family": machine.name.split("-")[0],
    }
    if machine.generation is not None:
        labels[GKE + "gke-tpu-accelerator"] = machine.generation.accelerator_label
        labels[GKE + "gke-tpu-topology"] = str(shape.topology)
        labels[GKE + "gke-accelerator-count"] = str(machine.chips)
    if config.spot:
        labels[GKE + "gke-spot"] = "true"
    if config.flex_start:
        labels[GKE + "gke-flex-start"] = "true"
    if "max_run_duration" in config:
        labels[GKE + "gke-max-run-duration-seconds"] = str(int(config.max_run_duration.total_seconds()))
    if pool.placement_policy.policy_name:
        labels[GKE + "placement-policy-name"] = pool.placement_policy.policy_name
    return labels | _reservation_labels(pool, settings)


def _provisioning(config: Any) -> str:
    if config.spot:
        return "spot"
    return "flex-start" if config.flex_start else "standard"


def _reservation_labels(pool: Any, settings: Settings) -> dict[str, str]:
    name = reservation_of(pool, settings)
    if not name:
        return {}
    parts = name.split("/")
    project = parts[1] if len(parts) > 1 else settings.project
    return {
        GKE + "reservation-affinity": "specific",
        GKE + "reservation-name": parts[-1],
        GKE + "reservation-project": project,
    }


def _taints(pool: Any, machine: Machine) -> tuple[Taint, ...]:
    taints = []
    if machine.chips:
        taints.append(Taint(key="google.com/tpu", value="present", effect="NoSchedule"))
    if pool.queued_provisioning.enabled:
        taints.append(Taint(key=GKE + "gke-queued", value="true", effect="NoSchedule"))
    taints += [Taint(key=own.key, value=own.value, effect=_EFFECTS[own.effect]) for own in pool.config.taints]
    return tuple(taints)


def _tpu_env(machine: Machine, topology: Topology | None) -> Mapping[str, str]:
    """As GKE's device plugin sets it: never TPU_NAME, and a worker id only where one host is a whole slice."""
    generation = machine.generation
    if generation is None or topology is None:
        return {}
    grid = CHIP_GRID[machine.chips]
    chip_bounds = ",".join(map(str, grid))
    host_bounds = ",".join(str(dim // chips) for dim, chips in zip(topology.dims3, grid, strict=True))
    wrap = _wrap(generation, topology)
    env = {
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_TOPOLOGY": str(topology),
        "TPU_ACCELERATOR_TYPE": generation.accelerator_type(topology.chips),
        "TPU_RUNTIME_METRICS_PORTS": ",".join(str(FIRST_METRICS_PORT + chip) for chip in range(machine.chips)),
        "VBAR_CONTROL_SERVICE_URL": "unix:///var/run/tpu-plugin/vbar.sock",
        "WORKLOAD_NIC_PREFERRED_NUMA": "0",
        "HOST_BOUNDS": host_bounds,
        "TPU_HOST_BOUNDS": host_bounds,
        "CHIPS_PER_HOST_BOUNDS": chip_bounds,
        "TPU_CHIPS_PER_HOST_BOUNDS": chip_bounds,
        "WRAP": wrap,
        "TPU_TOPOLOGY_WRAP": wrap,
        "ALT": "false",
        "TPU_TOPOLOGY_ALT": "false",
    }
    if generation.dimensions == 3 and topology.is_cube_or_larger:
        env["ENABLE_ICI_RESILIENCY"] = "true"
    if topology.chips == machine.chips and generation.name != "tpu7x":
        env |= {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"}
    return env


def _wrap(generation: Generation, topology: Topology) -> str:
    if generation.dimensions == 3:
        sides = [topology.is_cube_or_larger] * 3
    else:
        sides = [dim == TORUS_SIDE_2D for dim in topology.dims3]
    return ",".join(str(side).lower() for side in sides)
