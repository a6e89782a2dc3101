"""TorchTPUJob: what to run, on how many slices of which shape."""

import enum
from typing import Any, ClassVar, Literal

from pydantic import Field

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiModel, ApiObject, OpenModel
from torchtpu_operator.api.job_status import JobStatus
from torchtpu_operator.api.pod import BY_NAME, MAX_ENV, EnvVar, PodRole, PodTemplate


class Launcher(enum.StrEnum):
    """What starts the workers."""

    PER_DEVICE = "PerDevice"
    PER_HOST = "PerHost"
    DRIVER = "Driver"


class ConfigMapSource(ApiModel):
    """A ConfigMap in the namespace of the job."""

    name: str = Field(description="Name of the ConfigMap.", min_length=1, max_length=253)


class WorkingDir(ApiModel):
    """The folder that the entrypoint runs in: exactly one source."""

    config_map: ConfigMapSource | None = Field(
        None, description="A ConfigMap whose keys become files; read-only, at most 1 MiB."
    )
    uri: str | None = Field(
        None, description="A zip that Ray fetches: gs://..., s3://... or https://....zip.", max_length=2048
    )


class RuntimeEnv(OpenModel):
    """Ray's runtime environment, as Ray has it (snake_case)."""

    model_config = OpenModel.model_config | {"alias_generator": None}

    working_dir: str | None = Field(
        None, description="A zip that Ray fetches; exclusive with spec.workingDir.", max_length=2048
    )
    env_vars: dict[str, str] | None = Field(
        None, description="Variables for the workers. Prefer spec.env, which takes secrets.", max_length=MAX_ENV
    )


class Backoff(ApiModel):
    """Time between attempts: doubled each time, up to a limit."""

    initial_seconds: int = Field(10, description="Wait before the first restart, in seconds.", ge=0, le=86400)
    max_seconds: int = Field(600, description="Longest wait before a restart, in seconds.", ge=0, le=86400)


class ExitCodeOperator(enum.StrEnum):
    """How the exit code is compared."""

    IN = "In"
    NOT_IN = "NotIn"


class OnExitCodes(ApiModel):
    """Matches the exit code of the first failing rank."""

    operator: ExitCodeOperator = Field(description="In or NotIn.")
    values: tuple[int, ...] = Field(description="Exit codes, 1 to 255.", min_length=1, max_length=255)


class FailureAction(enum.StrEnum):
    """What a failure means."""

    FAIL = "Fail"
    RESTART = "Restart"
    IGNORE = "Ignore"


class FailureRule(ApiModel):
    """One rule about failures; the first that matches decides."""

    action: FailureAction = Field(
        description="Fail ends the job; Restart counts in maxRestarts; Ignore restarts and counts in maxDisruptions."
    )
    on_exit_codes: OnExitCodes = Field(description="Exit codes of the entrypoint that the rule is about.")


class FailurePolicy(ApiModel):
    """When a job that broke off is started again."""

    max_restarts: int = Field(
        0, description="Restarts after failures of the entrypoint. 0: the first failure ends the job.", ge=0, le=1000000
    )
    max_disruptions: int = Field(
        20,
        description="Restarts after preemption, maintenance or a lost host; counted apart from failures.",
        ge=0,
        le=1000000,
    )
    backoff: Backoff = Field(Backoff(), description="Time between attempts.")
    no_progress_seconds: int | None = Field(
        None,
        description="End an attempt none of whose ranks printed a line or touched its heartbeat file for so long. "
        "Unset: never.",
        ge=60,
    )
    rules: tuple[FailureRule, ...] = Field(
        (), description="Rules by exit code, in order; without a match: Restart.", max_length=20
    )


class Budget(ApiModel):
    """What the job may use."""

    chip_hours: int | str = Field(
        description="Chip-hours over all attempts, an integer or a decimal in quotes; the job is stopped before it "
        'passes them. Example: 500 or "12.5".'
    )


class JobSpec(ApiModel):
    """What to run and on what."""

    accelerator: str = Field(
        "", description="TPU generation: v4, v5e, v5p, v6e or v7x. Required; never changes.", max_length=253
    )
    topology: str = Field(
        "",
        description="Chips of one slice as GKE writes them: 4x4 (v5e, v6e) or 2x2x2 (v4, v5p, v7x). Required; never "
        "changes.",
        max_length=253,
    )
    num_slices: int = Field(
        1,
        description="Slices, 1 to 16. More than one only with shapes of several hosts, or under launcher Driver. "
        "Never changes.",
    )
    chips_per_host: int | None = Field(
        None,
        description="Only where the shape leaves a choice: v5e and v6e 2x4 are one host of 8 chips (default) or two "
        "of 4. Never changes.",
    )
    slice_class_name: str | None = Field(
        None,
        description="TPUSliceClass that the capacity comes from. Unset: the default class; what was taken is pinned "
        "in status. Never changes.",
        min_length=1,
        max_length=253,
    )
    offers: tuple[str, ...] | None = Field(
        None,
        description="Only these offers of the class, in the class's order. Unset: all. Never changes.",
        min_length=1,
        max_length=32,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    launcher: Launcher = Field(
        Launcher.PER_DEVICE,
        description="PerDevice: the entrypoint once per TPU device, ranks set. PerHost: once per host, torchrun's "
        "PET_* set. Driver: once, as a Ray driver that starts its workers itself (Ray Train, Ray Tune). Never changes.",
    )
    entrypoint: str = Field(
        "",
        description="Command line for `bash -c`, as long and with as many lines as you like, for example python "
        "train.py. Required; changes only while suspended.",
        max_length=131072,
    )
    image: str | None = Field(
        None,
        description="Image of head and workers, with Ray and torch_tpu in it. Unset: jobDefaults.image of the class. "
        "Changes only while suspended.",
        min_length=1,
        max_length=1024,
    )
    ray_version: str | None = Field(
        None,
        description="Ray version of the image, for example 2.60.0; compared with what the head says. Changes only "
        "while suspended.",
        max_length=32,
        pattern=constants.RAY_VERSION,
    )
    working_dir: WorkingDir | None = Field(
        None, description="Folder that the entrypoint runs in: a ConfigMap or a zip. Changes only while suspended."
    )
    checkpoint_dir: str | None = Field(
        None,
        description="Where checkpoints go, for example gs://acme/run7; reaches the workers as "
        "TORCHTPU_CHECKPOINT_DIR, the same over attempts and suspends. Never changes.",
        min_length=1,
        max_length=2048,
    )
    runtime_env: RuntimeEnv | None = Field(
        None, description="Ray's runtime_env for the job, for example {pip: [...]}. Changes only while suspended."
    )
    env: tuple[EnvVar, ...] | None = Field(
        None,
        description="Environment of the container `ray` of head and workers, with valueFrom as in a pod. Changes only "
        "while suspended.",
        max_length=MAX_ENV,
        json_schema_extra=BY_NAME,
    )
    template: PodTemplate | None = Field(
        None, description="Pod overlay for head and workers. Changes only while suspended."
    )
    head: PodRole | None = Field(None, description="The Ray head, a CPU pod. Changes only while suspended.")
    worker: PodRole | None = Field(None, description="The Ray workers, one per TPU host. Changes only while suspended.")
    suspend: bool = Field(
        False, description="True gives all capacity back and keeps the job; false goes on. Changes at any time."
    )
    managed_by: str = Field(
        constants.MANAGED_BY,
        description="Controller of this job; any value but torchtpu.dev/operator: the operator keeps its hands off. "
        "Never changes.",
        max_length=63,
    )
    priority_class_name: str | None = Field(
        None,
        description="PriorityClass: orders waiting jobs and is set on the pods. Changes at any time, for later "
        "attempts.",
        max_length=253,
    )
    failure_policy: FailurePolicy = Field(
        FailurePolicy(), description="When a job that broke off is started again. Changes at any time."
    )
    queue_deadline_seconds: int | None = Field(
        None,
        description="Longest single wait for limits, a paused class or a queue; its clock starts with each such wait. "
        "Unset: no end.",
        ge=1,
    )
    capacity_deadline_seconds: int | None = Field(
        14400,
        description="Longest single wait for chips, in seconds; starts with the first request to GKE, ends when all "
        "slices are Ready, or at suspend.",
        ge=1,
    )
    start_deadline_seconds: int | None = Field(
        1800,
        description="Longest start of one attempt, in seconds: from all slices Ready until the job runs.",
        ge=1,
    )
    active_deadline_seconds: int | None = Field(
        None,
        description="Longest life of the job, in seconds, from its first attempt over all attempts; starts again at "
        "resume. Unset: no end.",
        ge=1,
    )
    stop_grace_period_seconds: int = Field(
        60, description="Time between SIGTERM and SIGKILL for the workers when the job is stopped.", ge=0, le=3600
    )
    budget: Budget | None = Field(None, description="What the job may use. Changes at any time.")
    log_retention_seconds: int = Field(
        3600,
        description="How long the Ray head stays for its logs after the slices are released, in seconds; 0 removes it "
        "at once.",
        ge=0,
    )
    ttl_seconds_after_finished: int | None = Field(
        None,
        description="Delete the job so long after it ended. Unset: keep it. Ignored, with a Warning event, on objects "
        "that Argo or Flux track: they would make it again and so run it again.",
        ge=0,
    )


class TorchTPUJob(ApiObject):
    """A PyTorch program on Cloud TPU slices: capacity, Ray cluster, gang-scheduled workers, restarts and clean-up.

    The shortest one has accelerator, topology and entrypoint; the image then comes from the slice class.
    """

    plural: ClassVar[str] = constants.JOB_PLURAL

    api_version: Literal["torchtpu.dev/v1alpha1"] = "torchtpu.dev/v1alpha1"
    kind: Literal["TorchTPUJob"] = "TorchTPUJob"
    spec: JobSpec = Field(description="What to run and on what.")
    status: JobStatus = Field(JobStatus(), description="What the operator has done and is waiting for.")

    def spec_document(self) -> dict[str, Any]:
        """The spec as the API has it."""
        return self.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
