"""The faults of the simulated GKE by name, for `sim fault`."""

import asyncio

from google.cloud import container_v1 as gke

from sim.faults import FaultError, FaultRegistry
from sim.gke.cluster_manager import ClusterManager
from sim.gke.creation_failures import Failure
from sim.gke.errors import Code, GkeError
from sim.gke.faults import Fault, HungDeletion, LostAnswer, OperationFault, Refusal, Silence, SlowCreate, Stockout

FOREVER = ""
"""Default of `times` and `seconds`: until gke-clear."""


def register_gke_faults(registry: FaultRegistry, manager: ClusterManager) -> None:
    """Offer every fault of the GKE API in the registry."""
    commands = _Commands(manager)
    for name, help_text, function in (
        (
            "gke-stockout",
            "Creates find no capacity; their operation fails and the pool stays in ERROR.",
            commands.stockout,
        ),
        (
            "gke-quota",
            "Creates are over quota: refused at once, or (where=operation) by their operation.",
            commands.quota,
        ),
        ("gke-unreachable", "Every call fails: UNAVAILABLE, or (silent=true) no answer at all.", commands.unreachable),
        ("gke-permission-denied", "Calls of a method are refused for lack of rights.", commands.permission_denied),
        ("gke-rate-limit", "Calls of a method are refused with 429.", commands.rate_limit),
        ("gke-refuse", "Calls of a method are refused with any code and message.", commands.refuse),
        ("gke-operation-error", "Accepted operations end with an error.", commands.operation_error),
        ("gke-slow-create", "Creates take longer.", commands.slow_create),
        ("gke-answer-lost", "A call takes effect but its answer never arrives.", commands.answer_lost),
        ("gke-hung-delete", "Deleted pools stay in STOPPING.", commands.hung_delete),
        ("gke-forget-operations", "Finished operations are gone: GetOperation says 404.", commands.forget_operations),
        (
            "gke-node-vanish",
            "A host dies without notice; its Node object stays, unless object=gone.",
            commands.node_vanish,
        ),
        ("gke-pool-vanish", "Somebody else deletes a pool behind the operator's back.", commands.pool_vanish),
        ("gke-clear", "End every fault of GKE.", commands.clear),
    ):
        registry.register(name, help_text, function)


class _Commands:
    def __init__(self, manager: ClusterManager) -> None:
        self._manager = manager
        self._timers: set[asyncio.Task[None]] = set()

    async def stockout(self, zone: str = "*", machine: str = "*", times: str = FOREVER, nodes: str = "0") -> str:
        self._add(Stockout(zone=zone, machine=machine, times=_times(times), nodes=_count("nodes", nodes)))
        return f"no capacity for {machine} in {zone}{_often(times)}"

    async def quota(
        self, where: str = "call", metric: str = "TPUS_PER_TPU_FAMILY", limit: str = "0", times: str = FOREVER
    ) -> str:
        region = self._manager.settings.region
        if where == "call":
            text = (
                f"Insufficient quota to satisfy the request: resource '{metric}': project has a quota of '{limit}' "
                f"in region {region}."
            )
            self._add(Refusal(method="CreateNodePool", code=Code.PERMISSION_DENIED, message=text, times=_times(times)))
        elif where == "operation":
            text = f"Quota '{metric}' exceeded. Limit: {limit}.0 in region {region}."
            failure = Failure(code=Code.RESOURCE_EXHAUSTED, message=text, condition="GCE_QUOTA_EXCEEDED")
            self._add(OperationFault(failure=failure, times=_times(times)))
        else:
            raise FaultError(f"where={where!r}: call or operation")
        return f"creates are over quota{_often(times)}: {text}"

    async def unreachable(self, seconds: str = FOREVER, silent: str = "false") -> str:
        self._add(Silence() if _flag("silent", silent) else Refusal(), seconds)
        return "the GKE API cannot be reached" + (f" for {seconds} s" if seconds else "")

    async def permission_denied(self, method: str = "CreateNodePool", times: str = FOREVER) -> str:
        permission = "container.clusters.get" if method.startswith(("Get", "List")) else "container.clusters.update"
        text = f"Required '{permission}' permission for '{self._manager.settings.cluster_path}'."
        self._add(Refusal(method=method, code=Code.PERMISSION_DENIED, message=text, times=_times(times)))
        return f"{method} is refused{_often(times)}: {text}"

    async def rate_limit(self, method: str = "*", times: str = FOREVER) -> str:
        text = "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' (rateLimitExceeded)."
        self._add(Refusal(method=method, code=Code.RESOURCE_EXHAUSTED, message=text, times=_times(times)))
        return f"{method} is throttled{_often(times)}"

    async def refuse(self, method: str, code: str, message: str, times: str = FOREVER) -> str:
        self._add(Refusal(method=method, code=_code(code), message=message, times=_times(times)))
        return f"{method} is refused with {code}{_often(times)}"

    async def operation_error(
        self,
        code: str,
        message: str,
        operation: str = "CREATE_NODE_POOL",
        pool: str = "*",
        condition: str = "",
        status: str = "ERROR",
        nodes: str = "0",
        times: str = FOREVER,
    ) -> str:
        if status not in gke.NodePool.Status.__members__:
            raise FaultError(f"status={status!r}: one of {', '.join(gke.NodePool.Status.__members__)}")
        if condition and condition not in gke.StatusCondition.Code.__members__:
            raise FaultError(f"condition={condition!r}: one of {', '.join(gke.StatusCondition.Code.__members__)}")
        failure = Failure(
            code=_code(code), message=message, condition=condition, pool_status=status, nodes=_count("nodes", nodes)
        )
        self._add(OperationFault(operation=operation, pool=pool, failure=failure, times=_times(times)))
        return f"{operation} of {pool} ends with {code}{_often(times)}"

    async def slow_create(self, extra: str = "60", pool: str = "*", times: str = FOREVER) -> str:
        self._add(SlowCreate(seconds=_seconds("extra", extra), pool=pool, times=_times(times)))
        return f"creates of {pool} take {extra} s more{_often(times)}"

    async def answer_lost(self, method: str = "CreateNodePool", times: str = "1", silent: str = "false") -> str:
        self._add(LostAnswer(method=method, silent=_flag("silent", silent), times=_times(times)))
        return f"answers to {method} are lost{_often(times)}"

    async def hung_delete(self, pool: str = "*", seconds: str = FOREVER) -> str:
        self._add(HungDeletion(pool=pool), seconds)
        return f"deleted pools ({pool}) stay in STOPPING" + (f" for {seconds} s" if seconds else "")

    async def forget_operations(self, operation: str = "") -> str:
        return f"{self._manager.operations.forget(operation)} finished operations are forgotten"

    async def node_vanish(self, node: str = "", pool: str = "", object: str = "stays") -> str:
        if object not in ("stays", "gone"):
            raise FaultError(f"object={object!r}: stays or gone")
        name = node or self._a_node(pool)
        try:
            await self._manager.lose_node(name, keep_object=object == "stays")
        except GkeError as error:
            raise FaultError(f"no host {name!r}") from error
        return f"host {name} is gone"

    async def pool_vanish(self, pool: str) -> str:
        path = self._manager.settings.pool_path(pool)
        try:
            await self._manager.delete_by_another(path)
        except GkeError as error:
            raise FaultError(str(error)) from error
        return f"pool {pool} is being deleted by somebody else"

    async def clear(self) -> str:
        return f"{self._manager.faults.clear()} faults of GKE ended"

    def _a_node(self, pool: str) -> str:
        names = [pool] if pool else list(self._manager.pools)
        for name in names:
            if name in self._manager.pools and self._manager.nodes_of(name):
                return self._manager.nodes_of(name)[0]
        raise FaultError(f"no node pool {pool!r} with nodes" if pool else "no node pool has nodes")

    def _add(self, fault: Fault, seconds: str = FOREVER) -> None:
        faults = self._manager.faults
        if not seconds:
            faults.add(fault)
            return
        after = _seconds("seconds", seconds)
        faults.add(fault)

        async def end() -> None:
            await faults.sleep(after)
            faults.remove(fault)

        task = asyncio.create_task(end())
        self._timers.add(task)
        task.add_done_callback(self._timers.discard)


def _times(text: str) -> int | None:
    return _count("times", text, least=1) if text else None


def _count(name: str, text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise FaultError(f"{name}={text!r}: a whole number from {least}")
    return int(text)


def _seconds(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise FaultError(f"{name}={text!r}: seconds, such as 2.5") from error


def _flag(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise FaultError(f"{name}={text!r}: true or false")
    return text == "true"


def _code(name: str) -> Code:
    if name not in Code.__members__:
        raise FaultError(f"code={name!r}: one of {', '.join(Code.__members__)}")
    return Code[name]


def _often(times: str) -> str:
    return f", {times} times" if times else ""
