"""Operations and pools over (virtual) time."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import container_v1 as gke

from sim.gke import Reservation
from tests.unit.gke.gke_bench import GkeBench, a_pool

MakeBench = Callable[..., GkeBench]
SECONDS = {"pending_seconds": 2.0, "create_seconds": 100.0, "node_seconds": 20.0, "create_lag_seconds": 5.0}


async def refusal(call: Any) -> str:
    """Code and words of a call that must be refused."""
    with pytest.raises(GoogleAPICallError) as raised:
        await call
    return f"{raised.value.grpc_status_code.name}: {raised.value.message}"


async def at(bench: GkeBench, operation: Any, second: float) -> tuple[float, str, str, int]:
    """(second, operation status, pool status, nodes)"""
    await asyncio.sleep(second - asyncio.get_running_loop().time())
    current, pool = await bench.operation(operation.name), await bench.pool("pool-a")
    return second, current.status.name, pool.status.name, len(bench.host.nodes)


@pytest.mark.looptime
async def test_a_create_goes_from_pending_over_running_nodes_to_done(make_bench: MakeBench) -> None:
    bench = make_bench(**SECONDS)
    operation = await bench.create(a_pool())
    assert [await at(bench, operation, second) for second in (1, 3, 121, 123, 128)] == [
        (1, "PENDING", "PROVISIONING", 0),
        (3, "RUNNING", "PROVISIONING", 0),
        (121, "RUNNING", "PROVISIONING", 0),
        (123, "RUNNING", "PROVISIONING", 4),
        (128, "DONE", "RUNNING", 4),
    ]


@pytest.mark.looptime
async def test_an_operation_tells_its_target_and_times(make_bench: MakeBench) -> None:
    bench = make_bench(**SECONDS)
    created = await bench.create(a_pool())
    operation = await bench.finished(created)
    base = "https://container.googleapis.com/v1/projects/123456789012/locations/us-east5"
    assert gke.Operation.to_dict(operation, always_print_fields_with_no_presence=False) == {
        "name": created.name,
        "operation_type": gke.Operation.Type.CREATE_NODE_POOL,
        "status": gke.Operation.Status.DONE,
        "location": "us-east5",
        "zone": "us-east5",
        "self_link": f"{base}/operations/{created.name}",
        "target_link": f"{base}/clusters/bench/nodePools/pool-a",
        "start_time": "2026-11-30T00:00:00Z",
        "end_time": "2026-11-30T00:02:07Z",
    }


@pytest.mark.looptime
async def test_a_delete_stays_stopping_until_it_is_404(make_bench: MakeBench) -> None:
    bench = make_bench(delete_seconds=60.0)
    await bench.finished(await bench.create(a_pool()))
    operation = await bench.delete("pool-a")
    stopping = (await bench.pool("pool-a")).status.name
    done = await bench.finished(operation)
    gone = await refusal(bench.pool("pool-a"))
    assert (stopping, "error" in done, gone, bench.host.nodes) == (
        "STOPPING",
        False,
        "NOT_FOUND: Not found: projects/demo/locations/us-east5/clusters/bench/nodePools/pool-a.",
        {},
    )


@pytest.mark.looptime
async def test_a_pool_cannot_be_deleted_while_it_is_made(make_bench: MakeBench) -> None:
    bench = make_bench()
    operation = await bench.create(a_pool())
    first = await refusal(bench.delete("pool-a"))
    await bench.finished(operation)
    await bench.finished(await bench.delete("pool-a"))
    assert (first, bench.manager.pools) == (
        f"FAILED_PRECONDITION: Cluster is running incompatible operation {operation.name}.",
        {},
    )


@pytest.mark.looptime
async def test_a_name_is_taken_until_its_pool_is_gone(make_bench: MakeBench) -> None:
    bench = make_bench(delete_seconds=60.0)
    want = "ALREADY_EXISTS: Already exists: projects/demo/locations/us-east5/clusters/bench/nodePools/pool-a."
    creating = await bench.create(a_pool())
    while_created = await refusal(bench.create(a_pool()))
    await bench.finished(creating)
    deleting = await bench.delete("pool-a")
    while_deleted = await refusal(bench.create(a_pool()))
    await bench.finished(deleting)
    again = await bench.finished(await bench.create(a_pool()))
    assert (while_created, while_deleted, "error" in again) == (want, want, False)


@pytest.mark.looptime
async def test_five_operations_at_once_are_the_limit(make_bench: MakeBench) -> None:
    bench = make_bench()
    for index in range(5):
        await bench.create(a_pool(f"pool-{index}"))
    sixth = await refusal(bench.create(a_pool("pool-5")))
    assert (sixth.partition(":")[0], "concurrent operations quota 5" in sixth, len(bench.manager.pools)) == (
        "RESOURCE_EXHAUSTED",
        True,
        5,
    )


@pytest.mark.looptime
async def test_one_operation_at_a_time_if_the_cluster_is_so(make_bench: MakeBench) -> None:
    bench = make_bench(exclusive_operations=True)
    first = await bench.create(a_pool("pool-a"))
    second = await refusal(bench.create(a_pool("pool-b")))
    await bench.finished(first)
    await bench.finished(await bench.create(a_pool("pool-b")))
    assert (second, sorted(bench.manager.pools)) == (
        f"FAILED_PRECONDITION: Cluster is running incompatible operation {first.name}.",
        ["pool-a", "pool-b"],
    )


@pytest.mark.looptime
async def test_two_creates_share_one_zone_s_capacity(make_bench: MakeBench) -> None:
    bench = make_bench(capacity={("us-east5-b", "ct6e-standard-4t"): 7})
    operations = [await bench.create(a_pool("pool-a")), await bench.create(a_pool("pool-b"))]
    first, second = [await bench.finished(operation) for operation in operations]
    await bench.finished(await bench.delete("pool-a"))
    await bench.finished(await bench.delete("pool-b"))
    third = await bench.finished(await bench.create(a_pool("pool-c")))
    assert ("error" in first, second.error.code, "GCE_STOCKOUT" in second.error.message, "error" in third) == (
        False,
        8,
        True,
        False,
    )


@pytest.mark.looptime
async def test_a_reservation_is_free_again_after_its_pool_is_gone(make_bench: MakeBench) -> None:
    bench = make_bench(reservations={"res": Reservation(machine_type="ct6e-standard-4t", zone="us-east5-b", hosts=4)})
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["res"],
    }
    config = {"reservationAffinity": affinity}
    await bench.finished(await bench.create(a_pool("pool-a", config=config)))
    full = await bench.finished(await bench.create(a_pool("pool-b", config=config)))
    await bench.finished(await bench.delete("pool-a"))
    await bench.finished(await bench.delete("pool-b"))
    free = await bench.finished(await bench.create(a_pool("pool-c", config=config)))
    assert (full.error.code, "error" in free) == (8, False)


@pytest.mark.looptime
async def test_a_slice_is_resized_to_nothing_or_whole_but_not_in_part(make_bench: MakeBench) -> None:
    bench = make_bench()
    await bench.finished(await bench.create(a_pool()))
    seen = []
    for count in (0, 4, 2):
        path = bench.settings.pool_path("pool-a")
        operation = await bench.finished(
            await bench.client.set_node_pool_size(request={"name": path, "node_count": count})
        )
        seen.append((count, operation.error.code, len(bench.host.nodes), (await bench.pool("pool-a")).status.name))
    assert seen == [(0, 0, 0, "RUNNING"), (4, 0, 4, "RUNNING"), (2, 3, 4, "ERROR")]


@pytest.mark.looptime
async def test_the_autoscaler_s_way_makes_and_removes_a_whole_slice(make_bench: MakeBench) -> None:
    bench = make_bench()
    body = a_pool(initialNodeCount=None, autoscaling={"enabled": True, "maxNodeCount": 4})
    await bench.finished(await bench.create(body))
    empty = len(bench.host.nodes)
    up, nodes = await bench.manager.scale("pool-a", 4), len(bench.host.nodes)
    part = await bench.manager.scale("pool-a", 3)
    down = await bench.manager.scale("pool-a", 0)
    assert (empty, up, nodes, part is not None, down, bench.host.nodes) == (0, None, 4, True, None, {})


@pytest.mark.looptime
async def test_machines_end_with_their_max_run_duration(make_bench: MakeBench) -> None:
    bench = make_bench()
    await bench.finished(await bench.create(a_pool(config={"maxRunDuration": "3600s"})))
    ends = {node.annotations["node.gke.io/machine-termination-datetime"] for node in bench.host.nodes.values()}
    await asyncio.sleep(3590)
    before = len(bench.host.nodes)
    await asyncio.sleep(20)
    assert (len(ends), before, len(bench.host.nodes)) == (1, 4, 0)


@pytest.mark.looptime
async def test_a_lost_host_is_repaired_with_its_whole_slice_under_the_old_names(make_bench: MakeBench) -> None:
    bench = make_bench(repair_seconds=300.0)
    await bench.finished(await bench.create(a_pool()))
    names = sorted(bench.host.nodes)
    await bench.manager.lose_node(names[1])
    lost = (sorted(bench.host.nodes), bench.host.alive("pool-a"), bench.host.added)
    await asyncio.sleep(320)
    repaired = (sorted(bench.host.nodes), bench.host.alive("pool-a"), bench.host.added)
    kinds = [gke.Operation.Type(operation.operation_type).name for operation in bench.manager.operations.all()]
    assert (lost, repaired, kinds) == (
        (names, [names[0], *names[2:]], 4),
        (names, names, 8),
        ["CREATE_NODE_POOL", "AUTO_REPAIR_NODES"],
    )


@pytest.mark.looptime
async def test_without_auto_repair_nobody_repairs(make_bench: MakeBench) -> None:
    bench = make_bench(repair_seconds=300.0)
    await bench.finished(await bench.create(a_pool(management={"autoRepair": False, "autoUpgrade": True})))
    name = min(bench.host.nodes)
    await bench.manager.lose_node(name, keep_object=False)
    await asyncio.sleep(4000)
    assert (name in bench.host.nodes, len(bench.host.nodes)) == (False, 3)


@pytest.mark.looptime
async def test_a_create_cannot_be_cancelled_unless_gke_is_said_to_do_so(make_bench: MakeBench) -> None:
    bench = make_bench(cancellable=frozenset({"CREATE_NODE_POOL"}))
    other = make_bench()
    stubborn = await other.create(a_pool())
    refused = await refusal(other.client.cancel_operation(name=other.settings.operation_path(stubborn.name)))
    operation = await bench.create(a_pool())
    await bench.client.cancel_operation(name=bench.settings.operation_path(operation.name))
    cancelled, pool = await bench.operation(operation.name), await bench.pool("pool-a")
    assert (refused.partition(":")[0], cancelled.status.name, cancelled.error.code, pool.status.name) == (
        "INVALID_ARGUMENT",
        "DONE",
        1,
        "ERROR",
    )


@pytest.mark.looptime
async def test_hosts_that_cannot_be_made_fail_the_operation_and_the_pool(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench()

    async def break_down(node: object) -> None:
        raise RuntimeError("the bench is broken")

    monkeypatch.setattr(bench.host, "add", break_down)
    operation = await bench.finished(await bench.create(a_pool()))
    pool = await bench.pool("pool-a")
    assert (operation.error.code, operation.error.message, pool.status.name) == (
        13,
        "Internal error: RuntimeError('the bench is broken')",
        "ERROR",
    )


@pytest.mark.looptime
async def test_lists_and_the_cluster_show_all(make_bench: MakeBench) -> None:
    bench = make_bench()
    for name in ("pool-a", "pool-b"):
        await bench.finished(await bench.create(a_pool(name)))
    pools = await bench.client.list_node_pools(parent=bench.settings.cluster_path)
    operations = await bench.client.list_operations(request={"parent": "projects/demo/locations/-"})
    cluster = await bench.client.get_cluster(name=bench.settings.cluster_path)
    assert (
        [pool.name for pool in pools.node_pools],
        [operation.target_link.rpartition("/")[2] for operation in operations.operations],
        (cluster.name, cluster.status.name, cluster.current_node_count, len(cluster.node_pools)),
    ) == (["pool-a", "pool-b"], ["pool-a", "pool-b"], ("bench", "RUNNING", 8, 2))


@pytest.mark.looptime
async def test_another_cluster_or_project_is_not_found(make_bench: MakeBench) -> None:
    bench = make_bench()
    other = "projects/demo/locations/us-east5/clusters/other"
    refusals = [
        await refusal(bench.client.create_node_pool(parent=other, node_pool=gke.NodePool(name="a"))),
        await refusal(bench.client.get_node_pool(name=f"{other}/nodePools/a")),
        await refusal(bench.client.delete_node_pool(name=f"{other}/nodePools/a")),
        await refusal(bench.client.list_node_pools(parent=other)),
        await refusal(bench.client.list_operations(request={"parent": "projects/x/locations/us-east5"})),
        await refusal(bench.client.get_operation(name="projects/demo/locations/us-west4/operations/o")),
    ]
    assert {text.partition(":")[0] for text in refusals} == {"NOT_FOUND"}


@pytest.mark.looptime
async def test_pools_that_were_there_before_have_any_status(make_bench: MakeBench) -> None:
    bench = make_bench()
    for status in ("ERROR", "STOPPING", "RUNNING_WITH_ERROR"):
        name = "pool-" + status.lower().replace("_", "-")
        pool = gke.NodePool(name=name, locations=["us-east5-b"], config={"machine_type": "ct6e-standard-8t"})
        await bench.manager.preload(pool, status=status, nodes=1 if status == "RUNNING_WITH_ERROR" else 0)
    found = {name: (pool.status.name, len(bench.host.alive(name))) for name, pool in bench.manager.pools.items()}
    assert found == {
        "pool-error": ("ERROR", 0),
        "pool-stopping": ("STOPPING", 0),
        "pool-running-with-error": ("RUNNING_WITH_ERROR", 1),
    }
