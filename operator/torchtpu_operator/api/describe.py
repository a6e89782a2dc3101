"""Descriptions as `kubectl explain` prints them: the model's words, then what the schema and the rule table know.

Values and their meanings, default, bounds, when the field may change and whether it is refused for now are added here, so
that no description repeats them by hand.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import MEANINGS
from torchtpu_operator.api.mutability import mutability
from torchtpu_operator.api.not_yet import NOT_YET, NotYet
from torchtpu_operator.api.rules import RULES

Schema = dict[str, Any]

_WITH_OLD: Final = frozenset(kind for kind, rules in RULES.items() if any(rule.transition for rule in rules))


def with_meanings(node: Mapping[str, Any]) -> str:
    """The description of a node, with its values if they have meanings."""
    text = " ".join(str(node.get("description", "")).split())  # a docstring is wrapped for the code's reader
    if meanings := node.get(MEANINGS):
        text += "".join(f"\n- {value}: {meaning}" for value, meaning in meanings)
    return text


def describe_spec(kind: str, spec: Schema) -> None:
    """Complete the descriptions of a spec's schema, in place."""
    refused = {f"{entry.at}.{entry.field}": refusal(entry) for entry in NOT_YET[kind]}
    for path, node in _fields(spec, "spec"):
        if (inner := node.get("properties", {})) and all(f"{path}.{name}" in refused for name in inner):
            refused[path] = refused[f"{path}.{next(iter(inner))}"]
        facts = [facts_of(node), refused.get(path, "")]
        if path.count(".") == 1 and (field := path.partition(".")[2]) in spec["properties"]:
            facts.append(str(mutability(kind, field)) if kind in _WITH_OLD else "")
        _append(node, " ".join(fact for fact in facts if fact))


def refusal(entry: NotYet) -> str:
    """What a reader of a field's description is told."""
    return f"Not yet supported: {', '.join(entry.values)}." if entry.values else "Not yet supported: refused if given."


def facts_of(node: Mapping[str, Any]) -> str:
    """Default and bounds in words; empty if there are none."""
    facts = []
    default = node.get("default")
    if default is not None and not isinstance(default, (dict, list)):
        facts.append(f"Default: {str(default).lower() if isinstance(default, bool) else default}.")
    if bounds := bounds_of(node):
        facts.append(f"{bounds[0].upper()}{bounds[1:]}.")
    return " ".join(facts)


def bounds_of(node: Mapping[str, Any]) -> str:
    """`from 0 to 3600`, `1 or more`; empty if there are none. The bound of every integer is not worth a word."""
    low, high = node.get("minimum"), node.get("maximum")
    if low is None:
        return ""
    return f"{low} or more" if high in (None, constants.MAX_INT) else f"from {low} to {high}"


def _append(node: Schema, facts: str) -> None:
    text = node.get("description", "")
    if facts:
        node["description"] = f"{text}\n{facts}" if "\n" in text else f"{text} {facts}".strip()


def _fields(node: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from _fields(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            yield from _fields(node[inner], f"{path}[*]" if inner == "items" else path)
