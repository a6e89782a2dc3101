"""What the planners see of GKE."""

from typing import Any

from tests.builders.common import at
from tests.builders.slices import a_slice
from torchtpu_operator.plan.observed import (
    CallFailed,
    FailureClass,
    NodeSeen,
    OperationSeen,
    Ownership,
    PoolSeen,
)


def a_pool(status: str = "RUNNING", *, ownership: Ownership = Ownership.OURS, **fields: Any) -> PoolSeen:
    return PoolSeen(name=a_slice().name, status=status, ownership=ownership, **fields)


def an_operation(
    name: str = "operation-1", *, kind: str = "CREATE_NODE_POOL", done: bool = False, error: CallFailed | None = None
) -> OperationSeen:
    return OperationSeen(name=name, kind=kind, done=done, error=error)


def a_failure(
    failure: FailureClass = FailureClass.TRANSIENT, *, call: str = "CreateNodePool", message: str = "", **fields: Any
) -> CallFailed:
    return CallFailed(call=call, failure=failure, message=message or f"{failure.value} said GKE", **fields)


def some_nodes(count: int = 4, *, ready: int | None = None, chips: int = 4, age: float = 30) -> tuple[NodeSeen, ...]:
    """`count` nodes of which `ready` are Ready."""
    good = count if ready is None else ready
    return tuple(
        NodeSeen(
            name=f"node-{index}",
            uid=f"node-uid-{index}",
            ready=index < good,
            chips=chips if index < good else 0,
            created_at=at(-age),
        )
        for index in range(count)
    )
