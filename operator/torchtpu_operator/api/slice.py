"""TPUSlice: one slice, one GKE node pool, one offer."""

from typing import ClassVar, Literal

from pydantic import Field

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiEnum, ApiModel, ApiObject, StatusModel
from torchtpu_operator.api.conditions import Condition
from torchtpu_operator.api.job_status import BY_TYPE
from torchtpu_operator.api.offer import NodePoolTemplate, SliceOffer
from torchtpu_operator.api.timestamps import Timestamp
from torchtpu_operator.tpu import CATALOGUE


class SlicePhase(ApiEnum):
    """Life of a slice; whether it is claimed is claimRef's matter."""

    PENDING = "Pending", "GKE has not accepted the node pool yet"
    PROVISIONING = "Provisioning", "the node pool is being made, or its hosts are not all Ready"
    READY = "Ready", "all hosts are Ready with all their chips"
    DEGRADED = "Degraded", "a host is lost; if a job holds the slice, GKE has 600 s to repair it"
    DELETING = "Deleting", "the node pool is being deleted"
    FAILED = "Failed", "it will not come, or not come back"


class Reuse(ApiEnum):
    """Who may take over a released slice."""

    NAMESPACE = "Namespace", "only jobs of the namespace that it was made for"
    CLASS = "Class", "every job of the class"


class ReclaimPolicy(ApiEnum):
    """What happens to a slice that nobody claims."""

    DELETE = "Delete", "the operator removes it when nobody needs it"
    RETAIN = "Retain", "only kubectl removes it"


class SliceReclaim(ApiModel):
    """The class's reclaim settings, and the namespace that they tie the slice to."""

    idle_seconds: int = Field(
        default=0,
        description="How long the slice stays for the next job, in seconds; 0: deleted unless a waiting job takes it. "
        "Its clock starts at status.releasedAt.",
        ge=0,
        le=constants.MAX_INT,
    )
    reuse: Reuse = Field(default=Reuse.NAMESPACE, description="Which jobs may take it over.")
    namespace: str | None = Field(
        default=None, description="Namespace of the job that it was made for. Unset: made by hand.", max_length=63
    )


class SliceNodePool(NodePoolTemplate):
    """The node pool of the slice."""

    name: str = Field(
        description="Name of the node pool, the same as metadata.name.",
        max_length=253,
    )
    managed: bool = Field(
        default=True, description="False for an adopted pool, which is never written to and never deleted."
    )


class ClaimRef(ApiModel):
    """The job that holds the slice."""

    namespace: str = Field(description="Namespace of the job.", max_length=63)
    name: str = Field(description="Name of the job.", max_length=253)
    uid: str = Field(description="uid of the job.", max_length=64)
    slice_index: int = Field(description="Which of the job's slices it is.", ge=0, le=15)
    sequence: int = Field(
        default=0,
        description="Which request for that index it answers; the number goes up when the job gives the slice up.",
        ge=0,
        le=constants.MAX_INT,
    )
    claimed_at: Timestamp = Field(description="When it was claimed.")


class SliceSpec(ApiModel):
    """Snapshot of class and offer: only claimRef, reclaimPolicy and unschedulable ever change."""

    slice_class_name: str = Field(description="TPUSliceClass that it belongs to.", min_length=1, max_length=253)
    accelerator: str = Field(description=f"TPU generation: {', '.join(CATALOGUE)}.", max_length=253)
    topology: str = Field(description="Chips of the slice along each axis. Example: 4x4.", max_length=253)
    chips_per_host: int | None = Field(
        default=None,
        description="Chips of one host, where the shape leaves a choice: v5e and v6e 2x4. Unset: 8, the single host.",
    )
    offer: SliceOffer = Field(description="The offer and zone, as they were when the slice was made.")
    node_pool: SliceNodePool = Field(description="The node pool of the slice.")
    max_lifetime_seconds: int | None = Field(
        default=None,
        description="GKE itself ends each node so many seconds after its start, also when the operator is down. Unset: "
        "never, as with reservations.",
        ge=600,
        le=604800,
    )
    reclaim: SliceReclaim = Field(default=SliceReclaim(), description="What happens when the job lets go of it.")
    reclaim_policy: ReclaimPolicy | None = Field(
        default=None,
        description="What happens when nobody claims it. Unset: Delete if it was made for a job, else Retain.",
    )
    unschedulable: bool = Field(
        default=False, description="True: no further job is given this slice; the one that holds it goes on."
    )
    claim_ref: ClaimRef | None = Field(
        default=None, description="The job that holds it. Unset: available. The operator alone writes it."
    )


class SliceOperation(StatusModel):
    """The GKE operation that is under way."""

    name: str = Field(
        description="Name of the operation; empty while the intent is written and no answer is there yet.",
        max_length=512,
    )
    type: str = Field(description="CREATE_NODE_POOL or DELETE_NODE_POOL.", max_length=64)
    started_at: Timestamp = Field(description="When the intent was written.")
    status: str = Field(default="", description="Last status: RUNNING or DONE.", max_length=32)
    accepted_at: Timestamp | None = Field(
        default=None, description="When GKE had accepted it; waitSeconds counts from here."
    )


class SliceNodes(StatusModel):
    """Nodes of the slice."""

    desired: int = Field(default=0, description="Hosts of the slice.")
    ready: int = Field(
        default=0, description="Nodes of the pool that are Ready and show all their chips as google.com/tpu."
    )
    summary: str = Field(default="", description="Both, for columns. Example: 3/4.", max_length=16)

    @classmethod
    def counted(cls, *, ready: int, desired: int) -> "SliceNodes":
        """Both counts and their text."""
        return cls(desired=desired, ready=ready, summary=f"{ready}/{desired}")


class SliceUsage(StatusModel):
    """Life total of the slice."""

    chip_seconds: int = Field(default=0, description="Chip-seconds up to `since`, whoever held the slice.")
    since: Timestamp | None = Field(
        default=None, description="From when the running interval is still to be added; absent: no node lives."
    )


class SliceFailure(StatusModel):
    """Why the slice failed."""

    reason: str = Field(description="Reason of the failure. Example: Stockout.", max_length=128)
    message: str = Field(default="", description="What GKE said, and what to do.", max_length=constants.MAX_MESSAGE)
    at: Timestamp | None = Field(default=None, description="When it was seen.")


class SliceRetry(StatusModel):
    """Back-off after an answer that will change by itself."""

    reason: str = Field(description="Why the call is made again.", max_length=128)
    failures: int = Field(default=0, description="How often in a row.")
    at: Timestamp = Field(description="The call is not made again before this moment.")


class SliceStatus(StatusModel):
    """Where the slice is in its life."""

    observed_generation: int = Field(
        default=-1, description="metadata.generation that this status is about; -1: not yet seen."
    )
    phase: SlicePhase | None = Field(
        default=None, description="Where the slice is in its life, in one word. For people; programs read conditions."
    )
    message: str = Field(
        default="",
        description="One line: what the slice is doing or waiting for, why, and what happens or is needed next.",
        max_length=constants.MAX_MESSAGE,
    )
    operation: SliceOperation | None = Field(default=None, description="The GKE operation that is under way.")
    nodes: SliceNodes = Field(default=SliceNodes(), description="Nodes of the slice.")
    usage: SliceUsage = Field(default=SliceUsage(), description="What the slice has used in its life.")
    created_at: Timestamp | None = Field(default=None, description="When GKE had accepted the node pool.")
    ready_at: Timestamp | None = Field(default=None, description="When all nodes were Ready first.")
    first_node_at: Timestamp | None = Field(
        default=None, description="When its first node appeared: from then on it costs."
    )
    degraded_at: Timestamp | None = Field(default=None, description="Since when a host is lost.")
    released_at: Timestamp | None = Field(
        default=None, description="When the last job let go of it; idleSeconds counts from here."
    )
    notice_seconds: int | None = Field(
        default=None, description="Seconds of notice before a preemption. Reserved: not written yet."
    )
    retry: SliceRetry | None = Field(default=None, description="Back-off after an answer that will change by itself.")
    failure: SliceFailure | None = Field(default=None, description="Why it failed.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Ready, Reconciling and Stalled, of which one is True. Example: kubectl wait --for=condition=Ready tpus/x.",
        max_length=16,
        json_schema_extra=BY_TYPE,
    )


class TPUSlice(ApiObject):
    """One TPU slice: one GKE node pool, got from one offer, held by at most one job."""

    plural: ClassVar[str] = constants.SLICE_PLURAL

    api_version: Literal["torchtpu.dev/v1alpha1"] = "torchtpu.dev/v1alpha1"
    kind: Literal["TPUSlice"] = "TPUSlice"
    spec: SliceSpec = Field(description="Snapshot of class and offer, and the claim.")
    status: SliceStatus = Field(default=SliceStatus(), description="Where the slice is in its life.")
