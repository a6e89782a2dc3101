"""What the slice reconciler looks at, and when."""

from dataclasses import dataclass
from datetime import datetime

from torchtpu_operator.api import SlicePhase, TPUSlice
from torchtpu_operator.plan.observed import CallFailed, DemandSeen, NodeSeen, OperationSeen, Outcome, PoolSeen


@dataclass(frozen=True, kw_only=True)
class SliceNeeds:
    """Which live looks the next plan needs; everything else comes from the caches."""

    pool: bool = False
    """GetNodePool."""
    operation: str | None = None
    """GetOperation of this name."""
    find_operation: bool = False
    """ListOperations filtered by the pool: its name was lost between the call and the write."""
    claimant: bool = False
    """GET of the job in claimRef."""


@dataclass(frozen=True, kw_only=True)
class SliceObserved:
    slice: TPUSlice
    needs: SliceNeeds
    """What was asked, so that "absent" can be told from "not asked"."""
    pool: PoolSeen | CallFailed | None = None
    """None: GKE says 404 (where it was asked)."""
    operation: OperationSeen | CallFailed | None = None
    nodes: tuple[NodeSeen, ...] = ()
    """Nodes with the label gke-nodepool of this slice."""
    claimant: DemandSeen | CallFailed | None = None
    """None: the job is gone (where it was asked)."""
    outcomes: tuple[Outcome, ...] = ()
    """Answers to the actions of the pass before, in their order."""


def slice_needs(slice_: TPUSlice, *, now: datetime) -> SliceNeeds:
    """What to look at before `plan_slice`; nothing while a back-off runs."""
    status = slice_.status
    if not slice_.spec.node_pool.managed or (status.retry is not None and now < status.retry.at):
        return SliceNeeds()
    operation = status.operation
    known = operation.name if operation is not None and operation.name else None
    lost = operation is not None and not operation.name
    if slice_.metadata.deleting:
        return SliceNeeds(pool=True, operation=known, find_operation=lost)
    if status.phase in (SlicePhase.READY, SlicePhase.FAILED):
        return SliceNeeds()
    if status.phase is SlicePhase.DEGRADED:
        return SliceNeeds(pool=True)
    return SliceNeeds(
        pool=True, operation=known, find_operation=lost, claimant=operation is None or operation.accepted_at is None
    )
