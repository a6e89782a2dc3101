"""The real client of Google against the simulated server, over a real (insecure) channel."""

from collections.abc import AsyncIterator

import grpc
import pytest
from google.api_core.exceptions import (
    AlreadyExists,
    DeadlineExceeded,
    GoogleAPICallError,
    InvalidArgument,
    MethodNotImplemented,
    NotFound,
    ServiceUnavailable,
)
from google.cloud import container_v1 as gke
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcAsyncIOTransport

from sim.gke import GkeServer, Settings
from sim.gke.faults import LostAnswer, Refusal, Silence, SlowCreate
from sim.gke.memory_host import MemoryHost

INSTANT = Settings(
    pending_seconds=0.0,
    create_seconds=0.0,
    node_seconds=0.0,
    create_lag_seconds=0.0,
    delete_seconds=0.0,
    resize_seconds=0.0,
    cancellable=frozenset({"CREATE_NODE_POOL"}),
)
POOL = gke.NodePool(
    name="pool-a",
    initial_node_count=2,
    locations=["us-east5-a"],
    config={"machine_type": "ct6e-standard-4t"},
    placement_policy={"type_": "COMPACT", "tpu_topology": "2x4"},
)
PARENT = INSTANT.cluster_path
NAME = INSTANT.pool_path("pool-a")


@pytest.fixture
async def server() -> AsyncIterator[GkeServer]:
    server = GkeServer(MemoryHost(), settings=INSTANT)
    yield server
    await server.stop()


@pytest.fixture
async def client(server: GkeServer) -> AsyncIterator[gke.ClusterManagerAsyncClient]:
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield gke.ClusterManagerAsyncClient(transport=ClusterManagerGrpcAsyncIOTransport(channel=channel))


async def done(client: gke.ClusterManagerAsyncClient, operation: gke.Operation) -> gke.Operation:
    name = INSTANT.operation_path(operation.name)
    while True:
        current = await client.get_operation(name=name)
        if current.status == gke.Operation.Status.DONE:
            return current


async def test_a_pool_s_whole_life(client: gke.ClusterManagerAsyncClient) -> None:
    created = await done(client, await client.create_node_pool(parent=PARENT, node_pool=POOL))
    running = await client.get_node_pool(name=NAME)
    resized = await done(client, await client.set_node_pool_size(request={"name": NAME, "node_count": 0}))
    listed = await client.list_node_pools(parent=PARENT)
    cluster = await client.get_cluster(name=PARENT)
    deleted = await done(client, await client.delete_node_pool(name=NAME))
    operations = await client.list_operations(request={"parent": "projects/demo/locations/us-east5"})
    with pytest.raises(NotFound):
        await client.get_node_pool(name=NAME)
    assert (
        running.status.name,
        [pool.name for pool in listed.node_pools],
        cluster.name,
        [gke.Operation.Type(operation.operation_type).name for operation in operations.operations],
        ["error" in operation for operation in (created, resized, deleted)],
    ) == (
        "RUNNING",
        ["pool-a"],
        "bench",
        ["CREATE_NODE_POOL", "SET_NODE_POOL_SIZE", "DELETE_NODE_POOL"],
        [False, False, False],
    )


async def test_an_operation_is_cancelled(server: GkeServer, client: gke.ClusterManagerAsyncClient) -> None:
    server.manager.faults.add(SlowCreate(seconds=600.0))
    operation = await client.create_node_pool(parent=PARENT, node_pool=POOL)
    name = INSTANT.operation_path(operation.name)
    await client.cancel_operation(name=name)
    cancelled = await client.get_operation(name=name)
    assert (cancelled.status.name, cancelled.error.code) == ("DONE", 1)


REFUSALS: dict[str, tuple[gke.NodePool, type[GoogleAPICallError]]] = {
    "a bad name": (gke.NodePool(name="A"), InvalidArgument),
    "a name that is taken": (POOL, AlreadyExists),
}


@pytest.mark.parametrize(("pool", "want"), REFUSALS.values(), ids=REFUSALS)
async def test_refusals_come_as_google_s_exceptions(
    pool: gke.NodePool, want: type[GoogleAPICallError], client: gke.ClusterManagerAsyncClient
) -> None:
    await client.create_node_pool(parent=PARENT, node_pool=POOL)
    with pytest.raises(want):
        await client.create_node_pool(parent=PARENT, node_pool=pool)


async def test_a_failed_operation_carries_its_error(client: gke.ClusterManagerAsyncClient) -> None:
    pool = gke.NodePool(POOL, initial_node_count=3)
    operation = await done(client, await client.create_node_pool(parent=PARENT, node_pool=pool))
    assert ("error" in operation, operation.error.code, "gang mode of size '2'" in operation.error.message) == (
        True,
        3,
        True,
    )


async def test_unreachable_and_silent_and_lost(server: GkeServer, client: gke.ClusterManagerAsyncClient) -> None:
    faults, made = server.manager.faults, []
    for number, (fault, kind, timeout) in enumerate(
        (
            (Refusal(times=1), ServiceUnavailable, 30),
            (LostAnswer(times=1), ServiceUnavailable, 30),
            (Silence(), DeadlineExceeded, 0.2),
        )
    ):
        # Silence is the last: a call that was held may still take effect when the fault ends, as on a real network.
        pool = gke.NodePool(POOL, name=f"pool-{number}")
        faults.add(fault)
        with pytest.raises(kind):
            await client.create_node_pool(parent=PARENT, node_pool=pool, retry=None, timeout=timeout)
        made.append(pool.name in server.manager.pools)
        faults.clear()
    assert made == [False, True, False]


async def test_what_nobody_may_call_is_remembered(server: GkeServer, client: gke.ClusterManagerAsyncClient) -> None:
    with pytest.raises(MethodNotImplemented):
        await client.delete_cluster(name=PARENT)
    with pytest.raises(MethodNotImplemented):
        await client.get_server_config(name="projects/demo/locations/us-east5")
    assert server.manager.calls.forbidden == ["DeleteCluster"]


async def test_mutating_calls_are_recorded_with_their_bodies(
    server: GkeServer, client: gke.ClusterManagerAsyncClient
) -> None:
    await done(client, await client.create_node_pool(parent=PARENT, node_pool=POOL))
    await done(client, await client.delete_node_pool(name=NAME))
    calls = server.manager.calls
    assert (
        [(call.method, call.pool, call.outcome) for call in calls.mutating],
        calls.mutating[0].body,
        calls.counts["GetOperation"] > 0,
    ) == (
        [("CreateNodePool", "pool-a", "OK"), ("DeleteNodePool", "pool-a", "OK")],
        {
            "parent": PARENT,
            "nodePool": {
                "name": "pool-a",
                "initialNodeCount": 2,
                "locations": ["us-east5-a"],
                "config": {"machineType": "ct6e-standard-4t"},
                "placementPolicy": {"type": "COMPACT", "tpuTopology": "2x4"},
            },
        },
        True,
    )


async def test_a_port_that_is_taken_is_an_error(server: GkeServer) -> None:
    port = await server.start()
    other = GkeServer(MemoryHost(), settings=INSTANT)
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
        await other.start(port=port)
