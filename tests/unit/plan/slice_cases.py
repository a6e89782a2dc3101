"""What is seen of a slice, and what is to be decided: the cases of the slice planner's tables."""

from dataclasses import dataclass
from typing import Any

from tests.builders import (
    NOW,
    SETTINGS,
    SliceBuilder,
    a_failure,
    a_job,
    a_slice,
    at,
)
from tests.unit.plan.views import Seen, seen
from torchtpu_operator.plan import retry
from torchtpu_operator.plan.actions import Plan
from torchtpu_operator.plan.observed import (
    CallFailed,
    DemandSeen,
    FailureClass,
    NodeSeen,
    OperationSeen,
    OperationStarted,
    Outcome,
    PoolSeen,
)
from torchtpu_operator.plan.slice import SliceObserved, plan_slice, slice_needs

POOL = a_slice().name
UID = a_slice().slice.metadata.uid
WANTED = DemandSeen(uid=a_job().job.metadata.uid, slices=1, sequence=(0,))
CREATED = OperationStarted(name="operation-1", kind="CREATE_NODE_POOL")


def after(failure: FailureClass, *, count: int = 1) -> float:
    """Seconds until the next try, in whole seconds as a status keeps them."""
    return float(int(max(1.0, retry.delay(a_failure(failure), count=count, uid=UID))))


@dataclass(frozen=True, kw_only=True)
class Case:
    given: SliceBuilder
    pool: PoolSeen | CallFailed | None = None
    operation: OperationSeen | CallFailed | None = None
    nodes: tuple[NodeSeen, ...] = ()
    claimant: DemandSeen | CallFailed | None = WANTED
    outcomes: tuple[Outcome, ...] = ()
    want: Seen
    late: float = 0.0
    """Seconds between the looks and the plan."""
    status: dict[str, Any] | None = None
    """Fields of the status that matter beside phase and reason, by dotted path."""


def planned(case: Case) -> Plan[Any]:
    slice_ = case.given.build()
    needs = slice_needs(slice_, now=NOW)
    observed = SliceObserved(
        slice=slice_,
        needs=needs,
        pool=case.pool if needs.pool else None,
        operation=case.operation if needs.operation or needs.find_operation else None,
        nodes=case.nodes,
        claimant=case.claimant if needs.claimant else None,
        outcomes=case.outcomes,
    )
    return plan_slice(observed, now=at(case.late), settings=SETTINGS)


def check(case: Case) -> None:
    """The plan, and the fields of the status that the case names, are what is wanted."""
    plan = planned(case)
    status = {path: _at(plan.status, path) for path in case.status or {}}
    assert (seen(plan), status) == (case.want, case.status or {})


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value
