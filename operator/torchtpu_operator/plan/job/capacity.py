"""Waiting for slices: demand, what the job says meanwhile, slices given up, and the deadlines of the wait."""

from torchtpu_operator.api import ConditionType, JobPhase, Reason, SlicePhase, TPUSlice
from torchtpu_operator.api.conditions import shorten
from torchtpu_operator.api.job_status import Demand, JobSlice
from torchtpu_operator.plan.job import usage
from torchtpu_operator.plan.job.draft import Draft, sequence_of

MAX_SLICE_MESSAGE = 256  # bytes; sixteen of them are in one status, and the slice has the whole text
HOLDING_NONE = {JobPhase.SUSPENDED, JobPhase.SUCCEEDED, JobPhase.FAILED}
QUEUE_REASONS = {Reason.WAITING_FOR_LIMITS, Reason.CLASS_PAUSED}

FOR_A_PERSON = {Reason.INVALID_REQUEST, Reason.NO_MATCHING_OFFER}  # waiting alone will not help


def mirror(draft: Draft) -> None:
    """Copy what the job's slices are into its status: its author may not be allowed to read cluster-scoped objects."""
    before = {(each.name, each.uid): each for each in draft.status.slices}
    now_held = tuple(
        _mirror_one(slice_, before.get((slice_.metadata.name, slice_.metadata.uid))) for slice_ in draft.held.values()
    )
    usage.bill_dropped(draft, now_held)
    wanted = draft.spec.num_slices
    ready = sum(1 for slice_ in draft.held.values() if usable(slice_))
    draft.set(slices=now_held, slices_ready="" if draft.status.phase in HOLDING_NONE else f"{ready}/{wanted}")


def _mirror_one(slice_: TPUSlice, before: JobSlice | None) -> JobSlice:
    claim, status = slice_.spec.claim_ref, slice_.status
    billed = before.billed_from if before is not None else None
    if billed is None and claim is not None and status.first_node_at is not None:
        billed = max(claim.claimed_at, status.first_node_at)
    return JobSlice(
        index=claim.slice_index if claim is not None else 0,
        name=slice_.metadata.name,
        uid=slice_.metadata.uid,
        sequence=claim.sequence if claim is not None else 0,
        offer=slice_.spec.offer.name,
        zone=slice_.spec.offer.zone,
        node_pool=slice_.spec.node_pool.name,
        state="Deleting"
        if slice_.metadata.deleting
        else (status.phase.value if status.phase is not None else "Pending"),
        message=shorten(status.message, MAX_SLICE_MESSAGE),
        billed_from=billed,
        price_per_chip_hour=slice_.spec.offer.price_per_chip_hour or "",
    )


def usable(slice_: TPUSlice) -> bool:
    """Ready, and not on its way out."""
    return not slice_.metadata.deleting and slice_.status.phase is SlicePhase.READY


def request(draft: Draft) -> None:
    """Write the demand, and give up slices that will not come: the next number of the sequence asks for another one."""
    demand, count = draft.demand, draft.spec.num_slices
    sequence = [sequence_of(demand, index) for index in range(count)]
    for slice_ in draft.observed.slices:
        claim = slice_.spec.claim_ref
        dead = slice_.metadata.deleting or slice_.status.phase is SlicePhase.FAILED
        if claim is not None and claim.slice_index < count and dead and claim.sequence >= sequence[claim.slice_index]:
            sequence[claim.slice_index] = claim.sequence + 1
            why = slice_.status.message or "it is being deleted"
            draft.event(
                "Warning", Reason.SLICE_LOST, f"slice {claim.slice_index} ({slice_.metadata.name}) is given up: {why}"
            )
    asked = any(
        slice_.status.operation is not None or slice_.status.created_at is not None for slice_ in draft.observed.slices
    )
    first = demand.first_request_at or (draft.now if asked else None)
    draft.set(demand=Demand(slices=count, sequence=tuple(sequence), first_request_at=first))


def give_back(draft: Draft) -> None:
    """Let go of the slices in hand and ask for all of them anew, where waiting with them helps nobody."""
    wait, held = draft.observed.wait, draft.held
    if wait is None or not wait.give_back or not held:
        return
    sequence = [sequence_of(draft.demand, index) for index in range(draft.spec.num_slices)]
    for index, slice_ in held.items():
        claim = slice_.spec.claim_ref
        sequence[index] = claim.sequence + 1 if claim is not None else sequence[index]
    names = ", ".join(slice_.metadata.name for slice_ in held.values())
    draft.set(demand=draft.demand.model_copy(update={"sequence": tuple(sequence)}))
    draft.event("Normal", Reason.SLICE_RELEASED, f"{names} given back: {wait.message}")


def all_ready(draft: Draft) -> bool:
    """Whether every slice is there; if so the wait for capacity is over."""
    ready = [slice_ for slice_ in draft.held.values() if usable(slice_)]
    count = draft.spec.num_slices
    if len(ready) < count:
        return False
    if draft.demand.first_request_at is not None:
        draft.set(demand=draft.demand.model_copy(update={"first_request_at": None}))
    draft.set(queued_at=None)
    shape = draft.status.resolved.shape if draft.status.resolved is not None else ""
    where = ", ".join(dict.fromkeys(slice_.spec.offer.zone for slice_ in ready))
    text = f"{count} of {count} slices ({shape}) are Ready in {where}"
    draft.condition(ConditionType.SLICES_READY, True, Reason.SLICES_READY, text)
    return True


def waiting(draft: Draft, *, restarting: bool) -> None:
    """Phase, message and deadlines while slices are missing."""
    reason, message = _why(draft)
    draft.condition(ConditionType.SLICES_READY, False, reason, message)
    held = bool(draft.held)
    phase = JobPhase.RESTARTING if restarting else JobPhase.PROVISIONING if held else JobPhase.PENDING
    draft.phase(phase, reason, message, stalled=not held and reason in FOR_A_PERSON)
    if queued_too_long(draft, message, queued=reason in QUEUE_REASONS):
        return
    if draft.overdue(draft.demand.first_request_at, draft.spec.capacity_deadline_seconds):
        text = f"no capacity within {draft.spec.capacity_deadline_seconds} s (spec.capacityDeadlineSeconds): {message}"
        draft.finish(ConditionType.FAILED, Reason.CAPACITY_DEADLINE_EXCEEDED, text)


def queued_too_long(draft: Draft, message: str, *, queued: bool) -> bool:
    """The clock of queueDeadlineSeconds: it runs while the job is `queued`, and ends the job."""
    since = (draft.status.queued_at or draft.now) if queued else None
    draft.set(queued_at=since)
    if not draft.overdue(since, draft.spec.queue_deadline_seconds):
        return False
    text = f"waited {draft.spec.queue_deadline_seconds} s (spec.queueDeadlineSeconds): {message}"
    draft.finish(ConditionType.FAILED, Reason.QUEUE_DEADLINE_EXCEEDED, text)
    return True


def _why(draft: Draft) -> tuple[Reason, str]:
    """The slice that holds the job up speaks for it; without one, allocation does."""
    late = [slice_ for slice_ in draft.held.values() if not usable(slice_)]
    if late:
        slice_ = late[0]
        ready = len(draft.held) - len(late)
        lead = f"{ready}/{draft.spec.num_slices} slices Ready; " if draft.spec.num_slices > 1 else ""
        condition = next((each for each in slice_.status.conditions if each.type == ConditionType.RECONCILING), None)
        known = condition is not None and condition.reason in set(Reason)
        reason = Reason(condition.reason) if condition is not None and known else Reason.WAITING_FOR_SLICES
        return reason, f"{lead}slice {slice_.metadata.name}: {slice_.status.message or 'waiting for its node pool'}"
    if draft.observed.wait is not None:
        return draft.observed.wait.reason, draft.observed.wait.message
    return Reason.WAITING_FOR_SLICES, "asking for slices"
