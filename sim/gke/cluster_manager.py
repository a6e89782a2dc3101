"""The simulated GKE without its wire: calls in, answers or GkeError out, pools and operations between."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from google.cloud import container_v1 as gke
from google.protobuf import empty_pb2

from sim.gke.calls import MUTATING, Call, CallLog, to_json
from sim.gke.creation_failures import Failure, creation_failure, reservation_of, size_failure, stockout_failure
from sim.gke.errors import Code, GkeError, already_exists, invalid, not_found
from sim.gke.faults import Faults
from sim.gke.fleet import Fleet, Instance, Pool
from sim.gke.operations import Entry, Operations, Work, build_condition
from sim.gke.pool_rules import check_pool
from sim.gke.settings import Settings
from sim.gke.stored_pool import build_cluster, build_stored_pool
from sim.gke.tpu_rules import resolve_shape
from sim.nodes import NodeHost

_Status = gke.NodePool.Status
RETRY_SECONDS = 5.0
"""How often what waits for the cluster or for capacity looks again."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class ClusterManager:
    """google.container.v1.ClusterManager for one cluster.

    `call` is the only way in. Must be used from one event loop; `clock` and `sleep` may be virtual.
    """

    def __init__(
        self,
        host: NodeHost,
        *,
        settings: Settings | None = None,
        clock: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.settings = settings or Settings()
        self.faults = Faults(sleep=sleep)
        self.calls = CallLog()
        self._clock, self._sleep = clock, sleep
        self._rng = random.Random(self.settings.seed)
        self._pools: dict[str, Pool] = {}
        self._fleet = Fleet(host, self.settings, clock=clock, sleep=sleep, rng=self._rng)
        self.operations = Operations(self.settings, clock=clock, sleep=sleep, rng=self._rng)
        self._handlers: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "CreateNodePool": self._create_node_pool,
            "GetNodePool": self._get_node_pool,
            "ListNodePools": self._list_node_pools,
            "DeleteNodePool": self._delete_node_pool,
            "SetNodePoolSize": self._set_node_pool_size,
            "GetOperation": self._get_operation,
            "ListOperations": self._list_operations,
            "CancelOperation": self._cancel_operation,
            "GetCluster": self._get_cluster,
        }

    async def call(self, method: str, request: Any) -> Any:
        """Answer one call. Raises GkeError; the answer is the caller's own copy."""
        self.calls.counts[method] += 1
        entry = Call(at=self._clock(), method=method, body=to_json(request) if method in MUTATING else {})
        if method in MUTATING:
            self.calls.mutating.append(entry)
        try:
            await self.faults.before(method)
            answer = await self._handlers[method](request)
            entry.outcome = "OK"
            if self.faults.loses_answer(method):
                entry.answer_lost = True
                await self.faults.lose_answer(method)
        except GkeError as error:
            self.calls.refused[method, error.code.name] += 1
            entry.outcome = entry.outcome or error.code.name
            raise
        return answer

    # What tests and faults look at and reach into.

    @property
    def pools(self) -> dict[str, Any]:
        """The NodePools that exist, by name, as GetNodePool would return them."""
        return {name: gke.NodePool(pool.message) for name, pool in self._pools.items()}

    def nodes_of(self, pool: str) -> list[str]:
        return [instance.name for instance in self._pool_named(pool).instances if not instance.is_lost]

    async def preload(self, pool: Any, *, status: str = "RUNNING", nodes: int | None = None, message: str = "") -> None:
        """A pool that was there before, in any status, with `nodes` per zone (default: what it asks for)."""
        shape = resolve_shape(pool, self.settings)
        held = Pool(message=build_stored_pool(pool, shape, settings=self.settings, etag=self._etag()), shape=shape)
        self._pools[held.name] = held
        await self._fleet.add(held, pool.initial_node_count if nodes is None else nodes)
        held.claimed_hosts = len(held.instances)
        held.message.status, held.message.status_message = _Status[status], message

    async def lose_node(self, name: str, *, keep_object: bool = True) -> None:
        """A host error: auto-repair, where the pool has it, recreates the whole slice after a while."""
        for pool in self._pools.values():
            for instance in pool.instances:
                if instance.name == name:
                    await self._lose(pool, instance, keep_object)
                    return
        raise not_found(f"instance {name}")

    async def delete_by_another(self, path: str) -> None:
        """Somebody with rights on the cluster deletes a pool; not among the recorded calls."""
        await self._delete_node_pool(gke.DeleteNodePoolRequest(name=path))

    async def scale(self, name: str, nodes_per_zone: int) -> Failure | None:
        """What the cluster autoscaler does to a pool: no operation, a slice only whole. Returns why it could not."""
        pool = self._pool_named(name)
        failure = self._verdict(pool, nodes_per_zone)
        if failure is None:
            await self._resize(pool, nodes_per_zone)
        return failure

    async def stop(self) -> None:
        """Nothing goes on any more; machines stay as they are."""
        tasks = self.operations.stop()
        await asyncio.gather(*tasks, return_exceptions=True)
        for pool in self._pools.values():
            await self._fleet.end_background(pool)

    # Calls.

    async def _create_node_pool(self, request: Any) -> Any:
        self._check_cluster(request.parent)
        pool = request.node_pool
        check_pool(pool, self.settings)
        if pool.name in self._pools:
            raise already_exists(self.settings.pool_path(pool.name))
        shape = resolve_shape(pool, self.settings)
        self.operations.check_free(pool.name)
        created = Pool(message=build_stored_pool(pool, shape, settings=self.settings, etag=self._etag()), shape=shape)
        self._pools[created.name] = created
        return self._start("CREATE_NODE_POOL", created, lambda entry: self._create(created, entry))

    async def _delete_node_pool(self, request: Any) -> Any:
        pool = self._pool(request.name)
        self.operations.check_free(pool.name)
        pool.message.status = _Status.STOPPING
        return self._start("DELETE_NODE_POOL", pool, lambda _: self._delete(pool))

    async def _set_node_pool_size(self, request: Any) -> Any:
        pool = self._pool(request.name)
        if request.node_count < 0:
            raise invalid("Node count must not be negative.")
        self.operations.check_free(pool.name)
        count = request.node_count
        return self._start("SET_NODE_POOL_SIZE", pool, lambda _: self._set_size(pool, count))

    async def _get_node_pool(self, request: Any) -> Any:
        return _copy(self._pool(request.name).message)

    async def _list_node_pools(self, request: Any) -> Any:
        self._check_cluster(request.parent)
        return gke.ListNodePoolsResponse(node_pools=[_copy(pool.message) for pool in self._pools.values()])

    async def _get_operation(self, request: Any) -> Any:
        return _copy(self.operations.get(request.name))

    async def _list_operations(self, request: Any) -> Any:
        location = f"projects/{self.settings.project}/locations/"
        if request.parent not in (location + self.settings.location, location + "-"):
            raise not_found(request.parent)
        return gke.ListOperationsResponse(operations=[_copy(message) for message in self.operations.all()])

    async def _cancel_operation(self, request: Any) -> Any:
        await self.operations.cancel(request.name)
        return empty_pb2.Empty()

    async def _get_cluster(self, request: Any) -> Any:
        self._check_cluster(request.name)
        nodes = sum(len(pool.instances) for pool in self._pools.values())
        return build_cluster((pool.message for pool in self._pools.values()), settings=self.settings, nodes=nodes)

    # The work of operations: returns how it failed, None if it did not.

    async def _create(self, pool: Pool, entry: Entry) -> Failure | None:
        await self._sleep(self.faults.extra_create_seconds(pool.name))
        count = pool.message.initial_node_count
        failure = self._verdict(pool, count, kind="CREATE_NODE_POOL")
        if failure is not None:
            entry.locks_cluster = failure.for_capacity and self.settings.stockout_locks_cluster
            await self._sleep(self.settings.stockout_seconds if failure.for_capacity else self.settings.create_seconds)
            await self._fleet.add(pool, failure.nodes)
            if failure.for_capacity and self.settings.fulfilment_seconds is not None:
                self._fleet.run_beside(pool, self._fulfil(pool, self.settings.fulfilment_seconds))
            return failure
        await self._sleep(self.settings.create_seconds if count else 0.0)
        await self._fleet.add(pool, count)
        await self._sleep(self.settings.create_lag_seconds)
        pool.message.status = _Status.RUNNING
        return None

    async def _delete(self, pool: Pool) -> Failure | None:
        failure = self._operation_fault("DELETE_NODE_POOL", pool)
        if failure is not None:
            await self._sleep(self.settings.delete_seconds)
            return failure
        await self._fleet.end_background(pool)
        await self.faults.hold_deletion(pool.name)
        await self._fleet.remove(pool, list(pool.instances))
        await self._sleep(self.settings.delete_seconds)
        del self._pools[pool.name]
        return None

    async def _set_size(self, pool: Pool, count: int) -> Failure | None:
        failure = self._verdict(pool, count, kind="SET_NODE_POOL_SIZE")
        pool.message.status = _Status.RECONCILING
        await self._sleep(self.settings.resize_seconds)
        if failure is not None:
            return failure
        await self._resize(pool, count)
        pool.message.initial_node_count = count
        pool.message.status = _Status.RUNNING
        return None

    async def _repair(self, pool: Pool) -> Failure | None:
        pool.message.status = _Status.RECONCILING
        await self._fleet.recreate_lost(pool)
        pool.message.status = _Status.RUNNING
        return None

    # What goes on without a call.

    async def _fulfil(self, pool: Pool, seconds: float) -> None:
        """Capacity that GKE went on to look for arrives after everybody gave up."""
        count = pool.message.initial_node_count
        await self._sleep(seconds)
        while self._verdict(pool, count, strike=False) is not None:
            await self._sleep(RETRY_SECONDS)
        await self._resize(pool, count)
        pool.message.status, pool.message.status_message = _Status.RUNNING, ""
        pool.message.conditions = []

    async def _lose(self, pool: Pool, instance: Instance, keep_object: bool) -> None:
        await self._fleet.lose(instance, keep_object=keep_object)
        if pool.message.management.auto_repair and self.settings.repair_seconds is not None:
            self._fleet.run_beside(pool, self._repair_later(pool, self.settings.repair_seconds))

    async def _repair_later(self, pool: Pool, seconds: float) -> None:
        await self._sleep(seconds)
        while any(instance.is_lost for instance in pool.instances):
            with contextlib.suppress(GkeError):
                self.operations.check_free(pool.name)
                self._start("AUTO_REPAIR_NODES", pool, lambda _: self._repair(pool))
                return
            await self._sleep(RETRY_SECONDS)

    # Helpers.

    def _start(self, kind: str, pool: Pool, work: Work) -> Any:
        return _copy(self.operations.start(kind, pool.name, work, on_failure=lambda failure: self._fail(pool, failure)))

    def _verdict(self, pool: Pool, count: int, *, kind: str = "", strike: bool = True) -> Failure | None:
        """Why the pool cannot have `count` nodes per zone; None: it may, and its hosts are claimed."""
        others = [other for other in self._pools.values() if other is not pool]

        def used(key: str) -> int:
            return sum(other.claimed_hosts for other in others if key in self._draws_on(other))

        failure = self._operation_fault(kind, pool) if kind else None
        if failure is None and count == 0:
            failure = size_failure(pool.message, pool.shape, count)
        elif failure is None:
            failure = creation_failure(pool.message, pool.shape, count, settings=self.settings, hosts_used=used)
            failure = failure or self._stockout(pool, count, strike=strike)
        if failure is None:
            pool.claimed_hosts = count * len(pool.shape.zones)
        return failure

    def _stockout(self, pool: Pool, count: int, *, strike: bool) -> Failure | None:
        for zone in pool.shape.zones:
            fault = self.faults.stockout(zone=zone, machine=pool.shape.machine_type, strike=strike)
            if fault is not None:
                nodes = min(fault.nodes, count - 1)
                return stockout_failure(project=self.settings.project, zone=zone, hosts=count, nodes=nodes)
        return None

    def _operation_fault(self, kind: str, pool: Pool) -> Failure | None:
        zone = pool.shape.zones[0]
        return self.faults.operation_failure(kind, pool=pool.name, zone=zone, machine=pool.shape.machine_type)

    def _draws_on(self, pool: Pool) -> set[str]:
        reservation = reservation_of(pool.message, self.settings)
        return {reservation} if reservation else {f"{zone}/{pool.shape.machine_type}" for zone in pool.shape.zones}

    async def _resize(self, pool: Pool, count: int) -> None:
        """Each zone gets `count` nodes."""
        for zone in pool.shape.zones:
            present = [instance for instance in pool.instances if instance.zone == zone]
            await self._fleet.remove(pool, present[count:])
        missing = count - len(pool.instances) // len(pool.shape.zones)
        await self._fleet.add(pool, max(0, missing))
        pool.claimed_hosts = len(pool.instances)

    def _fail(self, pool: Pool, failure: Failure) -> None:
        pool.claimed_hosts = len(pool.instances)
        pool.message.status = _Status[failure.pool_status]
        pool.message.status_message = failure.message
        pool.message.conditions = [build_condition(failure)]

    def _check_cluster(self, path: str) -> None:
        if path != self.settings.cluster_path:
            raise not_found(path)

    def _pool(self, path: str) -> Pool:
        cluster, _, name = path.partition("/nodePools/")
        self._check_cluster(cluster)
        return self._pool_named(name)

    def _pool_named(self, name: str) -> Pool:
        if name not in self._pools:
            raise GkeError(Code.NOT_FOUND, f"Not found: {self.settings.pool_path(name)}.")
        return self._pools[name]

    def _etag(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"


def _copy(message: Any) -> Any:
    return type(message)(message)
