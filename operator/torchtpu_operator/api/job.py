"""TorchTPUJob: what to run, on how many slices of which shape."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from torchtpu_operator.api import constants, passed_fields
from torchtpu_operator.api.base import ApiEnum, ApiModel, ApiObject, OpenModel
from torchtpu_operator.api.failure_policy import FailurePolicy
from torchtpu_operator.api.job_status import JobStatus
from torchtpu_operator.api.pod import BY_NAME, MAX_ENV, EnvVar, PodRole, PodTemplate
from torchtpu_operator.tpu import CATALOGUE


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, (*version, 0)))


class Launcher(ApiEnum):
    """What starts the workers."""

    PER_DEVICE = "PerDevice", "the entrypoint once per TPU device, with RANK, LOCAL_RANK, MASTER_ADDR and the rest set"
    PER_HOST = "PerHost", "the entrypoint once per TPU host, with torchrun's PET_* set: torchrun train.py"
    DRIVER = "Driver", "the entrypoint once, as a Ray driver that starts its workers itself (Ray Train, Ray Tune)"


class ConfigMapSource(ApiModel):
    """A ConfigMap in the namespace of the job."""

    name: str = Field(description="Name of the ConfigMap. Example: code.", min_length=1, max_length=253)


class WorkingDir(ApiModel):
    """The folder that the entrypoint runs in: exactly one source."""

    config_map: ConfigMapSource | None = Field(
        default=None,
        description="A ConfigMap whose keys become files, mounted read-only in head and workers; at most 1 MiB. "
        "Example: {name: code}.",
    )
    uri: str | None = Field(
        default=None,
        description="A zip that Ray fetches at the start of each attempt: gs://..., s3://... or https://..., ending in "
        ".zip. Example: gs://acme/code.zip.",
        max_length=2048,
    )


class RuntimeEnv(OpenModel):
    """Ray's runtime environment, in Ray's own words (snake_case); fields that are not listed here pass as they are."""

    model_config = OpenModel.model_config | {"alias_generator": None}
    passed: ClassVar[tuple[str, ...]] = passed_fields.RUNTIME_ENV
    passed_as: ClassVar[str] = "Ray's page on runtime environments"

    working_dir: str | None = Field(
        default=None,
        description="A zip that Ray fetches; not together with spec.workingDir. Example: gs://acme/code.zip.",
        max_length=2048,
    )
    env_vars: dict[str, str] | None = Field(
        default=None,
        description="Environment variables of the Ray workers. Prefer spec.env, which takes secrets too. Example: "
        "{WANDB_MODE: offline}.",
        max_length=MAX_ENV,
    )

    # Our own fields are in camelCase, Ray's are not, and Ray does not say a word about a field that it does not know:
    # these are in the schema so that a rule can say it.
    envVars: dict[str, str] | None = Field(  # noqa: N815
        default=None, description="Refused: Ray's own word is env_vars.", max_length=MAX_ENV
    )
    workingDir: str | None = Field(  # noqa: N815
        default=None, description="Refused: Ray's own word is working_dir.", max_length=2048
    )
    pyModules: tuple[str, ...] | None = Field(  # noqa: N815
        default=None, description="Refused: Ray's own word is py_modules.", max_length=MAX_ENV
    )


class Budget(ApiModel):
    """What the job may use."""

    chip_hours: int | str = Field(
        description="Chip-hours over all attempts, an integer or a decimal in quotes. Each slice counts from its claim or "
        "its first node, whichever is later, until it is given back. The job fails (BudgetExhausted) before it passes "
        "them: when what is used and what stopping may take, the grace and 60 s, reach the budget. Example: 500 or "
        '"12.5".'
    )


class JobSpec(ApiModel):
    """What to run, on how many slices of which shape, for how long."""

    accelerator: str = Field(
        default="",
        description=f"TPU generation: {', '.join(CATALOGUE)}. v7x is GKE's tpu7x (Ironwood). Required. Example: v6e.",
        max_length=253,
    )
    topology: str = Field(
        default="",
        description="Chips of one slice along each axis, as GKE writes it: two axes for v5e and v6e, three for v4, v5p "
        "and v7x, the smaller first. Required. Example: 4x4, or 2x2x4.",
        max_length=253,
    )
    num_slices: int = Field(
        default=1,
        description=f"Slices of this topology, 1 to {constants.MAX_SLICES}, all in one zone. More than one takes a "
        "topology of several hosts, or launcher Driver.",
    )
    chips_per_host: int | None = Field(
        default=None,
        description="Chips of one host, where the shape leaves a choice: v5e and v6e 2x4 are one host of 8 chips or two "
        "hosts of 4. Unset: the single host. Example: 4.",
    )
    slice_class_name: str | None = Field(
        default=None,
        description="TPUSliceClass that the capacity comes from. Unset: the default class of the cluster; what was "
        "taken is pinned in status.resolved.sliceClassName. Example: spot.",
        min_length=1,
        max_length=253,
    )
    offers: tuple[str, ...] | None = Field(
        default=None,
        description="Use only these offers of the class, in the order of the class. Unset: all. Example: [reserved].",
        min_length=1,
        max_length=32,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    launcher: Launcher = Field(default=Launcher.PER_DEVICE, description="What starts the workers.")
    entrypoint: str = Field(
        default="",
        description="Command line for bash, as long and with as many lines and quotes as you like; it arrives as it is "
        "written. Required. Example: python train.py --steps 1000.",
        max_length=65536,
    )
    image: str | None = Field(
        default=None,
        description="Image of head and workers, with Ray, PyTorch and torch_tpu in it. Unset: jobDefaults.image of the "
        "class. Example: us-docker.pkg.dev/acme/ml/ray-torchtpu:2.60.0.",
        min_length=1,
        max_length=1024,
    )
    ray_version: str | None = Field(
        default=None,
        description="Ray version of the image; the job fails before its program starts if the Ray head says another "
        f"one. At least {_dotted(constants.MIN_RAY)}, with several slices {_dotted(constants.MIN_RAY_SEVERAL_SLICES)}. "
        "Unset: jobDefaults.rayVersion of the class, or whatever the image has. Example: 2.60.0.",
        max_length=32,
    )
    working_dir: WorkingDir | None = Field(
        default=None,
        description="Folder with the program: the entrypoint runs in it, and Python finds modules there. Unset: the "
        "image's own. Example: {configMap: {name: code}}.",
    )
    checkpoint_dir: str | None = Field(
        default=None,
        description="Where the program keeps its checkpoints; it gets the value as TORCHTPU_CHECKPOINT_DIR, the same "
        "over attempts and suspends. The operator itself does nothing there. Example: gs://acme/run7.",
        min_length=1,
        max_length=2048,
    )
    runtime_env: RuntimeEnv | None = Field(
        default=None,
        description="Ray's runtime environment of the job, set up at each attempt. Example: {pip: [einops]}.",
    )
    env: tuple[EnvVar, ...] | None = Field(
        default=None,
        description="Environment variables of the container `ray` of head and workers, as in a pod; names that the "
        "operator sets are refused. Another order alone is no change: it waits for the next attempt. Example: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}].",
        max_length=MAX_ENV,
        json_schema_extra=BY_NAME,
    )
    template: PodTemplate | None = Field(
        default=None,
        description="Pod overlay for head and workers, by the rules of strategic merge: laid over the operator's pod "
        "and jobDefaults.template of the class. The main container is named `ray`. Example: {spec: "
        "{serviceAccountName: trainer}}.",
    )
    head: PodRole | None = Field(
        default=None, description="What applies to the Ray head alone, a CPU pod. Example: {template: {spec: {...}}}."
    )
    worker: PodRole | None = Field(
        default=None,
        description="What applies to the Ray workers alone, one pod per TPU host. Example: {template: {spec: {...}}}.",
    )
    suspend: bool = Field(
        default=False,
        description="True: stop the program with its grace, give all capacity back and keep the job. False: go on, with "
        "a new attempt.",
    )
    managed_by: str = Field(
        default=constants.MANAGED_BY,
        description="Controller of this job. With any other value the operator keeps its hands off.",
        max_length=63,
    )
    priority_class_name: str | None = Field(
        default=None,
        description="PriorityClass. Of jobs that wait, the one with the higher value is served first, then the older "
        "one; nothing that runs is preempted for it. Set on the pods of later attempts too. Example: high.",
        max_length=253,
    )
    failure_policy: FailurePolicy = Field(
        default=FailurePolicy(), description="When a job that broke off is started again. Example: {maxRestarts: 3}."
    )
    queue_deadline_seconds: int | None = Field(
        default=None,
        description="Longest single wait for the limits of the class, for a class that is paused, for a ResourceQuota of "
        "the namespace, or for a queue, in seconds; then the job fails. Its clock starts with each such wait. Unset: no "
        "end. Example: 86400.",
        ge=1,
        le=constants.MAX_INT,
    )
    capacity_deadline_seconds: int | None = Field(
        default=14400,
        description="Longest single wait for chips, in seconds; then the job fails. Its clock starts with the first "
        "request to GKE, or with the loss if a job that still holds slices waits for others; it ends when all slices "
        "are Ready, or at suspend.",
        ge=1,
        le=constants.MAX_INT,
    )
    start_deadline_seconds: int | None = Field(
        default=1800,
        description="Longest start of one attempt, in seconds; then the job fails. Its clock starts when all slices are "
        "Ready and ends when the program runs.",
        ge=1,
        le=constants.MAX_INT,
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        description="Longest life of the job, in seconds, over all attempts and the waits between them; then it fails. "
        "Its clock starts with the first attempt, and again with the first one after a resume. Unset: no end. Example: "
        "604800.",
        ge=1,
        le=constants.MAX_INT,
    )
    stop_grace_period_seconds: int = Field(
        default=60,
        description="Time to write a last checkpoint, in seconds: its clock starts with SIGTERM to every rank and ends "
        "with SIGKILL, whenever the job is stopped (suspend, deletion, a deadline). A change reaches the program with its next "
        "attempt.",
        ge=0,
        le=3600,
    )
    budget: Budget | None = Field(default=None, description="What the job may use. Example: {chipHours: 500}.")
    log_retention_seconds: int = Field(
        default=3600,
        description="How long the Ray head, a CPU pod, stays for its logs, in seconds; 0 removes it at once. Its clock "
        "starts when the job is over and its slices are given back. A suspended job keeps no head.",
        ge=0,
        le=constants.MAX_INT,
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        description="Delete the job so many seconds after its end; the clock starts at status.completionTime. Unset: "
        "keep it. Ignored, with a Warning event, on objects that Argo or Flux track: they would make it again and so "
        "run it again. Example: 86400.",
        ge=0,
        le=constants.MAX_INT,
    )


class TorchTPUJob(ApiObject):
    """A PyTorch program on Cloud TPU slices: capacity, Ray cluster, gang-scheduled workers, restarts and clean-up.

    The shortest one has accelerator, topology and entrypoint; the image then comes from the slice class.
    """

    plural: ClassVar[str] = constants.JOB_PLURAL

    api_version: Literal["torchtpu.dev/v1alpha1"] = "torchtpu.dev/v1alpha1"
    kind: Literal["TorchTPUJob"] = "TorchTPUJob"
    spec: JobSpec = Field(description="What to run, on how many slices of which shape, for how long.")
    status: JobStatus = Field(
        default=JobStatus(),
        description="What the operator has done, what it waits for, and why. Written by the operator alone.",
    )

    def spec_document(self) -> dict[str, Any]:
        """The spec as the API has it."""
        return self.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
