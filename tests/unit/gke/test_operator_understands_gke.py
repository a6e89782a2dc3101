"""The operator's GKE client against the simulated GKE: what GKE says, the operator classifies."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sim.faults import FaultRegistry
from sim.gke.fault_commands import register_gke_faults
from tests.unit.gke.gke_bench import GkeBench, a_pool
from torchtpu_operator.clients.gke import GkeClient, GkeCluster
from torchtpu_operator.clients.gke_limit import OperationLimit
from torchtpu_operator.plan.observed import CallFailed, FailureClass, OperationStarted, Performed

MakeBench = Callable[..., GkeBench]


def operator_of(bench: GkeBench) -> GkeClient:
    async def connect(_: GkeCluster) -> Any:
        return bench.client

    cluster = GkeCluster(project="demo", location="us-east5", cluster="bench")
    limit = OperationLimit(monotonic=asyncio.get_running_loop().time, max_in_flight=100)
    return GkeClient(cluster, limit=limit, connect=connect)


async def verdict(bench: GkeBench, operator: GkeClient, name: str = "pool-a", **changes: Any) -> FailureClass | None:
    """Of a create, whether the call is refused or its operation fails; None: it works."""
    request = {"parent": bench.settings.cluster_path, "nodePool": a_pool(name, **changes)}
    answer = await operator.create_node_pool(request)
    if isinstance(answer, CallFailed):
        return answer.failure
    await bench.manager.operations.finished(answer.name)
    seen = await operator.get_operation(answer.name)
    assert seen is not None
    assert not isinstance(seen, CallFailed)
    return None if seen.error is None else seen.error.failure


FAULTS: dict[str, tuple[str, dict[str, str], FailureClass]] = {
    "no capacity": ("gke-stockout", {}, FailureClass.STOCKOUT),
    "part of the capacity": ("gke-stockout", {"nodes": "2"}, FailureClass.STOCKOUT),
    "over quota, said at once": ("gke-quota", {}, FailureClass.QUOTA),
    "over quota, said by the operation": ("gke-quota", {"where": "operation"}, FailureClass.QUOTA),
    "no rights": ("gke-permission-denied", {}, FailureClass.PERMISSION),
    "too many calls": ("gke-rate-limit", {}, FailureClass.THROTTLED),
    "unreachable": ("gke-unreachable", {}, FailureClass.TRANSIENT),
    "no answer": ("gke-unreachable", {"silent": "true"}, FailureClass.TRANSIENT),
    "a lost answer": ("gke-answer-lost", {}, FailureClass.TRANSIENT),
    "an internal error": (
        "gke-refuse",
        {"method": "*", "code": "INTERNAL", "message": "oops"},
        FailureClass.TRANSIENT,
    ),
}


@pytest.mark.parametrize(("fault", "parameters", "want"), FAULTS.values(), ids=FAULTS)
@pytest.mark.looptime
async def test_a_fault_has_its_class(
    fault: str, parameters: dict[str, str], want: FailureClass, make_bench: MakeBench
) -> None:
    bench, registry = make_bench(), FaultRegistry()
    register_gke_faults(registry, bench.manager)
    await registry.inject(fault, parameters)
    assert await verdict(bench, operator_of(bench)) == want


BAD_POOLS: dict[str, tuple[dict[str, Any], FailureClass]] = {
    "the wrong number of hosts": ({"initialNodeCount": 3}, FailureClass.INVALID),
    "a topology that does not exist": ({"placementPolicy": {"tpuTopology": "3x5"}}, FailureClass.INVALID),
    "a zone without the machine": ({"locations": ["us-east5-c"]}, FailureClass.WRONG_ZONE),
    "a reservation that does not exist": (
        {
            "config": {
                "reservationAffinity": {
                    "consumeReservationType": "SPECIFIC_RESERVATION",
                    "key": "compute.googleapis.com/reservation-name",
                    "values": ["none"],
                }
            }
        },
        FailureClass.RESERVATION_INVALID,
    ),
}


@pytest.mark.parametrize(("changes", "want"), BAD_POOLS.values(), ids=BAD_POOLS)
@pytest.mark.looptime
async def test_a_pool_that_cannot_be_has_its_class(
    changes: dict[str, Any], want: FailureClass, make_bench: MakeBench
) -> None:
    bench = make_bench(machines_by_zone={"us-east5-c": frozenset({"ct5p-hightpu-4t"})})
    assert await verdict(bench, operator_of(bench), **changes) == want


@pytest.mark.looptime
async def test_a_pool_s_life_through_the_operator_s_eyes(make_bench: MakeBench) -> None:
    bench = make_bench()
    operator = operator_of(bench)
    request = {"parent": bench.settings.cluster_path, "nodePool": a_pool()}
    created = await operator.create_node_pool(request)
    again = await operator.create_node_pool(request)
    too_early = await operator.delete_node_pool("pool-a")
    assert isinstance(created, OperationStarted)
    found = await operator.find_operation("pool-a")
    await bench.manager.operations.finished(created.name)
    deleted = await operator.delete_node_pool("pool-a")
    assert isinstance(deleted, OperationStarted)
    await bench.manager.operations.finished(deleted.name)
    assert (
        getattr(again, "failure", None),
        getattr(too_early, "failure", None),
        getattr(found, "name", None) == created.name,
        await operator.get_node_pool("pool-a"),
        await operator.delete_node_pool("pool-a"),
    ) == (FailureClass.CONFLICT, FailureClass.BUSY, True, None, Performed(call="DeleteNodePool"))
