"""What is seen of a job, and what is to be decided: the cases of the job planner's tables."""

from dataclasses import dataclass, field
from typing import Any

from tests.builders import (
    JOB_UID,
    NOW,
    SETTINGS,
    JobBuilder,
    SliceBuilder,
    a_class,
    a_job,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    at,
    some_pods,
    some_ray_nodes,
)
from tests.unit.plan.views import Seen, seen
from torchtpu_operator.api import TPUSliceClass
from torchtpu_operator.plan.actions import Plan
from torchtpu_operator.plan.allocation import Wait
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job
from torchtpu_operator.plan.names import ray_cluster_name
from torchtpu_operator.plan.observed import CallFailed, Outcome, PodSeen, RaySeen

RC = ray_cluster_name("llama", job_uid=JOB_UID, attempt=1)
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
        want=Seen(phase="Restarting", reason=reason, do=changes.pop("do", ()), tell=("AttemptDisruption",), look=0.0),
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


def check(case: Case) -> None:
    """One assertion on all that was decided."""
    plan = planned(case)
    status = {path: _at(plan.status, path) for path in case.status}
    assert (seen(plan), status) == (case.want, case.status)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value
