"""budget.chipHours: a job is stopped so that grace and release still fit, and never for nothing."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.builders import (
    JOB_UID,
    NOW,
    SETTINGS,
    JobBuilder,
    a_class,
    a_job,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    at,
    some_pods,
)
from tests.unit.plan.views import Seen, seen
from torchtpu_operator.api import JobPhase
from torchtpu_operator.api.job_status import JobUsage
from torchtpu_operator.plan.actions import Plan
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job

READY = a_slice().ready(since=-3600)
RESERVE = 16 * (60 + 60)
"""Chip-seconds that stopping 16 chips may take: the grace of 60 s, and 60 s for the release."""
SUBMISSION = f"{JOB_UID}-1"


@dataclass(frozen=True, kw_only=True)
class Case:
    given: JobBuilder
    says: str = "RUNNING"
    """Of the Ray job."""
    used: int = 0
    """Chip-seconds of slices that the job has given up before."""
    want: Seen
    message: str = ""
    slices: tuple[Any, ...] = field(default=(READY,))
    cluster: bool = True


def running(hours: int | str, *, since: float) -> JobBuilder:
    """Running on 16 chips that are billed since then."""
    job = a_job(budget={"chipHours": hours}).running().holding(READY)
    (held,) = job.job.status.slices
    return job.status(slices=(held.model_copy(update={"billed_from": at(since)}),))


def planned(case: Case) -> Plan[Any]:
    usage = JobUsage(chip_seconds=case.used)
    job = case.given.status(usage=usage).build()
    needs = job_needs(job, now=NOW)
    observed = JobObserved(
        job=job,
        needs=needs,
        slice_class=a_class().build(),
        slices=tuple(each.build() for each in case.slices),
        ray_cluster=a_ray_cluster() if needs.ray_cluster and case.cluster else None,
        pods=some_pods() if needs.ray_cluster and case.cluster else (),
        ray=a_ray(a_ray_job(case.says)) if needs.ray else None,
    )
    return plan_job(observed, now=NOW, settings=SETTINGS)


STOPPED = Seen(
    phase="Finishing",
    reason="BudgetExhausted",
    do=(f"StopRayJob {SUBMISSION}",),
    tell=("AttemptStopped",),
    look=1.0,
)
CASES = {
    "far from its budget": Case(
        given=running(100, since=-3600), want=Seen(phase="Running", reason="Running", look=1.0)
    ),
    "a second before it must stop": Case(
        given=running(16, since=-(3600 - 120 - 1)), want=Seen(phase="Running", reason="Running", look=1.0)
    ),
    "at the moment in which grace and release still fit": Case(
        given=running(16, since=-(3600 - 120)),
        want=STOPPED,
        message="55680 of 57600 chip-seconds are used (spec.budget.chipHours is 16), and stopping 16 chips may take 1920 "
        "more; giving the slices back; first the program may stop by itself, until 12:01:00 UTC",
    ),
    "what earlier attempts used counts": Case(given=running("16.5", since=-1800), used=16 * 1680 + 1800, want=STOPPED),
    "it succeeded in the same moment: that comes first": Case(
        given=running(16, since=-3600),
        says="SUCCEEDED",
        want=Seen(
            phase="Finishing",
            reason="Succeeded",
            do=(f"ScaleWorkersToZero {a_ray_cluster()['metadata']['name']}",),
            tell=("AttemptSucceeded",),
            look=1.0,
        ),
    ),
    "reached while it waits for slices: nothing more is asked for": Case(
        given=a_job(budget={"chipHours": 1}).demanding(),
        used=3600 - RESERVE,
        slices=(),
        want=Seen(phase="Finishing", reason="BudgetExhausted", look=0.0),
    ),
    "too small to stop within: nothing is ever asked for": Case(
        given=a_job(budget={"chipHours": "0.5"}).admitted(),
        slices=(),
        want=Seen(phase="Finishing", reason="BudgetExhausted", look=0.0),
        message="0 of 1800 chip-seconds are used (spec.budget.chipHours is 0.5), and stopping 16 chips may take 1920 more; giving the slices back",
    ),
    "suspended: nothing is used, nothing is held against it": Case(
        given=a_job(budget={"chipHours": 1}, suspend=True).demanding(0).status(phase=JobPhase.SUSPENDED),
        used=10_000,
        slices=(),
        want=Seen(phase="Suspended"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan(case: Case) -> None:
    plan = planned(case)
    assert seen(plan) == case.want
    assert plan.status.message == case.message or not case.message


def test_while_it_waits_with_a_slice_in_hand_it_looks_again_in_time() -> None:
    given = a_job(budget={"chipHours": 1}).running().ended().holding(READY)
    (held,) = given.job.status.slices
    given = given.status(
        slices=(held.model_copy(update={"billed_from": at(-100)}),), next_attempt_at=at(500), phase=JobPhase.RESTARTING
    )
    plan = planned(Case(given=given, cluster=False, want=Seen()))
    assert plan.look_again == pytest.approx((3600 - RESERVE - 1600) / 16, abs=1)
