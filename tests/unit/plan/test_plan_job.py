"""The job planner, step by step: given what is seen, what is decided."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.builders import (
    JOB_UID,
    NOW,
    SETTINGS,
    JobBuilder,
    SliceBuilder,
    a_class,
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
from tests.unit.plan.views import Seen, seen
from torchtpu_operator.api import JobPhase, Reason, TPUSliceClass
from torchtpu_operator.api.job_status import JobSlice, JobUsage
from torchtpu_operator.plan.actions import Plan
from torchtpu_operator.plan.allocation import Wait
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Outcome, Performed, PodSeen, RaySeen
from torchtpu_operator.runner.constants import REASON_HOST_LOST

RC = a_job().starting().job.status.attempt.ray_cluster  # type: ignore[union-attr]
SUBMISSION = f"{JOB_UID}-1"
READY = a_slice().ready(since=-100)
PAIR = a_job(num_slices=2)
PART = a_slice(job=PAIR, index=0).ready(since=-100)
CREATE = ("CreateObject ConfigMap", "CreateAuthSecret", "CreateObject RayCluster")
CLUSTER = a_ray_cluster()
WHOLE = some_pods()
GATED = a_ray(nodes=some_ray_nodes())


@dataclass(frozen=True, kw_only=True)
class Case:
    given: JobBuilder
    slices: tuple[SliceBuilder, ...] = ()
    slice_class: TPUSliceClass | None = field(default_factory=lambda: a_class().build())
    default_classes: int = 1
    cluster: dict[str, Any] | CallFailed | None = None
    pods: tuple[PodSeen, ...] = ()
    ray: RaySeen | CallFailed | None = None
    kuberay: bool = True
    wait: Wait | None = None
    namespace_labels: dict[str, str] | None = None
    outcomes: tuple[Outcome, ...] = ()
    want: Seen
    status: dict[str, Any] = field(default_factory=dict)
    """Fields of the status that matter beside phase and reason, by dotted path."""


def planned(case: Case) -> Plan[Any]:
    job = case.given.build()
    needs = job_needs(job, now=NOW)
    observed = JobObserved(
        job=job,
        needs=needs,
        slice_class=case.slice_class,
        default_classes=case.default_classes,
        slices=tuple(each.build() for each in case.slices),
        ray_cluster=case.cluster if needs.ray_cluster else None,
        pods=case.pods,
        ray=case.ray if needs.ray else None,
        kuberay=case.kuberay,
        wait=case.wait,
        namespace_labels=case.namespace_labels,
        outcomes=case.outcomes,
    )
    return plan_job(observed, now=NOW, settings=SETTINGS)


def stalled(reason: str) -> Seen:
    return Seen(phase="Pending", reason=reason, tell=(reason,))


def running(**changes: Any) -> Case:
    """A job that runs well, with `changes`."""
    values: dict[str, Any] = {
        "given": a_job().running().holding(READY),
        "slices": (READY,),
        "cluster": CLUSTER,
        "pods": WHOLE,
        "ray": a_ray(a_ray_job("RUNNING")),
        "want": Seen(phase="Running", reason="Running", look=1.0),
    }
    return Case(**(values | changes))


def lost(reason: str, **changes: Any) -> Case:
    """A running job in which something breaks: the attempt ends as a disruption and another one follows."""
    return running(
        want=Seen(phase="Restarting", reason=reason, tell=("AttemptDisruption",), look=0.0),
        status={"disruptions": 1, "restarts": 0, "attempt.ended_at": NOW, "next_attempt_at": at(10)}
        | changes.pop("status", {}),
        **changes,
    )


def failed(status: str = "FAILED", *, since: float | None = -60, **fields: Any) -> dict[str, Any]:
    """What Ray says of a job that failed, first seen `since`."""
    job = a_job().running().holding(READY)
    return {
        "given": job.attempt(failed_seen_at=None if since is None else at(since)),
        "ray": a_ray(a_ray_job(status, **fields)),
    }


CASES = {
    # --- hands off
    "another controller's job is not touched": Case(
        given=a_job(managed_by="kueue.x-k8s.io/multikueue").without_finalizer(), want=Seen()
    ),
    "nothing is done before our finalizer is on": Case(
        given=a_job().without_finalizer(), want=Seen(do=("AddFinalizer",), look=0.0)
    ),
    # --- admission: what a person must mend
    "no default class": Case(given=a_job(), slice_class=None, default_classes=0, want=stalled("NoDefaultClass")),
    "two default classes": Case(
        given=a_job(), slice_class=None, default_classes=2, want=stalled("SeveralDefaultClasses")
    ),
    "the named class does not exist": Case(
        given=a_job(slice_class_name="gold"), slice_class=None, want=stalled("ClassNotFound")
    ),
    "the class is served by another installation": Case(
        given=a_job(), slice_class=a_class(controller_name="other/op").build(), want=stalled("ClassNotFound")
    ),
    "the class is for some namespaces, and the labels of this one are not known yet": Case(
        given=a_job(),
        slice_class=a_class(allowed_namespaces={"selector": {}}).build(),
        want=Seen(phase="Pending", reason="Pending", look=2.0),
    ),
    "the class does not allow the namespace": Case(
        given=a_job(),
        slice_class=a_class(allowed_namespaces={"selector": {"match_labels": {"tpu": "yes"}}}).build(),
        namespace_labels={"tpu": "no"},
        want=stalled("NamespaceNotAllowed"),
    ),
    "no image anywhere": Case(given=a_job(image=None), want=stalled("ImageMissing")),
    "the image comes from the class": Case(
        given=a_job(image=None),
        slice_class=a_class(job_defaults={"image": "example.com/ray:1"}).build(),
        want=Seen(phase="Pending", reason="Pending", do=("DryRun",)),
    ),
    "an offer that the class does not have": Case(given=a_job(offers=("spot",)), want=stalled("NoMatchingOffer")),
    "an unknown topology that got past the apiserver": Case(given=a_job(topology="4x5"), want=stalled("InvalidSpec")),
    "numSlices 17": Case(given=a_job(num_slices=17), want=stalled("InvalidSpec")),
    "torchrun under PerDevice": Case(given=a_job(entrypoint="torchrun train.py"), want=stalled("InvalidSpec")),
    "a Kueue queue label: nothing is spent, and it is said why": Case(
        given=a_job().meta(labels={"kueue.x-k8s.io/queue-name": "q"}), want=stalled("QueueingUnsupported")
    ),
    "KubeRay is not installed: nothing is spent, and it is said why": Case(
        given=a_job(), kuberay=False, want=stalled("KubeRayMissing")
    ),
    "the same complaint a second time is no second event": Case(
        given=a_job().status(
            phase=JobPhase.PENDING,
            message="no TPUSliceClass is marked as default: mark one with torchtpu.dev/is-default-class=true, or set spec.sliceClassName",
        ),
        slice_class=None,
        default_classes=0,
        want=Seen(phase="Pending", reason="NoDefaultClass"),
    ),
    # --- the dry run
    "a sound job: what it would create is tried first": Case(
        given=a_job(),
        want=Seen(phase="Pending", reason="Pending", do=("DryRun",)),
        status={
            "resolved.machine_type": "ct6e-standard-4t",
            "resolved.chips": 16,
            "resolved.workers": 16,
            "demand": None,
        },
    ),
    "the dry run passed: the job asks for slices": Case(
        given=a_job().resolved(),
        outcomes=(Performed(call="DryRun"),),
        want=Seen(phase="Pending", reason="WaitingForSlices"),
        status={"demand.slices": 1, "demand.sequence": (0,)},
    ),
    "the apiserver refuses the pods: said, tried again later": Case(
        given=a_job().resolved(),
        outcomes=(a_failure(FailureClass.INVALID, call="POST pods", message="violates PodSecurity"),),
        want=Seen(phase="Pending", reason="AdmissionDenied", tell=("AdmissionDenied",), look=67.0),
    ),
    "the dry run got no answer: said, tried again soon": Case(
        given=a_job().resolved(),
        outcomes=(a_failure(FailureClass.TRANSIENT, call="POST pods", message="webhook down"),),
        want=Seen(phase="Pending", reason="Pending", tell=("Pending",), look=2.0),
        status={
            "message": "the apiserver did not take what the job would create: webhook down; tried again",
            "demand": None,
        },
    ),
    # --- waiting for slices
    "allocation says why it gives nothing, and the job repeats it": Case(
        given=a_job().demanding(),
        wait=Wait(reason=Reason.CLASS_PAUSED, message="class default is paused"),
        want=Seen(phase="Pending", reason="ClassPaused"),
        status={"message": "class default is paused", "queued_at": NOW},
    ),
    "the slice that is on its way speaks for the job": Case(
        given=a_job().demanding(),
        slices=(a_slice().asked("op-1"),),
        want=Seen(phase="Provisioning", reason="WaitingForSlices", look=14400.0),
        status={"demand.first_request_at": NOW, "slices_ready": "0/1"},
    ),
    "a failed slice is given up: the next number asks for another one": Case(
        given=a_job().demanding().holding(a_slice()),
        slices=(a_slice().failed(),),
        want=Seen(phase="Pending", reason="WaitingForSlices", tell=("SliceLost",), look=None),
        status={"demand.sequence": (1,)},
    ),
    "a slice that is being deleted is given up": Case(
        given=a_job().demanding(),
        slices=(READY.deleted(),),
        want=Seen(phase="Pending", reason="WaitingForSlices", tell=("SliceLost",), look=14400.0),
        status={"demand.sequence": (1,)},
    ),
    "one that was given up before is not given up twice": Case(
        given=a_job().demanding(sequence=(1,)),
        slices=(a_slice().failed(),),
        want=Seen(phase="Pending", reason="WaitingForSlices"),
        status={"demand.sequence": (1,), "slices": ()},
    ),
    "no capacity for four hours": Case(
        given=a_job()
        .demanding()
        .status(demand=a_job().demanding().job.status.demand.model_copy(update={"first_request_at": at(-14400)})),  # type: ignore[union-attr]
        slices=(a_slice().asked("op-1"),),
        want=Seen(phase="Finishing", reason="CapacityDeadlineExceeded", look=0.0),
        status={"demand.slices": 0, "demand.sequence": (1,)},
    ),
    "the queue deadline is over": Case(
        given=a_job(queue_deadline_seconds=60).demanding().status(queued_at=at(-60)),
        wait=Wait(reason=Reason.WAITING_FOR_LIMITS, message="full"),
        want=Seen(phase="Finishing", reason="QueueDeadlineExceeded", look=0.0),
    ),
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
    plan = planned(case)
    status = {path: _at(plan.status, path) for path in case.status}
    assert (seen(plan), status) == (case.want, case.status)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value
