"""A status stays small, however often a job restarts and however much it is told."""

import json

from tests.builders import (
    NOW,
    SETTINGS,
    a_class,
    a_job,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    at,
    some_pods,
)
from torchtpu_operator.api import JobStatus, Reason
from torchtpu_operator.api.base import to_dict
from torchtpu_operator.plan.allocation import Wait
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job

LIMIT = 32 * 1024
SLICES = 16
LONG = "的" * 5000
BASE = a_job("x" * 52, num_slices=SLICES, failure_policy={"maxRestarts": 100_000, "maxDisruptions": 100_000})
HELD = tuple(
    a_slice(f"{'s' * 37}-{index:02}").claimed_by(BASE, index=index).ready().status(message=LONG[:1024])
    for index in range(SLICES)
)


def size(status: JobStatus) -> int:
    """Bytes in etcd."""
    return len(json.dumps(to_dict(status), ensure_ascii=False, separators=(",", ":")).encode())


def test_a_thousand_restarts_of_sixteen_slices_with_much_to_say() -> None:
    status, largest = JobStatus(), 0
    for number in range(1, 1001):
        failing = BASE.of_status(status).holding(*HELD).running(number).attempt(failed_seen_at=at(-60))
        job = failing.build()
        result = {"rank": 2, "exitCode": 17, "lastLines": [LONG]}
        observed = JobObserved(
            job=job,
            needs=job_needs(job, now=NOW),
            slice_class=a_class().build(),
            slices=tuple(each.build() for each in HELD),
            ray_cluster=a_ray_cluster(failing, attempt=number),
            pods=some_pods(4, groups=SLICES, attempt=number),
            ray=a_ray(a_ray_job("FAILED", attempt=number, message=LONG, result=result)),
        )
        status = plan_job(observed, now=NOW, settings=SETTINGS).status
        largest = max(largest, size(status))
    waiting = BASE.of_status(status).build()
    lost = JobObserved(
        job=waiting,
        needs=job_needs(waiting, now=NOW),
        slice_class=a_class().build(),
        slices=tuple(each.failed().status(message=LONG[:1024]).build() for each in HELD),
        wait=Wait(reason=Reason.OFFERS_EXHAUSTED, message=LONG),
    )
    after = plan_job(lost, now=NOW, settings=SETTINGS).status
    assert (status.restarts, len(status.attempts), len(status.slices)) == (1000, 10, SLICES)
    assert max(largest, size(after)) < LIMIT
