"""TPUSliceClass: where capacity comes from, what it may cost, who may use it."""

from typing import ClassVar, Literal

from pydantic import Field

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiEnum, ApiModel, ApiObject, StatusModel
from torchtpu_operator.api.conditions import Condition
from torchtpu_operator.api.job_status import BY_TYPE
from torchtpu_operator.api.offer import LabelSelector, NodePoolTemplate, Offer
from torchtpu_operator.api.pod import BY_NAME, PodTemplate
from torchtpu_operator.api.slice import Reuse
from torchtpu_operator.api.timestamps import Timestamp


class ClassReclaim(ApiModel):
    """What happens to slices that a job lets go of."""

    idle_seconds: int = Field(
        default=0,
        description="How long a released slice stays for the next job, in seconds; 0: deleted unless a waiting job "
        "takes it. Its clock starts at the release. Example: 600.",
        ge=0,
        le=constants.MAX_INT,
    )
    reuse: Reuse = Field(default=Reuse.NAMESPACE, description="Which jobs may take it over.")


class AllowedNamespaces(ApiModel):
    """Namespaces whose jobs may use the class."""

    selector: LabelSelector = Field(
        description="Labels of those namespaces; {} allows all. By name: {matchExpressions: [{key: "
        "kubernetes.io/metadata.name, operator: In, values: [ml]}]}. Example: {matchLabels: {team: ml}}."
    )


class NamespaceLimit(ApiModel):
    """A limit for each namespace that matches."""

    selector: LabelSelector = Field(
        description="Labels of the namespaces that the limit is about. Example: {matchLabels: {team: ml}}."
    )
    chips: int = Field(
        description="Chips in use at one time by the jobs of each of them. Example: 128.", ge=0, le=constants.MAX_INT
    )


class Limits(ApiModel):
    """How much of the class may be in use at one time."""

    chips: int | None = Field(
        default=None,
        description="Chips of all slices of the class together, also of those that are on their way in or out. Unset: no "
        "limit. Example: 512.",
        ge=0,
        le=constants.MAX_INT,
    )
    chips_per_job: int | None = Field(
        default=None,
        description="Chips of one job; a larger one is not admitted (LimitsTooSmall). Unset: no limit. Example: 256.",
        ge=0,
        le=constants.MAX_INT,
    )
    namespaces: tuple[NamespaceLimit, ...] = Field(
        default=(),
        description="Limits by namespace, by its labels; each one that matches holds. Example: [{selector: {}, chips: 64}].",
        max_length=64,
    )


class JobDefaults(ApiModel):
    """What jobs of the class get unless they say otherwise."""

    image: str | None = Field(
        default=None,
        description="Image of head and workers, for jobs without spec.image.",
        min_length=1,
        max_length=1024,
    )
    ray_version: str | None = Field(
        default=None,
        description="Ray version of that image, for jobs without spec.rayVersion. Example: 2.60.0.",
        max_length=32,
    )
    template: PodTemplate | None = Field(
        default=None, description="Pod overlay for head and workers that lies under the job's own."
    )


class ClassSpec(ApiModel):
    """Where capacity comes from, who may use it, and how much of it. A change of offers, nodePool, reclaim or
    maxLifetimeSeconds reaches new slices only."""

    controller_name: str = Field(
        default=constants.MANAGED_BY,
        description="Which operator serves the class, as in an IngressClass; one with another name leaves it alone.",
        max_length=253,
    )
    paused: bool = Field(
        default=False,
        description="True: no new slices. Running jobs go on, and so do releases and clean-up; jobs that need a new slice wait "
        "(ClassPaused).",
    )
    offers: tuple[Offer, ...] = Field(
        description="Ways of getting capacity, in order. Zones are tried in the order in which the offers name them, and "
        "in each zone the offers in theirs; all slices of a job come from one zone. An offer that fails is left out for "
        "a while. Example: [{name: spot, type: Spot, zones: [us-east5-b]}].",
        min_length=1,
        max_length=16,
        json_schema_extra=BY_NAME,
    )
    node_pool: NodePoolTemplate = Field(
        default=NodePoolTemplate(),
        description="What the node pools look like, beside what shape and offer decide. Example: {imageStreaming: true}.",
    )
    max_lifetime_seconds: int = Field(
        default=604800,
        description="GKE itself ends each node so many seconds after its start, also when the operator is down: the stop "
        "that always works. Not for offers of type Reservation.",
        ge=600,
        le=604800,
    )
    reclaim: ClassReclaim = Field(
        default=ClassReclaim(), description="What happens to slices that a job lets go of. Example: {idleSeconds: 600}."
    )
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None,
        description="Namespaces whose jobs may use the class. Unset: all. Example: {selector: {matchLabels: {team: ml}}}.",
    )
    limits: Limits = Field(
        default=Limits(),
        description="How much of the class may be in use at one time; jobs beyond it wait (WaitingForLimits). Example: "
        "{chips: 512}.",
    )
    job_defaults: JobDefaults = Field(
        default=JobDefaults(),
        description="What jobs of the class get unless they say otherwise. Example: {rayVersion: 2.60.0}.",
    )


class OfferState(ApiEnum):
    """Whether an offer can be asked."""

    AVAILABLE = "Available", "it is asked"
    UNAVAILABLE = "Unavailable", "it is not asked before retryAfter"


class OfferStatus(StatusModel):
    """What is known of one offer, in one zone, for one machine type."""

    name: str = Field(description="Name of the offer.", max_length=63)
    zone: str = Field(description="Zone that was asked. Example: us-east5-b.", max_length=63)
    machine_type: str = Field(description="Machine type that was asked for.", max_length=63)
    hosts: int = Field(description="Hosts that were asked for: requests for as many or more are held back.")
    state: OfferState = Field(description="Whether the offer can be asked.")
    reason: str = Field(default="", description="Why. Example: Stockout.", max_length=128)
    message: str = Field(default="", description="What GKE said, and what to do.", max_length=constants.MAX_MESSAGE)
    retry_after: Timestamp | None = Field(default=None, description="Before this moment it is not asked again.")
    failures: int = Field(default=0, description="Failed requests in a row.")
    generation: int = Field(
        default=0,
        description="metadata.generation of the class then: an InvalidRequest ends when the class is changed.",
    )


class ClassStatus(StatusModel):
    """State of the offers."""

    observed_generation: int = Field(
        default=-1, description="metadata.generation that this status is about; -1: not yet seen."
    )
    offers: tuple[OfferStatus, ...] = Field(
        default=(), description="What is known of offers that failed lately; others can be asked.", max_length=128
    )
    slices: int = Field(default=0, description="Slices of the class, without failed ones.")
    chips: int = Field(default=0, description="Chips of those slices.")
    summary: str = Field(
        default="",
        description="Offers that can be asked, of all, each zone counted, for columns. Example: 2/3.",
        max_length=16,
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Ready, Reconciling, Stalled and SweepHalted. Reserved: not written yet.",
        max_length=16,
        json_schema_extra=BY_TYPE,
    )


class TPUSliceClass(ApiObject):
    """A source of TPU capacity that platform engineers set up: offers in order, node pool template, limits and job
    defaults."""

    plural: ClassVar[str] = constants.CLASS_PLURAL

    api_version: Literal["torchtpu.dev/v1alpha1"] = "torchtpu.dev/v1alpha1"
    kind: Literal["TPUSliceClass"] = "TPUSliceClass"
    spec: ClassSpec = Field(
        description="Where capacity comes from, who may use it, and how much of it. A change of offers, nodePool, reclaim or "
        "maxLifetimeSeconds reaches new slices only.",
    )
    status: ClassStatus = Field(
        default=ClassStatus(), description="State of the offers. Written by the operator alone."
    )

    @property
    def is_default(self) -> bool:
        """Whether jobs that name no class take this one."""
        return self.metadata.annotations.get(constants.ANNOTATION_DEFAULT_CLASS) == "true"
