"""TPUSlice: one slice, one GKE node pool, one offer."""

import enum
from typing import ClassVar, Literal

from pydantic import Field

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiModel, ApiObject, StatusModel
from torchtpu_operator.api.conditions import Condition
from torchtpu_operator.api.job_status import BY_TYPE
from torchtpu_operator.api.offer import NodePoolTemplate, SliceOffer
from torchtpu_operator.api.timestamps import Timestamp


class SlicePhase(enum.StrEnum):
    """Life of a slice; whether it is claimed is claimRef's matter."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    READY = "Ready"
    DEGRADED = "Degraded"
    DELETING = "Deleting"
    FAILED = "Failed"


class Reuse(enum.StrEnum):
    """Who may take over a released slice."""

    NAMESPACE = "Namespace"
    CLASS = "Class"


class ReclaimPolicy(enum.StrEnum):
    """What happens to a slice that nobody claims."""

    DELETE = "Delete"
    RETAIN = "Retain"


class SliceReclaim(ApiModel):
    """The class's reclaim settings, and the namespace that they tie the slice to."""

    idle_seconds: int = Field(
        0, description="How long the slice stays after its release, in seconds; 0 deletes it at once.", ge=0
    )
    reuse: Reuse = Field(
        Reuse.NAMESPACE,
        description="Namespace: only jobs of the same namespace take it over. Class: any job of the class.",
    )
    namespace: str | None = Field(None, description="Namespace of the job that it was made for.", max_length=63)


class SliceNodePool(NodePoolTemplate):
    """The node pool of the slice."""

    name: str = Field(
        description="Name of the node pool, the same as metadata.name.",
        min_length=1,
        max_length=40,
        pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
    )
    managed: bool = Field(True, description="False for an adopted pool: never written to, never deleted.")


class ClaimRef(ApiModel):
    """The job that holds the slice."""

    namespace: str = Field(description="Namespace of the job.", max_length=63)
    name: str = Field(description="Name of the job.", max_length=253)
    uid: str = Field(description="uid of the job.", max_length=64)
    slice_index: int = Field(description="Which of the job's slices it is.", ge=0, le=15)
    sequence: int = Field(0, description="Which request for that index it answers.", ge=0)
    claimed_at: Timestamp = Field(description="When it was claimed.")


class SliceSpec(ApiModel):
    """Snapshot of class and offer: only claimRef, reclaimPolicy and unschedulable ever change."""

    slice_class_name: str = Field(description="Class that it was made from.", min_length=1, max_length=253)
    accelerator: str = Field(description="TPU generation: v4, v5e, v5p, v6e or v7x.", max_length=253)
    topology: str = Field(description="Chips of the slice, for example 4x4.", max_length=253)
    chips_per_host: int | None = Field(None, description="Where the shape leaves a choice: 4 or 8.")
    offer: SliceOffer = Field(description="The offer and zone, as they were when the slice was made.")
    node_pool: SliceNodePool = Field(description="The node pool of the slice.")
    max_lifetime_seconds: int | None = Field(
        None,
        description="GKE itself ends the nodes after so long, also when the operator is down; not with reservations. "
        "600 to 604800.",
        ge=600,
        le=604800,
    )
    reclaim: SliceReclaim = Field(SliceReclaim(), description="What happens at release.")
    reclaim_policy: ReclaimPolicy | None = Field(
        None,
        description="Delete: the operator removes it when nobody needs it. Retain: only kubectl does. Unset: Delete "
        "if made for a job, else Retain.",
    )
    unschedulable: bool = Field(False, description="True: no job is given this slice any more.")
    claim_ref: ClaimRef | None = Field(
        None, description="The job that holds it; absent: available. Allocation alone writes it."
    )


class SliceOperation(StatusModel):
    """The GKE operation that is under way."""

    name: str = Field(
        description="Name of the operation; empty while the intent is written and no answer is there yet.",
        max_length=512,
    )
    type: str = Field(description="CREATE_NODE_POOL, DELETE_NODE_POOL or SET_NODE_POOL_SIZE.", max_length=64)
    started_at: Timestamp = Field(description="When the intent was written.")
    status: str = Field("", description="Last status: PENDING, RUNNING, DONE or ABORTING.", max_length=32)
    accepted_at: Timestamp | None = Field(None, description="When GKE accepted it; waitSeconds counts from here.")


class SliceNodes(StatusModel):
    """Nodes of the slice."""

    desired: int = Field(0, description="Hosts of the slice.")
    ready: int = Field(0, description="Nodes of the pool that are Ready and show all their chips.")
    summary: str = Field("", description="Both, for columns: 3/4.", max_length=16)

    @classmethod
    def counted(cls, *, ready: int, desired: int) -> "SliceNodes":
        """Both counts and their text."""
        return cls(desired=desired, ready=ready, summary=f"{ready}/{desired}")


class SliceUsage(StatusModel):
    """Life total of the slice."""

    chip_seconds: int = Field(0, description="Chip-seconds up to `since`.")
    since: Timestamp | None = Field(
        None, description="From when the running interval is still to be added; absent: no node lives."
    )


class SliceFailure(StatusModel):
    """Why the slice failed."""

    reason: str = Field(description="Class of the failure, for example Stockout.", max_length=128)
    message: str = Field("", description="What GKE said, and what to do.", max_length=constants.MAX_MESSAGE)
    at: Timestamp | None = Field(None, description="When it was seen.")


class SliceRetry(StatusModel):
    """Back-off after an answer that will change by itself."""

    reason: str = Field(description="Why the call is made again.", max_length=128)
    failures: int = Field(0, description="Such answers in a row.")
    at: Timestamp = Field(description="Not before this moment.")


class SliceStatus(StatusModel):
    """Where the slice is in its life."""

    observed_generation: int = Field(-1, description="metadata.generation that this status is about; -1: not yet seen.")
    phase: SlicePhase | None = Field(
        None, description="Pending, Provisioning, Ready, Degraded (a host is lost), Deleting or Failed."
    )
    message: str = Field(
        "",
        description="One line: what is the case and what happens or is needed next.",
        max_length=constants.MAX_MESSAGE,
    )
    operation: SliceOperation | None = Field(None, description="The GKE operation that is under way.")
    nodes: SliceNodes = Field(SliceNodes(), description="Nodes of the slice.")
    usage: SliceUsage = Field(SliceUsage(), description="Life total of the slice, whoever held it.")
    created_at: Timestamp | None = Field(None, description="When GKE had accepted the node pool.")
    ready_at: Timestamp | None = Field(None, description="When all nodes were Ready first.")
    first_node_at: Timestamp | None = Field(None, description="When its first node appeared: billing begins.")
    degraded_at: Timestamp | None = Field(None, description="Since when a host is lost.")
    released_at: Timestamp | None = Field(
        None, description="When the last job let go of it; idleSeconds counts from here."
    )
    notice_seconds: int | None = Field(None, description="Seconds of notice that a termination signal gave.")
    retry: SliceRetry | None = Field(None, description="Back-off after an answer that will change by itself.")
    failure: SliceFailure | None = Field(None, description="Why it failed.")
    conditions: tuple[Condition, ...] = Field(
        (),
        description="Ready, Reconciling and Stalled as kstatus reads them.",
        max_length=16,
        json_schema_extra=BY_TYPE,
    )


class TPUSlice(ApiObject):
    """One TPU slice: one GKE node pool, got from one offer, held by at most one job."""

    plural: ClassVar[str] = constants.SLICE_PLURAL

    api_version: Literal["torchtpu.dev/v1alpha1"] = "torchtpu.dev/v1alpha1"
    kind: Literal["TPUSlice"] = "TPUSlice"
    spec: SliceSpec = Field(description="Snapshot of class and offer, and the claim.")
    status: SliceStatus = Field(SliceStatus(), description="Where the slice is in its life.")
