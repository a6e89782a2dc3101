"""The node pool of a slice: the request that makes it, and whether a pool that is there is ours."""

from collections.abc import Mapping
from typing import Any, Final

from torchtpu_operator.api.base import to_dict
from torchtpu_operator.api.constants import (
    ANNOTATION_SPEC_HASH,
    LABEL_INSTALLATION,
    LABEL_SLICE,
    LABEL_SLICE_UID,
    LABEL_SPEC_HASH,
    TAINT_SLICE,
)
from torchtpu_operator.api.offer import OfferType, Provisioning, Reservation
from torchtpu_operator.api.slice import SliceNodePool, SliceSpec, TPUSlice
from torchtpu_operator.plan.names import document_hash, workload_policy_name
from torchtpu_operator.plan.observed import Ownership
from torchtpu_operator.tpu import Placement, Shape, resolve

_DISK_SIZE_GB: Final = 100
_MAX_PODS: Final = 15  # one TPU pod and the node's own daemons: fewer pod addresses are set aside per host
_SPOT_GRACE: Final = {"shutdownGracePeriodSeconds": 30, "shutdownGracePeriodCriticalPodsSeconds": 5}
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_EFFECTS: Final = {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}
_SNAPSHOT: Final = ("accelerator", "topology", "chipsPerHost", "offer", "nodePool", "maxLifetimeSeconds")


def shape_of(spec: SliceSpec) -> Shape:
    """The shape of a slice. Raises ShapeError for a hand-made TPUSlice of no such shape."""
    return resolve(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)


def spec_hash(spec: SliceSpec) -> str:
    """Hash of the fields that a pool is made from; they never change in a TPUSlice."""
    document = to_dict(spec)
    return document_hash({key: document[key] for key in _SNAPSHOT if key in document})


def build_create_node_pool(slice: TPUSlice, *, installation: str, parent: str | None) -> dict[str, Any]:
    """google.container.v1.CreateNodePoolRequest as proto3 JSON.

    `parent` is projects/P/locations/L/clusters/C; None leaves it out. Raises ShapeError.
    """
    spec, shape = slice.spec, shape_of(slice.spec)
    flex = spec.offer.type is OfferType.FLEX_START
    pool: dict[str, Any] = {
        "name": spec.node_pool.name,
        "initialNodeCount": shape.hosts,
        "locations": [spec.offer.zone],  # exactly one, or a regional cluster multiplies the count
        "config": _config(slice, shape, installation=installation),
        "maxPodsConstraint": {"maxPodsPerNode": str(spec.node_pool.max_pods_per_node or _MAX_PODS)},
        "management": {"autoRepair": not flex, "autoUpgrade": True},
        "upgradeSettings": (
            # a surge node can neither join a slice of exactly N hosts nor be had beside it
            {"strategy": "SHORT_LIVED"} if flex else {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
        ),
    }
    if flex or spec.offer.provisioning is Provisioning.SCALE_UP:
        pool["initialNodeCount"] = 0
        # the per-zone pair: with total* GKE takes the maximum for 0 and refuses the topology
        pool["autoscaling"] = {
            "enabled": True,
            "minNodeCount": 0,
            "maxNodeCount": shape.hosts,
            "locationPolicy": "ANY",
        }
    if shape.placement is Placement.COMPACT:
        pool["placementPolicy"] = {"type": "COMPACT", "tpuTopology": shape.topology}
    elif shape.placement is Placement.WORKLOAD_POLICY:
        policy = spec.offer.workload_policy or workload_policy_name(shape.gke_accelerator, shape.topology)
        pool["placementPolicy"] = {"policyName": policy, "tpuTopology": shape.topology}
    if spec.node_pool.network_config and (network := to_dict(spec.node_pool.network_config)):
        pool["networkConfig"] = network
    if spec.node_pool.maintenance and spec.node_pool.maintenance.exclude_upgrades:
        pool["maintenancePolicy"] = {"exclusionUntilEndOfSupport": {"enabled": True}}
    return {"nodePool": pool} if parent is None else {"parent": parent, "nodePool": pool}


def owns(pool: Mapping[str, Any], slice: TPUSlice, *, installation: str) -> Ownership:
    """Whose a pool of the slice's name is, by the labels that we put on it (proto3 JSON of a NodePool).

    The uid of the TPUSlice is not asked: one that was restored from a backup takes its pool back.
    """
    labels = pool.get("config", {}).get("labels", {})
    if labels.get(LABEL_INSTALLATION) != installation or labels.get(LABEL_SLICE) != slice.metadata.name:
        return Ownership.FOREIGN
    return Ownership.OURS if labels.get(LABEL_SPEC_HASH) == _recorded_hash(slice) else Ownership.OTHER_SPEC


def _recorded_hash(slice: TPUSlice) -> str:
    # what was computed before the first call stands: a later release may add fields with defaults
    return slice.metadata.annotations.get(ANNOTATION_SPEC_HASH) or spec_hash(slice.spec)


def _config(slice: TPUSlice, shape: Shape, *, installation: str) -> dict[str, Any]:
    spec, template = slice.spec, slice.spec.node_pool
    config: dict[str, Any] = {
        "machineType": shape.machine_type,
        "diskType": template.disk_type or shape.boot_disk_types[0],
        "diskSizeGb": template.disk_size_gb or _DISK_SIZE_GB,
        "oauthScopes": [_SCOPE],
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "gvnic": {"enabled": True},
        "shieldedInstanceConfig": {
            "enableIntegrityMonitoring": True,
            **({"enableSecureBoot": True} if template.secure_boot else {}),
        },
        "labels": {
            **template.labels,
            LABEL_INSTALLATION: installation,
            LABEL_SLICE: slice.metadata.name,
            LABEL_SLICE_UID: slice.metadata.uid,
            LABEL_SPEC_HASH: _recorded_hash(slice),
        },
        "resourceLabels": {
            **template.resource_labels,
            "torchtpu-installation": installation,
            "torchtpu-slice": slice.metadata.name,
        },
        "taints": [{"key": TAINT_SLICE, "value": slice.metadata.name, "effect": "NO_SCHEDULE"}, *_taints(template)],
        "reservationAffinity": _affinity(spec.offer.reservation),
    }
    if template.service_account:
        config["serviceAccount"] = template.service_account
    if template.image_streaming:
        config["gcfsConfig"] = {"enabled": True}
    if spec.offer.type is OfferType.SPOT:
        config["spot"] = True
        config["kubeletConfig"] = dict(_SPOT_GRACE)
    if spec.offer.type is OfferType.FLEX_START:
        config["flexStart"] = True
    if (seconds := _max_run_seconds(spec)) is not None:
        config["maxRunDuration"] = f"{seconds}s"
    return config


def _taints(template: SliceNodePool) -> list[dict[str, str]]:
    return [{"key": t.key, "value": t.value, "effect": _EFFECTS.get(t.effect, t.effect)} for t in template.taints]


def _affinity(reservation: Reservation | None) -> dict[str, Any]:
    if reservation is None:
        return {"consumeReservationType": "NO_RESERVATION"}
    value = reservation.name  # the plain name within one project: the path form does not take TPUs there
    if reservation.project:
        value = f"projects/{reservation.project}/reservations/{reservation.name}"
    if reservation.block:
        value += f"/reservationBlocks/{reservation.block}"
        if reservation.sub_block:
            value += f"/reservationSubBlocks/{reservation.sub_block}"
    return {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [value],
    }


def _max_run_seconds(spec: SliceSpec) -> int | None:
    """The stop that works when the operator does not; reserved chips are paid for anyway and get none."""
    limits = [spec.max_lifetime_seconds if spec.offer.reservation is None else None]
    if spec.offer.type is OfferType.FLEX_START and spec.offer.flex_start is not None:
        limits.append(spec.offer.flex_start.max_run_duration_seconds)
    return min((limit for limit in limits if limit is not None), default=None)
