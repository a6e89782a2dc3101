"""What all three kinds have in common: how a model reads and writes a Kubernetes object."""

import enum
import json
import typing
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from torchtpu_operator.api.timestamps import Timestamp

LIST_TYPE = "x-kubernetes-list-type"
MEANINGS = "x-meanings"  # in a model's JSON schema only: the CRD's generator writes them into the description


class ApiEnum(enum.StrEnum):
    """A closed set of words. Each is declared with what it means, which `kubectl explain` and the reference print."""

    _value_: str
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:  # the default is for calls by value: ApiEnum("x")
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core))
        schema[MEANINGS] = [[member.value, member.meaning] for member in cls]  # a map would be sorted
        return schema


class ApiModel(BaseModel):
    """A part of a spec: camelCase outside, frozen, no unknown fields (a typo is an error, not a default)."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class StatusModel(BaseModel):
    """A part of a status: unknown fields are skipped, since a newer operator may have written them; empty ones are
    not written."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    @model_serializer(mode="wrap")
    def _without_empty(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # a required field stays, also empty: the CRD would refuse the status without it
        required = {
            name for key, field in type(self).model_fields.items() if field.is_required() for name in (key, field.alias)
        }
        return {
            key: value
            for key, value in handler(self).items()
            if key in required or (value is not None and value != "" and value != [])
        }


class OpenModel(BaseModel):
    """A part of another API's type of which we look into some fields and keep the rest as it is."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)

    passed: ClassVar[tuple[str, ...]] = ()
    """Fields that nobody here looks into, and which the schema names all the same (api/passed_fields.py says why)."""
    passed_as: ClassVar[str] = ""
    """Where a reader finds their meaning: `kubectl explain pod.spec`."""

    @model_serializer(mode="wrap")
    def _with_nulls(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # a null of ours is a field that is not there; in what is passed it may mean something: an overlay removes a field
        nulls = {name: None for name, value in (self.model_extra or {}).items() if value is None}
        return {**handler(self), **nulls}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).setdefault("properties", {})
        for name in cls.passed:
            properties[name] = {
                "description": f"Passed as it is, see {cls.passed_as}.",
                "nullable": True,  # an overlay's null removes a field
                "x-kubernetes-preserve-unknown-fields": True,
            }
        return schema


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
        return cls.model_validate(_without_unknown(obj, cls))

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


def comparable(model: BaseModel) -> dict[str, Any]:
    """The part as the apiserver compares it with another one: entries of lists that merge by a key have no order."""
    document: dict[str, Any] = _without_order(to_dict(model), type(model))
    return document


def _without_order(value: Any, model: type[BaseModel] | None) -> Any:
    if isinstance(value, list):
        return [_without_order(item, model) for item in value]
    if model is None or not isinstance(value, dict):
        return value
    result = dict(value)
    for name, field in model.model_fields.items():
        alias = field.alias or name
        if alias not in value:
            continue
        result[alias] = _without_order(value[alias], model_in(field.annotation))
        extra = field.json_schema_extra
        if isinstance(extra, dict) and extra.get(LIST_TYPE) in ("map", "set"):
            result[alias] = sorted(result[alias], key=lambda item: json.dumps(item, sort_keys=True))
    return result


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds: itself, optional, or in a tuple."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    return next((found for argument in typing.get_args(annotation) if (found := model_in(argument))), None)


def _without_unknown(value: Any, model: type[BaseModel] | None) -> Any:
    # not pydantic's own extra="ignore" of a call: that would also empty the open models
    if isinstance(value, (list, tuple)):
        return [_without_unknown(item, model) for item in value]
    if model is None or not isinstance(value, Mapping):
        return value
    models = {field.alias or name: model_in(field.annotation) for name, field in model.model_fields.items()}
    keep_all = model.model_config.get("extra") == "allow"
    return {key: _without_unknown(item, models.get(key)) for key, item in value.items() if keep_all or key in models}
