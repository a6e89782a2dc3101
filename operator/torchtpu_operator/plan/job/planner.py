"""One TorchTPUJob: from its first sight to its last condition."""

from datetime import datetime

from torchtpu_operator.api import ConditionType, JobPhase, JobStatus, Reason
from torchtpu_operator.api.constants import FINALIZER
from torchtpu_operator.api.job_status import AttemptOutcome
from torchtpu_operator.plan.actions import AddFinalizer, DeleteRayCluster, ForceDeletePod, Plan
from torchtpu_operator.plan.job import attempt, capacity, ending, finish, usage
from torchtpu_operator.plan.job.admission import admitted
from torchtpu_operator.plan.job.cluster import is_ours
from torchtpu_operator.plan.job.draft import Draft
from torchtpu_operator.plan.job.manifests import Manifests
from torchtpu_operator.plan.job.observed import JobObserved
from torchtpu_operator.plan.observed import CallFailed, Settings


def plan_job(observed: JobObserved, *, now: datetime, settings: Settings) -> Plan[JobStatus]:
    """The new status, the calls to make, and when to look again."""
    job = observed.job
    if job.spec.managed_by != settings.controller_name:
        return Plan(status=job.status)  # hands off: another controller's, by agreement of batch/v1 and Kueue
    draft = Draft(observed, now=now, settings=settings)
    capacity.mirror(draft)
    if job.metadata.deleting:
        finish.delete(draft)
        return draft.done()
    if finish.is_over(draft):
        finish.after(draft)
        return draft.done()
    if FINALIZER not in job.metadata.finalizers:
        draft.act(AddFinalizer())
        return draft.done(look_again=0)
    if draft.status.finishing is None:
        _go_on(draft)
    if draft.status.finishing is not None:
        finish.wind_down(draft)
    return draft.done()


def _go_on(draft: Draft) -> None:
    if draft.spec.suspend:
        if draft.status.phase is not JobPhase.SUSPENDED:
            draft.finish(ConditionType.SUSPENDED, Reason.SUSPENDED, "spec.suspend is true")
        return
    if draft.status.phase is JobPhase.SUSPENDED:
        _resume(draft)
    live = draft.live
    # a submitted attempt may have succeeded in time: its answer comes first
    if (live is None or live.submit_recorded_at is None) and _at_its_end(draft):
        return
    if live is not None:
        if live.spec_hash != Manifests.of(draft, attempt=live.number).spec_hash:
            ending.close(
                draft, AttemptOutcome.STOPPED, Reason.SPEC_CHANGED, "the spec was changed while it was suspended"
            )
            draft.set(next_attempt_at=draft.now)
        else:
            attempt.drive(draft, live)
            return
    if not admitted(draft) or usage.budget_reached(draft):
        return
    _get_slices(draft)


def _at_its_end(draft: Draft) -> bool:
    return ending.active_too_long(draft) or usage.budget_reached(draft)


def _resume(draft: Draft) -> None:
    """A job that goes on starts its active deadline anew, as in batch/v1."""
    draft.set(start_time=None, phase=None)
    draft.condition(ConditionType.SUSPENDED, False, Reason.RESUMED, "spec.suspend is false")
    if draft.attempt is not None:
        draft.set_attempt(reason=Reason.RESUMED.value)
    draft.event("Normal", Reason.RESUMED, "spec.suspend is false: the job goes on")


def _get_slices(draft: Draft) -> None:
    """Ask for slices; when all are Ready and the attempt before has left them, begin the next one."""
    capacity.request(draft)
    restarting = draft.attempt is not None and draft.status.phase is JobPhase.RESTARTING
    cleared = _cleared(draft)
    if not capacity.all_ready(draft):
        if cleared:
            capacity.give_back(draft)
        capacity.waiting(draft, restarting=restarting)
        return
    if not cleared:
        return
    start = draft.status.next_attempt_at
    if start is not None and draft.now < start:
        draft.look_at(start)
        return
    attempt.begin(draft)


def _cleared(draft: Draft) -> bool:
    """Attempts never overlap: the old RayCluster is deleted and no pod of the job is left on any slice."""
    last, cluster = draft.attempt, draft.observed.ray_cluster
    if last is None:
        return True
    if isinstance(cluster, CallFailed):
        draft.look_in(2.0)
        return False
    if cluster is not None and not is_ours(draft, cluster):
        cluster = None  # a namesake of somebody else's neither blocks the next attempt nor is touched
    if cluster is not None:
        if not cluster["metadata"].get("deletionTimestamp"):
            draft.act(DeleteRayCluster(name=last.ray_cluster, uid=cluster["metadata"]["uid"]))
        draft.look_in(2.0)
    old = draft.observed.pods
    for pod in old:
        if pod.lost_node and pod.terminating:  # nobody is left there to confirm the deletion
            draft.act(ForceDeletePod(name=pod.name, uid=pod.uid))
    if old:
        text = (
            f"{last.message}; waiting for {len(old)} old pods of attempt {last.number} to end"
            if last.message
            else f"waiting for {len(old)} old pods to end"
        )
        draft.phase(JobPhase.RESTARTING, Reason.WAITING_FOR_OLD_PODS, text)
        draft.look_in(5.0)
    return cluster is None and not old
