"""Rules about TPUSliceClass and TPUSlice."""

import re
from collections.abc import Callable
from typing import Final

from torchtpu_operator.api.constants import CLASS_KIND, DOMAIN_PATH, SLICE_KIND
from torchtpu_operator.api.image_rules import image_rules
from torchtpu_operator.api.not_yet import NOT_YET
from torchtpu_operator.api.offer import NodePoolTemplate, Offer, OfferType, SliceOffer
from torchtpu_operator.api.offer_rules import NODE_POOL_RULES, OFFER_RULES, SELECTOR_RULES, reservation_rules
from torchtpu_operator.api.rule import FORBIDDEN, REQUIRED, Rule, cel_list, cel_string, cel_text
from torchtpu_operator.api.shape_rules import SHAPE_EXISTS, generation_message
from torchtpu_operator.api.slice import SliceNodePool, SliceSpec, TPUSlice
from torchtpu_operator.api.slice_class import ClassSpec
from torchtpu_operator.api.template_rules import CLASS_TEMPLATES, template_rules
from torchtpu_operator.api.version_rules import version_rules
from torchtpu_operator.tpu import CATALOGUE, messages

_SETTINGS = {  # offer type -> the field that belongs to it alone
    OfferType.RESERVATION: ("reservation", "reservation"),
    OfferType.FLEX_START: ("flexStart", "flex_start"),
    OfferType.EXISTING: ("existing", "existing"),
}
_NEEDED = (OfferType.RESERVATION, OfferType.EXISTING)
SYSTEM_PREFIXES: Final = ("cloud.google.com/", "kubernetes.io/", "k8s.io/", "gke.io/", "torchtpu.dev/")

NEEDS_SETTINGS: Final = "an offer of type {type} needs {field}"
OTHERS_SETTINGS: Final = "{field} belongs to type {type}: remove it or change the type"
CONTROLLER: Final = (
    'controllerName "{name}" is no controller: it needs a domain and a name; leave it unset for this operator'
)
NO_FLEX_START: Final = "{name} cannot be had by flex-start: remove it from accelerators"
SLICE_NO_FLEX_START: Final = "{name} cannot be had by flex-start: take another offer"
SYSTEM_LABEL: Final = "labels that begin with {prefix} are set by GKE and the operator: remove them"
POOL_NAME: Final = "metadata.name and spec.nodePool.name must be the same: a slice is named as its node pool"
POOL_NAME_FORM: Final = 'nodePool.name "{name}" is no name of a node pool: lower-case letters, digits and dashes, a letter first, at most 40'
SNAPSHOT: Final = "{field} never changes: a slice is a snapshot of class and offer"

_POOL_NAME = "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$"
_WITHOUT_FLEX = tuple(name for name, generation in CATALOGUE.items() if not generation.flex_start)


def _settings_given(kind: OfferType) -> Callable[[Offer | SliceOffer], str | None]:
    field, attribute = _SETTINGS[kind]

    def check(offer: Offer | SliceOffer) -> str | None:
        missing = offer.type is kind and getattr(offer, attribute) is None
        return NEEDS_SETTINGS.format(type=kind, field=field) if missing else None

    return check


def _settings_fit(kind: OfferType) -> Callable[[Offer | SliceOffer], str | None]:
    field, attribute = _SETTINGS[kind]

    def check(offer: Offer | SliceOffer) -> str | None:
        foreign = offer.type is not kind and getattr(offer, attribute) is not None
        return OTHERS_SETTINGS.format(field=field, type=kind) if foreign else None

    return check


def _accelerators(offer: Offer) -> str | None:
    unknown = next((name for name in offer.accelerators if name not in CATALOGUE), None)
    return None if unknown is None else messages.unknown_generation(unknown)


def _flex_start(offer: Offer) -> str | None:
    if offer.type is not OfferType.FLEX_START:
        return None
    cannot = next((name for name in offer.accelerators if name in _WITHOUT_FLEX), None)
    return None if cannot is None else NO_FLEX_START.format(name=cannot)


def _controller(spec: ClassSpec) -> str | None:
    name = spec.controller_name
    return None if re.fullmatch(DOMAIN_PATH, name) else CONTROLLER.format(name=name)


def _system_label(template: NodePoolTemplate) -> str | None:
    taken = next((prefix for prefix in SYSTEM_PREFIXES if any(key.startswith(prefix) for key in template.labels)), None)
    return None if taken is None else SYSTEM_LABEL.format(prefix=taken)


def _settings_rules(kind: OfferType, *, at: str) -> list[Rule]:
    field, _ = _SETTINGS[kind]
    rules = [
        Rule(
            id=f"offer-foreign-{field}",
            at=(at,),
            field=f".{field}",
            cel=f"self.type == '{kind}' || !has(self.{field})",
            message=OTHERS_SETTINGS.format(field=field, type=kind),
            check=_settings_fit(kind),
        )
    ]
    if kind in _NEEDED:
        rules.append(
            Rule(
                id=f"offer-needs-{field}",
                at=(at,),
                field=f".{field}",
                cel=f"self.type != '{kind}' || has(self.{field})",
                message=NEEDS_SETTINGS.format(type=kind, field=field),
                check=_settings_given(kind),
                reason=REQUIRED,
            )
        )
    return rules


_LABELS = "self.labels"
_SYSTEM = "(" + " || ".join(f"k.startsWith('{prefix}')" for prefix in SYSTEM_PREFIXES) + ")"

CLASS_RULES: Final = (
    *(rule for kind in _SETTINGS for rule in _settings_rules(kind, at="spec.offers[*]")),
    *OFFER_RULES,
    Rule(
        id="offer-accelerators",
        at=("spec.offers[*]",),
        field=".accelerators",
        cel=f"!has(self.accelerators) || self.accelerators.all(a, a in {cel_list(CATALOGUE)})",
        message=f"accelerator is not known: use one of {', '.join(CATALOGUE)}",
        message_expression=generation_message(f"self.accelerators.filter(a, !(a in {cel_list(CATALOGUE)}))[0]"),
        check=_accelerators,
    ),
    Rule(
        id="offer-flex-start",
        at=("spec.offers[*]",),
        field=".accelerators",
        cel=(
            "self.type != 'FlexStart' || !has(self.accelerators)"
            f" || self.accelerators.all(a, !(a in {cel_list(_WITHOUT_FLEX)}))"
        ),
        message="an accelerator cannot be had by flex-start",
        message_expression=cel_text(
            NO_FLEX_START, name=f"self.accelerators.filter(a, a in {cel_list(_WITHOUT_FLEX)})[0]"
        ),
        check=_flex_start,
    ),
    *NODE_POOL_RULES,
    *SELECTOR_RULES,
    Rule(
        id="node-pool-labels",
        at=("spec.nodePool",),
        field=".labels",
        cel=f"!has(self.labels) || {_LABELS}.all(k, !{_SYSTEM})",
        message="some labels are set by GKE and the operator: remove them",
        message_expression=cel_text(
            SYSTEM_LABEL,
            prefix=f"{cel_list(SYSTEM_PREFIXES)}.filter(p, {_LABELS}.exists(k, k.startsWith(p)))[0]",
        ),
        check=_system_label,
        reason=FORBIDDEN,
    ),
    Rule(
        id="controller-name",
        at=("spec",),
        field=".controllerName",
        cel=f"self.controllerName.matches({cel_string(DOMAIN_PATH)})",
        message="controllerName is no controller: it needs a domain and a name; leave it unset for this operator",
        message_expression=cel_text(CONTROLLER, name="self.controllerName"),
        check=_controller,
    ),
    *(each.rule() for each in NOT_YET[CLASS_KIND]),
    *image_rules("spec.jobDefaults"),
    *version_rules("spec.jobDefaults"),
    *template_rules(everywhere=CLASS_TEMPLATES, workers=CLASS_TEMPLATES),
)

SLICE_SNAPSHOT: Final = (
    "sliceClassName",
    "accelerator",
    "topology",
    "chipsPerHost",
    "offer",
    "nodePool",
    "maxLifetimeSeconds",
    "reclaim",
)


def _pool_name(obj: TPUSlice) -> str | None:
    return None if obj.metadata.name == obj.spec.node_pool.name else POOL_NAME


def _pool_name_form(pool: SliceNodePool) -> str | None:
    return None if re.fullmatch(_POOL_NAME, pool.name) else POOL_NAME_FORM.format(name=pool.name)


def _slice_flex_start(spec: SliceSpec) -> str | None:
    if spec.offer.type is OfferType.FLEX_START and spec.accelerator in _WITHOUT_FLEX:
        return SLICE_NO_FLEX_START.format(name=spec.accelerator)
    return None


def _snapshot(name: str) -> Rule:
    attribute = next(key for key, field in SliceSpec.model_fields.items() if field.alias == name)
    message = SNAPSHOT.format(field=name)

    def check(spec: SliceSpec, old: SliceSpec) -> str | None:
        return None if getattr(spec, attribute) == getattr(old, attribute) else message

    return Rule(
        id=f"immutable-{name}",
        at=("spec",),
        field=f".{name}",
        cel=f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})",
        message=message,
        transition=check,
        reason=FORBIDDEN,
    )


SLICE_RULES: Final = (
    Rule(
        id="slice-name",
        at=("",),
        field=".spec.nodePool.name",
        cel="self.metadata.name == self.spec.nodePool.name",
        message=POOL_NAME,
        check=_pool_name,
    ),
    Rule(
        id="pool-name",
        at=("spec.nodePool",),
        field=".name",
        cel=f"self.name.matches({cel_string(_POOL_NAME)})",
        message="nodePool.name is no name of a node pool: lower-case letters, digits and dashes, at most 40",
        message_expression=cel_text(POOL_NAME_FORM, name="self.name"),
        check=_pool_name_form,
    ),
    *SHAPE_EXISTS,
    *_settings_rules(OfferType.RESERVATION, at="spec.offer"),
    *_settings_rules(OfferType.FLEX_START, at="spec.offer"),
    *reservation_rules("spec.offer.reservation"),
    Rule(
        id="slice-flex-start",
        at=("spec",),
        field=".offer",
        cel=f"self.offer.type != 'FlexStart' || !(self.accelerator in {cel_list(_WITHOUT_FLEX)})",
        message="the accelerator cannot be had by flex-start: take another offer",
        message_expression=cel_text(SLICE_NO_FLEX_START, name="self.accelerator"),
        check=_slice_flex_start,
    ),
    *(each.rule() for each in NOT_YET[SLICE_KIND]),
    *(_snapshot(name) for name in SLICE_SNAPSHOT),
)
