"""How an attempt ends, what it is counted as, and what follows: success, another attempt, or the end of the job."""

import re
from datetime import timedelta
from typing import Final

from torchtpu_operator.api import ConditionType, JobPhase, Reason, SlicePhase
from torchtpu_operator.api.conditions import shorten
from torchtpu_operator.api.constants import MAX_ATTEMPT_HISTORY
from torchtpu_operator.api.failure_policy import ExitCodeOperator, FailureAction
from torchtpu_operator.api.job_status import Attempt, AttemptOutcome, AttemptRecord
from torchtpu_operator.plan.job.draft import Draft
from torchtpu_operator.plan.job.manifests import Manifests
from torchtpu_operator.plan.observed import RayJobSeen, RaySeen
from torchtpu_operator.runner.constants import INFRASTRUCTURE_REASONS, REASON_NO_PROGRESS

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b")  # as Python ends a traceback
JUDGE_SECONDS = 60  # Ray says FAILED seconds after a loss, the node turns NotReady after 50 s

START_TRIES = 3  # starts in a row that may break before the job's own failure policy decides

# Ray's own failures around the driver, before or beside the user's command
RAY_TROUBLE = {
    "JOB_SUPERVISOR_ACTOR_START_TIMEOUT",
    "JOB_SUPERVISOR_ACTOR_START_FAILURE",
    "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE",
    "JOB_SUPERVISOR_ACTOR_DIED",
}


# Why the kubelet or the control plane ends a pod, whatever runs in it
PLATFORM_ENDS = {
    "Evicted",
    "NodeShutdown",
    "NodeLost",
    "Preempting",
    "Shutdown",
    "Terminated",
    "UnexpectedAdmissionError",
}


# --- evidence


def lost_slice(draft: Draft) -> str | None:
    """A slice that is not whole, or that the job holds no longer."""
    held = draft.held
    for index in range(draft.spec.num_slices):
        slice_ = held.get(index)
        if slice_ is None:
            return f"slice {index} is gone"
        if slice_.metadata.deleting:
            return f"slice {slice_.metadata.name} is being deleted"
        if slice_.status.phase in (SlicePhase.DEGRADED, SlicePhase.FAILED):
            return f"slice {slice_.metadata.name}: {slice_.status.message}"
    return None


def lost_host(draft: Draft, attempt: Attempt) -> str | None:
    """A worker pod that the gate has seen and that is gone, failed, leaving, or on a lost node."""
    shape = Manifests.of(draft, attempt=attempt.number).shape
    for group, replica in zip(Manifests.of(draft, attempt=attempt.number).groups, attempt.replicas, strict=False):
        pods = [
            pod
            for pod in draft.observed.pods
            if pod.attempt == attempt.number and pod.group == group.name and pod.replica == replica
        ]
        for pod in pods:
            if pod.lost_node:
                return f"host {pod.host_index} of group {group.name} is lost: node {pod.node} is gone or not Ready"
            if pod.phase in ("Failed", "Succeeded") or pod.terminating:
                return f"host {pod.host_index} of group {group.name} is lost: pod {pod.name} {pod.problem or 'ended'}"
        if len(pods) < shape.hosts:
            return f"{shape.hosts - len(pods)} of {shape.hosts} worker pods of group {group.name} are gone"
    return None


def lost_head(draft: Draft, attempt: Attempt) -> str | None:
    """The head pod or the Ray session that the job was submitted to."""
    heads = [pod for pod in draft.observed.pods if pod.attempt == attempt.number and pod.node_type == "head"]
    if not any(pod.uid == attempt.head_pod_uid for pod in heads):
        return "the Ray head pod was replaced"
    ray = draft.observed.ray
    if isinstance(ray, RaySeen) and ray.session_name != attempt.session_name:
        return "the Ray head restarted"
    return None


# --- verdicts


def succeeded(draft: Draft) -> None:
    text = f"attempt {draft.attempt.number if draft.attempt else 0} succeeded"
    close(draft, AttemptOutcome.SUCCEEDED, Reason.SUCCEEDED, text)
    draft.finish(ConditionType.COMPLETE, Reason.SUCCEEDED, text)


def stop(draft: Draft, reason: Reason, message: str) -> None:
    """A deadline or a budget: the job is over, nothing is counted."""
    close(draft, AttemptOutcome.STOPPED, reason, message)
    draft.finish(ConditionType.FAILED, reason, message)


def active_too_long(draft: Draft) -> bool:
    """Whether the job has been active, over all its attempts, for longer than it may; then it is over."""
    seconds = draft.spec.active_deadline_seconds
    if not draft.overdue(draft.status.start_time, seconds):
        return False
    stop(draft, Reason.ACTIVE_DEADLINE_EXCEEDED, f"the job was active for {seconds} s (spec.activeDeadlineSeconds)")
    return True


def start_failed(draft: Draft, message: str) -> None:
    """A worker ended before the job was submitted: a slow or crowded start may do better, a broken image never will.

    The first START_TRIES - 1 such ends in a row are disruptions, with back-off; the next one is a failure.
    """
    tries = 1
    for record in reversed(draft.status.attempts):
        if record.reason != Reason.CONTAINER_FAILING:
            break
        tries += 1
    if tries < START_TRIES:
        disrupted(draft, Reason.CONTAINER_FAILING, message)
    else:
        failed(draft, Reason.CONTAINER_FAILING, f"{message} ({tries} starts in a row)")


def judge(draft: Draft, job: RayJobSeen) -> None:
    """Ray says FAILED or STOPPED: the user's program, or a loss that Kubernetes shows a minute later?"""
    attempt = draft.attempt
    if attempt is None:
        raise AssertionError("a submitted job has an attempt")
    result = job.result or {}
    draft.set_attempt(
        exit_code=result.get("exitCode", job.exit_code), failing_rank=result.get("rank"),
        failed_seen_at=attempt.failed_seen_at or draft.now,
    )  # fmt: skip
    for found, reason in (
        (lost_slice(draft), Reason.SLICE_LOST),
        (lost_host(draft, attempt), Reason.HOST_LOST),
        (lost_head(draft, attempt), Reason.HEAD_LOST),
    ):
        if found is not None:
            disrupted(draft, reason, found)
            return
    if result.get("reason") in INFRASTRUCTURE_REASONS or job.error_type in RAY_TROUBLE:
        _keep_lines(draft, job, attempt)
        disrupted(draft, Reason.HOST_LOST, result.get("message") or job.message)
        return
    said = _said(job)
    since = attempt.failed_seen_at or draft.now
    if (draft.now - since).total_seconds() < JUDGE_SECONDS:
        end = since + timedelta(seconds=JUDGE_SECONDS)
        draft.look_at(end)
        draft.phase(
            JobPhase.RUNNING,
            Reason.CLASSIFYING,
            f"{said}; judged at {end:%H:%M:%S} UTC, unless a lost host explains it before",
        )
        return
    _keep_lines(draft, job, attempt)
    if result.get("reason") == REASON_NO_PROGRESS:
        failed(draft, Reason.NO_PROGRESS, said)
        return
    reason = Reason.RUNTIME_ENV_FAILED if job.error_type == "RUNTIME_ENV_SETUP_FAILURE" else Reason.ENTRYPOINT_FAILED
    failed(draft, Reason.JOB_STOPPED if job.status == "STOPPED" else reason, said)


def _keep_lines(draft: Draft, job: RayJobSeen, attempt: Attempt) -> None:
    """The head's log goes with the head, and a status has room for one line."""
    if job.last_lines:
        draft.act_last(Manifests.of(draft, attempt=attempt.number).failure(job))


def _said(job: RayJobSeen) -> str:
    result = job.result or {}
    if result.get("rank") is not None and result.get("reason") != REASON_NO_PROGRESS:
        lines = result.get("lastLines") or []
        last = f": {lines[-1]}" if lines else ""
        return f"rank {result['rank']} ended with exit code {result.get('exitCode')}{last}"
    if result.get("message"):
        return str(result["message"])
    code = f" (exit code {job.exit_code})" if job.exit_code is not None else ""
    return f"the Ray job {job.status.lower()}{code}: {_telling_line(job.message) or job.status}"


def _telling_line(text: str) -> str:
    """The line of a driver's output that names the error; Ray goes on printing workers' lines after it."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1]


def disrupted(draft: Draft, reason: Reason, message: str) -> None:
    """The platform broke the attempt: counted apart, never as a failure."""
    close(draft, AttemptOutcome.DISRUPTION, reason, message)
    count, limit = draft.status.disruptions + 1, draft.spec.failure_policy.max_disruptions
    if count > limit:
        text = f"disrupted {count} times (failurePolicy.maxDisruptions is {limit}), last: {message}"
        draft.finish(ConditionType.FAILED, Reason.DISRUPTIONS_EXHAUSTED, text)
        return
    draft.set(disruptions=count)
    _again(draft, reason, message)


def failed(draft: Draft, reason: Reason, message: str) -> None:
    """The user's program, or its image, broke the attempt: the failure policy decides."""
    attempt, policy = draft.attempt, draft.spec.failure_policy
    action = _rule(draft, attempt.exit_code if attempt is not None else None)
    if action is FailureAction.IGNORE:
        disrupted(draft, reason, message)
        return
    close(draft, AttemptOutcome.FAILURE, reason, message)
    if action is FailureAction.FAIL or draft.status.restarts >= policy.max_restarts:
        lead = (
            ""
            if policy.max_restarts == 0 or action is FailureAction.FAIL
            else f"failed after {policy.max_restarts} restarts: "
        )
        last = Reason.RESTARTS_EXHAUSTED if lead else reason
        draft.finish(ConditionType.FAILED, last, lead + message)
        return
    draft.set(restarts=draft.status.restarts + 1)
    _again(draft, reason, message)


def _rule(draft: Draft, exit_code: int | None) -> FailureAction:
    for rule in draft.spec.failure_policy.rules:
        listed = exit_code in rule.on_exit_codes.values
        if exit_code is not None and listed is (rule.on_exit_codes.operator is ExitCodeOperator.IN):
            return rule.action
    return FailureAction.RESTART


def _again(draft: Draft, reason: Reason, message: str) -> None:
    backoff = draft.spec.failure_policy.backoff
    count = draft.status.restarts + draft.status.disruptions
    seconds = min(backoff.max_seconds, backoff.initial_seconds * 2 ** min(count - 1, 20))
    draft.set(next_attempt_at=draft.now + timedelta(seconds=seconds), retry=None)
    draft.condition(ConditionType.RAY_CLUSTER_READY, False, reason, message)
    draft.phase(
        JobPhase.RESTARTING, reason, f"{message}; the next attempt begins in {seconds} s on the slices that are left"
    )
    draft.look_in(0)


_TOLD_AS: Final = {
    AttemptOutcome.SUCCEEDED: Reason.ATTEMPT_SUCCEEDED,
    AttemptOutcome.FAILURE: Reason.ATTEMPT_FAILURE,
    AttemptOutcome.DISRUPTION: Reason.ATTEMPT_DISRUPTION,
    AttemptOutcome.STOPPED: Reason.ATTEMPT_STOPPED,
}


def close(draft: Draft, outcome: AttemptOutcome, reason: Reason, message: str) -> None:
    """Write the attempt's end and add it to the history."""
    attempt = draft.live
    if attempt is None:
        return
    draft.set_attempt(ended_at=draft.now, reason=reason.value, message=shorten(message, 1024))
    record = AttemptRecord(
        number=attempt.number,
        outcome=outcome,
        reason=reason.value,
        message=shorten(message, 256),
        started_at=attempt.started_at,
        running_at=attempt.running_at,
        ended_at=draft.now,
        exit_code=attempt.exit_code,
        failing_rank=attempt.failing_rank,
    )
    draft.set(attempts=(*draft.status.attempts, record)[-MAX_ATTEMPT_HISTORY:])
    good = outcome is AttemptOutcome.SUCCEEDED
    text = message if good else f"attempt {attempt.number}: {message}"
    draft.event("Normal" if good else "Warning", _TOLD_AS[outcome], text)
