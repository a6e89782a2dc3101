"""Rules about what a class names: zones, reservations, prices, selectors, taints. GKE would say no to these much later."""

import re
from collections.abc import Callable
from typing import Final

from torchtpu_operator.api.constants import GROUP, TPU_RESOURCE
from torchtpu_operator.api.offer import LabelSelectorRequirement, NodePoolTemplate, Offer, Reservation, Taint
from torchtpu_operator.api.rule import FORBIDDEN, Rule, cel_list, cel_string, cel_text

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
WITH_VALUES: Final = ("In", "NotIn")
WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")
OPERATORS: Final = (*WITH_VALUES, *WITHOUT_VALUES)

NO_ZONES: Final = "an offer needs zones, for example [us-east5-b]"
NOT_A_ZONE: Final = '"{zone}" is not a zone: write lower-case letters, digits and dashes, for example us-east5-b'
REGION: Final = '"{zone}" is a region: name its zones, for example {zone}-b'
OFFER_NAME: Final = (
    'the name of an offer must be lower-case letters, digits and dashes, at most 63, and not "{name}": jobs pick '
    "offers by it"
)
PRICE: Final = 'pricePerChipHour "{price}" is no decimal: write digits and a point, in quotes, for example "1.20"'
POLICY_PATH: Final = (
    "workloadPolicy is the name of a resource policy in the region of the pool, not its path: write {name}"
)
POLICY_NAME: Final = (
    "workloadPolicy must be the name of a resource policy: lower-case letters, digits and dashes, at most 63"
)
RESERVATION_PATH: Final = "name is the name of the reservation, not its path: write {name}, and its project as project"
RESERVATION_NAME: Final = "name must be the name of a reservation: lower-case letters, digits and dashes, at most 63"
RESERVATION_PART: Final = "{field} is an ID and no path: write its last part alone"
SERVICE_ACCOUNT: Final = (
    'serviceAccount "{account}" is no e-mail address of a Google service account: write {account}@<project>.iam.'
    "gserviceaccount.com, or leave it unset for the cluster's default"
)
SUB_BLOCK: Final = "subBlock needs block"
RESOURCE_LABEL: Final = (
    'resourceLabels: "{key}" is no label of a virtual machine: at most 63 lower-case letters, digits, dashes and '
    "underscores, a letter first, and not torchtpu-"
)
RESOURCE_LABEL_VALUE: Final = (
    "resourceLabels: the value of {key} is none of a virtual machine: at most 63 lower-case letters, digits, dashes and "
    "underscores"
)
TAINT_EFFECT: Final = f"effect must be one of {', '.join(EFFECTS)}"
TAINT_KEY: Final = "taint {key} is set by GKE or the operator: remove it"
SELECTOR: Final = f"operator must be one of {', '.join(OPERATORS)}"
SELECTOR_VALUES: Final = f"operator {' and '.join(WITH_VALUES)} need values, {' and '.join(WITHOUT_VALUES)} take none"

SELECTORS: Final = (
    "spec.offers[*].existing.nodePoolSelector",
    "spec.allowedNamespaces.selector",
    "spec.limits.namespaces[*].selector",
)

_RESOURCE: Final = "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
_LABEL: Final = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_VM_LABEL: Final = "^[a-z][-_a-z0-9]{0,62}$"
_VM_LABEL_VALUE: Final = "^[-_a-z0-9]{0,63}$"
_REGION: Final = "^[a-z]+-[a-z]+[0-9]+$"
_PRICE: Final = r"^[0-9]+(\.[0-9]+)?$"
_OWN_TAINTS: Final = f"(self.key == '{TPU_RESOURCE}' || self.key.startsWith('{GROUP}/'))"


def _zones(offer: Offer) -> str | None:
    return NO_ZONES if offer.type != "Existing" and not offer.zones else None


def _zone_names(offer: Offer) -> str | None:
    if region := next((zone for zone in offer.zones if re.fullmatch(_REGION, zone)), None):
        return REGION.format(zone=region)
    wrong = next((zone for zone in offer.zones if not re.fullmatch(_RESOURCE, zone)), None)
    return None if wrong is None else NOT_A_ZONE.format(zone=wrong)


def _offer_name(offer: Offer) -> str | None:
    return None if re.fullmatch(_LABEL, offer.name) else OFFER_NAME.format(name=offer.name)


def _price(offer: Offer) -> str | None:
    price = offer.price_per_chip_hour
    return None if price is None or re.fullmatch(_PRICE, price) else PRICE.format(price=price)


def _workload_policy(offer: Offer) -> str | None:
    policy = offer.workload_policy
    if policy is None or re.fullmatch(_RESOURCE, policy):
        return None
    return POLICY_PATH.format(name=policy.rpartition("/")[2]) if "/" in policy else POLICY_NAME


def _reservation_name(reservation: Reservation) -> str | None:
    name = reservation.name
    if re.fullmatch(_RESOURCE, name):
        return None
    return RESERVATION_PATH.format(name=name.rpartition("/")[2]) if "/" in name else RESERVATION_NAME


def _part(attribute: str, field: str) -> Callable[[Reservation], str | None]:
    def check(reservation: Reservation) -> str | None:
        part = getattr(reservation, attribute)
        return RESERVATION_PART.format(field=field) if part is not None and "/" in part else None

    return check


def _service_account(template: NodePoolTemplate) -> str | None:
    account = template.service_account
    fine = account is None or account == "default" or "@" in account
    return None if fine else SERVICE_ACCOUNT.format(account=account)


def _sub_block(reservation: Reservation) -> str | None:
    return SUB_BLOCK if reservation.sub_block is not None and reservation.block is None else None


def _resource_label(template: NodePoolTemplate) -> str | None:
    for key in template.resource_labels:
        if not re.fullmatch(_VM_LABEL, key) or key.startswith("torchtpu-"):
            return RESOURCE_LABEL.format(key=key)
    return None


def _resource_label_value(template: NodePoolTemplate) -> str | None:
    for key, value in template.resource_labels.items():
        if not re.fullmatch(_VM_LABEL_VALUE, value):
            return RESOURCE_LABEL_VALUE.format(key=key)
    return None


def _effect(taint: Taint) -> str | None:
    return None if taint.effect in EFFECTS else TAINT_EFFECT


def _taint_key(taint: Taint) -> str | None:
    taken = taint.key == TPU_RESOURCE or taint.key.startswith(f"{GROUP}/")
    return TAINT_KEY.format(key=taint.key) if taken else None


def _operator(need: LabelSelectorRequirement) -> str | None:
    return None if need.operator in OPERATORS else SELECTOR


def _values(need: LabelSelectorRequirement) -> str | None:
    if need.operator not in OPERATORS:
        return None
    return None if bool(need.values) is (need.operator in WITH_VALUES) else SELECTOR_VALUES


def _last_part(field: str) -> str:
    return f"{field}.substring({field}.lastIndexOf('/') + 1)"


def reservation_rules(at: str) -> tuple[Rule, ...]:
    """About the reservation of an offer, in a class or in a slice."""
    return (
        Rule(
            id="reservation-name",
            at=(at,),
            field=".name",
            cel=f"self.name.matches({cel_string(_RESOURCE)})",
            message=RESERVATION_NAME,
            message_expression=(
                f"self.name.contains('/') ? {cel_text(RESERVATION_PATH, name=_last_part('self.name'))}"
                f" : {cel_string(RESERVATION_NAME)}"
            ),
            check=_reservation_name,
        ),
        *(
            Rule(
                id=f"reservation-{field}-path",
                at=(at,),
                field=f".{field}",
                cel=f"!has(self.{field}) || !self.{field}.contains('/')",
                message=RESERVATION_PART.format(field=field),
                check=_part(attribute, field),
            )
            for field, attribute in (("project", "project"), ("block", "block"), ("subBlock", "sub_block"))
        ),
        Rule(
            id="reservation-sub-block",
            at=(at,),
            field=".subBlock",
            cel="!has(self.subBlock) || has(self.block)",
            message=SUB_BLOCK,
            check=_sub_block,
        ),
    )


OFFER_RULES: Final = (
    Rule(
        id="offer-name",
        at=("spec.offers[*]",),
        field=".name",
        cel=f"self.name.matches({cel_string(_LABEL)})",
        message="the name of an offer must be lower-case letters, digits and dashes, at most 63",
        message_expression=cel_text(OFFER_NAME, name="self.name"),
        check=_offer_name,
    ),
    Rule(
        id="offer-zones",
        at=("spec.offers[*]",),
        field=".zones",
        cel="self.type == 'Existing' || (has(self.zones) && self.zones.size() > 0)",
        message=NO_ZONES,
        check=_zones,
        reason="FieldValueRequired",
    ),
    Rule(
        id="offer-zone-names",
        at=("spec.offers[*]",),
        field=".zones",
        cel=(
            f"!has(self.zones) || self.zones.all(z, z.matches({cel_string(_RESOURCE)})"
            f" && !z.matches({cel_string(_REGION)}))"
        ),
        message="a zone is written in lower-case letters, digits and dashes, for example us-east5-b",
        message_expression=(
            f"self.zones.exists(z, z.matches({cel_string(_REGION)})) ? "
            + cel_text(REGION, zone=f"self.zones.filter(z, z.matches({cel_string(_REGION)}))[0]")
            + " : "
            + cel_text(NOT_A_ZONE, zone=f"self.zones.filter(z, !z.matches({cel_string(_RESOURCE)}))[0]")
        ),
        check=_zone_names,
    ),
    Rule(
        id="offer-price",
        at=("spec.offers[*]",),
        field=".pricePerChipHour",
        cel=f"!has(self.pricePerChipHour) || self.pricePerChipHour.matches({cel_string(_PRICE)})",
        message='pricePerChipHour is no decimal: write digits and a point, in quotes, for example "1.20"',
        message_expression=cel_text(PRICE, price="self.pricePerChipHour"),
        check=_price,
    ),
    Rule(
        id="offer-workload-policy",
        at=("spec.offers[*]",),
        field=".workloadPolicy",
        cel=f"!has(self.workloadPolicy) || self.workloadPolicy.matches({cel_string(_RESOURCE)})",
        message=POLICY_NAME,
        message_expression=(
            f"self.workloadPolicy.contains('/') ? {cel_text(POLICY_PATH, name=_last_part('self.workloadPolicy'))}"
            f" : {cel_string(POLICY_NAME)}"
        ),
        check=_workload_policy,
    ),
    *reservation_rules("spec.offers[*].reservation"),
)

_VM_LABELS: Final = "self.resourceLabels"
_WRONG_KEY: Final = f"!k.matches({cel_string(_VM_LABEL)}) || k.startsWith('torchtpu-')"
_WRONG_VALUE: Final = f"!{_VM_LABELS}[k].matches({cel_string(_VM_LABEL_VALUE)})"

NODE_POOL_RULES: Final = (
    Rule(
        id="service-account",
        at=("spec.nodePool",),
        field=".serviceAccount",
        cel="!has(self.serviceAccount) || self.serviceAccount == 'default' || self.serviceAccount.contains('@')",
        message="serviceAccount is no e-mail address of a Google service account",
        message_expression=cel_text(SERVICE_ACCOUNT, account="self.serviceAccount"),
        check=_service_account,
    ),
    Rule(
        id="resource-labels",
        at=("spec.nodePool",),
        field=".resourceLabels",
        cel=f"!has({_VM_LABELS}) || {_VM_LABELS}.all(k, !({_WRONG_KEY}))",
        message="resourceLabels has a key that is no label of a virtual machine",
        message_expression=cel_text(RESOURCE_LABEL, key=f"{_VM_LABELS}.filter(k, {_WRONG_KEY})[0]"),
        check=_resource_label,
    ),
    Rule(
        id="resource-label-values",
        at=("spec.nodePool",),
        field=".resourceLabels",
        cel=f"!has({_VM_LABELS}) || {_VM_LABELS}.all(k, !({_WRONG_VALUE}))",
        message="resourceLabels has a value that is none of a virtual machine",
        message_expression=cel_text(RESOURCE_LABEL_VALUE, key=f"{_VM_LABELS}.filter(k, {_WRONG_VALUE})[0]"),
        check=_resource_label_value,
    ),
    Rule(
        id="taint-effect",
        at=("spec.nodePool.taints[*]",),
        field=".effect",
        cel=f"self.effect in {cel_list(EFFECTS)}",
        message=TAINT_EFFECT,
        check=_effect,
    ),
    Rule(
        id="taint-key",
        at=("spec.nodePool.taints[*]",),
        field=".key",
        cel=f"!{_OWN_TAINTS}",
        message="some taints are set by GKE or the operator: remove them",
        message_expression=cel_text(TAINT_KEY, key="self.key"),
        check=_taint_key,
        reason=FORBIDDEN,
    ),
)

SELECTOR_RULES: Final = (
    Rule(
        id="selector-operator",
        at=tuple(f"{selector}.matchExpressions[*]" for selector in SELECTORS),
        field=".operator",
        cel=f"self.operator in {cel_list(OPERATORS)}",
        message=SELECTOR,
        check=_operator,
    ),
    Rule(
        id="selector-values",
        at=tuple(f"{selector}.matchExpressions[*]" for selector in SELECTORS),
        field=".values",
        cel=(
            f"!(self.operator in {cel_list(OPERATORS)})"
            f" || (has(self.values) && self.values.size() > 0) == (self.operator in {cel_list(WITH_VALUES)})"
        ),
        message=SELECTOR_VALUES,
        check=_values,
    ),
)
