"""The end of a job and its deletion, in every state."""

import pytest

from tests.builders import (
    NOW,
    a_failure,
    a_job,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    at,
    some_pods,
)
from tests.unit.plan.job_cases import CLUSTER, RC, READY, SUBMISSION, Case, check, running
from tests.unit.plan.views import Seen
from torchtpu_operator.api import JobPhase, Reason

CASES = {
    # --- the end
    "succeeded: the workers go at once, the head stays": running(
        ray=a_ray(a_ray_job("SUCCEEDED")),
        want=Seen(
            phase="Finishing",
            reason="Succeeded",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptSucceeded",),
            look=1.0,
        ),
        status={"demand.slices": 1},
    ),
    "succeeded without log retention: the RayCluster goes at once": running(
        given=a_job(log_retention_seconds=0).running().holding(READY),
        ray=a_ray(a_ray_job("SUCCEEDED")),
        want=Seen(
            phase="Finishing", reason="Succeeded", do=(f"DeleteRayCluster {RC}",), tell=("AttemptSucceeded",), look=1.0
        ),
        status={"demand.slices": 1},
    ),
    "the workers' groups are at 0: demand goes to 0, nothing is complete yet": Case(
        given=a_job().running().holding(READY).finishing().attempt(ray_status="SUCCEEDED"),
        slices=(READY,),
        cluster=a_ray_cluster(replicas=0),
        want=Seen(phase="Finishing", reason="Succeeded", look=0.0),
        status={"demand.slices": 0},
    ),
    "demand is 0 and the claim is still there: wait": Case(
        given=a_job()
        .running()
        .finishing()
        .attempt(ray_status="SUCCEEDED")
        .status(demand=a_job().demanding(0).job.status.demand),
        slices=(READY,),
        cluster=a_ray_cluster(replicas=0),
        want=Seen(phase="Finishing", reason="Succeeded", look=10.0),
    ),
    "no claim is left: Complete": Case(
        given=a_job()
        .running()
        .finishing()
        .attempt(ray_status="SUCCEEDED")
        .status(demand=a_job().demanding(0).job.status.demand),
        cluster=a_ray_cluster(replicas=0),
        want=Seen(phase="Succeeded", reason="Succeeded", tell=("Completed",), look=3600.0),
        status={"completion_time": NOW, "head_retained_until": at(3600), "slices_ready": "", "finishing": None},
    ),
    "no claim is left after a failure: Failed": Case(
        given=a_job()
        .running()
        .finishing("Failed", Reason.ENTRYPOINT_FAILED)
        .attempt(ray_status="FAILED")
        .status(demand=a_job().demanding(0).job.status.demand),
        cluster=a_ray_cluster(replicas=0),
        want=Seen(phase="Failed", reason="EntrypointFailed", tell=("EntrypointFailed",), look=3600.0),
    ),
    "failed by a namesake: that RayCluster is not scaled": Case(
        given=a_job()
        .starting()
        .finishing("Failed", Reason.NAME_CONFLICT)
        .status(demand=a_job().demanding(0).job.status.demand),
        cluster=a_ray_cluster(owner="somebody"),
        want=Seen(phase="Failed", reason="NameConflict", tell=("NameConflict",)),
    ),
    "ended between the POST of the RayCluster and its record: it is not forgotten": Case(
        given=a_job().starting().finishing("Failed", Reason.START_DEADLINE_EXCEEDED),
        slices=(READY,),
        cluster=CLUSTER,
        want=Seen(phase="Finishing", reason="StartDeadlineExceeded", do=(f"ScaleWorkersToZero {RC}",), look=2.0),
        status={"attempt.ray_cluster_uid": "rc-uid"},
    ),
    # --- deletion, in every state
    "deleted without our finalizer": Case(given=a_job().without_finalizer().deleted(), want=Seen()),
    "deleted before anything was asked": Case(
        given=a_job().deleted(), want=Seen(phase="Finishing", reason="Deleting", do=("RemoveFinalizer",))
    ),
    "deleted while it waits: demand goes first": Case(
        given=a_job().demanding().deleted(),
        slices=(a_slice().asked("op-1"),),
        want=Seen(phase="Finishing", reason="Deleting", look=0.0),
        status={"demand.slices": 0},
    ),
    "deleted, and a claim is still there: wait": Case(
        given=a_job().demanding(0).deleted(),
        slices=(a_slice().asked("op-1"),),
        want=Seen(phase="Finishing", reason="Deleting", look=10.0),
    ),
    "deleted while starting": Case(
        given=a_job().starting(cluster_uid="rc-uid").deleted(),
        slices=(READY,),
        cluster=CLUSTER,
        pods=some_pods(3),
        want=Seen(
            phase="Finishing", reason="Deleting", do=(f"DeleteRayCluster {RC}",), tell=("AttemptStopped",), look=2.0
        ),
        status={"demand.slices": 1},
    ),
    "deleted while running: stopped first": running(
        given=a_job().running().holding(READY).deleted(),
        want=Seen(
            phase="Finishing", reason="Deleting", do=(f"StopRayJob {SUBMISSION}",), tell=("AttemptStopped",), look=1.0
        ),
    ),
    "deleted, and the head does not answer: the grace is all that it gets": Case(
        given=a_job().running().finishing("Failed", Reason.DELETING).attempt(stop_requested_at=at(-70)).deleted(-70),
        slices=(READY,),
        cluster=CLUSTER,
        ray=a_failure(call="GET /api/version"),
        want=Seen(phase="Finishing", reason="Deleting", do=(f"DeleteRayCluster {RC}",), look=2.0),
    ),
    "deleted while restarting": Case(
        given=a_job().running().ended().deleted(),
        slices=(READY,),
        want=Seen(phase="Finishing", reason="Deleting", look=0.0),
    ),
    "deleted after it succeeded: the head goes too": Case(
        given=a_job()
        .running()
        .finishing()
        .attempt(ray_status="SUCCEEDED")
        .demanding(0)
        .status(phase=JobPhase.SUCCEEDED, finishing=None)
        .deleted(),
        cluster=a_ray_cluster(replicas=0),
        want=Seen(phase="Finishing", reason="Deleting", do=(f"DeleteRayCluster {RC}", "RemoveFinalizer"), look=2.0),
    ),
    "deleted with a namesake RayCluster of somebody else: it stays": Case(
        given=a_job().running().ended().demanding(0).deleted(),
        cluster=a_ray_cluster(uid="other", owner="somebody"),
        want=Seen(phase="Finishing", reason="Deleting", do=("RemoveFinalizer",)),
    ),
    "deleted, and the RayCluster cannot be read: unknown is not gone": Case(
        given=a_job().running().ended().demanding(0).deleted(),
        cluster=a_failure(call="GET RayCluster"),
        want=Seen(phase="Finishing", reason="Deleting", look=2.0),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_job(case: Case) -> None:
    check(case)
