"""The node pool request against gcloud's own for the same intent, against the real protos, and ownership."""

import json
from pathlib import Path
from typing import Any

import pytest
from google.cloud import container_v1

from torchtpu_operator.api import ObjectMeta, TPUSlice
from torchtpu_operator.api.offer import (
    FlexStart,
    Maintenance,
    NetworkConfig,
    OfferType,
    Provisioning,
    Reservation,
    SliceOffer,
    Taint,
)
from torchtpu_operator.api.slice import SliceNodePool, SliceSpec
from torchtpu_operator.plan.node_pool import build_create_node_pool, owns, spec_hash
from torchtpu_operator.plan.observed import Ownership
from torchtpu_operator.tpu import CATALOGUE, resolve

PARENT = "projects/demo/locations/us-east5/clusters/c"
INSTALLATION = "0123456789abcdef"
GCLOUD: dict[str, dict[str, Any]] = {
    entry["case"]: entry["body"]
    for entry in map(
        json.loads, (Path(__file__).parents[2] / "data" / "gcloud-node-pool-create.jsonl").read_text().splitlines()
    )
}


def a_slice(
    accelerator: str = "v6e",
    topology: str = "4x4",
    *,
    chips_per_host: int | None = None,
    type: OfferType = OfferType.ON_DEMAND,
    pool: SliceNodePool | None = None,
    max_lifetime_seconds: int | None = 604800,
    **offer: Any,
) -> TPUSlice:
    return TPUSlice(
        metadata=ObjectMeta(name="pool", uid="9d1f6e9e-0000-4000-8000-000000000000"),
        spec=SliceSpec(
            slice_class_name="default",
            accelerator=accelerator,
            topology=topology,
            chips_per_host=chips_per_host,
            offer=SliceOffer(name="o", type=type, zone="us-east5-b", **offer),
            node_pool=pool or SliceNodePool(name="pool"),
            max_lifetime_seconds=max_lifetime_seconds,
        ),
    )


def build(slice: TPUSlice) -> dict[str, Any]:
    return build_create_node_pool(slice, installation=INSTALLATION, parent=PARENT)


SAME_INTENT = {
    "v6e-4x4-ondemand": a_slice(),
    "v6e-4x4-spot": a_slice(type=OfferType.SPOT),
    "v6e-4x4-reservation": a_slice(type=OfferType.RESERVATION, reservation=Reservation(name="res-1")),
    "v6e-4x4-flexstart": a_slice(type=OfferType.FLEX_START, flex_start=FlexStart(max_run_duration_seconds=7200)),
    "v6e-2x4-single": a_slice(topology="2x4"),
    "v6e-2x4-multi": a_slice(topology="2x4", chips_per_host=4),
    "v7x-2x2x2-policy": a_slice("v7x", "2x2x2", workload_policy="wp-2x2x2"),
    "v6e-4x4-labels": a_slice(
        pool=SliceNodePool(
            name="pool",
            labels={"a": "b"},
            resource_labels={"team": "ml"},
            taints=(Taint(key="dedicated", value="x", effect="NoSchedule"),),
            service_account="sa@p.iam.gserviceaccount.com",
            disk_type="hyperdisk-balanced",
            disk_size_gb=200,
            secure_boot=True,
        )
    ),
}

# Where our request means something else than gcloud's defaults, and why.
REASONS = {
    "nodePool.upgradeSettings.maxSurge": "a surge node can neither join a slice of exactly N hosts nor be had beside it",
    "nodePool.upgradeSettings.maxUnavailable": "so a host is upgraded in place",
    "nodePool.upgradeSettings.strategy": "SURGE is GKE's default, said aloud; flex-start needs SHORT_LIVED",
    "nodePool.maxPodsConstraint": "one TPU pod and daemons per host: fewer pod addresses",
    "nodePool.autoscaling.locationPolicy": "GKE's own autoscaler asks so for TPU pools",
    "nodePool.placementPolicy.type": "what gcloud leaves to the server: a topology means COMPACT",
    "nodePool.placementPolicy.tpuTopology": "beside a policy GKE's own autoscaler sends the topology too",
    "nodePool.config.oauthScopes": "rights come from the service account, not from scopes",
    "nodePool.config.diskType": "what the generation's machines accept: v6e and v7x only hyperdisk-balanced",
    "nodePool.config.diskSizeGb": "Ray images are large; GKE's default for hyperdisk is not documented",
    "nodePool.config.workloadMetadataConfig": "Workload Identity, without which pods would have the node's rights",
    "nodePool.config.gvnic": "TPU machines have no other fast NIC",
    "nodePool.config.shieldedInstanceConfig": "integrity monitoring is GKE's default, said aloud",
    "nodePool.config.labels": "whose pool it is",
    "nodePool.config.resourceLabels": "whose machines they are, for cost reports",
    "nodePool.config.taints": "no other pod drifts onto paid chips",
    "nodePool.config.reservationAffinity": "on-demand and Spot must not eat somebody's reservation",
    "nodePool.config.maxRunDuration": "the stop that works when the operator is dead",
    "nodePool.config.kubeletConfig": "Spot: pods get 25 of the 30 s notice, not 15",
}


def differences(ours: Any, theirs: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for key in {**ours, **theirs}:
            here = f"{path}.{key}".lstrip(".")
            if here in ("nodePool.config.labels", "nodePool.config.resourceLabels") and key in theirs:
                # ours are added to those asked for
                found |= {here: (ours[key], theirs[key])} if not theirs[key].items() <= ours[key].items() else {}
                continue
            found |= differences(ours.get(key), theirs.get(key), here)
        return found
    return {} if ours == theirs else {path: (ours, theirs)}


@pytest.mark.parametrize("case", SAME_INTENT)
def test_means_the_same_as_gcloud_but_for_reasons(case: str) -> None:
    found = differences(build(SAME_INTENT[case]), GCLOUD[case])
    unexplained = {path: pair for path, pair in found.items() if not any(path.startswith(reason) for reason in REASONS)}
    assert unexplained == {}


def test_every_reason_is_needed() -> None:
    paths = {path for case, slice in SAME_INTENT.items() for path in differences(build(slice), GCLOUD[case])}
    assert [reason for reason in REASONS if not any(path.startswith(reason) for path in paths)] == []


@pytest.mark.parametrize("case", SAME_INTENT)
def test_gke_reads_it_as_it_is_written(case: str) -> None:
    request = build(SAME_INTENT[case])
    message = container_v1.CreateNodePoolRequest.from_json(json.dumps(request))
    read = json.loads(
        container_v1.CreateNodePoolRequest.to_json(
            message, use_integers_for_enums=False, always_print_fields_with_no_presence=False
        )
    )
    assert without_zeros(read) == without_zeros(request)


def without_zeros(value: Any) -> Any:
    """proto3 does not tell 0, false and "" from unset."""
    if isinstance(value, dict):
        return {key: kept for key, item in value.items() if (kept := without_zeros(item)) not in (0, False, "", {}, [])}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("accelerator", CATALOGUE)
def test_every_shape_has_a_pool_of_its_hosts(accelerator: str) -> None:
    generation = CATALOGUE[accelerator]
    for topology, choices in generation.shapes.items():
        for chips in choices:
            shape = resolve(accelerator, topology, chips_per_host=chips)
            pool = build(a_slice(accelerator, topology, chips_per_host=chips))["nodePool"]
            placement = {
                "None": None,
                "Compact": {"type": "COMPACT", "tpuTopology": topology},
                "WorkloadPolicy": {"policyName": f"torchtpu-tpu7x-{topology}", "tpuTopology": topology},
            }[shape.placement]
            assert (
                pool["config"]["machineType"],
                pool["initialNodeCount"],
                pool["config"]["diskType"] in generation.boot_disk_types,
                pool.get("placementPolicy"),
            ) == (shape.machine_type, shape.hosts, True, placement)


MAX_RUN = {
    "on-demand: the class's limit": (a_slice(), "604800s"),
    "spot: the class's limit": (a_slice(type=OfferType.SPOT, max_lifetime_seconds=3600), "3600s"),
    "flex-start: the shorter of both": (
        a_slice(type=OfferType.FLEX_START, flex_start=FlexStart(max_run_duration_seconds=86400)),
        "86400s",
    ),
    "flex-start under a shorter class": (
        a_slice(
            type=OfferType.FLEX_START, flex_start=FlexStart(max_run_duration_seconds=86400), max_lifetime_seconds=600
        ),
        "600s",
    ),
    "a reservation is paid for anyway": (a_slice(type=OfferType.RESERVATION, reservation=Reservation(name="r")), None),
}


@pytest.mark.parametrize(("slice", "want"), MAX_RUN.values(), ids=MAX_RUN)
def test_max_run_duration(slice: TPUSlice, want: str | None) -> None:
    assert build(slice)["nodePool"]["config"].get("maxRunDuration") == want


RESERVATIONS = {
    "of the own project": (Reservation(name="r"), "r"),
    "shared": (Reservation(name="r", project="p"), "projects/p/reservations/r"),
    "a block": (Reservation(name="r", project="p", block="b"), "projects/p/reservations/r/reservationBlocks/b"),
    "a sub-block": (
        Reservation(name="r", project="p", block="b", sub_block="s"),
        "projects/p/reservations/r/reservationBlocks/b/reservationSubBlocks/s",
    ),
}


@pytest.mark.parametrize(("reservation", "want"), RESERVATIONS.values(), ids=RESERVATIONS)
def test_reservation(reservation: Reservation, want: str) -> None:
    pool = build(a_slice(type=OfferType.RESERVATION, reservation=reservation))["nodePool"]
    assert pool["config"]["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [want],
    }


def test_scale_up_makes_an_empty_pool() -> None:
    pool = build(a_slice(provisioning=Provisioning.SCALE_UP))["nodePool"]
    assert (pool["initialNodeCount"], pool["autoscaling"], pool["management"]["autoRepair"]) == (
        0,
        {"enabled": True, "minNodeCount": 0, "maxNodeCount": 4, "locationPolicy": "ANY"},
        True,
    )


def test_template_of_the_class() -> None:
    template = SliceNodePool(
        name="pool",
        network_config=NetworkConfig.model_validate({"enablePrivateNodes": True}),
        max_pods_per_node=32,
        image_streaming=True,
        maintenance=Maintenance(exclude_upgrades=True),
    )
    pool = build(a_slice(pool=template))["nodePool"]
    assert (
        pool["networkConfig"],
        pool["maxPodsConstraint"],
        pool["config"]["gcfsConfig"],
        pool["maintenancePolicy"],
    ) == (
        {"enablePrivateNodes": True},
        {"maxPodsPerNode": "32"},
        {"enabled": True},
        {"exclusionUntilEndOfSupport": {"enabled": True}},
    )


def test_without_parent() -> None:
    assert list(build_create_node_pool(a_slice(), installation=INSTALLATION, parent=None)) == ["nodePool"]


def relabelled(**labels: str) -> dict[str, Any]:
    pool = build(a_slice())["nodePool"]
    pool["config"]["labels"] |= {f"torchtpu.dev/{name.replace('_', '-')}": value for name, value in labels.items()}
    return dict(pool)


OWNERSHIP = {
    "the pool that we asked for": (relabelled(), Ownership.OURS),
    "the pool of a slice that was restored from a backup": (relabelled(slice_uid="other"), Ownership.OURS),
    "a pool of another installation": (relabelled(installation="fedcba9876543210"), Ownership.FOREIGN),
    "a pool of another slice": (relabelled(slice="other"), Ownership.FOREIGN),
    "a pool made from another spec": (relabelled(spec_hash="0"), Ownership.OTHER_SPEC),
    "a pool that a person made": ({"name": "pool", "config": {"machineType": "e2-standard-4"}}, Ownership.FOREIGN),
}


@pytest.mark.parametrize(("pool", "want"), OWNERSHIP.values(), ids=OWNERSHIP)
def test_ownership(pool: dict[str, Any], want: Ownership) -> None:
    assert owns(pool, a_slice(), installation=INSTALLATION) is want


def test_hash_that_was_recorded_before_the_first_call_stands() -> None:
    slice = a_slice()
    recorded = slice.model_copy(
        update={"metadata": slice.metadata.model_copy(update={"annotations": {"torchtpu.dev/spec-hash": "cafe"}})}
    )
    pool = build(recorded)["nodePool"]
    assert (pool["config"]["labels"]["torchtpu.dev/spec-hash"], owns(pool, recorded, installation=INSTALLATION)) == (
        "cafe",
        Ownership.OURS,
    )


def test_hash_is_of_what_never_changes() -> None:
    spec = a_slice().spec
    same = spec.model_copy(update={"unschedulable": True})
    other = spec.model_copy(update={"topology": "4x8"})
    assert (spec_hash(same) == spec_hash(spec), spec_hash(other) == spec_hash(spec)) == (True, False)
