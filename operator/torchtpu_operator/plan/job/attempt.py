"""One attempt: RayCluster, gate, submission, watching. Every step is recorded before the call that it announces."""

import re
from collections.abc import Mapping
from typing import Any

from torchtpu_operator.api import ConditionType, JobPhase, Reason
from torchtpu_operator.api.job_status import Attempt, AttemptOutcome
from torchtpu_operator.api.version_rules import old_ray
from torchtpu_operator.plan import gate, names
from torchtpu_operator.plan.actions import SubmitRayJob
from torchtpu_operator.plan.job import ending, refusal, usage
from torchtpu_operator.plan.job.cluster import is_ours
from torchtpu_operator.plan.job.draft import Draft
from torchtpu_operator.plan.job.manifests import Manifests
from torchtpu_operator.plan.observed import (
    VERSION_MISMATCH,
    CallFailed,
    FailureClass,
    PodSeen,
    RayJobSeen,
    RaySeen,
)
from torchtpu_operator.plan.reasons import explain, reason_of

Json = Mapping[str, Any]

_RELEASE = re.compile(r"[0-9]+\.[0-9]+")  # a build from a branch may call itself anything
UNREACHABLE_SECONDS = 300  # a dashboard that answers nothing for so long is lost, whatever its pod says
START_POLL, EARLY_SECONDS, EARLY_POLL, POLL = 0.5, 60, 1.0, 2.0  # the end of a job is read within 2 s


def begin(draft: Draft) -> None:
    """All slices are Ready: write the attempt down, then make its objects."""
    last = draft.attempt
    number = last.number + 1 if last is not None else 1
    reason = last.reason if last is not None and last.reason else Reason.STARTED.value
    manifests = Manifests.of(draft, attempt=number)
    name = names.ray_cluster_name(draft.job.metadata.name, job_uid=draft.job.metadata.uid, attempt=number)
    draft.set(
        attempt=Attempt(
            number=number,
            start_reason=reason,
            spec_hash=manifests.spec_hash,
            spec_generation=draft.job.metadata.generation,
            ray_cluster=name,
            started_at=draft.now,
        ),
        start_time=draft.status.start_time or draft.now,
        next_attempt_at=None,
        retry=None,
    )
    draft.phase(JobPhase.STARTING, Reason.RAY_CLUSTER_STARTING, f"creating RayCluster {name}")
    draft.condition(ConditionType.RAY_CLUSTER_READY, False, Reason.RAY_CLUSTER_STARTING, f"creating RayCluster {name}")
    draft.event("Normal", Reason.ATTEMPT_STARTED, f"attempt {number}: all slices are Ready, creating RayCluster {name}")
    draft.act(*manifests.create())


def drive(draft: Draft, attempt: Attempt) -> None:
    """The next step of the attempt that is under way."""
    cluster = draft.observed.ray_cluster
    if isinstance(cluster, CallFailed):
        phase = JobPhase.RUNNING if attempt.running_at is not None else JobPhase.STARTING
        text = f"RayCluster {attempt.ray_cluster} cannot be read: {cluster.message}; asked again every 2 s"
        draft.phase(phase, Reason.WAITING_FOR_RAY, text)
        draft.look_in(2.0)
        return
    if not _record_cluster(draft, attempt, cluster):
        return
    attempt = draft.attempt or attempt
    if cluster is None or cluster["metadata"].get("deletionTimestamp"):
        ending.disrupted(
            draft, Reason.RAY_CLUSTER_LOST, f"RayCluster {attempt.ray_cluster} was deleted by somebody else"
        )
        return
    if attempt.submit_recorded_at is None:
        _start(draft, attempt, cluster)
    else:
        _watch(draft, attempt, cluster)


def _record_cluster(draft: Draft, attempt: Attempt, cluster: Json | None) -> bool:
    """Pin the uid of our RayCluster; make it (again) while none is recorded. False: nothing more to do in this pass."""
    if attempt.ray_cluster_uid:
        if cluster is not None and not is_ours(draft, cluster):
            ending.disrupted(
                draft, Reason.RAY_CLUSTER_LOST, f"RayCluster {attempt.ray_cluster} was replaced by somebody else"
            )
            return False
        return True
    if cluster is not None:
        if not is_ours(draft, cluster):
            text = f"a RayCluster {attempt.ray_cluster} exists that is not this job's: delete or rename it"
            draft.finish(ConditionType.FAILED, Reason.NAME_CONFLICT, text)
            return False
        draft.set_attempt(ray_cluster_uid=cluster["metadata"]["uid"])
        draft.set(retry=None)
        return True
    for outcome in draft.observed.outcomes:
        if isinstance(outcome, CallFailed):
            refusal.record(draft, outcome, otherwise=Reason.RAY_CLUSTER_STARTING)
    if _start_overdue(draft, attempt):
        return False
    if draft.observed.slice_class is None and draft.spec.image is None:
        text = "the image comes from the job's TPUSliceClass, which is gone: create it again, or set spec.image"
        draft.phase(JobPhase.STARTING, Reason.CLASS_NOT_FOUND, text)
        draft.look_in(30.0)
    elif not draft.backing_off():
        draft.act(*Manifests.of(draft, attempt=attempt.number).create())
    elif draft.status.retry is not None:
        _starting(draft, Reason(draft.status.retry.reason), draft.status.retry.message)
    return False


def _start_overdue(draft: Draft, attempt: Attempt) -> bool:
    seconds = draft.spec.start_deadline_seconds
    if not draft.overdue(attempt.started_at, seconds):
        return False
    text = (
        f"attempt {attempt.number} did not run within {seconds} s (spec.startDeadlineSeconds): {draft.status.message}"
    )
    ending.stop(draft, Reason.START_DEADLINE_EXCEEDED, text)
    return True


def _start(draft: Draft, attempt: Attempt, cluster: Json) -> None:
    """From the RayCluster to the submission."""
    if _start_overdue(draft, attempt):
        return
    if lost := ending.lost_slice(draft):
        ending.disrupted(draft, Reason.SLICE_LOST, lost)
        return
    if cluster.get("spec", {}).get("suspend"):
        text = f"RayCluster {attempt.ray_cluster} is suspended by somebody else (Kueue?): it is awaited until the start deadline"
        _starting(draft, Reason.CHILD_SUSPENDED, text)
        return
    pods = [pod for pod in draft.observed.pods if pod.attempt == attempt.number]
    if broken := [pod for pod in pods if pod.node_type == "worker" and pod.phase == "Failed"]:
        if refused := next((pod for pod in broken if pod.problem_reason == VERSION_MISMATCH), None):
            text = f"worker pod {refused.name} cannot join: {refused.problem}; give head and workers images with one Ray and Python"
            draft.finish(ConditionType.FAILED, Reason.WORKER_VERSION_MISMATCH, text)
            ending.close(draft, AttemptOutcome.STOPPED, Reason.WORKER_VERSION_MISMATCH, text)
            return
        # KubeRay rebuilds a failed replica several times a second, without back-off: end it here
        why = f"worker pod {broken[0].name} failed before the start: {broken[0].problem or broken[0].problem_reason}"
        if any(pod.lost_node or pod.problem_reason in ending.PLATFORM_ENDS for pod in broken):
            ending.disrupted(draft, Reason.HOST_LOST, why)
        else:
            ending.start_failed(draft, why)
        return
    groups = Manifests.of(draft, attempt=attempt.number).groups
    shape = Manifests.of(draft, attempt=attempt.number).shape
    if missing := gate.pods_missing(groups, pods, shape=shape):
        said = _kuberay_says(cluster)
        reason = refusal.told_by(said) if said is not None else None
        _starting(draft, reason or _pod_reason(pods), said or missing)
        draft.look_in(5.0)
        return
    ray = draft.observed.ray
    if not isinstance(ray, RaySeen):
        said = f": {ray.message}" if isinstance(ray, CallFailed) else ""
        _starting(draft, Reason.WAITING_FOR_RAY, f"all pods are Ready; waiting for the Ray head's API{said}")
        draft.look_in(1.0)
        return
    if wrong := _wrong_version(draft, ray.version):
        draft.finish(ConditionType.FAILED, Reason.RAY_VERSION_UNSUPPORTED, wrong)
        ending.close(draft, AttemptOutcome.STOPPED, Reason.RAY_VERSION_UNSUPPORTED, wrong)
        return
    if missing := gate.ray_missing(groups, ray.nodes, shape=shape):
        _starting(draft, Reason.WAITING_FOR_RAY, missing)
        draft.look_in(0.5)
        return
    _submit(draft, attempt, pods, ray)


def _starting(draft: Draft, reason: Reason, message: str) -> None:
    draft.phase(JobPhase.STARTING, reason, message)
    draft.condition(ConditionType.RAY_CLUSTER_READY, False, reason, message)


def _kuberay_says(cluster: Json) -> str | None:
    """KubeRay's own failure to create pods: quota, a webhook that is down."""
    for condition in cluster.get("status", {}).get("conditions", []):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            return f"KubeRay cannot create the pods ({condition.get('reason')}): {condition.get('message')}"
    return None


def _pod_reason(pods: list[PodSeen]) -> Reason:
    reasons = {pod.problem_reason for pod in pods if not pod.ready}
    if reasons & {"ErrImagePull", "ImagePullBackOff", "InvalidImageName"}:
        return Reason.IMAGE_PULL_FAILED
    if "Unschedulable" in reasons:
        return Reason.POD_UNSCHEDULABLE
    if reasons & {"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}:
        return Reason.CONTAINER_FAILING
    return Reason.RAY_CLUSTER_STARTING


def _wrong_version(draft: Draft, seen: str) -> str | None:
    """The head's real version against what the spec says and what we call."""
    class_ = draft.observed.slice_class
    said = draft.spec.ray_version or (class_.spec.job_defaults.ray_version if class_ is not None else None)
    if said is not None and said != seen:
        return f"spec.rayVersion says {said}, the image runs Ray {seen}: correct one of them"
    old = old_ray(seen, num_slices=draft.spec.num_slices) if _RELEASE.match(seen) else None
    return f"the image runs Ray {seen}: {old}" if old else None


def _submit(draft: Draft, attempt: Attempt, pods: list[PodSeen], ray: RaySeen) -> None:
    """The gate is open: write the intent with the session that it is for, then submit."""
    head = next(pod for pod in pods if pod.node_type == "head")
    groups = Manifests.of(draft, attempt=attempt.number).groups
    draft.set_attempt(
        session_name=ray.session_name,
        head_pod_uid=head.uid,
        submission_id=names.submission_id(draft.job.metadata.uid, attempt=attempt.number),
        replicas=tuple(next((pod.replica for pod in pods if pod.group == group.name), "") for group in groups),
        ray_cluster_ready_at=draft.now,
        submit_recorded_at=draft.now,
    )
    text = f"RayCluster {attempt.ray_cluster} has all hosts; submitting the job"
    draft.condition(
        ConditionType.RAY_CLUSTER_READY,
        True,
        Reason.RAY_CLUSTER_READY,
        f"all hosts of RayCluster {attempt.ray_cluster} are in Ray",
    )
    draft.phase(JobPhase.STARTING, Reason.SUBMITTING, text)
    draft.event(
        "Normal",
        Reason.RAY_CLUSTER_READY,
        f"all hosts of RayCluster {attempt.ray_cluster} are in Ray; submitting the job",
    )
    draft.act(_submission(draft))


def _submission(draft: Draft) -> SubmitRayJob:
    attempt = draft.attempt
    if attempt is None:
        raise AssertionError("a submission needs an attempt")
    manifests = Manifests.of(draft, attempt=attempt.number)
    return SubmitRayJob(
        ray_cluster=attempt.ray_cluster,
        submission_id=attempt.submission_id,
        session_name=attempt.session_name,
        entrypoint=manifests.ray_entrypoint,
        metadata={"torchtpu-job": draft.job.metadata.name, "torchtpu-attempt": str(attempt.number)},
        runtime_env=manifests.runtime_env,
    )


def _watch(draft: Draft, attempt: Attempt, cluster: Json) -> None:
    """The job was submitted, or is about to be."""
    ray = draft.observed.ray
    draft.look_in((START_POLL if attempt.running_at is None else EARLY_POLL) if _young(draft, attempt) else POLL)
    if isinstance(ray, RaySeen) and ray.session_name == attempt.session_name and ray.job is not None:
        if draft.attempt is not None and draft.attempt.submitted_at is None:
            draft.set_attempt(submitted_at=draft.now)
            draft.event("Normal", Reason.JOB_SUBMITTED, f"Ray has accepted {attempt.submission_id}")
            draft.set(retry=None)
        if _read_status(draft, ray.job):
            return
    if ending.active_too_long(draft) or usage.budget_reached(draft):
        return
    if lost := _lost(draft, attempt, cluster):
        ending.disrupted(draft, *lost)
        return
    if not isinstance(ray, RaySeen):
        _unreachable(draft, attempt, ray)
        return
    draft.condition(
        ConditionType.RAY_CLUSTER_READY,
        True,
        Reason.RAY_CLUSTER_READY,
        f"all hosts of RayCluster {attempt.ray_cluster} are in Ray",
    )
    if ray.job is None:
        if attempt.submitted_at is not None:
            ending.disrupted(draft, Reason.HEAD_LOST, "the Ray head no longer knows the job")
            return
        _submit_again(draft, attempt)


def _young(draft: Draft, attempt: Attempt) -> bool:
    since = attempt.submit_recorded_at or draft.now
    return (draft.now - since).total_seconds() < EARLY_SECONDS


def _submit_again(draft: Draft, attempt: Attempt) -> None:
    """The intent is written and the head does not know the job: the call never arrived (same session)."""
    for outcome in draft.observed.outcomes:
        if isinstance(outcome, CallFailed):
            draft.back_off(outcome, reason=Reason.SUBMITTING, message=explain(outcome))
    if _start_overdue(draft, attempt):
        return
    if draft.status.retry is not None and draft.status.retry.reason == Reason.SUBMITTING:
        draft.phase(
            JobPhase.STARTING, Reason.SUBMITTING, f"Ray has not taken the job yet: {draft.status.retry.message}"
        )
    if not draft.backing_off():
        draft.act(_submission(draft))


def _read_status(draft: Draft, job: RayJobSeen) -> bool:
    """Record what Ray says of the job. True: it is over."""
    attempt = draft.attempt
    if attempt is None:
        raise AssertionError("a submitted job has an attempt")
    draft.set_attempt(ray_status=job.status)
    workers = draft.status.resolved.workers if draft.status.resolved is not None else 0
    if job.status == "PENDING":
        if not _start_overdue(draft, attempt):
            draft.phase(JobPhase.STARTING, Reason.SUBMITTING, "Ray has accepted the job and starts its driver")
        return draft.live is None
    if job.status in ("RUNNING", "SUCCEEDED") and attempt.running_at is None:
        draft.set_attempt(running_at=draft.now)
        draft.event("Normal", Reason.JOB_RUNNING, f"attempt {attempt.number} runs: {workers} TPU devices")
    if job.status == "RUNNING":
        draft.phase(JobPhase.RUNNING, Reason.RUNNING, f"running on {workers} TPU devices, attempt {attempt.number}")
        return False
    if job.status == "SUCCEEDED":
        ending.succeeded(draft)
    else:
        ending.judge(draft, job)
    return True


def _lost(draft: Draft, attempt: Attempt, cluster: Json) -> tuple[Reason, str] | None:
    """A loss that ends the attempt while Ray still says RUNNING: a slice, a host, the head, or the cluster suspended."""
    if lost := ending.lost_slice(draft):
        return Reason.SLICE_LOST, lost
    if lost := ending.lost_host(draft, attempt):
        return Reason.HOST_LOST, lost
    if lost := ending.lost_head(draft, attempt):
        return Reason.HEAD_LOST, lost
    if cluster.get("spec", {}).get("suspend"):
        return Reason.CHILD_SUSPENDED, f"RayCluster {attempt.ray_cluster} was suspended by somebody else"
    return None


def _unreachable(draft: Draft, attempt: Attempt, ray: CallFailed | None) -> None:
    """No answer is no verdict: say so, and give up only after minutes."""
    said = ray.message if ray is not None else "not asked yet"
    if ray is not None and ray.failure is FailureClass.PERMISSION:
        said = f"{reason_of(ray)}: {said}"
    draft.condition(
        ConditionType.RAY_CLUSTER_READY, False, Reason.WAITING_FOR_RAY, f"the Ray head does not answer: {said}"
    )
    since = next(
        each.last_transition_time for each in draft.status.conditions if each.type == ConditionType.RAY_CLUSTER_READY
    )
    silent = (draft.now - since).total_seconds()
    if silent >= UNREACHABLE_SECONDS:
        ending.disrupted(draft, Reason.HEAD_LOST, f"the Ray head did not answer for {UNREACHABLE_SECONDS} s: {said}")
    elif silent >= 10:  # one lost answer is nothing to tell
        phase = JobPhase.RUNNING if attempt.running_at is not None else JobPhase.STARTING
        text = f"the Ray head has not answered since {since:%H:%M:%S} UTC ({said}); it counts as lost after {UNREACHABLE_SECONDS} s"
        draft.phase(phase, Reason.WAITING_FOR_RAY, text)
