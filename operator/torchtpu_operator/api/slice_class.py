"""TPUSliceClass: where capacity comes from, what it may cost, who may use it."""

import enum
from typing import ClassVar, Literal

from pydantic import Field

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiModel, ApiObject, StatusModel
from torchtpu_operator.api.conditions import Condition
from torchtpu_operator.api.job_status import BY_TYPE
from torchtpu_operator.api.offer import LabelSelector, NodePoolTemplate, Offer
from torchtpu_operator.api.pod import BY_NAME, PodTemplate
from torchtpu_operator.api.slice import Reuse
from torchtpu_operator.api.timestamps import Timestamp


class ClassReclaim(ApiModel):
    """What happens to slices that a job lets go of."""

    idle_seconds: int = Field(
        0,
        description="How long a released slice waits for the next job, in seconds; 0: deleted unless a waiting job "
        "takes it.",
        ge=0,
    )
    reuse: Reuse = Field(
        Reuse.NAMESPACE,
        description="Namespace: only jobs of the same namespace take it over. Class: any job of the class.",
    )


class AllowedNamespaces(ApiModel):
    """Namespaces whose jobs may use the class."""

    selector: LabelSelector = Field(description="Labels of those namespaces; {} allows all.")


class NamespaceLimit(ApiModel):
    """A limit for each namespace that matches."""

    selector: LabelSelector = Field(description="Labels of the namespaces.")
    chips: int = Field(description="Chips in use at one time by each of them.", ge=0)


class Limits(ApiModel):
    """How much of the class may be in use at one time."""

    chips: int | None = Field(None, description="Chips of all slices of the class together.", ge=0)
    chips_per_job: int | None = Field(None, description="Chips of one job.", ge=0)
    namespaces: tuple[NamespaceLimit, ...] = Field(
        (), description="Limits by namespace; the smallest that matches holds.", max_length=64
    )


class JobDefaults(ApiModel):
    """What jobs of the class get unless they say otherwise."""

    image: str | None = Field(None, description="Image of head and workers.", min_length=1, max_length=1024)
    ray_version: str | None = Field(
        None,
        description="Ray version of that image, for example 2.60.0.",
        max_length=32,
        pattern=constants.RAY_VERSION,
    )
    template: PodTemplate | None = Field(None, description="Pod overlay that lies under the job's own.")


class ClassSpec(ApiModel):
    """Where capacity comes from, what it may cost, who may use it. Changes reach new slices only."""

    controller_name: str = Field(
        constants.MANAGED_BY, description="Which operator serves the class, as in an IngressClass.", max_length=253
    )
    paused: bool = Field(False, description="True: no new spending; running jobs go on and clean-up does too.")
    offers: tuple[Offer, ...] = Field(
        description="Ways of getting capacity, tried in order, each zone in order, each with a bounded wait.",
        min_length=1,
        max_length=16,
        json_schema_extra=BY_NAME,
    )
    node_pool: NodePoolTemplate = Field(
        NodePoolTemplate(), description="What the node pools look like beside what shape and offer decide."
    )
    max_lifetime_seconds: int = Field(
        604800,
        description="GKE itself ends the nodes of every pool that is not on a reservation after so long, also when "
        "the operator is down. 600 to 604800.",
        ge=600,
        le=604800,
    )
    reclaim: ClassReclaim = Field(ClassReclaim(), description="What happens to slices that a job lets go of.")
    allowed_namespaces: AllowedNamespaces | None = Field(
        None, description="Namespaces whose jobs may use the class. Unset: all."
    )
    limits: Limits = Field(Limits(), description="How much may be in use at one time. Unset: no limit.")
    job_defaults: JobDefaults = Field(
        JobDefaults(), description="What jobs of the class get unless they say otherwise."
    )


class OfferState(enum.StrEnum):
    """Whether an offer can be asked."""

    AVAILABLE = "Available"
    UNAVAILABLE = "Unavailable"


class OfferStatus(StatusModel):
    """What is known of one offer, in one zone, for one machine type."""

    name: str = Field(description="Name of the offer.", max_length=63)
    zone: str = Field(description="Zone.", max_length=63)
    machine_type: str = Field(description="Machine type that was asked for.", max_length=63)
    hosts: int = Field(description="Hosts that were asked for: requests for as many or more are held back.")
    state: OfferState = Field(description="Available or Unavailable.")
    reason: str = Field("", description="Why, for example Stockout.", max_length=128)
    message: str = Field("", description="What GKE said, and what to do.", max_length=constants.MAX_MESSAGE)
    retry_after: Timestamp | None = Field(None, description="When it is asked again.")
    failures: int = Field(0, description="Failed requests in a row.")


class ClassStatus(StatusModel):
    """State of the offers."""

    observed_generation: int = Field(-1, description="metadata.generation that this status is about; -1: not yet seen.")
    offers: tuple[OfferStatus, ...] = Field(
        (), description="What is known of the offers that failed lately.", max_length=128
    )
    slices: int = Field(0, description="Slices of the class.")
    chips: int = Field(0, description="Chips of those slices.")
    summary: str = Field("", description="Offers that can be asked, of all, for columns: 2/3.", max_length=16)
    conditions: tuple[Condition, ...] = Field(
        (), description="Ready, Reconciling, Stalled and SweepHalted.", max_length=16, json_schema_extra=BY_TYPE
    )


class TPUSliceClass(ApiObject):
    """A source of TPU capacity that platform engineers set up: offers in order, node pool template, limits and job "
    "defaults."""

    plural: ClassVar[str] = constants.CLASS_PLURAL

    api_version: Literal["torchtpu.dev/v1alpha1"] = "torchtpu.dev/v1alpha1"
    kind: Literal["TPUSliceClass"] = "TPUSliceClass"
    spec: ClassSpec = Field(description="Where capacity comes from, what it may cost, who may use it.")
    status: ClassStatus = Field(ClassStatus(), description="State of the offers.")

    @property
    def is_default(self) -> bool:
        """Whether jobs that name no class take this one."""
        return self.metadata.annotations.get(constants.ANNOTATION_DEFAULT_CLASS) == "true"
