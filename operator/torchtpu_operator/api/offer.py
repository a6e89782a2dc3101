"""Offers: the ways in which a class may get capacity, and the snapshot of one that a slice carries."""

from typing import Annotated, ClassVar

from pydantic import Field

from torchtpu_operator.api import constants, passed_fields
from torchtpu_operator.api.base import ApiEnum, ApiModel, OpenModel


class OfferType(ApiEnum):
    """How GKE is asked for the chips."""

    ON_DEMAND = "OnDemand", "at list price, without a commitment"
    SPOT = "Spot", "cheap, and may be taken back at any time with 30 s of notice"
    RESERVATION = "Reservation", "from a Compute Engine reservation, which is paid for anyway"
    FLEX_START = "FlexStart", "GKE finds the chips when it can and takes them back after a fixed time"
    EXISTING = "Existing", "on node pools that are there already; they are never written to and never deleted"


class Provisioning(ApiEnum):
    """Whether a pool is made with its nodes or made empty and scaled up."""

    CREATE = "Create", "the node pool is made with its nodes"
    SCALE_UP = "ScaleUp", "it is made empty and scaled up, which does not lock the cluster while capacity is missing"


class LabelSelectorRequirement(ApiModel):
    """One requirement on a label."""

    key: str = Field(description="Label that the requirement looks at. Example: team.", max_length=317)
    operator: str = Field(description="In, NotIn (of values), Exists or DoesNotExist.", max_length=16)
    values: tuple[str, ...] | None = Field(
        default=None, description="Values for In and NotIn. Example: [nlp, vision].", max_length=64
    )


class LabelSelector(ApiModel):
    """metav1.LabelSelector: an empty one matches everything."""

    match_labels: dict[str, str] | None = Field(
        default=None, description="Labels that must all be there. Example: {team: nlp}.", max_length=64
    )
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = Field(
        default=None,
        description="Requirements that must all hold. Example: [{key: team, operator: Exists}].",
        max_length=32,
    )


class Reservation(ApiModel):
    """A Compute Engine reservation that the pool draws on."""

    name: str = Field(description="Name of the reservation. Example: v6e-res.", max_length=253)
    project: str | None = Field(
        default=None,
        description="Project that owns it, if it is shared from another one. Unset: the cluster's.",
        max_length=253,
    )
    block: str | None = Field(
        default=None, description="Block of the reservation, to stay within it. Unset: any.", max_length=253
    )
    sub_block: str | None = Field(
        default=None, description="Sub-block of that block. Unset: any. Needs block.", max_length=253
    )
    chips: int | None = Field(
        default=None,
        description="Chips to take from the reservation at one time, all classes together; where several offers name "
        "it, the smallest value holds. Unset: no bound. Example: 256.",
        ge=1,
        le=constants.MAX_INT,
    )


class FlexStart(ApiModel):
    """Flex-start: GKE finds the chips when it can and takes them back after a fixed time."""

    max_run_duration_seconds: int = Field(
        default=604800,
        description="GKE ends each node so many seconds after its start.",
        ge=600,
        le=604800,
    )


class Existing(ApiModel):
    """Node pools that are there already: adopted as they are, never written to, never deleted."""

    node_pool_selector: LabelSelector = Field(
        description="Labels of the nodes of the pools that may be used. Example: {matchLabels: {team: ml}}."
    )


class Offer(ApiModel):
    """One way of getting capacity."""

    name: str = Field(
        description="Name of the offer, unique in the class; jobs may pick offers by it. Example: spot.",
        min_length=1,
        max_length=253,
    )
    type: OfferType = Field(
        description="How GKE is asked for the chips. Required, so that a lost field never means on-demand."
    )
    zones: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(),
        description="Zones to try, in order. Required but for type Existing. Example: [us-east5-b, us-east5-a].",
        max_length=16,
    )
    provisioning: Provisioning = Field(
        default=Provisioning.CREATE,
        description="How nodes come into the pool. FlexStart always scales up.",
    )
    reservation: Reservation | None = Field(
        default=None, description="The reservation; for type Reservation, which needs it. Example: {name: v6e-res}."
    )
    flex_start: FlexStart | None = Field(default=None, description="Settings; for type FlexStart.")
    existing: Existing | None = Field(default=None, description="Which pools; for type Existing, which needs it.")
    accelerators: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(), description="Only for jobs on these accelerators. Empty: all. Example: [v6e].", max_length=8
    )
    wait_seconds: int | None = Field(
        default=None,
        description="Longest wait of one request for its nodes, in seconds; then the next offer is tried. Its clock "
        "starts when GKE has accepted the request. Unset: 2700 for Create, 1800 for ScaleUp.",
        ge=60,
        le=constants.MAX_INT,
    )
    max_chips: int | None = Field(
        default=None,
        description="Chips in use from this offer at one time. Unset: no bound. Example: 64.",
        ge=1,
        le=constants.MAX_INT,
    )
    price_per_chip_hour: str | None = Field(
        default=None,
        description="Price of one chip for one hour, in a currency of your choice, a decimal in quotes; the jobs' "
        'status.usage.estimatedCost is computed from it. Example: "1.20".',
        max_length=16,
    )
    workload_policy: str | None = Field(
        default=None,
        description="For v7x on several hosts: name of the Compute Engine workload policy in the region of the pool, "
        "whose topology is the slice's. Unset: torchtpu-<GKE accelerator>-<topology>. Example: "
        "torchtpu-tpu7x-2x2x2.",
        max_length=253,
    )


class SliceOffer(ApiModel):
    """The offer and zone that a slice was made from, as they were then."""

    name: str = Field(description="Name of the offer in its class.", max_length=63)
    type: OfferType = Field(description="How GKE was asked for the chips.")
    zone: str = Field(description="Zone of the node pool. Example: us-east5-b.", max_length=63)
    provisioning: Provisioning = Field(default=Provisioning.CREATE, description="How nodes come into the pool.")
    reservation: Reservation | None = Field(default=None, description="The reservation drawn on.")
    flex_start: FlexStart | None = Field(default=None, description="Settings of flex-start.")
    wait_seconds: int | None = Field(
        default=None,
        description="Longest wait of the request for its nodes, in seconds, from when GKE has accepted it. Unset: 2700 "
        "for Create, 1800 for ScaleUp.",
        ge=60,
        le=constants.MAX_INT,
    )
    price_per_chip_hour: str | None = Field(
        default=None, description="Price of one chip for one hour, a decimal.", max_length=16
    )
    workload_policy: str | None = Field(
        default=None, description="Workload policy of a v7x slice on several hosts.", max_length=63
    )


class Taint(ApiModel):
    """A taint on the nodes."""

    key: str = Field(description="Key of the taint. Example: team.", min_length=1, max_length=253)
    value: str = Field(default="", description="Value of the taint. Example: nlp.", max_length=63)
    effect: str = Field(description="NoSchedule, PreferNoSchedule or NoExecute.", max_length=32)


class Maintenance(ApiModel):
    """What GKE may do to the nodes while they are in use."""

    exclude_upgrades: bool = Field(
        default=False, description="True: no automatic node upgrades until the end of support of the pool's version."
    )


class NetworkConfig(OpenModel):
    """GKE's NodeNetworkConfig, as its API has it."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.NODE_NETWORK_CONFIG
    passed_as: ClassVar[str] = "GKE's API, NodeNetworkConfig"


class NodePoolTemplate(ApiModel):
    """What the node pools of a class look like beside what the shape and the offer decide."""

    service_account: str | None = Field(
        default=None,
        description="Google service account of the nodes, an e-mail address. Unset: the cluster's default.",
        max_length=254,
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="Labels on the nodes, beside the operator's own. Example: {team: nlp}.",
        max_length=32,
    )
    taints: tuple[Taint, ...] = Field(
        default=(),
        description="Taints on the nodes, beside the operator's own; worker pods tolerate them. Example: [{key: team, value: "
        "nlp, effect: NoSchedule}].",
        max_length=16,
    )
    resource_labels: dict[str, Annotated[str, Field(max_length=253)]] = Field(
        default_factory=dict,
        description="Labels on the virtual machines, for cost reports. Example: {cost-center: ml}.",
        max_length=32,
    )
    disk_type: str | None = Field(
        default=None,
        description="Boot disk type. Unset: what suits the generation. Example: hyperdisk-balanced.",
        max_length=63,
    )
    disk_size_gb: int | None = Field(default=None, description="Boot disk size in GB. Unset: 100.", ge=10, le=65536)
    max_pods_per_node: int | None = Field(
        default=None, description="Pods per node, at most; fewer save pod addresses. Unset: 15.", ge=8, le=256
    )
    image_streaming: bool = Field(
        default=False, description="True: start containers before their image is wholly there (GKE image streaming)."
    )
    secure_boot: bool = Field(
        default=False, description="True: shielded nodes with secure boot, beside integrity monitoring."
    )
    network_config: NetworkConfig | None = Field(
        default=None, description="GKE's NodeNetworkConfig, as its API has it. Example: {enablePrivateNodes: true}."
    )
    maintenance: Maintenance | None = Field(
        default=None,
        description="What GKE may do to the nodes while they are in use. Example: {excludeUpgrades: true}.",
    )
