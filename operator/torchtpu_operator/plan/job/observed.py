"""What the job reconciler looks at, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from torchtpu_operator.api import ConditionType, TorchTPUJob, TPUSlice, TPUSliceClass, is_true
from torchtpu_operator.plan.allocation import Wait
from torchtpu_operator.plan.observed import CallFailed, Outcome, PodSeen, RaySeen

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobNeeds:
    """Which live looks the next plan needs; everything else comes from the caches."""

    ray_cluster: str | None = None
    """Name of the RayCluster to GET."""
    ray: bool = False
    """GET /api/version of its head, and the job."""
    ray_nodes: bool = False
    """GET /api/v0/nodes too: the gate is not passed yet."""
    submission_id: str | None = None
    slices_live: bool = False
    """LIST TPUSlices instead of the cache: the last claim must be seen gone, not assumed gone."""
    result: bool = False
    """Once the Ray job is terminal, read the runner's result line from its log."""


@dataclass(frozen=True, kw_only=True)
class JobObserved:
    job: TorchTPUJob
    needs: JobNeeds
    slice_class: TPUSliceClass | None = None
    """The pinned class, else spec.sliceClassName, else the one default class."""
    default_classes: int = 0
    """Classes that carry the default annotation."""
    slices: tuple[TPUSlice, ...] = ()
    """With a claimRef of this job's uid, by slice index."""
    ray_cluster: Json | CallFailed | None = None
    """None: 404, where it was asked."""
    pods: tuple[PodSeen, ...] = ()
    """Every pod with the job's uid in its labels, of all attempts."""
    ray: RaySeen | CallFailed | None = None
    kuberay: bool = True
    """Whether the apiserver serves ray.io/v1 rayclusters."""
    wait: Wait | None = None
    """Why allocation gives nothing."""
    namespace_labels: Mapping[str, str] | None = None
    """Labels of the job's namespace; None while they are not known."""
    namespace_terminating: bool = False
    outcomes: tuple[Outcome, ...] = ()


def job_needs(job: TorchTPUJob, *, now: datetime) -> JobNeeds:  # noqa: ARG001 - the signature of slice_needs
    """What to look at before `plan_job`."""
    status, attempt = job.status, job.status.attempt
    over = is_true(status.conditions, ConditionType.COMPLETE) or is_true(status.conditions, ConditionType.FAILED)
    releasing = status.finishing is not None or job.metadata.deleting
    if attempt is None:
        return JobNeeds(slices_live=releasing)
    if over and status.head_retained_until is None and not job.metadata.deleting:
        return JobNeeds()
    known = bool(attempt.ray_cluster_uid)
    live = attempt.ended_at is None or (releasing and attempt.stop_requested_at is not None)
    submitted = attempt.submit_recorded_at is not None
    return JobNeeds(
        ray_cluster=attempt.ray_cluster or None,
        ray=known and live,
        ray_nodes=known and attempt.ended_at is None and not submitted,
        submission_id=attempt.submission_id or None if submitted else None,
        slices_live=releasing,
        result=submitted and attempt.ended_at is None,
    )
