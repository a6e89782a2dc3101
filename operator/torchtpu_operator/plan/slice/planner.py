"""One TPUSlice = one node pool: make it, wait for its nodes, notice losses, delete it until GKE says 404.

The intent (status.operation without a name) is written before the call, so that whoever comes after a crash knows that a
pool may exist. An operation that is done proves nothing: pool and nodes are looked at.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from torchtpu_operator.api import Reason, SlicePhase, SliceStatus
from torchtpu_operator.api.constants import FINALIZER
from torchtpu_operator.api.slice import ReclaimPolicy, SliceNodes, SliceOperation
from torchtpu_operator.plan.actions import AddFinalizer, CreateNodePool, Plan
from torchtpu_operator.plan.node_pool import build_create_node_pool
from torchtpu_operator.plan.observed import (
    CallFailed,
    FailureClass,
    NodeSeen,
    OperationSeen,
    OperationStarted,
    Ownership,
    PoolSeen,
    Settings,
)
from torchtpu_operator.plan.slice.deletion import plan_deletion
from torchtpu_operator.plan.slice.draft import CREATE, Draft
from torchtpu_operator.plan.slice.observed import SliceObserved

MAKING = (SlicePhase.PENDING, SlicePhase.PROVISIONING)
REPAIR_SECONDS = 600  # a claimed slice with a lost host may be repaired by GKE in place for so long

# What a create may meet and still be asked again; anything else ends this slice, and allocation turns to the next offer.
PATIENT = {FailureClass.BUSY, FailureClass.THROTTLED, FailureClass.TRANSIENT, FailureClass.PERMISSION}


def plan_slice(observed: SliceObserved, *, now: datetime, settings: Settings) -> Plan[SliceStatus]:
    """The new status, the calls to make, and when to look again."""
    draft = Draft(observed, now=now, settings=settings)
    if FINALIZER not in observed.slice.metadata.finalizers:
        if observed.slice.metadata.deleting:
            return draft.done()
        draft.act(AddFinalizer())
        return draft.done(look_again=0)
    _record_outcomes(draft)
    draft.count_nodes()
    if observed.slice.metadata.deleting:
        return plan_deletion(draft)
    if draft.problem:
        if draft.status.phase is not SlicePhase.FAILED:
            draft.fail(Reason.INVALID_SPEC, f"{draft.problem}; delete this TPUSlice and make another one")
        return draft.done()
    if draft.backing_off():
        return draft.done()
    if not observed.slice.spec.node_pool.managed and draft.status.phase in (None, *MAKING):
        return _await_nodes(draft)  # an adopted pool is never asked for: its nodes tell
    if draft.status.phase in (None, *MAKING) and not observed.needs.pool:
        return draft.done(look_again=0)  # the back-off ended after the look: not asked is not absent
    steps: dict[SlicePhase | None, Callable[[Draft], Plan[SliceStatus]]] = {
        None: _pending,
        SlicePhase.PENDING: _pending,
        SlicePhase.PROVISIONING: _provisioning,
        SlicePhase.READY: _ready,
        SlicePhase.DEGRADED: _degraded,
        SlicePhase.FAILED: _failed,
        SlicePhase.DELETING: _failed,
    }
    return steps[draft.status.phase](draft)


def _record_outcomes(draft: Draft) -> None:
    """What the calls of the pass before have answered."""
    for outcome in draft.observed.outcomes:
        if isinstance(outcome, OperationStarted):
            operation = draft.status.operation
            begun = operation.started_at if operation is not None else draft.now
            accepted = SliceOperation(
                name=outcome.name, type=outcome.kind, started_at=begun, status="RUNNING", accepted_at=draft.now
            )
            draft.set(operation=accepted, retry=None)
            if outcome.kind == CREATE:
                draft.set(created_at=draft.now)
                draft.event("Normal", Reason.NODE_POOL_REQUESTED, f"GKE makes node pool {draft.name} ({outcome.name})")
        elif isinstance(outcome, CallFailed):
            _record_failure(draft, outcome)
        else:
            draft.set(retry=None)


def _record_failure(draft: Draft, failed: CallFailed) -> None:
    deleting = draft.observed.slice.metadata.deleting
    creating = draft.status.phase in (None, *MAKING)
    if failed.failure is FailureClass.CONFLICT and failed.call not in ("CreateNodePool", "DeleteNodePool"):
        draft.look_now = True  # somebody wrote the object in between; this pass has the new one
    elif deleting or not creating or failed.failure in PATIENT:
        if failed.failure is not FailureClass.TRANSIENT and not deleting:
            # a refusal made nothing; only a missing answer leaves it open
            draft.set(operation=None, phase=SlicePhase.PENDING)
        draft.back_off(failed)
    elif failed.failure is FailureClass.CONFLICT:
        draft.look_now = True  # the name exists: the next look at the pool says whose it is
    else:
        draft.set(operation=None)
        draft.fail_as(failed)


def _pending(draft: Draft) -> Plan[SliceStatus]:
    """Nothing was asked of GKE yet: ask, if the claimant still wants it."""
    observed = draft.observed
    draft.phase(SlicePhase.PENDING, Reason.PENDING, "about to ask GKE for the node pool")
    for look in (observed.pool, observed.claimant):
        if isinstance(look, CallFailed):
            draft.back_off(look)
            return draft.done()
    claim = observed.slice.spec.claim_ref
    if claim is not None:
        seen = observed.claimant
        wanted = (
            seen is not None
            and not isinstance(seen, CallFailed)
            and seen.uid == claim.uid
            and seen.slices > claim.slice_index
            and _sequence(seen.sequence, claim.slice_index) == claim.sequence
        )
        if not wanted:
            draft.phase(SlicePhase.PENDING, Reason.WAITING_FOR_RELEASE, "the job does not want this slice any more")
            return draft.done()
    if isinstance(observed.pool, PoolSeen):
        return _existing_pool(draft, observed.pool)
    return _request(draft)


def _request(draft: Draft) -> Plan[SliceStatus]:
    request = build_create_node_pool(
        draft.observed.slice, installation=draft.settings.installation, parent=draft.settings.gke_parent
    )
    draft.set(operation=SliceOperation(name="", type=CREATE, started_at=draft.now))
    draft.phase(SlicePhase.PROVISIONING, Reason.NODE_POOL_CREATING, f"asking GKE for node pool {draft.name}")
    draft.act(CreateNodePool(request=request))
    return draft.done(look_again=1)


def _existing_pool(draft: Draft, pool: PoolSeen) -> Plan[SliceStatus]:
    """A pool of our name is there before we asked: adopt ours, refuse others, wait for one that goes."""
    if pool.ownership is not Ownership.OURS:
        whose = "was made from another spec" if pool.ownership is Ownership.OTHER_SPEC else "is not ours"
        draft.fail(
            Reason.NAME_CONFLICT, f"node pool {pool.name} exists and {whose}; it is left alone. Rename or delete it"
        )
        return draft.done()
    if pool.status == "STOPPING":
        draft.phase(
            SlicePhase.PENDING, Reason.NODE_POOL_DELETING, f"an earlier node pool {pool.name} is still being deleted"
        )
        return draft.done(look_again=10)
    draft.set(operation=SliceOperation(name="", type=CREATE, started_at=draft.now, accepted_at=draft.now))
    draft.set(created_at=draft.status.created_at or draft.now)
    draft.phase(
        SlicePhase.PROVISIONING, Reason.NODE_POOL_CREATING, f"node pool {pool.name} is there, waiting for its nodes"
    )
    return draft.done(look_again=0)


def _provisioning(draft: Draft) -> Plan[SliceStatus]:
    observed = draft.observed
    for look in (observed.pool, observed.operation):
        if isinstance(look, CallFailed) and look.failure is not FailureClass.NOT_FOUND:
            draft.back_off(look)
            return draft.done()
    if isinstance(observed.operation, OperationSeen):
        _follow(draft, observed.operation)
        if draft.status.phase is SlicePhase.FAILED:
            return draft.done()
    pool = observed.pool
    if pool is None:
        return _pool_absent(draft)
    if isinstance(pool, CallFailed):
        draft.back_off(pool)
        return draft.done()
    if pool.ownership is not Ownership.OURS:
        return _existing_pool(draft, pool)
    draft.set(created_at=draft.status.created_at or draft.now)
    operation = draft.status.operation
    if operation is not None and operation.accepted_at is None:
        draft.set(operation=operation.model_copy(update={"accepted_at": draft.now}))  # it is there: its wait has begun
    operation_over = (
        not isinstance(observed.operation, OperationSeen) or observed.operation.done
    )  # absent or expired: over
    if pool.status in ("ERROR", "RUNNING_WITH_ERROR", "STOPPING") and operation_over:
        if pool.failure is not None:
            draft.fail_as(CallFailed(call="node pool", failure=pool.failure, message=pool.message))
        else:
            draft.fail(Reason.NODE_POOL_BROKEN, f"node pool is {pool.status}: {pool.message}")
        return draft.done()
    return _await_nodes(draft)


def _follow(draft: Draft, seen: OperationSeen) -> None:
    """Keep the operation's name and state; an error in it ends the slice."""
    operation = draft.status.operation
    if operation is None or seen.kind != operation.type:
        return  # of an earlier pool of this name, or a repair
    if seen.error is not None:
        draft.fail_as(seen.error)
        return
    draft.set(
        operation=operation.model_copy(
            update={
                "name": seen.name,
                "status": "DONE" if seen.done else "RUNNING",
                "accepted_at": operation.accepted_at or draft.now,
            }
        )
    )


def _pool_absent(draft: Draft) -> Plan[SliceStatus]:
    """We meant to make it and GKE shows none: the call never arrived, or may still arrive, or somebody deleted it."""
    operation = draft.status.operation
    if operation is not None and operation.accepted_at is not None:
        draft.fail(Reason.SLICE_LOST, f"node pool {draft.name} was deleted while its nodes were awaited")
        return draft.done()
    # A second create of the same name is safe: GKE answers 409 if the first one did arrive. The intent stays in status, so
    # that a deletion still knows that the first one may be under way.
    draft.phase(SlicePhase.PENDING, Reason.PENDING, "asking GKE for the node pool again")
    return draft.done(look_again=0)


def _await_nodes(draft: Draft) -> Plan[SliceStatus]:
    nodes = draft.status.nodes
    if nodes.ready == nodes.desired and len(draft.observed.nodes) == nodes.desired:
        draft.set(operation=None, ready_at=draft.now, retry=None)
        draft.phase(
            SlicePhase.READY, Reason.NODES_READY, f"{nodes.ready} of {nodes.desired} hosts are Ready with all chips"
        )
        draft.event("Normal", Reason.NODES_READY, f"{nodes.desired} hosts of node pool {draft.name} are Ready")
        return draft.done()
    draft.set(retry=None)
    operation = draft.status.operation
    age = (draft.now - operation.started_at).total_seconds() if operation is not None else 0.0
    if operation is not None and operation.status != "DONE":
        text = f"GKE makes node pool {draft.name}: {nodes.ready} of {nodes.desired} hosts are Ready"
        draft.phase(SlicePhase.PROVISIONING, Reason.NODE_POOL_CREATING, text)
    else:
        text = f"{nodes.ready} of {nodes.desired} hosts of node pool {draft.name} are Ready with all chips"
        draft.phase(SlicePhase.PROVISIONING, Reason.WAITING_FOR_NODES, text)
    return draft.done(look_again=min(max(1.0, age / 10), 15.0))


def _ready(draft: Draft) -> Plan[SliceStatus]:
    free = draft.observed.slice.spec.claim_ref is None
    draft.set(released_at=(draft.status.released_at or draft.now) if free else None)
    lost = _lost(draft)
    if lost is None:
        draft.phase(
            SlicePhase.READY,
            Reason.NODES_READY,
            f"{draft.status.nodes.ready} of {draft.status.nodes.desired} hosts are Ready with all chips",
        )
        return draft.done()
    draft.set(degraded_at=draft.now)
    draft.phase(SlicePhase.DEGRADED, Reason.SLICE_DEGRADED, lost)
    draft.event("Warning", Reason.SLICE_DEGRADED, lost)
    return draft.done(look_again=0)


def _degraded(draft: Draft) -> Plan[SliceStatus]:
    since = draft.status.degraded_at or draft.now
    lost = _lost(draft)
    if lost is None:
        draft.set(degraded_at=None)
        draft.phase(SlicePhase.READY, Reason.NODES_READY, "the lost host is back: all hosts are Ready with all chips")
        return draft.done()
    gone = draft.observed.pool is None and draft.observed.needs.pool
    if gone or draft.observed.slice.spec.claim_ref is None:
        draft.fail(Reason.SLICE_LOST, f"{lost}; the node pool is gone" if gone else f"{lost}; nobody holds the slice")
        return draft.done()
    end = since + timedelta(seconds=REPAIR_SECONDS)
    if draft.now >= end:
        draft.fail(Reason.SLICE_LOST, f"{lost}; GKE has not repaired it within {REPAIR_SECONDS} s")
        return draft.done()
    left = (end - draft.now).total_seconds()
    draft.phase(
        SlicePhase.DEGRADED,
        Reason.SLICE_DEGRADED,
        f"{lost}; GKE may repair it until {end:%H:%M:%S} UTC, then it is replaced",
    )
    return draft.done(look_again=min(left, 30.0))


def _failed(draft: Draft) -> Plan[SliceStatus]:
    """Allocation deletes it; one that only kubectl removes is made again in place."""
    if draft.policy is ReclaimPolicy.RETAIN and draft.status.failure is not None:
        draft.phase(SlicePhase.FAILED, Reason(draft.status.failure.reason), draft.status.failure.message)
    return draft.done()


def _lost(draft: Draft) -> str | None:
    nodes: SliceNodes = draft.status.nodes
    here: tuple[NodeSeen, ...] = draft.observed.nodes
    if len(here) < nodes.desired:
        return f"{nodes.desired - len(here)} of {nodes.desired} hosts are gone"
    if leaving := [node.name for node in here if node.terminating]:
        return f"host {leaving[0]} is being terminated by GKE"
    if nodes.ready < nodes.desired:
        return f"{nodes.desired - nodes.ready} of {nodes.desired} hosts are not Ready"
    return None


def _sequence(sequence: tuple[int, ...], index: int) -> int:
    return sequence[index] if index < len(sequence) else 0
