"""What all three kinds have in common: how a model reads and writes a Kubernetes object."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from torchtpu_operator.api.timestamps import Timestamp

_LENIENT = "skip unknown fields"  # validation context; pydantic's own extra="ignore" would also empty the open models


class ApiModel(BaseModel):
    """A part of a spec: camelCase outside, frozen, no unknown fields (a typo is an error, not a default)."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _skip_unknown(cls, value: Any, info: ValidationInfo) -> Any:
        if info.context != _LENIENT or not isinstance(value, Mapping):
            return value
        known = {field.alias for field in cls.model_fields.values()} | cls.model_fields.keys()
        return {key: item for key, item in value.items() if key in known}


class StatusModel(BaseModel):
    """A part of a status: unknown fields are skipped, since a newer operator may have written them; empty ones are "
    "not written."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    @model_serializer(mode="wrap")
    def _without_empty(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None and value != "" and value != []}


class OpenModel(BaseModel):
    """A part of another API's type of which we name some fields and keep the rest as it is."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)


class ObjectMeta(OpenModel):
    """metav1.ObjectMeta, as far as we read it."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str | None = None
    generation: int = 0
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None


class ApiObject(ApiModel):
    """A whole object of one of our kinds."""

    plural: ClassVar[str]

    metadata: ObjectMeta

    @classmethod
    def from_object(cls, obj: Mapping[str, Any]) -> Self:
        """The object as the apiserver gives it; fields of a newer CRD are skipped."""
        return cls.model_validate(obj, context=_LENIENT)

    def to_object(self) -> dict[str, Any]:
        """A plain dict for the API: camelCase, no nulls, timestamps as text."""
        document = to_dict(self)
        document["metadata"] = self.metadata.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude_unset=True
        )
        return document


def to_dict(model: BaseModel) -> dict[str, Any]:
    """A spec, status or part of one as the API has it."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
