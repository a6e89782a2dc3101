"""Letting go: stop the Ray job, scale the workers to zero, give the slices back; then the job's last condition.

The order is what keeps chips from being given away under a running pod: demand goes to 0 only when the worker groups are
at 0 or the RayCluster is gone, and Complete, Failed and Suspended follow when no claim bears the job's uid.
"""

from datetime import datetime, timedelta

from torchtpu_operator.api import ConditionType, JobPhase, Reason, is_true
from torchtpu_operator.api.conditions import shorten
from torchtpu_operator.api.constants import FINALIZER, MAX_MESSAGE
from torchtpu_operator.api.job_status import AttemptOutcome, Demand
from torchtpu_operator.plan.actions import DeleteRayCluster, RemoveFinalizer, ScaleWorkersToZero, StopRayJob
from torchtpu_operator.plan.job import ending, ttl
from torchtpu_operator.plan.job.cluster import is_ours
from torchtpu_operator.plan.job.draft import Draft, sequence_of
from torchtpu_operator.plan.observed import CallFailed, RaySeen

TERMINAL = {"SUCCEEDED", "FAILED", "STOPPED"}
UNANSWERED_SECONDS = 10  # beyond the grace: a stop that nobody confirms does not keep the chips


def is_over(draft: Draft) -> bool:
    """Complete or Failed: final."""
    conditions = draft.status.conditions
    return is_true(conditions, ConditionType.COMPLETE) or is_true(conditions, ConditionType.FAILED)


def wind_down(draft: Draft) -> None:
    """The next step towards the decided end."""
    finishing = draft.status.finishing
    if finishing is None:
        raise AssertionError("nothing to finish")
    suspended = finishing.outcome == ConditionType.SUSPENDED
    draft.phase(JobPhase.FINISHING, finishing.reason, f"{finishing.message}; giving the slices back")
    ending.close(draft, AttemptOutcome.STOPPED, Reason(finishing.reason), finishing.message)
    keep = draft.spec.log_retention_seconds > 0 and not suspended
    if not _workers_gone(draft, keep_head=keep) or not _given_back(draft):
        return
    attempt = draft.attempt
    draft.set(finishing=None, slices_ready="", retry=None)
    draft.condition(ConditionType.SLICES_READY, False, Reason.SLICE_RELEASED, "the job holds no slice")
    draft.condition(ConditionType.RAY_CLUSTER_READY, False, Reason.RAY_CLUSTER_DELETED, "no worker runs")
    outcome = ConditionType(finishing.outcome)
    draft.condition(outcome, True, Reason(finishing.reason), finishing.message)
    if suspended:
        draft.phase(
            JobPhase.SUSPENDED,
            Reason.SUSPENDED,
            "suspended: nothing runs and nothing is held; set spec.suspend to false to go on",
        )
        draft.event("Normal", Reason.SUSPENDED, "all capacity is given back")
        return
    draft.set(completion_time=draft.now)
    if keep and attempt is not None and attempt.ray_cluster_uid:
        draft.set(head_retained_until=draft.now + timedelta(seconds=draft.spec.log_retention_seconds))
        draft.look_in(draft.spec.log_retention_seconds)
    if draft.spec.ttl_seconds_after_finished is not None:
        draft.look_in(0)
    usage = draft.status.usage
    used = f"{usage.chip_seconds} chip-seconds used"
    if usage.estimated_cost is not None:
        used += f", estimated cost {usage.estimated_cost}"
    if outcome is ConditionType.COMPLETE:
        text = f"{finishing.message}; {used}"
        draft.phase(JobPhase.SUCCEEDED, Reason.SUCCEEDED, text)
        draft.event("Normal", Reason.COMPLETED, text)
    else:
        draft.phase(JobPhase.FAILED, finishing.reason, finishing.message)
        draft.event("Warning", Reason(finishing.reason), finishing.message)


def after(draft: Draft) -> None:
    """The job is over: keep the head for its logs, then delete it; delete the job itself at its time."""
    if ttl.expire(draft):
        return
    until, attempt = draft.status.head_retained_until, draft.attempt
    if until is None or attempt is None:
        return
    cluster = draft.observed.ray_cluster
    if cluster is None and draft.observed.needs.ray_cluster:
        draft.set(head_retained_until=None)
    elif draft.now >= until and isinstance(cluster, dict):
        if not cluster["metadata"].get("deletionTimestamp"):
            draft.act(DeleteRayCluster(name=attempt.ray_cluster, uid=attempt.ray_cluster_uid))
        draft.look_in(5.0)
    else:
        draft.look_at(max(until, draft.now + timedelta(seconds=1)))


def delete(draft: Draft) -> None:
    """The object is being deleted, in whatever state: the same order, and the finalizer last."""
    if FINALIZER not in draft.job.metadata.finalizers:
        return
    ending.close(draft, AttemptOutcome.STOPPED, Reason.DELETING, "the job was deleted")
    draft.phase(JobPhase.FINISHING, Reason.DELETING, "being deleted: giving everything back")
    if _workers_gone(draft, keep_head=False) and _given_back(draft):
        draft.act(RemoveFinalizer())


def _given_back(draft: Draft) -> bool:
    """Demand 0 first; then, once that is written, no claim may be left in a live list: allocation may have been at it."""
    if draft.demand.slices:
        # The next numbers too: a resumed job asks under other names than those of the pools that are going.
        numbers = tuple(sequence_of(draft.demand, index) + 1 for index in range(draft.spec.num_slices))
        draft.set(demand=Demand(slices=0, sequence=numbers))
        draft.look_in(0)
        return False
    if draft.observed.slices:
        names = ", ".join(slice_.metadata.name for slice_ in draft.observed.slices)
        draft.set(message=shorten(f"{draft.status.message}: {names}", MAX_MESSAGE))
        draft.look_in(10.0)
        return False
    if not draft.observed.needs.slices_live:
        draft.look_in(0)
        return False
    return True


def _workers_gone(draft: Draft, *, keep_head: bool) -> bool:
    """Stop what runs, then take the workers away. True: no worker of this job can be on a slice any more."""
    attempt, cluster = draft.attempt, draft.observed.ray_cluster
    if attempt is None:
        return True
    if isinstance(cluster, CallFailed):
        draft.look_in(2.0)
        return False
    if cluster is None:
        return bool(draft.observed.needs.ray_cluster) or not attempt.ray_cluster
    if not is_ours(draft, cluster):
        return True  # a namesake of somebody else's: not ours to touch
    uid = cluster["metadata"]["uid"]
    draft.set_attempt(ray_cluster_uid=uid)  # not yet recorded if the end came between its creation and the next look
    if _still_stopping(draft):
        return False
    groups = cluster["spec"].get("workerGroupSpecs", [])
    at_zero = all(not group.get("replicas") and not group.get("minReplicas") for group in groups)
    if keep_head:
        if not at_zero:
            draft.act(ScaleWorkersToZero(name=attempt.ray_cluster, uid=uid))
            draft.look_in(2.0)
        return at_zero
    if not cluster["metadata"].get("deletionTimestamp"):
        draft.act(DeleteRayCluster(name=attempt.ray_cluster, uid=uid))
    draft.look_in(2.0)
    return at_zero


def _still_stopping(draft: Draft) -> bool:
    """A running program gets its grace: stop is asked for once, then awaited until Ray confirms it or the grace is over."""
    attempt = draft.attempt
    if attempt is None or attempt.submitted_at is None or attempt.ray_status in TERMINAL:
        return False
    ray = draft.observed.ray
    if attempt.stop_requested_at is None:
        draft.set_attempt(stop_requested_at=draft.now)
        draft.act(StopRayJob(ray_cluster=attempt.ray_cluster, submission_id=attempt.submission_id))
        return _wait(draft, since=draft.now)
    if isinstance(ray, RaySeen) and (ray.job is None or ray.job.status in TERMINAL):
        draft.set_attempt(ray_status=ray.job.status if ray.job is not None else "STOPPED")
        return False
    return not draft.overdue(
        attempt.stop_requested_at, draft.spec.stop_grace_period_seconds + UNANSWERED_SECONDS
    ) and _wait(draft, since=attempt.stop_requested_at)


def _wait(draft: Draft, *, since: datetime) -> bool:
    end = since + timedelta(seconds=draft.spec.stop_grace_period_seconds)
    text = f"{draft.status.message}; first the program may stop by itself, until {end:%H:%M:%S} UTC"
    draft.set(message=shorten(text, MAX_MESSAGE))
    draft.look_in(1.0)
    return True
