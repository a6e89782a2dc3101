"""What CreateNodePool refuses at once, and what only its operation tells: the code and the words."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import container_v1 as gke

from sim.gke import Reservation
from tests.unit.gke.gke_bench import GkeBench, a_pool

TPU7X = {"machineType": "tpu7x-standard-4t"}
RESERVED = {
    "reservationAffinity": {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["res"],
    }
}
SETTINGS: dict[str, Any] = {
    "workload_policies": {"wp-2x2x2": "2x2x2"},
    "reservations": {"res": Reservation(machine_type="ct6e-standard-4t", zone="us-east5-b", hosts=4)},
    "machines_by_zone": {"us-east5-c": frozenset({"ct5p-hightpu-4t"})},
}
FLEX: dict[str, Any] = {
    "initialNodeCount": None,
    "autoscaling": {"enabled": True, "maxNodeCount": 4},
    "management": {"autoRepair": False, "autoUpgrade": True},
}
FLEX_CONFIG = {"flexStart": True, "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
SINGLE: dict[str, Any] = {"placementPolicy": None, "initialNodeCount": 1}

REFUSED = {
    "41 characters are too long a name": (a_pool("a" * 41), "has 41 characters"),
    "an upper-case name": (a_pool("Pool"), "Must match"),
    "a name that ends with a dash": (a_pool("pool-"), "Must match"),
    "no name at all": (a_pool(""), "Must match"),
    "a topology for a single host": (
        a_pool(initialNodeCount=1, placementPolicy={"tpuTopology": "2x2"}),
        "cannot be specified for single-host",
    ),
    "a topology for a single host with 8 chips": (
        a_pool(initialNodeCount=1, config={"machineType": "ct6e-standard-8t"}, placementPolicy={"tpuTopology": "2x4"}),
        "cannot be specified for single-host",
    ),
    "a topology that the generation lacks": (
        a_pool(placementPolicy={"type": "COMPACT", "tpuTopology": "3x5"}),
        "topology '3x5' is invalid",
    ),
    "a topology of the wrong dimensions": (
        a_pool(placementPolicy={"type": "COMPACT", "tpuTopology": "2x2x4"}),
        "topology '2x2x4' is invalid",
    ),
    "compact placement without a topology": (a_pool(placementPolicy={"type": "COMPACT"}), "must be specified"),
    "a topology for a CPU machine": (
        a_pool(config={"machineType": "e2-standard-4"}),
        "it has no TPU",
    ),
    "a multi-host slice without a zone in a regional cluster": (a_pool(locations=None), "exactly one zone, got 3"),
    "a multi-host slice in two zones": (a_pool(locations=["us-east5-a", "us-east5-b"]), "exactly one zone, got 2"),
    "a zone of another region": (a_pool(locations=["us-west4-a"]), "not in the region"),
    "a policy that does not exist": (
        a_pool(initialNodeCount=2, config=TPU7X, placementPolicy={"policyName": "wp-4x4x4"}),
        "'wp-4x4x4' was not found",
    ),
    "a policy of another topology": (
        a_pool(initialNodeCount=2, config=TPU7X, placementPolicy={"policyName": "wp-2x2x2", "tpuTopology": "2x2x4"}),
        "differs from '2x2x2'",
    ),
    "a policy beside a placement type": (
        a_pool(initialNodeCount=2, config=TPU7X, placementPolicy={"policyName": "wp-2x2x2", "type": "COMPACT"}),
        "mutually exclusive",
    ),
    "a workload policy for v5p": (
        a_pool(config={"machineType": "ct5p-hightpu-4t"}, placementPolicy={"policyName": "wp-2x2x2"}),
        "not supported by machine type ct5p",
    ),
    "blue-green upgrades of a compact pool": (a_pool(upgradeSettings={"strategy": "BLUE_GREEN"}), "BLUE_GREEN"),
    "spot and flex-start": (a_pool(config={"spot": True, "flexStart": True}), "mutually exclusive"),
    "spot from a reservation": (a_pool(config=RESERVED | {"spot": True}), "Spot node pools cannot consume"),
    "two reservations": (
        a_pool(config={"reservationAffinity": RESERVED["reservationAffinity"] | {"values": ["a", "b"]}}),
        "exactly one value",
    ),
    "reservation values without a specific reservation": (
        a_pool(config={"reservationAffinity": {"consumeReservationType": "ANY_RESERVATION", "values": ["a"]}}),
        "SPECIFIC_RESERVATION alone",
    ),
    "pd-balanced on v6e": (a_pool(config={"diskType": "pd-balanced"}), "supported: hyperdisk-balanced"),
    "hyperdisk on v5e": (
        a_pool(**SINGLE, config={"machineType": "ct5lp-hightpu-4t", "bootDisk": {"diskType": "hyperdisk-balanced"}}),
        "supported: pd-balanced, pd-ssd",
    ),
    "flex-start for v4": (
        a_pool(
            **FLEX, config=FLEX_CONFIG | {"machineType": "ct4p-hightpu-4t"}, placementPolicy={"tpuTopology": "2x2x4"}
        ),
        "Flex start is not supported",
    ),
    "flex-start with initial nodes": (
        a_pool(**(FLEX | {"initialNodeCount": 4}), config=FLEX_CONFIG),
        "initial node count of 0",
    ),
    "flex-start with auto-repair": (a_pool(**(FLEX | {"management": None}), config=FLEX_CONFIG), "auto-repair"),
    "flex-start that may use reservations": (a_pool(**FLEX, config={"flexStart": True}), "NO_RESERVATION"),
    "flex-start with queued provisioning": (
        a_pool(**FLEX, config=FLEX_CONFIG, queuedProvisioning={"enabled": True}),
        "don't support TPUs with queued provisioning",
    ),
    "autoscaling over all zones together": (
        a_pool(autoscaling={"enabled": True, "totalMaxNodeCount": 4}),
        "Maximum node count 0 is not a valid size of TPU pod slice with topology 4x4",
    ),
    "autoscaling to half a slice": (
        a_pool(autoscaling={"enabled": True, "maxNodeCount": 2}),
        "Maximum node count 2 is not a valid size",
    ),
    "both pairs of autoscaling limits": (
        a_pool(autoscaling={"enabled": True, "maxNodeCount": 4, "totalMaxNodeCount": 4}),
        "exclude each other",
    ),
    "a system label": (a_pool(config={"labels": {"cloud.google.com/mine": "1"}}), "reserved for the system"),
    "a system label in a sub-domain": (a_pool(config={"labels": {"node.kubernetes.io/x": "1"}}), "reserved for the"),
    "labels of 1,030 characters together": (
        a_pool(config={"labels": {f"example.com/{i:02}-{'k' * 40}": "v" * 48 for i in range(10)}}),
        "1030 characters in total",
    ),
    "a label value of 64 characters": (a_pool(config={"labels": {"a": "v" * 64}}), "not a Kubernetes label"),
    "an upper-case resource label": (a_pool(config={"resourceLabels": {"Team": "ml"}}), "resourceLabels"),
    "a taint without an effect": (a_pool(config={"taints": [{"key": "a", "value": "b"}]}), "needs an effect"),
    "five minutes of run duration": (a_pool(config={"maxRunDuration": "300s"}), "between 600s and 604800s"),
    "eight days of run duration": (a_pool(config={"maxRunDuration": "691200s"}), "between 600s and 604800s"),
    "a shutdown grace period without spot": (
        a_pool(config={"kubeletConfig": {"shutdownGracePeriodSeconds": 30}}),
        "Spot node pools alone",
    ),
    "a shutdown grace period of 60 s": (
        a_pool(config={"spot": True, "kubeletConfig": {"shutdownGracePeriodSeconds": 60}}),
        "0, 30 or 120",
    ),
    "no auto-upgrade on a release channel": (a_pool(management={"autoRepair": True}), "release_channel REGULAR"),
    "four pods per node": (a_pool(maxPodsConstraint={"maxPodsPerNode": "4"}), "between 8 and 256"),
}


@pytest.mark.parametrize(("body", "words"), REFUSED.values(), ids=REFUSED)
@pytest.mark.looptime
async def test_refused_at_once_and_nothing_is_made(
    body: dict[str, Any], words: str, make_bench: Callable[..., GkeBench]
) -> None:
    bench = make_bench(**SETTINGS)
    with pytest.raises(GoogleAPICallError, match=re.escape(words)) as refusal:
        await bench.create(body)
    assert (refusal.value.grpc_status_code.name, bench.manager.pools, bench.manager.operations.all()) == (
        "INVALID_ARGUMENT",
        {},
        [],
    )


FAILED = {
    "three of four hosts of a slice": (
        a_pool(initialNodeCount=3),
        (3, "invalid target size '3' for a Managed Instance Group in the gang mode of size '4'"),
    ),
    "compact placement of tpu7x": (
        a_pool(initialNodeCount=2, config=TPU7X, placementPolicy={"type": "COMPACT", "tpuTopology": "2x2x2"}),
        (3, "with placement policy is not supported. Use workload policy instead."),
    ),
    "a machine type that nobody knows": (
        a_pool(**SINGLE, config={"machineType": "ct5p-hightpu-1t"}),
        (3, "Machine type with name 'ct5p-hightpu-1t' does not exist in zone 'us-east5-b'"),
    ),
    "a machine type that the zone lacks": (
        a_pool(locations=["us-east5-c"]),
        (3, "does not exist in zone 'us-east5-c'"),
    ),
    "a reservation that does not exist": (
        a_pool(config={"reservationAffinity": RESERVED["reservationAffinity"] | {"values": ["other"]}}),
        (3, "Could not find the given reservation with the following name: other"),
    ),
    "the path form of a reservation of the own project": (
        a_pool(
            config={
                "reservationAffinity": RESERVED["reservationAffinity"] | {"values": ["projects/demo/reservations/res"]}
            }
        ),
        (3, "Could not find the given reservation"),
    ),
    "a reservation in another zone": (
        a_pool(config=RESERVED, locations=["us-east5-a"]),
        (3, "is incorrect for the requested resources"),
    ),
    "more hosts than the reservation has": (
        a_pool(config=RESERVED, initialNodeCount=8, placementPolicy={"type": "COMPACT", "tpuTopology": "4x8"}),
        (8, "Reservation 'res' does not have sufficient capacity"),
    ),
}


@pytest.mark.parametrize(("body", "want"), FAILED.values(), ids=FAILED)
@pytest.mark.looptime
async def test_accepted_but_the_operation_fails_and_the_pool_stays_in_error(
    body: dict[str, Any], want: tuple[int, str], make_bench: Callable[..., GkeBench]
) -> None:
    bench = make_bench(**SETTINGS)
    operation = await bench.finished(await bench.create(body))
    pool = await bench.pool("pool-a")
    got = (operation.error.code, want[1] if want[1] in operation.error.message else operation.error.message)
    assert (got, pool.status, pool.status_message, bench.host.nodes) == (
        want,
        gke.NodePool.Status.ERROR,
        operation.error.message,
        {},
    )
