"""A job that runs: what is read, what counts as a loss, what as a failure."""

import pytest

from tests.builders import (
    NOW,
    a_failure,
    a_job,
    a_pod,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    at,
)
from tests.unit.plan.job_cases import RC, READY, SUBMISSION, WHOLE, Case, check, failed, lost, running
from tests.unit.plan.views import Seen
from torchtpu_operator.runner.constants import REASON_HOST_LOST

CASES = {
    # --- running
    "running well": running(),
    "running for a while: looked at every two seconds": running(
        given=a_job().running(since=-600).holding(READY), want=Seen(phase="Running", reason="Running", look=2.0)
    ),
    "one look at the head fails: nothing to tell": running(
        ray=a_failure(call="GET /api/version"), want=Seen(phase="Running", look=1.0)
    ),
    "the RayCluster cannot be read: said, nothing is decided": running(
        cluster=a_failure(call="GET RayCluster"), want=Seen(phase="Running", reason="WaitingForRay", look=2.0)
    ),
    "the job was active for too long": running(
        given=a_job(active_deadline_seconds=30).running(since=-40).holding(READY),
        want=Seen(
            phase="Finishing",
            reason="ActiveDeadlineExceeded",
            do=(f"StopRayJob {SUBMISSION}",),
            tell=("AttemptStopped",),
            look=1.0,
        ),
    ),
    "the active deadline also ends a job that restarts": Case(
        given=a_job(active_deadline_seconds=30).running(since=-40).ended(),
        want=Seen(phase="Finishing", reason="ActiveDeadlineExceeded", look=0.0),
    ),
    "succeeded just before the active deadline was noticed": running(
        given=a_job(active_deadline_seconds=30).running(since=-40).holding(READY),
        ray=a_ray(a_ray_job("SUCCEEDED")),
        want=Seen(
            phase="Finishing",
            reason="Succeeded",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptSucceeded",),
            look=1.0,
        ),
    ),
    # --- losses
    "the slice is degraded": lost("SliceLost", slices=(a_slice().degraded(),)),
    "the slice is being deleted": lost("SliceLost", slices=(READY.deleted(),)),
    "the slice is gone": lost("SliceLost", slices=()),
    "a worker pod is gone": lost("HostLost", pods=WHOLE[:-1]),
    "a worker pod failed": lost("HostLost", pods=(*WHOLE[:-1], a_pod(host=3, phase="Failed", ready=False))),
    "a worker pod leaves": lost("HostLost", pods=(*WHOLE[:-1], a_pod(host=3, terminating=True))),
    "a worker's node is lost": lost("HostLost", pods=(*WHOLE[:-1], a_pod(host=3, lost_node=True))),
    "a worker was rebuilt by KubeRay: another incarnation is not the slice that was gated": lost(
        "HostLost", pods=(*WHOLE[:-1], a_pod("new", host=3, replica="s0-zzzzz"))
    ),
    "the head pod was replaced": lost("HeadLost", pods=(a_pod(node_type="head", uid="head-2"), *WHOLE[1:])),
    "the head's container restarted": lost("HeadLost", ray=a_ray(session="session_2")),
    "the head has forgotten the job": lost("HeadLost", ray=a_ray()),
    "the RayCluster is deleted by somebody": lost("RayClusterLost", cluster=None, pods=()),
    "the RayCluster is being deleted by somebody": lost("RayClusterLost", cluster=a_ray_cluster(deleting=True)),
    "the RayCluster was replaced by somebody": lost("RayClusterLost", cluster=a_ray_cluster(uid="other")),
    "the RayCluster was suspended by somebody": lost("ChildSuspended", cluster=a_ray_cluster(suspend=True)),
    "disrupted too often": running(
        given=a_job(failure_policy={"max_disruptions": 1}).running().holding(READY).status(disruptions=1),
        pods=WHOLE[:-1],
        want=Seen(
            phase="Finishing",
            reason="DisruptionsExhausted",
            do=(f"StopRayJob {SUBMISSION}",),
            tell=("AttemptDisruption",),
            look=1.0,
        ),
        status={"disruptions": 1},
    ),
    # --- failures, judged
    "Ray says FAILED: first it is seen whether a host was lost": running(
        **failed(since=None, message="exit code 1"),
        want=Seen(phase="Running", reason="Classifying", look=1.0),
        status={"attempt.failed_seen_at": NOW, "restarts": 0, "disruptions": 0},
    ),
    "FAILED, and a host is lost within the minute: a disruption": lost(
        "HostLost", **failed(since=-20), pods=(*WHOLE[:-1], a_pod(host=3, lost_node=True))
    ),
    "FAILED, and the runner says that Ray lost an actor: a disruption at once": lost(
        "HostLost", **failed(since=None, result={"reason": REASON_HOST_LOST, "message": "rank 3 vanished"})
    ),
    "FAILED, and Ray's own supervisor died: a disruption at once": lost(
        "HostLost", **failed(since=None, error_type="JOB_SUPERVISOR_ACTOR_DIED", message="died")
    ),
    "FAILED for a minute and no loss: the program's fault; the job ends without restarts": running(
        **failed(result={"rank": 3, "exitCode": 7, "lastLines": ["ValueError: x"]}),
        want=Seen(
            phase="Finishing",
            reason="EntrypointFailed",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptFailure",),
            look=1.0,
        ),
        status={
            "attempt.exit_code": 7,
            "attempt.failing_rank": 3,
            "finishing.outcome": "Failed",
            "finishing.message": "rank 3 ended with exit code 7: ValueError: x",
        },
    ),
    "FAILED, and something was printed: it is kept, when the hosts are gone": running(
        **failed(last_lines=("Traceback", "ValueError: x")),
        want=Seen(
            phase="Finishing",
            reason="EntrypointFailed",
            do=(f"ScaleWorkersToZero {RC}", "CreateObject ConfigMap"),
            tell=("AttemptFailure",),
            look=1.0,
        ),
    ),
    "FAILED, and the runner lost a host: what it printed is kept too": lost(
        "HostLost",
        do=("CreateObject ConfigMap",),
        **failed(since=None, result={"reason": REASON_HOST_LOST, "message": "rank 3 vanished"}, last_lines=("up",)),
    ),
    "FAILED, with a restart left: the next attempt": running(
        given=a_job(failure_policy={"max_restarts": 1}).running().holding(READY).attempt(failed_seen_at=at(-60)),
        ray=a_ray(a_ray_job("FAILED", message="boom")),
        want=Seen(phase="Restarting", reason="EntrypointFailed", tell=("AttemptFailure",), look=0.0),
        status={"restarts": 1, "disruptions": 0},
    ),
    "FAILED after the last restart": running(
        given=a_job(failure_policy={"max_restarts": 1})
        .running()
        .holding(READY)
        .attempt(failed_seen_at=at(-60))
        .status(restarts=1),
        ray=a_ray(a_ray_job("FAILED", message="boom")),
        want=Seen(
            phase="Finishing",
            reason="RestartsExhausted",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptFailure",),
            look=1.0,
        ),
    ),
    "an exit code that the policy ignores is a disruption": running(
        given=a_job(
            failure_policy={"rules": ({"action": "Ignore", "on_exit_codes": {"operator": "In", "values": (42,)}},)}
        )
        .running()
        .holding(READY)
        .attempt(failed_seen_at=at(-60)),
        ray=a_ray(a_ray_job("FAILED", result={"rank": 0, "exitCode": 42})),
        want=Seen(phase="Restarting", reason="EntrypointFailed", tell=("AttemptDisruption",), look=0.0),
        status={"restarts": 0, "disruptions": 1},
    ),
    "an exit code that the policy fails at ends the job, whatever restarts are left": running(
        given=a_job(
            failure_policy={
                "max_restarts": 5,
                "rules": ({"action": "Fail", "on_exit_codes": {"operator": "NotIn", "values": (42,)}},),
            }
        )
        .running()
        .holding(READY)
        .attempt(failed_seen_at=at(-60)),
        ray=a_ray(a_ray_job("FAILED", result={"rank": 0, "exitCode": 1})),
        want=Seen(
            phase="Finishing",
            reason="EntrypointFailed",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptFailure",),
            look=1.0,
        ),
    ),
    "somebody stopped the Ray job by hand": running(
        **failed("STOPPED"),
        want=Seen(
            phase="Finishing", reason="JobStopped", do=(f"ScaleWorkersToZero {RC}",), tell=("AttemptFailure",), look=1.0
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_job(case: Case) -> None:
    check(case)
