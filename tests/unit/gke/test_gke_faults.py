"""Faults of the simulated GKE, each injected by its name as `sim fault` does."""

import asyncio
from collections.abc import Callable

import pytest
from google.api_core.exceptions import DeadlineExceeded, GoogleAPICallError
from google.cloud import container_v1 as gke

from sim.faults import FaultError, FaultRegistry
from sim.gke.fault_commands import register_gke_faults
from tests.unit.gke.gke_bench import GkeBench, a_pool

MakeBench = Callable[..., GkeBench]


def registry_of(bench: GkeBench) -> FaultRegistry:
    registry = FaultRegistry()
    register_gke_faults(registry, bench.manager)
    return registry


async def outcome(bench: GkeBench, name: str = "pool-a", **changes: object) -> tuple[object, ...]:
    """(code of the refusal, or of the operation's error with pool status, condition, nodes)"""
    try:
        operation = await bench.finished(await bench.create(a_pool(name, **changes)))
    except GoogleAPICallError as error:
        return (error.grpc_status_code.name,)
    pool = await bench.pool(name)
    conditions = [condition.code.name for condition in pool.conditions]
    return operation.error.code, pool.status.name, conditions, len(bench.host.alive(name))


@pytest.mark.looptime
async def test_a_stockout_strikes_where_and_as_often_as_said(make_bench: MakeBench) -> None:
    bench = make_bench()
    await registry_of(bench).inject("gke-stockout", {"zone": "us-east5-b", "times": "1"})
    assert [
        await outcome(bench, "pool-a", locations=["us-east5-a"]),
        await outcome(bench, "pool-b"),
        await outcome(bench, "pool-c"),
    ] == [(0, "RUNNING", [], 4), (8, "ERROR", ["GCE_STOCKOUT"], 0), (0, "RUNNING", [], 4)]


@pytest.mark.looptime
async def test_a_create_that_looks_for_capacity_locks_the_whole_cluster(make_bench: MakeBench) -> None:
    bench = make_bench(stockout_seconds=2100.0)
    await bench.finished(await bench.create(a_pool("pool-b")))
    await registry_of(bench).inject("gke-stockout", {})
    began = asyncio.get_running_loop().time()
    failing = await bench.create(a_pool("pool-a"))
    await asyncio.sleep(10)
    refused = []
    for call in (bench.create(a_pool("pool-c")), bench.delete("pool-b"), bench.delete("pool-a")):
        with pytest.raises(GoogleAPICallError) as raised:
            await call
        refused.append((raised.value.grpc_status_code.name, failing.name in raised.value.message))
    await bench.finished(failing)
    lasted = asyncio.get_running_loop().time() - began
    await bench.finished(await bench.delete("pool-a"))
    assert (refused, round(lasted, -2), sorted(bench.manager.pools)) == (
        [("FAILED_PRECONDITION", True)] * 3,
        2100.0,
        ["pool-b"],
    )


@pytest.mark.looptime
async def test_capacity_that_comes_late_makes_the_failed_pool_run(make_bench: MakeBench) -> None:
    bench = make_bench(fulfilment_seconds=600.0)
    registry = registry_of(bench)
    await registry.inject("gke-stockout", {})
    failed = await outcome(bench)
    await asyncio.sleep(1000)
    still = (await bench.pool("pool-a")).status.name
    await registry.inject("gke-clear", {})
    await asyncio.sleep(30)
    assert (failed[1], still, (await bench.pool("pool-a")).status.name, len(bench.host.nodes)) == (
        "ERROR",
        "ERROR",
        "RUNNING",
        4,
    )


@pytest.mark.looptime
async def test_part_of_a_slice_runs_with_error(make_bench: MakeBench) -> None:
    bench = make_bench()
    await registry_of(bench).inject("gke-stockout", {"nodes": "3"})
    assert await outcome(bench) == (8, "RUNNING_WITH_ERROR", ["GCE_STOCKOUT"], 3)


REFUSALS = {
    "quota at once": ("gke-quota", {}, ("PERMISSION_DENIED",)),
    "quota in the operation": ("gke-quota", {"where": "operation"}, (8, "ERROR", ["GCE_QUOTA_EXCEEDED"], 0)),
    "unreachable": ("gke-unreachable", {}, ("UNAVAILABLE",)),
    "permission denied": ("gke-permission-denied", {}, ("PERMISSION_DENIED",)),
    "rate limit": ("gke-rate-limit", {"method": "Create*"}, ("RESOURCE_EXHAUSTED",)),
    "any refusal": ("gke-refuse", {"method": "*", "code": "INTERNAL", "message": "oops"}, ("INTERNAL",)),
    "any operation error": (
        "gke-operation-error",
        {"code": "INTERNAL", "message": "oops", "status": "RUNNING_WITH_ERROR", "nodes": "4"},
        (13, "RUNNING_WITH_ERROR", ["UNKNOWN"], 4),
    ),
}


@pytest.mark.parametrize(("name", "parameters", "want"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.looptime
async def test_a_create_meets_a_fault_until_it_is_cleared(
    name: str, parameters: dict[str, str], want: tuple[object, ...], make_bench: MakeBench
) -> None:
    bench = make_bench()
    registry = registry_of(bench)
    await registry.inject(name, parameters)
    struck = await outcome(bench, "pool-a")
    cleared = await registry.inject("gke-clear", {})
    assert (struck, cleared, await outcome(bench, "pool-b")) == (
        want,
        "1 faults of GKE ended",
        (0, "RUNNING", [], 4),
    )


@pytest.mark.looptime
async def test_a_silent_api_is_ended_by_the_caller_s_deadline_and_by_time(make_bench: MakeBench) -> None:
    bench = make_bench()
    await registry_of(bench).inject("gke-unreachable", {"silent": "true", "seconds": "30"})
    with pytest.raises(DeadlineExceeded):
        await bench.client.list_node_pools(parent=bench.settings.cluster_path, timeout=10)
    answer = await bench.client.list_node_pools(parent=bench.settings.cluster_path, timeout=30)
    assert list(answer.node_pools) == []


@pytest.mark.parametrize(("silent", "code"), [("false", "UNAVAILABLE"), ("true", "DEADLINE_EXCEEDED")])
@pytest.mark.looptime
async def test_an_answer_is_lost_but_the_pool_is_made(silent: str, code: str, make_bench: MakeBench) -> None:
    bench = make_bench()
    await registry_of(bench).inject("gke-answer-lost", {"silent": silent})
    pool = gke.NodePool.from_json('{"name": "pool-a", "config": {"machineType": "e2-standard-4"}}')
    with pytest.raises(GoogleAPICallError) as raised:
        await bench.client.create_node_pool(parent=bench.settings.cluster_path, node_pool=pool, timeout=5)
    [call] = bench.manager.calls.of("CreateNodePool", pool="pool-a")
    assert (raised.value.grpc_status_code.name, call.outcome, call.answer_lost, list(bench.manager.pools)) == (
        code,
        "OK",
        True,
        ["pool-a"],
    )


@pytest.mark.looptime
async def test_a_deletion_hangs_until_it_is_let_go(make_bench: MakeBench) -> None:
    bench = make_bench()
    await outcome(bench)
    await registry_of(bench).inject("gke-hung-delete", {"pool": "pool-*", "seconds": "3600"})
    operation = await bench.delete("pool-a")
    await asyncio.sleep(3500)
    hung = (await bench.pool("pool-a")).status.name
    await bench.finished(operation)
    assert (hung, bench.manager.pools) == ("STOPPING", {})


@pytest.mark.looptime
async def test_a_slow_create_and_a_forgotten_operation(make_bench: MakeBench) -> None:
    bench = make_bench()
    registry = registry_of(bench)
    await registry.inject("gke-slow-create", {"extra": "7200"})
    operation = await bench.create(a_pool())
    await asyncio.sleep(7000)
    running = await registry.inject("gke-forget-operations", {})
    await bench.finished(operation)
    done = await registry.inject("gke-forget-operations", {})
    with pytest.raises(GoogleAPICallError) as raised:
        await bench.operation(operation.name)
    assert (running, done, raised.value.grpc_status_code.name) == (
        "0 finished operations are forgotten",
        "1 finished operations are forgotten",
        "NOT_FOUND",
    )


@pytest.mark.looptime
async def test_a_host_vanishes_and_a_pool_is_deleted_by_somebody_else(make_bench: MakeBench) -> None:
    bench = make_bench()
    registry = registry_of(bench)
    await outcome(bench)
    await registry.inject("gke-node-vanish", {"pool": "pool-a", "object": "gone"})
    nodes = len(bench.host.nodes)
    await registry.inject("gke-pool-vanish", {"pool": "pool-a"})
    await asyncio.sleep(30)
    assert (nodes, bench.manager.pools, bench.manager.calls.counts["DeleteNodePool"]) == (3, {}, 0)


MISTAKES = {
    "a count that is none": ("gke-stockout", {"times": "often"}, "times='often': a whole number from 1"),
    "a flag that is none": ("gke-unreachable", {"silent": "1"}, "silent='1': true or false"),
    "a code that is none": ("gke-refuse", {"method": "*", "code": "TEAPOT", "message": "m"}, "code='TEAPOT': one of"),
    "no such pool": ("gke-node-vanish", {"pool": "nope"}, "no node pool 'nope' with nodes"),
    "no such place": ("gke-quota", {"where": "nowhere"}, "call or operation"),
}


@pytest.mark.parametrize(("name", "parameters", "words"), MISTAKES.values(), ids=MISTAKES)
@pytest.mark.looptime
async def test_a_mistyped_fault_says_what_it_takes(
    name: str, parameters: dict[str, str], words: str, make_bench: MakeBench
) -> None:
    with pytest.raises(FaultError, match=words):
        await registry_of(make_bench()).inject(name, parameters)
