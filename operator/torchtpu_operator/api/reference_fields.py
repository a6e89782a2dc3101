"""Models as Markdown: one section for each object, with a table of its fields."""

import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiEnum, OpenModel, model_in
from torchtpu_operator.api.crd import structural
from torchtpu_operator.api.describe import bounds_of, refusal
from torchtpu_operator.api.job import JobSpec
from torchtpu_operator.api.mutability import Mutability, mutability
from torchtpu_operator.api.not_yet import NOT_YET, NotYet
from torchtpu_operator.api.rules import RULES
from torchtpu_operator.api.slice import SliceSpec
from torchtpu_operator.api.validate import KINDS

CHANGES: Final = {
    Mutability.NEVER: "never",
    Mutability.WHILE_SUSPENDED: "while suspended",
    Mutability.ALWAYS: "at any time",
}
_SPECS: Final[Mapping[type[BaseModel], str]] = {JobSpec: constants.JOB_KIND, SliceSpec: constants.SLICE_KIND}
_GIVEN: Final = "-given"  # ends the id of a rule that only asks for a field


@dataclass(frozen=True, kw_only=True)
class Part:
    """Where an object is found: the field of another one."""

    owner: str
    field: str


def models_below(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The model and every one that it holds, each once, in the order of the fields."""
    seen: list[type[BaseModel]] = []
    waiting = [root]
    while waiting:
        model = waiting.pop(0)
        if model in seen:
            continue
        seen.append(model)
        yield model
        inner = [model_in(field.annotation) for field in model.model_fields.values()]
        waiting = [*(found for found in inner if found is not None), *waiting]


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def prose(text: str) -> str:
    """A description as Markdown that shows what it says; its example as code."""
    text = " ".join(text.split())
    text, marker, example = text.rpartition("Example: ")
    text = re.sub(r"[<>*$|]", lambda mark: f"&#{ord(mark.group())};", text)
    if not marker:
        return re.sub(r"[<>*$|]", lambda mark: f"&#{ord(mark.group())};", example)
    return f"{text}Example: {code(example.removesuffix('.'))}."


def code(value: object) -> str:
    """A code span in a table's cell."""
    return f"`{str(value).replace('|', chr(92) + '|')}`"


def link(model: type[BaseModel]) -> str:
    """A link to the section of an object."""
    return f"[{model.__name__}](#{model.__name__.lower()})"


def section(model: type[BaseModel], parts: list[Part]) -> str:
    """Heading, meaning, where it is found, and its fields."""
    where = ", ".join(f"[{part.owner}](#{part.owner.lower()}).{part.field}" for part in parts)
    lines = [f"### {model.__name__}\n", f"{prose(model.__doc__ or '')}\n"]
    if where:
        lines.append(f"Found at {where}.\n")
    if model.model_fields:
        lines.append(fields(model))
    if issubclass(model, OpenModel) and model.passed:
        where = code(model.passed_as) if model.passed_as.startswith("kubectl") else model.passed_as
        lines.append(f"Passed as they are, see {where}: {', '.join(map(code, model.passed))}.\n")
    return "\n".join(lines)


def fields(model: type[BaseModel]) -> str:
    """The table of an object's fields."""
    schema = structural(model)
    kind = _SPECS.get(model)
    rows = []
    for name, field in model.model_fields.items():
        alias = field.alias or name
        node = schema["properties"][alias]
        row = [code(alias), type_of(node, model_in(field.annotation)), _default(model, alias, node, schema)]
        if kind is not None:
            row.append(CHANGES[mutability(kind, alias)])
        rows.append((*row, _description(model, alias, field, node)))
    head = ("field", "type", "default", *(("changes",) if kind is not None else ()), "meaning")
    return table(head, rows)


def type_of(node: Mapping[str, Any], model: type[BaseModel] | None) -> str:
    """The type of a field and its bounds."""
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if node.get("type") == "array":
        return f"list of {type_of(node['items'], model)}{_count(node, 'Items', 'entries')}"
    if model is not None:
        return link(model)
    if node.get("type") == "object":
        inner = node.get("additionalProperties")
        return f"map to {type_of(inner, None)}{_count(node, 'Properties', 'entries')}" if inner else "object"
    if node.get("format") == "date-time":
        return "time"
    if node.get("enum"):
        return "one of " + ", ".join(code(value) for value in node["enum"])
    if bounds := bounds_of(node):
        return f"{node['type']}, {bounds}"
    return f"{node['type']}{_count(node, 'Length', 'characters')}"


def _count(node: Mapping[str, Any], what: str, noun: str) -> str:
    low, high = node.get(f"min{what}"), node.get(f"max{what}")
    if high is None:
        return ""
    return f", {low} to {high} {noun}" if low else f", up to {high} {noun}"


def _default(model: type[BaseModel], alias: str, node: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if alias in schema.get("required", ()) or (model, alias) in _asked():
        return "required"
    default = node.get("default")
    if default is None or isinstance(default, dict):  # what is in an object, its own fields say
        return ""
    return code(str(default).lower() if isinstance(default, bool) else default)


def _description(model: type[BaseModel], alias: str, field: FieldInfo, node: Mapping[str, Any]) -> str:
    text = prose(str(field.description or ""))
    if words := _enum_in(field.annotation):
        text += "".join(f"<br>• {code(word.value)}: {prose(word.meaning)}" for word in words)
    if "pattern" in node:
        text += f"<br>Pattern: {code(node['pattern'])}."
    return text + "".join(f"<br>**{refusal(entry)}**" for entry in _refused().get((model, alias), ()))


def _enum_in(annotation: Any) -> type[ApiEnum] | None:
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, ApiEnum) else None
    return next((found for argument in typing.get_args(annotation) if (found := _enum_in(argument))), None)


@cache
def _asked() -> frozenset[tuple[type[BaseModel], str]]:
    """Fields that only a rule asks for: the schema must not, or its error would silence the better ones."""
    return frozenset(
        (model_at(kind, path), rule.field.removeprefix("."))
        for kind, rules in RULES.items()
        for rule in rules
        if rule.id.endswith(_GIVEN)
        for path in rule.at
    )


@cache
def _refused() -> dict[tuple[type[BaseModel], str], list[NotYet]]:
    found: dict[tuple[type[BaseModel], str], list[NotYet]] = {}
    for kind, entries in NOT_YET.items():
        for entry in entries:
            found.setdefault((model_at(kind, entry.at), entry.field), []).append(entry)
    return found


def model_at(kind: str, path: str) -> type[BaseModel]:
    """The model at a schema node of the rule table, `spec.offers[*]`."""
    model: type[BaseModel] = KINDS[kind]
    for step in path.split(".") if path else ():
        name = step.removesuffix("[*]")
        field = next(field for key, field in model.model_fields.items() if name in (key, field.alias))
        inner = model_in(field.annotation)
        if inner is None:
            raise ValueError(f"{path} of {kind} is no object")
        model = inner
    return model
