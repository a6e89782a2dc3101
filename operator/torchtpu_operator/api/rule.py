"""One rule about an object, said twice in the same words: as CEL for the CRD, as a function for planner and client."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

REQUIRED: Final = "FieldValueRequired"
INVALID: Final = "FieldValueInvalid"
FORBIDDEN: Final = "FieldValueForbidden"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """What is wrong: `path` as the apiserver writes it (`spec.offers[0].type`), and the message that names the fix."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule at one or several places of a kind.

    `check` gets the model at that place (for a transition rule also the old one) and returns the message, or None when
    the rule holds. `message` is what the apiserver falls back on when `message_expression` yields no single line.

    A rule that comes after a release names the fields that it judges in `ratchet`: an object that was stored before
    passes as long as these stay as they are, so that it can still be suspended.
    """

    id: str
    at: tuple[str, ...]  # schema nodes that carry the rule: "spec", "spec.head.template", "spec.offers[*]", "" the root
    field: str  # the field at fault, relative to the node: ".topology"; empty: the node itself
    cel: str
    message: str
    check: Callable[[Any], str | None] | None = None
    transition: Callable[[Any, Any], str | None] | None = None
    message_expression: str | None = None
    reason: str = INVALID
    ratchet: tuple[str, ...] = ()  # names of fields of the node, as the API has them

    def validation(self) -> dict[str, Any]:
        """The entry of x-kubernetes-validations."""
        entry: dict[str, Any] = {"rule": self.cel, "message": self.message, "reason": self.reason}
        if self.ratchet:
            kept = " && ".join(_cel_unchanged(field, old="oldSelf.value()") for field in self.ratchet)
            entry |= {"rule": f"(oldSelf.hasValue() && {kept}) || ({self.cel})", "optionalOldSelf": True}
        if self.message_expression is not None:
            entry["messageExpression"] = self.message_expression
        if self.field:
            entry["fieldPath"] = self.field
        return entry


def _cel_unchanged(field: str, *, old: str) -> str:
    return f"has(self.{field}) == has({old}.{field}) && (!has(self.{field}) || self.{field} == {old}.{field})"


def cel_string(text: str) -> str:
    """The text as a CEL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def cel_list(items: Any) -> str:
    """Strings or integers as a CEL list."""
    return "[" + ", ".join(cel_string(item) if isinstance(item, str) else str(item) for item in items) + "]"


def cel_map(items: Mapping[str, Any]) -> str:
    """A mapping from strings to strings, integers or lists as a CEL map."""

    def value(item: Any) -> str:
        if isinstance(item, str):
            return cel_string(item)
        return str(item) if isinstance(item, int) else cel_list(item)

    return "{" + ", ".join(f"{cel_string(key)}: {value(item)}" for key, item in items.items()) + "}"


def cel_text(template: str, **values: str) -> str:
    """A `str.format` template as CEL, each `{name}` replaced by the value of the CEL expression given for it.

    By format(), since the cost estimate knows the size of its result and not that of a concatenation.
    """
    parts = re.split(r"\{(\w+)\}", template)
    text = "".join("%s" if index % 2 else part.replace("%", "%%") for index, part in enumerate(parts))
    if len(parts) == 1:
        return cel_string(template)
    return f"{cel_string(text)}.format([{', '.join(values[name] for name in parts[1::2])}])"
