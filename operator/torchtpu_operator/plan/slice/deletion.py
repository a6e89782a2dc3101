"""Deleting a TPUSlice: its pool goes first, and the object only when GKE says 404."""

from datetime import timedelta

from torchtpu_operator.api import Reason, SlicePhase, SliceStatus
from torchtpu_operator.api.slice import SliceOperation
from torchtpu_operator.plan.actions import DeleteNodePool, Plan, RemoveFinalizer
from torchtpu_operator.plan.observed import CallFailed, FailureClass, OperationSeen, Ownership, PoolSeen
from torchtpu_operator.plan.slice.draft import CREATE, DELETE, Draft

LET_GO_SECONDS = 120  # a claimed slice keeps its pool while the job stops: the default grace of 60 s and 60 s more
UNCERTAIN_SECONDS = 75  # a create without an answer may still arrive for so long: our call's limit and GKE's own


def plan_deletion(draft: Draft) -> Plan[SliceStatus]:
    """The next step of a deletion."""
    slice_ = draft.observed.slice
    if not slice_.spec.node_pool.managed:
        draft.act(RemoveFinalizer())
        return draft.done()
    claim, asked = slice_.spec.claim_ref, slice_.metadata.deletion_timestamp
    if claim is not None and asked is not None and draft.status.failure is None:
        end = asked + timedelta(seconds=LET_GO_SECONDS)
        if draft.now < end and draft.status.phase is not SlicePhase.DELETING:
            text = f"job {claim.namespace}/{claim.name} still holds the slice; its node pool is deleted at {end:%H:%M:%S} UTC at the latest"
            draft.phase(draft.status.phase or SlicePhase.PENDING, Reason.WAITING_FOR_RELEASE, text)
            return draft.done(look_again=(end - draft.now).total_seconds())
    if draft.backing_off():
        return draft.done()
    if not draft.observed.needs.pool:
        return draft.done(look_again=0)
    pool = draft.observed.pool
    if isinstance(pool, CallFailed):
        draft.back_off(pool)
        return draft.done()
    if pool is None:
        return _absent(draft)
    if pool.ownership is Ownership.FOREIGN:
        draft.phase(SlicePhase.DELETING, Reason.NAME_CONFLICT, f"node pool {pool.name} is not ours and stays")
        draft.act(RemoveFinalizer())
        return draft.done()
    return _delete(draft, pool)


def _absent(draft: Draft) -> Plan[SliceStatus]:
    """GKE shows no pool. Let go, unless a create without an answer may still arrive."""
    operation = draft.status.operation
    if operation is not None and operation.type == CREATE and operation.accepted_at is None:
        end = operation.started_at + timedelta(seconds=UNCERTAIN_SECONDS)
        if draft.now < end and draft.status.created_at is None:
            text = f"GKE never answered the request for node pool {draft.name}; watching until {end:%H:%M:%S} UTC that it does not appear"
            draft.phase(SlicePhase.DELETING, Reason.NODE_POOL_DELETING, text)
            return draft.done(look_again=min(10.0, (end - draft.now).total_seconds()))
    if draft.status.created_at is not None:
        draft.event("Normal", Reason.NODE_POOL_DELETED, f"node pool {draft.name} is gone")
    draft.set(operation=None, retry=None)
    draft.phase(SlicePhase.DELETING, Reason.NODE_POOL_DELETED, f"node pool {draft.name} is gone")
    draft.act(RemoveFinalizer())
    return draft.done()


def _delete(draft: Draft, pool: PoolSeen) -> Plan[SliceStatus]:
    operation = draft.status.operation
    seen = draft.observed.operation
    deleting = (
        operation is not None
        and operation.type == DELETE
        and not (isinstance(seen, OperationSeen) and seen.kind == CREATE)
    )
    if isinstance(seen, CallFailed) and seen.failure is not FailureClass.NOT_FOUND:
        draft.back_off(seen)
        return draft.done()
    if deleting and isinstance(seen, OperationSeen) and not seen.done:
        draft.set(retry=None)
        draft.phase(SlicePhase.DELETING, Reason.NODE_POOL_DELETING, f"GKE deletes node pool {pool.name} ({seen.name})")
        return draft.done(look_again=_pace(draft))
    if deleting and isinstance(seen, OperationSeen) and seen.error is not None and pool.status != "STOPPING":
        draft.set(operation=None)
        draft.back_off(seen.error)
        return draft.done()
    if pool.status == "STOPPING":
        draft.set(retry=None)
        draft.phase(SlicePhase.DELETING, Reason.NODE_POOL_DELETING, f"GKE deletes node pool {pool.name}")
        return draft.done(look_again=_pace(draft))
    draft.set(
        operation=SliceOperation(name="", type=DELETE, started_at=draft.now),
        created_at=draft.status.created_at or draft.now,
    )
    draft.phase(SlicePhase.DELETING, Reason.NODE_POOL_DELETING, f"asking GKE to delete node pool {pool.name}")
    draft.act(DeleteNodePool(name=pool.name))
    return draft.done(look_again=1)


def _pace(draft: Draft) -> float:
    operation = draft.status.operation
    age = (draft.now - operation.started_at).total_seconds() if operation is not None else 0.0
    return min(max(1.0, age / 10), 15.0)
