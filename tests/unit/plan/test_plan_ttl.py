"""ttlSecondsAfterFinished: when an ended job is deleted, and for whom it is ignored."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.builders import NOW, SETTINGS, JobBuilder, a_job, at
from tests.unit.plan.views import Seen, seen
from torchtpu_operator.api import ConditionType, JobPhase, JobStatus, Reason, set_condition
from torchtpu_operator.plan.actions import Plan
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job

ENDED = "attempt 1 succeeded; 160 chip-seconds used"


@dataclass(frozen=True, kw_only=True)
class Case:
    given: JobBuilder
    want: Seen
    message: str = ENDED
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def ended(*, since: float, message: str = ENDED, **spec: Any) -> JobBuilder:
    """A job that has succeeded, with its head gone."""
    conditions = set_condition(
        (),
        type=ConditionType.COMPLETE,
        status=True,
        reason=Reason.SUCCEEDED,
        message="",
        observed_generation=1,
        now=at(since),
    )
    done = a_job(**spec).running().ended()
    return done.status(phase=JobPhase.SUCCEEDED, message=message, conditions=conditions, completion_time=at(since))


def planned(case: Case) -> Plan[JobStatus]:
    job = case.given.meta(labels=case.labels, annotations=case.annotations).build()
    return plan_job(JobObserved(job=job, needs=job_needs(job, now=NOW)), now=NOW, settings=SETTINGS)


CASES = {
    "without a TTL the job stays": Case(given=ended(since=-1e6), want=Seen(phase="Succeeded")),
    "before its time: looked at again then": Case(
        given=ended(since=-100, ttl_seconds_after_finished=600), want=Seen(phase="Succeeded", look=500.0)
    ),
    "at its time": Case(
        given=ended(since=-600, ttl_seconds_after_finished=600),
        want=Seen(phase="Succeeded", do=("DeleteJob",), tell=("TTLExpired",)),
    ),
    "a TTL of 0: at once": Case(
        given=ended(since=0, ttl_seconds_after_finished=0),
        want=Seen(phase="Succeeded", do=("DeleteJob",), tell=("TTLExpired",)),
    ),
    "Argo CD tracks it: kept, and said": Case(
        given=ended(since=-600, ttl_seconds_after_finished=600),
        annotations={"argocd.argoproj.io/tracking-id": "app:torchtpu.dev/TorchTPUJob:ml/llama"},
        want=Seen(phase="Succeeded", tell=("TTLIgnored",)),
        message=f"{ENDED}; kept: ttlSecondsAfterFinished is ignored, since Argo CD tracks this object "
        "(argocd.argoproj.io/tracking-id) and would create it again, and so run it again: remove the field, or delete "
        "the job at its source",
    ),
    "Flux tracks it: said before its time": Case(
        given=ended(since=-1, ttl_seconds_after_finished=600),
        labels={"kustomize.toolkit.fluxcd.io/name": "apps"},
        want=Seen(phase="Succeeded", tell=("TTLIgnored",)),
        message=f"{ENDED}; kept: ttlSecondsAfterFinished is ignored, since Flux tracks this object "
        "(kustomize.toolkit.fluxcd.io/name) and would create it again, and so run it again: remove the field, or "
        "delete the job at its source",
    ),
    "the TTL was taken away afterwards: the note goes": Case(
        given=ended(since=-600, message=f"{ENDED}; kept: ttlSecondsAfterFinished is ignored, since ..."),
        labels={"helm.toolkit.fluxcd.io/name": "apps"},
        want=Seen(phase="Succeeded"),
    ),
    "a tracked job without a TTL says nothing": Case(
        given=ended(since=-600), labels={"argocd.argoproj.io/instance": "apps"}, want=Seen(phase="Succeeded")
    ),
    "a running job has no TTL": Case(
        given=a_job(ttl_seconds_after_finished=0).demanding(),
        want=Seen(phase="Pending", reason="ClassNotFound", tell=("ClassNotFound",)),
        message="TPUSliceClass default does not exist: create it, or name another one in spec.sliceClassName",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan(case: Case) -> None:
    plan = planned(case)
    found = seen(plan)
    want = Seen(**{**vars(case.want), "reason": case.want.reason or found.reason})
    assert (found, plan.status.message) == (want, case.message)


def test_it_is_said_once_however_long_the_message_is() -> None:
    labels = {"argocd.argoproj.io/instance": "apps"}
    first = planned(
        Case(
            given=ended(since=-9, message="x" * 1024, ttl_seconds_after_finished=5),
            labels=labels,
            want=Seen(),
        )
    )
    job = ended(since=-9, ttl_seconds_after_finished=5).status(
        message=first.status.message, conditions=first.status.conditions
    )
    second = planned(Case(given=job, labels=labels, want=Seen()))
    assert (len(first.status.message), len(first.events), second.status, second.events) == (
        1024,
        1,
        first.status,
        (),
    )
