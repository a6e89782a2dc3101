"""Allocation: which job gets which slice. One key, serial over all classes; it alone creates, claims and deletes slices."""

from datetime import datetime

from torchtpu_operator.api import Reason, TorchTPUJob
from torchtpu_operator.plan.actions import Action
from torchtpu_operator.plan.allocation.grant import grant
from torchtpu_operator.plan.allocation.observed import AllocationObserved, AllocationPlan, Wait
from torchtpu_operator.plan.allocation.release import release
from torchtpu_operator.plan.allocation.state import State, shape_of_job
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Settings

RETRY_SECONDS = 2.0
STALE_SECONDS = 0.5  # after a 409: by then the watch has brought what the plan did not know


def plan_allocation(observed: AllocationObserved, *, now: datetime, settings: Settings) -> AllocationPlan:
    """Releases and deletions first, then grants in order; a job that is not wholly granted gets nothing."""
    state = State(observed, now=now, settings=settings)
    released = release(state)
    actions: list[Action] = list(released.actions)
    looks = [max(0.0, (look - now).total_seconds()) for look in released.looks]
    waits: dict[str, Wait] = {}
    taken: set[str] = set()
    keeps: dict[tuple[str, str], TorchTPUJob] = {}
    for job in state.queue():
        got = grant(state, job, leaving=released.leaving, taken=taken)
        if got.wait is not None:
            waits[job.metadata.uid] = _alone(state, job, got.wait, keeps=keeps)
            continue
        actions += got.actions
        taken |= got.taken
        state.granted += got.made
    actions += [delete for name, delete in released.idle.items() if name not in taken]
    looks += [
        max(1.0, (outage.retry_after - now).total_seconds())
        for class_ in state.classes.values()
        for outage in class_.status.offers
        if outage.retry_after is not None and outage.retry_after > now
    ]
    failed = [outcome.failure for outcome in observed.outcomes if isinstance(outcome, CallFailed)]
    if failed:  # the same again at once would be a storm; an event runs it earlier
        stale = all(failure is FailureClass.CONFLICT for failure in failed)
        return AllocationPlan(waits=waits, look_again=min([*looks, STALE_SECONDS if stale else RETRY_SECONDS]))
    return AllocationPlan(actions=tuple(actions), waits=waits, look_again=min(looks) if looks else None)


def _alone(state: State, job: TorchTPUJob, wait: Wait, *, keeps: dict[tuple[str, str], TorchTPUJob]) -> Wait:
    """Of jobs that hold a part and wait for the same chips, only the first keeps its part: else both may wait for ever."""
    held = state.held_by(job)
    if not held or wait.give_back or wait.reason is not Reason.OFFERS_EXHAUSTED:
        return wait
    zone = next(iter(held.values())).spec.offer.zone
    first = keeps.setdefault((zone, shape_of_job(job).machine_type), job)
    if first is job:
        return wait
    text = (
        f"{wait.message}; giving its slices back, since {first.metadata.namespace}/{first.metadata.name} is before it and "
        "waits for the same"
    )
    return Wait(reason=wait.reason, message=text, give_back=True)


def why_waiting(observed: AllocationObserved, job_uid: str, *, now: datetime, settings: Settings) -> Wait | None:
    """Why this job has no slices yet, by the same rules; None: it has them, or gets them next."""
    return plan_allocation(observed, now=now, settings=settings).waits.get(job_uid)
