"""The largest numbers that the schema takes: a deadline in a century is a date, and never an exception."""

import pytest

from tests.builders import (
    NOW,
    SETTINGS,
    JobBuilder,
    a_class,
    a_job,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    some_pods,
)
from torchtpu_operator.api import ConditionType, JobPhase, Reason, set_condition
from torchtpu_operator.api.constants import MAX_INT
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job

LARGEST = a_job(
    queue_deadline_seconds=MAX_INT,
    capacity_deadline_seconds=MAX_INT,
    start_deadline_seconds=MAX_INT,
    active_deadline_seconds=MAX_INT,
    log_retention_seconds=MAX_INT,
    ttl_seconds_after_finished=MAX_INT,
    budget={"chipHours": 2**63 - 1},
    failure_policy={
        "maxRestarts": 1_000_000,
        "maxDisruptions": 1_000_000,
        "backoff": {"initialSeconds": 86400, "maxSeconds": 86400},
    },
)
READY = a_slice().claimed_by(LARGEST).ready(since=-100)
COMPLETE = set_condition(
    (), type=ConditionType.COMPLETE, status=True, reason=Reason.SUCCEEDED, observed_generation=1, now=NOW
)
JOBS = {
    "new": LARGEST,
    "waiting": LARGEST.demanding(),
    "starting": LARGEST.starting(cluster_uid="rc-uid"),
    "running": LARGEST.running().holding(READY),
    "broken for the millionth time": LARGEST.running().holding(READY).status(restarts=999_999, disruptions=999_999),
    "finishing": LARGEST.running().demanding(0).finishing().attempt(ray_status="SUCCEEDED"),
    "over": LARGEST.running().ended().status(phase=JobPhase.SUCCEEDED, conditions=COMPLETE, completion_time=NOW),
}


@pytest.mark.parametrize("given", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("says", ["RUNNING", "FAILED"])
def test_the_next_look_is_a_number(given: JobBuilder, says: str) -> None:
    job = given.build()
    needs = job_needs(job, now=NOW)
    observed = JobObserved(
        job=job,
        needs=needs,
        slice_class=a_class().build(),
        slices=(READY.build(),) if given.job.status.slices else (),
        ray_cluster=a_ray_cluster(given) if needs.ray_cluster else None,
        pods=some_pods() if needs.ray_cluster else (),
        ray=a_ray(a_ray_job(says)) if needs.ray else None,
    )
    look = plan_job(observed, now=NOW, settings=SETTINGS).look_again
    assert look is None or 0 <= look < 2**64
