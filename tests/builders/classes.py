"""TPUSliceClasses for tests."""

from dataclasses import dataclass, replace
from typing import Any, Self

from tests.builders.common import at
from torchtpu_operator.api import (
    ClassSpec,
    ClassStatus,
    ObjectMeta,
    TPUSliceClass,
)
from torchtpu_operator.api.constants import ANNOTATION_DEFAULT_CLASS
from torchtpu_operator.api.offer import Offer


@dataclass(frozen=True)
class ClassBuilder:
    """A TPUSliceClass with one OnDemand offer in one zone, the default class."""

    slice_class: TPUSliceClass

    def build(self) -> TPUSliceClass:
        return self.slice_class

    def to_object(self) -> dict[str, Any]:
        return self.slice_class.to_object()

    def spec(self, **fields: Any) -> Self:
        known = self.slice_class.spec.model_dump(exclude_unset=True)
        return self._with(spec=ClassSpec.model_validate(known | fields))

    def offering(self, *offers: Offer) -> Self:
        return self.spec(offers=offers)

    def status(self, **fields: Any) -> Self:
        return self._with(status=self.slice_class.status.model_copy(update=fields))

    def of_status(self, status: dict[str, Any]) -> Self:
        """The object as the apiserver gives it back after this status was written."""
        return self._with(status=ClassStatus.model_validate(status))

    def meta(self, **fields: Any) -> Self:
        return self._with(metadata=self.slice_class.metadata.model_copy(update=fields))

    def no_default(self) -> Self:
        return self.meta(annotations={})

    def _with(self, **fields: Any) -> Self:
        return replace(self, slice_class=self.slice_class.model_copy(update=fields))


def an_offer(
    name: str = "od", *, type: str = "OnDemand", zones: tuple[str, ...] = ("us-east5-b",), **fields: Any
) -> Offer:
    return Offer.model_validate({"name": name, "type": type, "zones": zones} | fields)


def a_class(name: str = "default", **spec: Any) -> ClassBuilder:
    fields: dict[str, Any] = {"offers": (an_offer(),)}
    meta = ObjectMeta(
        name=name,
        uid=f"uid-of-{name}",
        resource_version="5",
        generation=1,
        creation_timestamp=at(-86400),
        annotations={ANNOTATION_DEFAULT_CLASS: "true"},
    )
    return ClassBuilder(TPUSliceClass(metadata=meta, spec=ClassSpec.model_validate(fields | spec)))
