"""A document judged as the apiserver would judge it: schema first, then the rules, both in its words."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.api.crd import structural
from torchtpu_operator.api.job import TorchTPUJob
from torchtpu_operator.api.rule import Violation
from torchtpu_operator.api.rules import violations
from torchtpu_operator.api.slice import TPUSlice
from torchtpu_operator.api.slice_class import TPUSliceClass
from torchtpu_operator.api.unknown_fields import meant, nearest

KINDS: Final[Mapping[str, type[ApiObject]]] = {
    constants.JOB_KIND: TorchTPUJob,
    constants.SLICE_KIND: TPUSlice,
    constants.CLASS_KIND: TPUSliceClass,
}

Object = TypeVar("Object", bound=ApiObject)

_TYPES: Final = {
    "int_type": "integer",
    "int_from_float": "integer",
    "string_type": "string",
    "bool_type": "boolean",
    "dict_type": "object",
    "model_type": "object",
    "model_attributes_type": "object",
    "tuple_type": "array",
    "list_type": "array",
}
_UNION_TAGS: Final = ("int", "str", "constrained-str", "constrained-int")


class InvalidObjectError(ValueError):
    """An object that the apiserver would refuse: one line for each thing that is wrong, `path: message`."""

    def __init__(self, found: tuple[Violation, ...], *, about: str = "") -> None:
        lines = [str(violation) for violation in found]
        if about:
            lines = [f"{about} is invalid:", *(f"  {line}" for line in lines)]
        super().__init__("\n".join(lines))
        self.violations = found


def parse(document: Mapping[str, Any]) -> ApiObject:
    """The object in a document. Raises InvalidObjectError with everything that is wrong with it.

    As in the apiserver, the rules speak only where the schema is satisfied.
    """
    model = model_of(document)
    obj = load(document, model)
    if found := problems(obj, document):
        raise InvalidObjectError(found)
    return obj


def model_of(document: Mapping[str, Any]) -> type[ApiObject]:
    """The model for the kind of a document. Raises InvalidObjectError for a kind or version that is not ours."""
    kind, version = document.get("kind"), document.get("apiVersion")
    model = KINDS.get(str(kind))
    if model is None:
        near = nearest(str(kind), [*KINDS]) if kind else ""
        hint = f"did you mean {near}?" if near else f"use one of {', '.join(KINDS)}"
        raise InvalidObjectError((Violation(path="kind", message=f'"{kind or ""}" is not known: {hint}'),))
    if version != constants.API_VERSION:
        message = f'"{version or ""}" is not known: use {constants.API_VERSION}'
        raise InvalidObjectError((Violation(path="apiVersion", message=message),))
    return model


def load(document: Mapping[str, Any], model: type[Object], *, about: str = "") -> Object:
    """The document as an object of this kind, held against the schema alone. Raises InvalidObjectError."""
    try:
        given = json.dumps(without_nulls(document, model))
        return model.model_validate_json(given, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        details = [detail for detail in error.errors(include_url=False) if not _is_echo(detail)]
        found = tuple(dict.fromkeys(_violation(detail, model) for detail in details))
        raise InvalidObjectError(found, about=about) from error


def problems(obj: ApiObject, document: Mapping[str, Any]) -> tuple[Violation, ...]:
    """What is wrong with an object whose document satisfies the schema."""
    schema = _schema(type(obj))
    return (*_duplicates(_without_nulls(dict(document), schema), schema, ""), *violations(obj))


def without_nulls(document: Mapping[str, Any], model: type[ApiObject]) -> dict[str, Any]:
    """The document as the apiserver takes it: a null is a field that is not there, unless it is another API's."""
    cleaned: dict[str, Any] = _without_nulls(dict(document), _schema(model))
    return cleaned


@cache
def _schema(model: type[ApiObject]) -> dict[str, Any]:
    return structural(model)


def _without_nulls(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_without_nulls(entry, schema.get("items", {})) for entry in value]
    if not isinstance(value, dict):
        return value
    nodes = {name: schema.get("properties", {}).get(name, schema.get("additionalProperties")) for name in value}
    return {
        name: _without_nulls(entry, nodes[name] or {})
        for name, entry in value.items()
        if entry is not None or nodes[name] is None or nodes[name].get("nullable")
    }


def _duplicates(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Violation]:
    """Entries of a list that must not be there twice, by the list types of the schema."""
    if isinstance(value, dict):
        for name, entry in value.items():
            node = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            yield from _duplicates(entry, node, f"{path}.{name}" if path else name)
    if not isinstance(value, list):
        return
    keys = schema.get("x-kubernetes-list-map-keys")
    seen = []
    for index, entry in enumerate(value):
        yield from _duplicates(entry, schema.get("items", {}), f"{path}[{index}]")
        identity = {key: entry.get(key) for key in keys} if keys else entry
        if "x-kubernetes-list-type" in schema and identity in seen:
            text = json.dumps(identity, separators=(",", ":"))
            yield Violation(path=f"{path}[{index}]", message=f"Duplicate value: {text}")
        seen.append(identity)


def _is_echo(detail: ErrorDetails) -> bool:
    # pydantic drops the items of a tuple that have errors of their own, and then finds it too short
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _violation(detail: ErrorDetails, model: type[BaseModel]) -> Violation:
    path = _path(detail["loc"])
    return Violation(path=path, message=_message(detail, path, model))


def _path(loc: tuple[int | str, ...]) -> str:
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step not in _UNION_TAGS:
            text += f".{step}" if text else step
    return text


def _message(detail: ErrorDetails, path: str, model: type[BaseModel]) -> str:
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    value = json.dumps(given, default=str)
    if kind == "missing":
        return "Required value"
    if kind == "extra_forbidden":
        return "unknown field" + _did_you_mean(meant(str(detail["loc"][-1]), model=model, loc=detail["loc"][:-1]))
    if kind in ("enum", "literal_error"):
        supported = str(context["expected"]).replace(" or ", ", ").replace("'", '"')
        return f"Unsupported value: {value}: supported values: {supported}"
    if kind == "greater_than_equal":
        return f"Invalid value: {value}: {path} in body should be greater than or equal to {context['ge']}"
    if kind == "less_than_equal":
        return f"Invalid value: {value}: {path} in body should be less than or equal to {context['le']}"
    if kind == "string_pattern_mismatch":
        return f"Invalid value: {value}: {path} in body should match '{context['pattern']}'"
    if kind == "string_too_short":
        return f"Invalid value: {value}: {path} in body should be at least {context['min_length']} chars long"
    if kind == "string_too_long":
        return f"Too long: may not be more than {context['max_length']} bytes"
    if kind == "too_short":
        return f"Invalid value: {len(given)}: {path} in body should have at least {context['min_length']} items"
    if kind == "too_long":
        return f"Too many: {len(given)}: must have at most {context['max_length']} items"
    if kind in _TYPES and detail["loc"][-1] in _UNION_TAGS:
        return f'Invalid value: "{_json_type(given)}": {path} in body must be of type integer,string: "{_json_type(given)}"'
    if kind in _TYPES:
        return f'Invalid value: "{_json_type(given)}": {path} in body must be of type {_TYPES[kind]}: "{_json_type(given)}"'
    return f"Invalid value: {value}: {detail['msg']}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return "null" if value is None else names.get(type(value), "string")


def _did_you_mean(field: str) -> str:
    return f": did you mean {field}?" if field else ""
