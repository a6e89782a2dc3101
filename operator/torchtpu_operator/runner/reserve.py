"""Reserve every host of the slices for this job, bundle i on a host that is known beforehand."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group
from ray.util.tpu import slice_placement_group

from .constants import REASON_BAD_CONFIG
from .failures import RunnerError
from .settings import Settings

LABEL_SLICE = "ray.io/tpu-slice-name"
LABEL_WORKER_ID = "ray.io/tpu-worker-id"
LABEL_ACCELERATOR = "ray.io/accelerator-type"


def build_selectors(settings: Settings) -> list[dict[str, str]]:
    """Label selector of each bundle: its slice by name, its host by worker id, slice-major.

    Ray's own order of bundles is arbitrary, and for single hosts it selects nothing at all.
    """
    return [
        {LABEL_SLICE: s.name, LABEL_WORKER_ID: str(host), LABEL_ACCELERATOR: settings.accelerator_type}
        for s in settings.slices
        for host in range(s.hosts)
        for _ in range(settings.workers_per_host)
    ]


def bundle_resources(settings: Settings) -> dict[str, float]:
    """What one worker holds. No CPU: Ray adds one per bundle if left out, and a host may have fewer than chips."""
    return {"TPU": settings.devices_per_host // settings.workers_per_host, "CPU": 0}


def request(settings: Settings) -> PlacementGroup:
    """Ask for the placement group; it is not ready yet. Raises RunnerError."""
    selectors = build_selectors(settings)
    resources = bundle_resources(settings)
    try:
        reservation = slice_placement_group(
            topology=settings.topology,
            accelerator_version=settings.accelerator_type,
            resources_per_bundle=resources,
            num_slices=len(settings.slices),
            chips_per_vm=settings.chips_per_host,
            tpu_resource_per_chip=settings.devices_per_chip,
            bundle_label_selector=selectors,
        )
    except ValueError as e:
        if "Invalid accelerator topology" not in str(e):
            raise RunnerError(f"Ray refuses the slice: {e}", reason=REASON_BAD_CONFIG) from e
        # Ray's list of topologies is shorter than GKE's; pinned by labels, the plain group is the same.
        bundles = [dict(resources) for _ in selectors]
        return placement_group(bundles, strategy="SPREAD", bundle_label_selector=selectors)
    group = reservation.placement_group
    if group is None:
        raise RunnerError("Ray returned no placement group", reason=REASON_BAD_CONFIG)
    return group


def explain_missing(
    settings: Settings, nodes: Sequence[Mapping[str, Any]], *, free_tpus: float, groups: int = 1
) -> str:
    """What keeps the placement group from getting ready, from Ray's node list.

    `free_tpus` are the TPU resources that nobody holds; `groups` the placement groups that exist, ours included.
    """
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    unnamed = []
    for node in nodes:
        labels = node.get("Labels", {})
        tpus = node.get("Resources", {}).get("TPU", 0)
        if not node.get("Alive") or not tpus:
            continue
        if LABEL_SLICE in labels:
            found.setdefault(labels[LABEL_SLICE], {}).setdefault(labels.get(LABEL_WORKER_ID, "?"), []).append(node)
        else:
            unnamed.append(node)
    parts = []
    for s in settings.slices:
        hosts = found.get(s.name, {})
        absent = [str(i) for i in range(s.hosts) if str(i) not in hosts]
        small = {
            worker_id: node["Resources"]["TPU"]
            for worker_id, members in hosts.items()
            for node in members
            if node["Resources"]["TPU"] < settings.devices_per_host
        }
        other = sorted(
            {
                str(node["Labels"].get(LABEL_ACCELERATOR))
                for members in hosts.values()
                for node in members
                if node["Labels"].get(LABEL_ACCELERATOR) != settings.accelerator_type
            }
        )
        if absent:
            parts.append(f"slice {s.name}: {s.hosts - len(absent)} of {s.hosts} hosts, absent: {', '.join(absent)}")
        if small:
            parts.append(f"slice {s.name}: hosts with fewer than {settings.devices_per_host} TPU: {small}")
        if other:
            parts.append(f"slice {s.name}: accelerator type {', '.join(other)} instead of {settings.accelerator_type}")
    if unnamed:
        parts.append(f"{len(unnamed)} TPU hosts without a slice name (TPU_NAME or TPU_WORKER_ID not set in their pods)")
    if sorted(set(found) - {s.name for s in settings.slices}):
        parts.append(f"other slices here: {', '.join(sorted(set(found) - {s.name for s in settings.slices}))}")
    if free_tpus < settings.num_devices:
        holder = f", {groups - 1} other placement groups exist" if groups > 1 else ""
        parts.append(f"{math.floor(free_tpus)} of {settings.num_devices} TPU resources free{holder}")
    return "; ".join(parts) or "every host is there and free; see Ray's dashboard, Placement Groups"


def explain_from_cluster(settings: Settings) -> str:
    """explain_missing() for the cluster as it is now."""
    groups = [g for g in ray.util.placement_group_table().values() if g.get("state") != "REMOVED"]
    free = ray.available_resources().get("TPU", 0.0)
    return explain_missing(settings, ray.nodes(), free_tpus=free, groups=len(groups))
