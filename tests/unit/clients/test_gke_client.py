"""The GKE client against the simulated GKE: in process, and once over a real gRPC channel."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from google.api_core import exceptions

from sim.gke import ClusterManager, GkeServer, InProcessClusterManagerClient, Settings
from sim.gke.memory_host import MemoryHost
from torchtpu_operator.clients.gke import GkeClient, GkeCluster
from torchtpu_operator.clients.gke_limit import OperationLimit
from torchtpu_operator.plan.observed import CallFailed, FailureClass, OperationSeen, OperationStarted, Performed

CLUSTER = GkeCluster(project="demo", location="us-east5", cluster="bench")
FAST = Settings(
    pending_seconds=0.01,
    create_seconds=0.05,
    node_seconds=0.01,
    create_lag_seconds=0.01,
    tpu_ready_seconds=0,
    delete_seconds=0.05,
)


def request(name: str = "pool-a") -> dict[str, Any]:
    return {
        "parent": CLUSTER.path,
        "nodePool": {
            "name": name,
            "initialNodeCount": 4,
            "locations": ["us-east5-b"],
            "config": {"machineType": "ct6e-standard-4t"},
            "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
        },
    }


def a_client(connect: Callable[[], Any], *, limit: OperationLimit | None = None) -> GkeClient:
    async def connected(_: GkeCluster) -> Any:
        return connect()

    return GkeClient(CLUSTER, limit=limit or OperationLimit(monotonic=lambda: 0.0), connect=connected)


class Failing:
    """A client of which every method raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        async def call(**_: Any) -> Any:
            raise self._error

        return call


@pytest.fixture
async def manager() -> AsyncIterator[ClusterManager]:
    manager = ClusterManager(MemoryHost(), settings=FAST)
    yield manager
    await manager.stop()


async def until_done(client: GkeClient, operation: str) -> OperationSeen:
    async with asyncio.timeout(10):
        while True:
            seen = await client.get_operation(operation)
            assert isinstance(seen, OperationSeen)
            if seen.done:
                return seen
            await asyncio.sleep(0.02)


async def life_of_a_pool(client: GkeClient) -> list[Any]:
    """Created, created again, followed, looked at, deleted, gone; the operations' names are left out."""
    started = await client.create_node_pool(request())
    assert isinstance(started, OperationStarted)
    again = await client.create_node_pool(request())
    found = await client.find_operation("pool-a")
    over = await until_done(client, started.name)
    pool = await client.get_node_pool("pool-a")
    deleting = await client.delete_node_pool(CLUSTER.pool_path("pool-a"))
    assert isinstance(deleting, OperationStarted)
    await until_done(client, deleting.name)
    return [
        started.kind,
        again.failure if isinstance(again, CallFailed) else again,
        isinstance(found, OperationSeen) and found.name == started.name,
        over.error,
        pool and not isinstance(pool, CallFailed) and (pool["name"], pool["status"], pool["initialNodeCount"]),
        deleting.kind,
        await client.get_node_pool("pool-a"),
        await client.delete_node_pool("pool-a"),
    ]


LIFE = [
    "CREATE_NODE_POOL",
    FailureClass.CONFLICT,
    True,
    None,
    ("pool-a", "RUNNING", 4),
    "DELETE_NODE_POOL",
    None,
    Performed(call="DeleteNodePool"),
]


async def test_the_life_of_a_pool(manager: ClusterManager) -> None:
    assert await life_of_a_pool(a_client(lambda: InProcessClusterManagerClient(manager))) == LIFE


async def test_the_life_of_a_pool_over_grpc() -> None:
    server = GkeServer(MemoryHost(), settings=FAST)
    port = await server.start()
    cluster = GkeCluster(
        project="demo", location="us-east5", cluster="bench", endpoint=f"127.0.0.1:{port}", insecure=True
    )
    client = GkeClient(cluster, limit=OperationLimit(monotonic=lambda: 0.0))
    try:
        assert await life_of_a_pool(client) == LIFE
    finally:
        await client.close()
        await server.stop()


async def test_a_cluster_that_is_not_there_is_not_taken_for_a_pool_that_is_gone(manager: ClusterManager) -> None:
    cluster = GkeCluster(project="demo", location="us-east5", cluster="typo")

    async def connect(_: GkeCluster) -> Any:
        return InProcessClusterManagerClient(manager)

    client = GkeClient(cluster, limit=OperationLimit(monotonic=lambda: 0.0), connect=connect)
    answers = [await client.get_node_pool("pool-a"), await client.delete_node_pool("pool-a")]
    assert [a.failure if isinstance(a, CallFailed) else a for a in answers] == [FailureClass.NOT_FOUND] * 2


async def test_an_operation_that_gke_forgot_is_none(manager: ClusterManager) -> None:
    client = a_client(lambda: InProcessClusterManagerClient(manager))
    assert (await client.get_operation("operation-1"), await client.find_operation("pool-z")) == (None, None)


async def test_a_body_that_is_no_request_is_our_own_mistake(manager: ClusterManager) -> None:
    client = a_client(lambda: InProcessClusterManagerClient(manager))
    answer = await client.create_node_pool({"parent": "x", "nodePool": {"nmae": "a"}})
    assert isinstance(answer, CallFailed)
    assert (answer.failure, "nmae" in answer.message) == (FailureClass.INVALID, True)


ERRORS = {
    "unreachable": (exceptions.ServiceUnavailable("connection refused"), FailureClass.TRANSIENT),
    "no answer in time": (exceptions.DeadlineExceeded("504"), FailureClass.TRANSIENT),
    "no right": (
        exceptions.PermissionDenied("Required permission", errors=()),
        FailureClass.PERMISSION,
    ),
    "busy": (
        exceptions.from_grpc_status(
            grpc.StatusCode.FAILED_PRECONDITION, "Cluster is running incompatible operation operation-1."
        ),
        FailureClass.BUSY,
    ),
    "the socket broke": (ConnectionResetError("reset"), FailureClass.TRANSIENT),
}


@pytest.mark.parametrize(("error", "want"), ERRORS.values(), ids=ERRORS)
async def test_no_error_gets_out(error: Exception, want: FailureClass) -> None:
    client = a_client(lambda: Failing(error))
    answers = [
        await client.create_node_pool(request()),
        await client.delete_node_pool("a"),
        await client.get_node_pool("a"),
        await client.get_operation("o"),
        await client.find_operation("a"),
    ]
    assert [answer.failure if isinstance(answer, CallFailed) else answer for answer in answers] == [want] * 5


async def test_three_changes_at_a_time_and_one_more_for_a_delete(manager: ClusterManager) -> None:
    counts: list[int] = []
    limit = OperationLimit(monotonic=lambda: 0.0, changed=counts.append)
    client = a_client(lambda: InProcessClusterManagerClient(manager), limit=limit)
    started = [await client.create_node_pool(request(name)) for name in ("a", "b", "c")]
    names = [operation.name for operation in started if isinstance(operation, OperationStarted)]
    refused = await client.create_node_pool(request("d"))
    assert isinstance(refused, CallFailed)
    deletion = await client.delete_node_pool("nothing-there")
    for name in names:
        await until_done(client, name)
    after = await client.create_node_pool(request("d"))
    got = (len(names), refused.failure, deletion, type(after), max(counts))
    assert got == (3, FailureClass.BUSY, Performed(call="DeleteNodePool"), OperationStarted, 4)


def test_an_operation_that_nobody_asks_about_holds_its_place_for_two_hours_at_most() -> None:
    now = 0.0
    limit = OperationLimit(monotonic=lambda: now)
    limit.started("projects/p/locations/l/operations/operation-1")
    limit.started("operation-1")
    before, now = limit.in_flight, 7201.0
    assert (before, limit.in_flight) == (1, 0)
