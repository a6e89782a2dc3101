"""The rule table: every rule of every kind, and their verdict on an object."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.api.class_rules import CLASS_RULES, SLICE_RULES
from torchtpu_operator.api.job_rules import JOB_RULES
from torchtpu_operator.api.rule import Rule, Violation

RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    constants.JOB_KIND: JOB_RULES,
    constants.SLICE_KIND: SLICE_RULES,
    constants.CLASS_KIND: CLASS_RULES,
}


def violations(obj: ApiObject, *, old: ApiObject | None = None) -> tuple[Violation, ...]:
    """What the apiserver would refuse about this object, in its words; with `old`, about this update of it."""
    found = []
    for rule in RULES[type(obj).__name__]:
        for node_path in rule.at:
            for path, node in _nodes(obj, node_path):
                before = None if old is None else dict(_nodes(old, node_path)).get(path)
                if rule.ratchet and before is not None and _same(node, before, rule.ratchet):
                    continue
                message = rule.check(node) if rule.check else None
                if message is None and rule.transition and before is not None:
                    message = rule.transition(node, before)
                if message is not None:
                    text = rule.message if "\n" in message or "\r" in message else message
                    found.append(Violation(path=f"{path}{rule.field}".lstrip("."), message=text))
    return tuple(found)


def _same(node: Any, before: Any, fields: tuple[str, ...]) -> bool:
    return all(_field(node, name) == _field(before, name) for name in fields)


def _nodes(obj: ApiObject, node_path: str) -> Iterator[tuple[str, Any]]:
    nodes: list[tuple[str, Any]] = [("", obj)]
    for step in node_path.split(".") if node_path else ():
        name, star, _ = step.partition("[*]")
        reached = []
        for path, node in nodes:
            value = _field(node, name)
            if value is None:
                continue
            here = f"{path}.{name}".lstrip(".")
            reached += [(f"{here}[{i}]", item) for i, item in enumerate(value)] if star else [(here, value)]
        nodes = reached
    yield from nodes


def _field(node: BaseModel, alias: str) -> Any:
    for name, field in type(node).model_fields.items():
        if field.alias == alias or name == alias:
            return getattr(node, name)
    raise KeyError(f"{type(node).__name__} has no field {alias}")
