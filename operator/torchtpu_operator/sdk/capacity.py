"""TPUSliceClass and TPUSlice for those who keep capacity."""

from collections.abc import Sequence
from typing import ClassVar, Self, Unpack

from torchtpu_operator.api import constants
from torchtpu_operator.api.offer import Offer
from torchtpu_operator.api.slice import TPUSlice as ApiSlice
from torchtpu_operator.api.slice_class import ClassSpec
from torchtpu_operator.api.slice_class import TPUSliceClass as ApiClass
from torchtpu_operator.sdk.fields import ClassOptions, Plain, documented, with_fields
from torchtpu_operator.sdk.manifest import Manifest


class TPUSliceClass(Manifest, ApiClass):
    """A source of TPU capacity."""

    KIND: ClassVar[str] = constants.CLASS_KIND

    @classmethod
    @documented(ClassOptions, ClassSpec)
    def new(
        cls, name: str, *, offers: Sequence[Offer | Plain], default: bool = False, **fields: Unpack[ClassOptions]
    ) -> Self:
        """A class; `default` marks it as the one for jobs that name none. Nested objects are models, or dicts as in
        YAML. Raises InvalidObjectError for values of a wrong type; `validate()` looks at the rest."""
        annotations = dict(fields.pop("annotations", None) or {})
        if default:
            annotations[constants.ANNOTATION_DEFAULT_CLASS] = "true"
        given = {"name": name, "annotations": annotations or None, "offers": offers, **fields}
        return cls.from_dict(with_fields({}, given, kind=cls.KIND, spec=ClassSpec))


class TPUSlice(Manifest, ApiSlice):
    """One TPU slice, as the operator or an admin makes it."""

    KIND: ClassVar[str] = constants.SLICE_KIND
