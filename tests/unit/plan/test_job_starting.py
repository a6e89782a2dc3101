"""An attempt from its first write to the one submission."""

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
    some_pods,
    some_ray_nodes,
)
from tests.unit.plan.job_cases import CLUSTER, CREATE, GATED, RC, READY, SUBMISSION, WHOLE, Case, check
from tests.unit.plan.views import Seen
from torchtpu_operator.plan.observed import FailureClass

CASES = {
    # --- an attempt begins
    "all slices are Ready: the attempt is recorded, then its objects are made": Case(
        given=a_job().demanding().holding(READY),
        slices=(READY,),
        want=Seen(phase="Starting", reason="RayClusterStarting", do=CREATE, tell=("AttemptStarted",)),
        status={
            "attempt.number": 1,
            "attempt.ray_cluster": RC,
            "attempt.ray_cluster_uid": "",
            "attempt.started_at": NOW,
            "attempt.start_reason": "Started",
            "start_time": NOW,
        },
    ),
    "one of two slices is Ready: wait": Case(
        given=a_job(num_slices=2).demanding(),
        slices=(
            a_slice(job=a_job(num_slices=2), index=0).ready(),
            a_slice(job=a_job(num_slices=2), index=1).asked("op-1"),
        ),
        want=Seen(phase="Provisioning", reason="WaitingForSlices", look=14400.0),
        status={"slices_ready": "1/2"},
    ),
    "a crash after the record and before the objects: they are made again": Case(
        given=a_job().starting(), slices=(READY,), want=Seen(phase="Starting", do=CREATE, look=1770.0)
    ),
    "a crash after the POST of the RayCluster: it is found and recorded": Case(
        given=a_job().starting(),
        slices=(READY,),
        cluster=CLUSTER,
        want=Seen(phase="Starting", reason="RayClusterStarting", look=5.0),
        status={"attempt.ray_cluster_uid": "rc-uid", "message": "the Ray head pod is not there yet"},
    ),
    "a RayCluster of that name belongs to somebody else: the job fails, and that one is not touched": Case(
        given=a_job().starting(),
        slices=(READY,),
        cluster=a_ray_cluster(owner="somebody"),
        want=Seen(phase="Finishing", reason="NameConflict", tell=("AttemptStopped",), look=0.0),
    ),
    "KubeRay's webhook refuses the RayCluster: said, tried again": Case(
        given=a_job().starting(),
        slices=(READY,),
        outcomes=(a_failure(FailureClass.TRANSIENT, call="POST rayclusters", message="webhook down"),),
        want=Seen(phase="Starting", reason="RayClusterStarting", tell=("RayClusterStarting",), look=2.0),
    ),
    "the image came from a class that is gone: said, no exception": Case(
        given=a_job(image=None).starting(),
        slices=(READY,),
        slice_class=None,
        want=Seen(phase="Starting", reason="ClassNotFound", look=30.0),
    ),
    # --- the gate
    "pods are missing": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=some_pods(3),
        want=Seen(phase="Starting", reason="RayClusterStarting", look=5.0),
        status={"message": "3 of 4 worker pods of group s0 are Ready"},
    ),
    "an image that cannot be pulled is named": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=(
            *some_pods(3),
            a_pod(host=3, ready=False, phase="Pending", problem_reason="ImagePullBackOff", problem="no such image"),
        ),
        want=Seen(phase="Starting", reason="ImagePullFailed", look=5.0),
        status={"message": "3 of 4 worker pods of group s0 are Ready: no such image"},
    ),
    "KubeRay's own failure to make pods is named": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=a_ray_cluster(
            conditions=({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreatePod", "message": "quota"},)
        ),
        want=Seen(phase="Starting", reason="RayClusterStarting", look=5.0),
        status={"message": "KubeRay cannot create the pods (FailedCreatePod): quota"},
    ),
    "a webhook that denies KubeRay's pods is quoted": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=a_ray_cluster(
            conditions=(
                {
                    "type": "ReplicaFailure",
                    "status": "True",
                    "reason": "FailedCreateWorkerPod",
                    "message": 'admission webhook "w" denied the request: no',
                },
            )
        ),
        want=Seen(phase="Starting", reason="AdmissionDenied", look=5.0),
        status={
            "message": 'KubeRay cannot create the pods (FailedCreateWorkerPod): admission webhook "w" denied the request: no'
        },
    ),
    "a quota that stops KubeRay's pods is named": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=a_ray_cluster(
            conditions=(
                {
                    "type": "ReplicaFailure",
                    "status": "True",
                    "reason": "FailedCreateHeadPod",
                    "message": 'pods "h" is forbidden: exceeded quota: q',
                },
            )
        ),
        want=Seen(phase="Starting", reason="QuotaExceeded", look=5.0),
        status={
            "message": 'KubeRay cannot create the pods (FailedCreateHeadPod): pods "h" is forbidden: exceeded quota: q'
        },
    ),
    "a worker whose container fails before the start gets another one": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=(*some_pods(3), a_pod(host=3, ready=False, phase="Failed", problem="exit code 1", problem_reason="Error")),
        want=Seen(phase="Restarting", reason="ContainerFailing", tell=("AttemptDisruption",), look=0.0),
        status={"disruptions": 1, "restarts": 0},
    ),
    "a worker of another Ray than the head: no retry helps, the job ends and says who has what": Case(
        given=a_job(failure_policy={"max_restarts": 5}).starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=(
            *some_pods(3),
            a_pod(host=3, ready=False, phase="Failed", problem="it has Ray 2.59", problem_reason="RayVersionMismatch"),
        ),
        want=Seen(
            phase="Finishing",
            reason="WorkerVersionMismatch",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptStopped",),
            look=2.0,
        ),
        status={
            "restarts": 0,
            "disruptions": 0,
            "finishing.message": "worker pod s0-3 cannot join: it has Ray 2.59; give head and workers images with one "
            "Ray and Python",
        },
    ),
    "the third start in a row that breaks is the image's fault": Case(
        given=a_job().starting(cluster_uid="rc-uid").broken_starts(2),
        slices=(READY,),
        cluster=CLUSTER,
        pods=(*some_pods(3), a_pod(host=3, ready=False, phase="Failed", problem="exit code 1", problem_reason="Error")),
        want=Seen(
            phase="Finishing",
            reason="ContainerFailing",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptFailure",),
            look=2.0,
        ),
    ),
    "a worker that dies with its node before the start is a disruption": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=(*some_pods(3), a_pod(host=3, ready=False, phase="Failed", problem_reason="NodeLost", lost_node=True)),
        want=Seen(phase="Restarting", reason="HostLost", tell=("AttemptDisruption",), look=0.0),
        status={"disruptions": 1, "restarts": 0},
    ),
    "the slice breaks before the start": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(a_slice().degraded(),),
        cluster=CLUSTER,
        pods=some_pods(3),
        want=Seen(phase="Restarting", reason="SliceLost", tell=("AttemptDisruption",), look=0.0),
    ),
    "the RayCluster is suspended by Kueue before the start: awaited": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=a_ray_cluster(suspend=True),
        want=Seen(phase="Starting", reason="ChildSuspended", look=1770.0),
    ),
    "pods are Ready and the head's API does not answer yet": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_failure(call="GET /api/version", message="refused"),
        want=Seen(phase="Starting", reason="WaitingForRay", look=1.0),
    ),
    "Ray does not show all hosts yet": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(nodes=some_ray_nodes(hosts=3)),
        want=Seen(phase="Starting", reason="WaitingForRay", look=0.5),
    ),
    "the image runs another Ray than the spec says": Case(
        given=a_job(ray_version="2.61.0").starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=GATED,
        want=Seen(
            phase="Finishing",
            reason="RayVersionUnsupported",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptStopped",),
            look=2.0,
        ),
    ),
    "not started within the start deadline": Case(
        given=a_job().starting(cluster_uid="rc-uid", since=-1800),
        slices=(READY,),
        cluster=CLUSTER,
        pods=some_pods(3),
        want=Seen(
            phase="Finishing",
            reason="StartDeadlineExceeded",
            do=(f"ScaleWorkersToZero {RC}",),
            tell=("AttemptStopped",),
            look=2.0,
        ),
        status={"disruptions": 0, "restarts": 0},
    ),
    # --- submission, exactly once
    "the gate is open: the intent is recorded, then the job is submitted": Case(
        given=a_job().starting(cluster_uid="rc-uid"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=GATED,
        want=Seen(
            phase="Starting",
            reason="Submitting",
            do=(f"SubmitRayJob {SUBMISSION}",),
            tell=("RayClusterReady",),
            look=1770.0,
        ),
        status={
            "attempt.submit_recorded_at": NOW,
            "attempt.submission_id": SUBMISSION,
            "attempt.submitted_at": None,
            "attempt.replicas": ("s0-abcde",),
            "attempt.head_pod_uid": "head-uid",
        },
    ),
    "a crash before the POST: the head does not know the job, the same id is sent": Case(
        given=a_job().submitting(),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(),
        want=Seen(phase="Starting", do=(f"SubmitRayJob {SUBMISSION}",), look=0.5),
    ),
    "a crash after the POST: the head knows the job, nothing is sent": Case(
        given=a_job().submitting(),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(a_ray_job("RUNNING")),
        want=Seen(phase="Running", reason="Running", tell=("JobSubmitted", "JobRunning"), look=0.5),
        status={"attempt.submitted_at": NOW, "attempt.running_at": NOW},
    ),
    "a crash around the POST, and the head has restarted since: never sent into another session": Case(
        given=a_job().submitting(),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(session="session_2"),
        want=Seen(phase="Restarting", reason="HeadLost", tell=("AttemptDisruption",), look=0.0),
    ),
    "the POST failed and the head does not know the job: again after a while": Case(
        given=a_job().submitting(),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(),
        outcomes=(a_failure(FailureClass.TRANSIENT, call="POST /api/jobs/", message="500 No available agent"),),
        want=Seen(phase="Starting", reason="Submitting", tell=("Submitting",), look=0.5),
    ),
    "Ray has the job and starts its driver": Case(
        given=a_job().submitting(),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(a_ray_job("PENDING")),
        want=Seen(phase="Starting", reason="Submitting", tell=("JobSubmitted",), look=0.5),
    ),
    "PENDING until the start deadline: the job ends, its Ray job is stopped": Case(
        given=a_job().submitting(since=-1800).attempt(submitted_at=at(-1700), ray_status="PENDING"),
        slices=(READY,),
        cluster=CLUSTER,
        pods=WHOLE,
        ray=a_ray(a_ray_job("PENDING")),
        want=Seen(
            phase="Finishing",
            reason="StartDeadlineExceeded",
            do=(f"StopRayJob {SUBMISSION}",),
            tell=("AttemptStopped",),
            look=1.0,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_job(case: Case) -> None:
    check(case)
