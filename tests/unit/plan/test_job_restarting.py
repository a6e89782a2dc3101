"""Between two attempts: what must be gone, what is kept, given back or billed; suspend and resume."""

import pytest

from tests.builders import (
    NOW,
    a_job,
    a_pod,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    at,
    some_pods,
)
from tests.unit.plan.job_cases import (
    CLUSTER,
    CREATE,
    PAIR,
    PART,
    RC,
    READY,
    SUBMISSION,
    WHOLE,
    Case,
    check,
    failed,
    running,
)
from tests.unit.plan.views import Seen
from torchtpu_operator.api import JobPhase, Reason
from torchtpu_operator.api.job_status import JobSlice, JobUsage
from torchtpu_operator.plan.allocation import Wait

CASES = {
    # --- the next attempt
    "the old RayCluster goes first": Case(
        given=a_job().running().ended().holding(READY),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        want=Seen(phase="Restarting", reason="WaitingForOldPods", do=(f"DeleteRayCluster {RC}",), look=2.0),
    ),
    "an old RayCluster whose uid was never recorded goes too": Case(
        given=a_job().starting().ended().holding(READY),
        slices=(READY,),
        cluster=CLUSTER,
        want=Seen(phase="Restarting", do=(f"DeleteRayCluster {RC}",), look=2.0),
    ),
    "old pods still terminate: attempts never overlap": Case(
        given=a_job().running().ended().holding(READY),
        slices=(READY,),
        pods=(a_pod(terminating=True),),
        want=Seen(phase="Restarting", reason="WaitingForOldPods", look=5.0),
    ),
    "old pods on lost nodes are taken away by force: nobody else confirms": Case(
        given=a_job().running().ended().holding(READY),
        slices=(READY,),
        pods=(a_pod(terminating=True, lost_node=True),),
        want=Seen(phase="Restarting", reason="WaitingForOldPods", do=("ForceDeletePod s0-0",), look=5.0),
    ),
    "all is clear but the back-off runs": Case(
        given=a_job().running().ended(since=-5).status(next_attempt_at=at(5)).holding(READY),
        slices=(READY,),
        want=Seen(phase="Restarting", look=5.0),
    ),
    "all is clear: the next attempt, on the same slice": Case(
        given=a_job().running().ended().holding(READY),
        slices=(READY,),
        want=Seen(phase="Starting", reason="RayClusterStarting", do=CREATE, tell=("AttemptStarted",)),
        status={
            "attempt.number": 2,
            "attempt.start_reason": "HostLost",
            "attempt.ray_cluster_uid": "",
            "start_time": at(-50),
        },
    ),
    "a namesake of the old RayCluster that is somebody else's neither blocks nor is touched": Case(
        given=a_job().running().ended().holding(READY),
        slices=(READY,),
        cluster=a_ray_cluster(uid="other", owner="somebody"),
        want=Seen(phase="Starting", reason="RayClusterStarting", do=CREATE, tell=("AttemptStarted",)),
    ),
    "the slice was lost too: another one is awaited": Case(
        given=a_job().running().ended().holding(READY),
        slices=(a_slice().failed(),),
        want=Seen(phase="Restarting", reason="WaitingForSlices", tell=("SliceLost",)),
        status={"demand.sequence": (1,), "usage.chip_seconds": 0},
    ),
    "one of two slices cannot be had here: the other is given back, under the next number": Case(
        given=PAIR.demanding(),
        slices=(PART,),
        wait=Wait(reason=Reason.OFFERS_EXHAUSTED, message="od in us-east5-a: Stockout", give_back=True),
        want=Seen(phase="Pending", reason="OffersExhausted", tell=("SliceReleased",), look=14400.0),
        status={"demand.slices": 2, "demand.sequence": (1, 0)},
    ),
    "what was given back is not given back twice": Case(
        given=PAIR.demanding(sequence=(1, 0)),
        slices=(PART,),
        wait=Wait(reason=Reason.OFFERS_EXHAUSTED, message="od in us-east5-a: Stockout", give_back=True),
        want=Seen(phase="Pending", reason="OffersExhausted", look=14400.0),
        status={"demand.sequence": (1, 0)},
    ),
    "nothing is given back under pods of the attempt before": Case(
        given=PAIR.running().ended().holding(PART),
        slices=(PART,),
        pods=some_pods(4),
        wait=Wait(reason=Reason.OFFERS_EXHAUSTED, message="od in us-east5-a: Stockout", give_back=True),
        want=Seen(phase="Restarting", reason="OffersExhausted", look=5.0),
        status={"demand.sequence": (0, 0)},
    ),
    "no sign of life for too long: a failure of its own name": running(
        **failed(result={"reason": "NoProgress", "rank": 5, "exitCode": 124, "message": "no rank printed a line"}),
        want=Seen(
            phase="Finishing",
            reason="NoProgress",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptFailure",),
            look=1.0,
        ),
        status={"attempt.message": "no rank printed a line", "attempt.failing_rank": 5},
    ),
    "a priced slice is dropped: its chip-seconds and their cost are the job's": Case(
        given=a_job()
        .running()
        .ended()
        .status(
            slices=(
                JobSlice(
                    index=0, name=READY.name, uid="slice-uid-0", billed_from=at(-3600), price_per_chip_hour="1.25"
                ),
            ),
            usage=JobUsage(chip_seconds=16, estimated_cost="0.5000"),
        ),
        wait=Wait(reason=Reason.OFFERS_EXHAUSTED, message="spot: out of stock"),
        want=Seen(phase="Restarting", reason="OffersExhausted"),
        status={"usage.chip_seconds": 16 + 3600 * 16, "usage.estimated_cost": "20.5000", "slices": ()},
    ),
    "dropped without a price: no cost is made up": Case(
        given=a_job()
        .running()
        .ended()
        .status(slices=(JobSlice(index=0, name=READY.name, uid="slice-uid-0", billed_from=at(-3600)),)),
        wait=Wait(reason=Reason.OFFERS_EXHAUSTED, message="spot: out of stock"),
        want=Seen(phase="Restarting", reason="OffersExhausted"),
        status={"usage.chip_seconds": 3600 * 16, "usage.estimated_cost": None},
    ),
    # --- suspend
    "suspended before anything was asked": Case(
        given=a_job(suspend=True),
        want=Seen(phase="Finishing", reason="Suspended", look=0.0),
    ),
    "suspended while running: the program gets its grace": running(
        given=a_job(suspend=True).running().holding(READY),
        want=Seen(
            phase="Finishing", reason="Suspended", do=(f"StopRayJob {SUBMISSION}",), tell=("AttemptStopped",), look=1.0
        ),
        status={"attempt.stop_requested_at": NOW, "demand.slices": 1},
    ),
    "stopped: the RayCluster goes, demand stays until its workers are gone": Case(
        given=a_job(suspend=True).running().finishing("Suspended", Reason.SUSPENDED).attempt(stop_requested_at=at(-5)),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(a_ray_job("STOPPED")),
        want=Seen(phase="Finishing", reason="Suspended", do=(f"DeleteRayCluster {RC}",), look=2.0),
        status={"demand.slices": 1},
    ),
    "the RayCluster is gone: demand goes to 0, under the next number": Case(
        given=a_job(suspend=True).running().finishing("Suspended", Reason.SUSPENDED).attempt(ray_status="STOPPED"),
        slices=(READY,),
        want=Seen(phase="Finishing", reason="Suspended", look=0.0),
        status={"demand.slices": 0, "demand.sequence": (1,)},
    ),
    "no claim is left: Suspended": Case(
        given=a_job(suspend=True).demanding(0, sequence=(1,)).finishing("Suspended", Reason.SUSPENDED),
        want=Seen(phase="Suspended", reason="Suspended", tell=("Suspended",)),
        status={"slices_ready": "", "finishing": None},
    ),
    "suspended: at rest": Case(
        given=a_job(suspend=True).demanding(0).status(phase=JobPhase.SUSPENDED), want=Seen(phase="Suspended")
    ),
    "resumed: slices are asked for again, the active deadline starts anew": Case(
        given=a_job().running().ended(Reason.SUSPENDED).demanding(0, sequence=(1,)).status(phase=JobPhase.SUSPENDED),
        want=Seen(phase="Pending", reason="WaitingForSlices", tell=("Resumed",)),
        status={"demand.slices": 1, "demand.sequence": (1,), "start_time": None, "attempt.reason": "Resumed"},
    ),
    "edited between a suspend and a resume that nobody saw: the attempt ends, uncounted": running(
        given=a_job().running().holding(READY).spec(entrypoint="python other.py"),
        want=Seen(phase="Pending", reason="Pending", do=("DryRun",), tell=("AttemptStopped",)),
        status={"restarts": 0, "disruptions": 0, "attempt.reason": "SpecChanged"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_job(case: Case) -> None:
    check(case)
