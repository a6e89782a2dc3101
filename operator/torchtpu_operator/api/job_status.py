"""Status of a TorchTPUJob."""

from pydantic import Field
from pydantic.config import JsonDict

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiEnum, StatusModel
from torchtpu_operator.api.conditions import Condition
from torchtpu_operator.api.timestamps import Timestamp

BY_TYPE: JsonDict = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class JobPhase(ApiEnum):
    """One word for columns; derived from conditions."""

    PENDING = "Pending", "is being checked, or holds no slice yet"
    PROVISIONING = "Provisioning", "has slices on the way"
    STARTING = "Starting", "all slices are Ready; the RayCluster comes up and the program is submitted"
    RUNNING = "Running", "the program runs"
    RESTARTING = "Restarting", "an attempt broke off, the next one is being prepared"
    SUSPENDED = "Suspended", "spec.suspend is true, nothing is held"
    FINISHING = "Finishing", "the end is decided, slices are being given back"
    SUCCEEDED = "Succeeded", "the program ended with exit code 0; final"
    FAILED = "Failed", "the job failed; final"


class ResolvedJob(StatusModel):
    """What the spec comes to; written before the first call to the cloud and then kept."""

    slice_class_name: str = Field(description="TPUSliceClass that the capacity comes from.", max_length=253)
    shape: str = Field(description="Shape for columns. Example: v6e 4x4, or 2 x v6e 4x4.", max_length=64)
    machine_type: str = Field(
        description="GKE machine type of the TPU hosts. Example: ct6e-standard-4t.", max_length=63
    )
    hosts_per_slice: int = Field(description="Hosts of one slice.")
    chips_per_host: int = Field(description="Chips of one host, its google.com/tpu.")
    chips: int = Field(description="Chips of all slices.")
    workers: int = Field(
        description="TPU devices of all slices: what PerDevice starts one process for (v7x: two per chip)."
    )


class Demand(StatusModel):
    """What the job asks of allocation."""

    slices: int = Field(
        default=0,
        description="Slices that the job wants: numSlices, or 0 while it waits for nothing and no pod of it can be on one.",
    )
    sequence: tuple[int, ...] = Field(
        default=(),
        description="Per slice index, how often the job gave one up; a claim with a lower number is released.",
        max_length=16,
    )
    first_request_at: Timestamp | None = Field(
        default=None,
        description="When this wait for chips sent its first request to GKE; capacityDeadlineSeconds counts from here.",
    )


class JobSlice(StatusModel):
    """One slice of the job."""

    index: int = Field(description="Index of the slice, 0 to numSlices - 1.")
    name: str = Field(description="TPUSlice, and node pool of the same name.", max_length=253)
    uid: str = Field(default="", description="uid of the TPUSlice.", max_length=64)
    sequence: int = Field(default=0, description="Sequence number of the claim.")
    offer: str = Field(default="", description="Offer that it comes from.", max_length=63)
    zone: str = Field(default="", description="Zone of its nodes.", max_length=63)
    node_pool: str = Field(default="", description="Node pool of the slice.", max_length=253)
    state: str = Field(default="", description="Phase of the TPUSlice, or Deleting.", max_length=32)
    message: str = Field(
        default="", description="What the slice is doing or waiting for.", max_length=constants.MAX_MESSAGE
    )
    billed_from: Timestamp | None = Field(
        default=None, description="From when its chip-seconds are the job's: the later of the claim and its first node."
    )
    price_per_chip_hour: str = Field(default="", description="Price of its offer, for estimatedCost.", max_length=16)


class Attempt(StatusModel):
    """The attempt that is under way, or the last one."""

    number: int = Field(description="Number of the attempt, from 1.")
    start_reason: str = Field(
        default="",
        description="Reason why it began: Started, Resumed, or that of the end of the attempt before.",
        max_length=128,
    )
    spec_hash: str = Field(
        default="",
        description="Hash of the fields that an attempt depends on; if the spec has another one, the attempt ends.",
        max_length=64,
    )
    spec_generation: int = Field(default=0, description="metadata.generation that it was started from.")
    ray_cluster: str = Field(
        default="", description="RayCluster of this attempt, in the namespace of the job.", max_length=63
    )
    ray_cluster_uid: str = Field(default="", description="uid of that RayCluster.", max_length=64)
    head_pod_uid: str = Field(default="", description="uid of the head pod at submission.", max_length=64)
    session_name: str = Field(default="", description="Ray session that the job was submitted to.", max_length=253)
    submission_id: str = Field(
        default="", description="Ray submission id, deterministic: the same attempt is never run twice.", max_length=128
    )
    replicas: tuple[str, ...] = Field(
        default=(),
        description="Per slice, the worker group replica that the gate passed; another one means a rebuilt slice.",
        max_length=16,
    )
    ray_status: str = Field(
        default="",
        description="Last status that Ray gave: PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED.",
        max_length=32,
    )
    started_at: Timestamp | None = Field(default=None, description="When all slices were Ready and the attempt began.")
    ray_cluster_ready_at: Timestamp | None = Field(
        default=None, description="When the gate on Ray's own node list passed."
    )
    submit_recorded_at: Timestamp | None = Field(
        default=None, description="When the intent to submit was written, before the call."
    )
    submitted_at: Timestamp | None = Field(default=None, description="When Ray had accepted the job.")
    running_at: Timestamp | None = Field(default=None, description="When Ray said RUNNING first.")
    stop_requested_at: Timestamp | None = Field(default=None, description="When the workers were told to stop.")
    failed_seen_at: Timestamp | None = Field(
        default=None,
        description="When a failure was first seen; for 60 s a lost host may still turn it into a disruption.",
    )
    ended_at: Timestamp | None = Field(default=None, description="When it was over.")
    reason: str = Field(default="", description="Why it ended.", max_length=128)
    message: str = Field(default="", description="What ended it, for people.", max_length=constants.MAX_MESSAGE)
    exit_code: int | None = Field(default=None, description="Exit code of the first failing rank.")
    failing_rank: int | None = Field(default=None, description="Rank that failed first.")


class AttemptOutcome(ApiEnum):
    """How an attempt is counted."""

    SUCCEEDED = "Succeeded", "the program ended with exit code 0"
    FAILURE = "Failure", "the program or its image broke it; counted in restarts"
    DISRUPTION = "Disruption", "the platform broke it; counted in disruptions"
    STOPPED = "Stopped", "ended by suspend, a changed spec, a deadline or deletion; counted nowhere"


class AttemptRecord(StatusModel):
    """An attempt that is over."""

    number: int = Field(description="Number of the attempt, from 1.")
    outcome: AttemptOutcome = Field(description="How the attempt is counted.")
    reason: str = Field(description="Why it ended.", max_length=128)
    message: str = Field(default="", description="What ended it, cut to 256 characters.", max_length=256)
    started_at: Timestamp | None = Field(default=None, description="When it began.")
    running_at: Timestamp | None = Field(default=None, description="When Ray said RUNNING first.")
    ended_at: Timestamp | None = Field(default=None, description="When it was over.")
    exit_code: int | None = Field(default=None, description="Exit code of the first failing rank.")
    failing_rank: int | None = Field(default=None, description="Rank that failed first.")


class Finishing(StatusModel):
    """How the job ends, kept while what it held is being released."""

    outcome: str = Field(description="Condition that will be set: Complete, Failed or Suspended.", max_length=32)
    reason: str = Field(description="Reason of that condition.", max_length=128)
    message: str = Field(default="", description="Message of that condition.", max_length=constants.MAX_MESSAGE)
    since: Timestamp = Field(description="When the end was decided.")


class JobUsage(StatusModel):
    """What the job has used."""

    chip_seconds: int = Field(
        default=0,
        description="Chip-seconds of slices that the job has given back; those that it holds are added when they go. A "
        "slice counts from the claim or its first node, whichever is later.",
    )
    estimated_cost: str | None = Field(
        default=None,
        description="Cost of those chip-seconds by the offers' pricePerChipHour, in its currency, a decimal; slices of "
        "offers without a price are not in it. Example: 12.3400.",
        max_length=32,
    )


class JobRetry(StatusModel):
    """Back-off after a call that did not give what was asked."""

    reason: str = Field(description="Why the call is made again.", max_length=128)
    message: str = Field(default="", description="What the other side said.", max_length=constants.MAX_MESSAGE)
    failures: int = Field(default=0, description="How often in a row.")
    at: Timestamp = Field(description="The call is not made again before this moment.")


class JobStatus(StatusModel):
    """What the operator has done and is waiting for."""

    observed_generation: int = Field(
        default=-1, description="metadata.generation that this status is about; -1: not yet seen."
    )
    phase: JobPhase | None = Field(
        default=None, description="Where the job is, in one word. For people; programs read conditions."
    )
    message: str = Field(
        default="",
        description="One line: what the job is doing or waiting for, why, and what happens or is needed next.",
        max_length=constants.MAX_MESSAGE,
    )
    resolved: ResolvedJob | None = Field(
        default=None, description="What the spec comes to; written before the first call to the cloud."
    )
    demand: Demand | None = Field(default=None, description="What the job asks of allocation.")
    slices: tuple[JobSlice, ...] = Field(default=(), description="The slices of the job, by index.", max_length=16)
    slices_ready: str = Field(
        default="", description="Slices that are Ready, of all, for columns. Example: 1/2.", max_length=16
    )
    attempt: Attempt | None = Field(default=None, description="The attempt that is under way, or the last one.")
    attempts: tuple[AttemptRecord, ...] = Field(
        default=(),
        description=f"The last {constants.MAX_ATTEMPT_HISTORY} attempts that are over, the newest last.",
        max_length=constants.MAX_ATTEMPT_HISTORY,
    )
    restarts: int = Field(default=0, description="Restarts after failures of the entrypoint, held against maxRestarts.")
    disruptions: int = Field(default=0, description="Restarts after disruptions, held against maxDisruptions.")
    usage: JobUsage = Field(default=JobUsage(), description="What the job has used.")
    queued_at: Timestamp | None = Field(
        default=None,
        description="Since when it waits for the limits of its class or for a class that is paused; queueDeadlineSeconds "
        "counts from here.",
    )
    next_attempt_at: Timestamp | None = Field(
        default=None, description="When the back-off before the next attempt is over."
    )
    start_time: Timestamp | None = Field(
        default=None,
        description="When the first attempt began, after a resume the first one since; activeDeadlineSeconds counts from here.",
    )
    completion_time: Timestamp | None = Field(
        default=None, description="When the job was over: ended, and all slices given back."
    )
    head_retained_until: Timestamp | None = Field(
        default=None, description="Until when the Ray head is kept for its logs."
    )
    admitted_hash: str = Field(
        default="",
        description="Hash of the spec whose RayCluster passed the server-side dry run; nothing is spent before.",
        max_length=64,
    )
    retry: JobRetry | None = Field(default=None, description="Back-off after a call that did not give what was asked.")
    finishing: Finishing | None = Field(
        default=None, description="How the job ends, kept while what it held is being released."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="What holds and what does not: SlicesReady, RayClusterReady, Suspended, Complete, Failed; and Ready, "
        "Reconciling, Stalled for kstatus, of which one is True. Example: kubectl wait --for=condition=Complete ttj/x.",
        max_length=16,
        json_schema_extra=BY_TYPE,
    )
