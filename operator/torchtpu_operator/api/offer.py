"""Offers: the ways in which a class may get capacity, and the snapshot of one that a slice carries."""

import enum
from typing import Any

from pydantic import Field

from torchtpu_operator.api.base import ApiModel


class OfferType(enum.StrEnum):
    """How GKE is asked for the chips."""

    ON_DEMAND = "OnDemand"
    SPOT = "Spot"
    RESERVATION = "Reservation"
    FLEX_START = "FlexStart"
    EXISTING = "Existing"


class Provisioning(enum.StrEnum):
    """Whether a pool is made with its nodes or made empty and scaled up."""

    CREATE = "Create"
    SCALE_UP = "ScaleUp"


class LabelSelectorRequirement(ApiModel):
    """One requirement on a label."""

    key: str = Field(description="Label that the requirement looks at.", max_length=317)
    operator: str = Field(description="In, NotIn, Exists or DoesNotExist.", max_length=16)
    values: tuple[str, ...] | None = Field(None, description="Values for In and NotIn.", max_length=64)


class LabelSelector(ApiModel):
    """metav1.LabelSelector: an empty one matches everything."""

    match_labels: dict[str, str] | None = Field(None, description="Labels that must all be there.", max_length=64)
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = Field(
        None, description="Requirements that must all hold.", max_length=32
    )


class Reservation(ApiModel):
    """A Compute Engine reservation that the pool draws on."""

    name: str = Field(description="Name of the reservation.", min_length=1, max_length=63)
    project: str | None = Field(
        None, description="Project that owns it, when it is shared from another one.", max_length=63
    )
    block: str | None = Field(None, description="Block of the reservation, to stay within it.", max_length=63)
    sub_block: str | None = Field(None, description="Sub-block of that block.", max_length=63)
    chips: int | None = Field(
        None,
        description="Chips that the reservation holds: all classes together take no more; the smallest value given "
        "wins.",
        ge=1,
    )


class FlexStart(ApiModel):
    """Flex-start: GKE finds the chips when it can and takes them back after a time."""

    max_run_duration_seconds: int = Field(
        604800, description="How long the nodes may live, in seconds: 600 to 604800.", ge=600, le=604800
    )


class Existing(ApiModel):
    """Node pools that are there already: adopted as they are, never written to, never deleted."""

    node_pool_selector: LabelSelector = Field(description="Labels of the nodes of the pools that may be used.")


class Offer(ApiModel):
    """One way of getting capacity."""

    name: str = Field(
        description="Name of the offer, unique in the class; jobs may pick offers by it.",
        min_length=1,
        max_length=63,
        pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    )
    type: OfferType = Field(
        description="OnDemand, Spot, Reservation, FlexStart or Existing. Required, so that a lost field never means "
        "on-demand."
    )
    zones: tuple[str, ...] = Field(
        (),
        description="Zones to try, in order, for example [us-east5-b]. Required but for type Existing.",
        max_length=16,
    )
    provisioning: Provisioning = Field(
        Provisioning.CREATE,
        description="Create: the pool is made with its nodes. ScaleUp: made empty and scaled up, which does not lock "
        "the cluster while capacity is missing. FlexStart always scales up.",
    )
    reservation: Reservation | None = Field(None, description="The reservation, for type Reservation.")
    flex_start: FlexStart | None = Field(None, description="Settings of type FlexStart.")
    existing: Existing | None = Field(None, description="Which pools, for type Existing.")
    accelerators: tuple[str, ...] = Field(
        (), description="Only for these accelerators; empty means all. Example: [v6e].", max_length=8
    )
    wait_seconds: int | None = Field(
        None,
        description="How long one request may wait for its nodes, from the moment that GKE accepted it. Unset: 2700 "
        "for Create, 1800 for ScaleUp.",
        ge=60,
    )
    max_chips: int | None = Field(None, description="Chips in use from this offer at one time.", ge=1)
    price_per_chip_hour: str | None = Field(
        None,
        description='Price of one chip for one hour, for cost estimates; a decimal in quotes, for example "1.20".',
        max_length=16,
        pattern=r"^[0-9]+(\.[0-9]+)?$",
    )
    workload_policy: str | None = Field(
        None,
        description="v7x on several hosts: name of the workload policy in the region of the pool, whose topology is "
        "the slice's.",
        max_length=63,
        pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
    )


class SliceOffer(ApiModel):
    """The offer and zone that a slice was made from, as they were then."""

    name: str = Field(description="Name of the offer in its class.", max_length=63)
    type: OfferType = Field(description="OnDemand, Spot, Reservation, FlexStart or Existing.")
    zone: str = Field(description="Zone of the node pool.", max_length=63)
    provisioning: Provisioning = Field(Provisioning.CREATE, description="Create or ScaleUp.")
    reservation: Reservation | None = Field(None, description="The reservation drawn on.")
    flex_start: FlexStart | None = Field(None, description="Settings of flex-start.")
    wait_seconds: int | None = Field(
        None,
        description="How long the request may wait for its nodes; unset: 2700 for Create, 1800 for ScaleUp.",
        ge=60,
    )
    price_per_chip_hour: str | None = Field(
        None, description="Price of one chip-hour, for cost estimates.", max_length=16
    )
    workload_policy: str | None = Field(
        None, description="Workload policy of a v7x slice on several hosts.", max_length=63
    )


class Taint(ApiModel):
    """A taint on the nodes."""

    key: str = Field(description="Key of the taint.", min_length=1, max_length=253)
    value: str = Field("", description="Value of the taint.", max_length=63)
    effect: str = Field(description="NoSchedule, PreferNoSchedule or NoExecute.", max_length=32)


class Maintenance(ApiModel):
    """What GKE may do to the nodes while they are in use."""

    exclude_upgrades: bool = Field(
        False, description="No automatic node upgrades until the end of support of the pool's version."
    )


class NodePoolTemplate(ApiModel):
    """What the node pools of a class look like beside what the shape and the offer decide."""

    service_account: str | None = Field(
        None, description="Google service account of the nodes. Unset: the cluster's default.", max_length=254
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="Labels on the nodes, beside the operator's own.", max_length=32
    )
    taints: tuple[Taint, ...] = Field((), description="Taints on the nodes, beside the operator's own.", max_length=16)
    resource_labels: dict[str, str] = Field(
        default_factory=dict, description="Labels on the virtual machines, for cost reports.", max_length=32
    )
    disk_type: str | None = Field(
        None,
        description="Boot disk type. Unset: what suits the generation, for example hyperdisk-balanced.",
        max_length=63,
    )
    disk_size_gb: int | None = Field(None, description="Boot disk size in GB. Unset: 100.", ge=10, le=65536)
    max_pods_per_node: int | None = Field(
        None, description="Pods per node; fewer save pod addresses. Unset: 15.", ge=8, le=256
    )
    image_streaming: bool = Field(
        False, description="Start containers before their image is wholly there (GKE image streaming)."
    )
    secure_boot: bool = Field(False, description="Shielded nodes with secure boot, beside integrity monitoring.")
    network_config: dict[str, Any] | None = Field(
        None, description="GKE's NodeNetworkConfig as the API has it, for example {enablePrivateNodes: true}."
    )
    maintenance: Maintenance | None = Field(None, description="What GKE may do to the nodes while they are in use.")
