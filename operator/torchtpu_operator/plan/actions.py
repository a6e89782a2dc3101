"""What a plan may ask of the executor: idempotent actions as data.

The order of a pass is fixed: status first (so that an intent survives a crash), then the actions in order, then the
events. An action that fails ends the pass; its `CallFailed` is handed to the next plan as `outcome`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Json = Mapping[str, Any]
StatusT = TypeVar("StatusT")


@dataclass(frozen=True, kw_only=True)
class Event:
    """A Kubernetes event about the reconciled object. The same event again raises its count."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Plan(Generic[StatusT]):
    status: StatusT
    """The whole new status; written only where it differs from the observed one."""
    actions: tuple["Action", ...] = ()
    events: tuple[Event, ...] = ()
    look_again: float | None = None
    """Seconds until the next look without an event; None: only on an event."""


# --- the reconciled object itself --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AddFinalizer:
    """Merge patch with the observed resourceVersion; nothing outside is touched before it is on."""


@dataclass(frozen=True, kw_only=True)
class RemoveFinalizer:
    pass


@dataclass(frozen=True, kw_only=True)
class DeleteJob:
    """DELETE of the reconciled job with preconditions uid and resourceVersion: its time after the end is over."""


# --- GKE (slice reconciler) --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CreateNodePool:
    """Outcome: OperationStarted, or CallFailed(CONFLICT) where the name exists."""

    request: Json
    """google.container.v1.CreateNodePoolRequest as proto3 JSON."""


@dataclass(frozen=True, kw_only=True)
class DeleteNodePool:
    """Outcome: OperationStarted, or Performed where it is gone already."""

    name: str


# --- TPUSlices and classes (allocation) --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class JobRef:
    namespace: str
    name: str
    uid: str
    sequence: int = 0
    slice_index: int = 0


@dataclass(frozen=True, kw_only=True)
class CreateSlice:
    """POST one TPUSlice for a job, after a live GET shows that the job's demand still holds (uid, slices, sequence)."""

    manifest: Json
    claimant: JobRef


@dataclass(frozen=True, kw_only=True)
class ClaimSlice:
    """Merge patch of claimRef with resourceVersion; the claimant's demand is checked live first."""

    name: str
    resource_version: str
    claim_ref: Json
    claimant: JobRef


@dataclass(frozen=True, kw_only=True)
class ReleaseSlice:
    """Merge patch that removes claimRef, with resourceVersion, after a live GET of the claimant shows that it let go:

    404, another uid, demand 0, or a sequence above the claim's. Otherwise nothing is done (Performed; the cache was old).
    """

    name: str
    resource_version: str
    claimant: JobRef


@dataclass(frozen=True, kw_only=True)
class DeleteSlice:
    """DELETE with preconditions uid and resourceVersion."""

    name: str
    uid: str
    resource_version: str
    why: str


@dataclass(frozen=True, kw_only=True)
class WriteClassStatus:
    """Server-side apply of a class's status with resourceVersion."""

    name: str
    resource_version: str
    status: Json


# --- Kubernetes objects of a job's attempt -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Server-side dry run of manifests (RayCluster, one pod of each template). CallFailed carries the apiserver's words."""

    manifests: tuple[Json, ...]
    config_maps: tuple[tuple[str, str], ...] = ()
    """(namespace, name) of ConfigMaps that must exist: a pod without its own would wait on paid chips."""


@dataclass(frozen=True, kw_only=True)
class CreateObject:
    """POST one namespaced object. An existing one is adopted if its ownerReference is this job's uid, else CONFLICT."""

    manifest: Json


@dataclass(frozen=True, kw_only=True)
class CreateAuthSecret:
    """POST the Secret of a RayCluster's token; the executor makes the token (32 random bytes, URL-safe), never logs it."""

    manifest: Json
    """The Secret without its data."""
    key: str


@dataclass(frozen=True, kw_only=True)
class ScaleWorkersToZero:
    """Every worker group's replicas and minReplicas to 0 (merge patch of the list read live, with resourceVersion)."""

    name: str
    uid: str


@dataclass(frozen=True, kw_only=True)
class DeleteRayCluster:
    name: str
    uid: str


@dataclass(frozen=True, kw_only=True)
class ForceDeletePod:
    """gracePeriodSeconds 0, with the uid as precondition: only for pods whose node is gone."""

    name: str
    uid: str


# --- Ray ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SubmitRayJob:
    """GET the submission id; on 404 and the same session POST it; after any error GET again."""

    ray_cluster: str
    submission_id: str
    session_name: str
    entrypoint: str
    metadata: Mapping[str, str]
    runtime_env: Json


@dataclass(frozen=True, kw_only=True)
class StopRayJob:
    ray_cluster: str
    submission_id: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | DeleteJob
    | CreateNodePool
    | DeleteNodePool
    | CreateSlice
    | ClaimSlice
    | ReleaseSlice
    | DeleteSlice
    | WriteClassStatus
    | DryRun
    | CreateObject
    | CreateAuthSecret
    | ScaleWorkersToZero
    | DeleteRayCluster
    | ForceDeletePod
    | SubmitRayJob
    | StopRayJob
)
