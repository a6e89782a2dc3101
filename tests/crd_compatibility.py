"""Whether a CRD takes everything that an older one took: `incompatible(old, new)` lists what it no longer does."""

import json
from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]

_LOWER_BOUNDS: Final = ("minimum", "minLength", "minItems", "minProperties")
_UPPER_BOUNDS: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_FLAGS: Final = ("exclusiveMinimum", "exclusiveMaximum", "uniqueItems")
_OPAQUE: Final = (
    "pattern",
    "format",
    "multipleOf",
    "not",
    "allOf",
    "anyOf",
    "oneOf",
)  # whose old and new are not compared
_IDENTITY: Final = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_NO_DEFAULT: Final = object()
_ANYTHING: Final = "anything"


def incompatible(old: Schema, new: Schema) -> list[str]:
    """What of `old`, a CustomResourceDefinition, the CustomResourceDefinition `new` no longer keeps; in sentences.

    Empty: every stored object stays valid, keeps all its fields and may be written by those who could write it before.
    What cannot be judged (another pattern, another rule) counts as incompatible.
    """
    return list(_crd(old["spec"], new["spec"]))


def _crd(old: Schema, new: Schema) -> Iterator[str]:
    for field in ("group", "scope"):
        if old[field] != new[field]:
            yield f"{field} changed from {old[field]} to {new[field]}"
    for field in ("kind", "plural"):
        if old["names"][field] != new["names"][field]:
            yield f"{field} changed from {old['names'][field]} to {new['names'][field]}"
    if lost := _lost(old["names"].get("shortNames", ()), new["names"].get("shortNames", ())):
        yield f"short name {', '.join(lost)} is gone: scripts use it"
    served = {version["name"]: version for version in new["versions"] if version["served"]}
    for version in old["versions"]:
        if not version["served"]:
            continue
        if version["name"] not in served:
            yield f"version {version['name']} is no longer served"
            continue
        yield from _version(version, served[version["name"]])


def _version(old: Schema, new: Schema) -> Iterator[str]:
    if lost := _lost(old.get("subresources", ()), new.get("subresources", ())):
        yield f"subresource {', '.join(lost)} is gone"
    yield from _node(old["schema"]["openAPIV3Schema"], new["schema"]["openAPIV3Schema"], "")


def _node(old: Schema, new: Schema, path: str) -> Iterator[str]:
    where = path or "the object"
    yield from (f"{where}: {problem}" for problem in _own(old, new))
    yield from (f"{where}: {problem}" for problem in _rules(old, new))
    kept_anyway = new.get("x-kubernetes-preserve-unknown-fields", False)
    for name, child in old.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        if name in new.get("properties", {}):
            yield from _node(child, new["properties"][name], here)
        elif not kept_anyway:
            yield f"{here}: the field is gone: stored objects would lose it"
    for inner, suffix in (("items", "[*]"), ("additionalProperties", "{*}")):
        if isinstance(old.get(inner), dict) and isinstance(new.get(inner), dict):
            yield from _node(old[inner], new[inner], f"{path}{suffix}")
        elif isinstance(old.get(inner), dict) and not kept_anyway:
            yield f"{where}: {inner} is gone"


def _own(old: Schema, new: Schema) -> Iterator[str]:
    """What the node says of its own value, not of what is in it."""
    before, after = _types(old), _types(new)
    if before - after and _ANYTHING not in after:
        yield f"type changed from {' or '.join(sorted(before))} to {' or '.join(sorted(after)) or 'nothing'}"
    if old.get("nullable") and not new.get("nullable"):
        yield "null is no longer taken"
    if old.get("x-kubernetes-preserve-unknown-fields") and not new.get("x-kubernetes-preserve-unknown-fields"):
        yield "unknown fields are no longer kept: stored objects would lose theirs"
    defaults = new.get("properties", {})
    for name in _lost(new.get("required", ()), old.get("required", ())):
        if "default" not in defaults.get(name, {}):
            yield f"{name} is newly required"
    for bounds, tighter in ((_LOWER_BOUNDS, 1), (_UPPER_BOUNDS, -1)):
        for bound in bounds:
            if bound in new and (bound not in old or (new[bound] - old[bound]) * tighter > 0):
                yield f"{bound} tightened from {old.get(bound, 'none')} to {new[bound]}"
    for flag in _FLAGS:
        if new.get(flag) and not old.get(flag):
            yield f"{flag} is new"
    for key in _OPAQUE:
        if key in new and new[key] != old.get(key):
            yield f"{key} changed from {_text(old.get(key, 'none'))} to {_text(new[key])}"
    for key in _IDENTITY:
        if new.get(key) != old.get(key):
            yield f"{key} changed from {_text(old.get(key, 'none'))} to {_text(new.get(key, 'none'))}"
    if "enum" in new and "enum" not in old:
        yield f"enum is new: only {', '.join(map(str, new['enum']))} are taken"
    elif "enum" in new and (lost := _lost(old["enum"], new["enum"])):
        yield f"enum lost {', '.join(map(str, lost))}"
    yield from _default(old, new)


def _default(old: Schema, new: Schema) -> Iterator[str]:
    before, after = old.get("default", _NO_DEFAULT), new.get("default", _NO_DEFAULT)
    if isinstance(before, dict) and isinstance(after, dict):
        # an object's default is written out with the defaults of fields that came later
        after = {key: value for key, value in after.items() if key in before}
    if before == after:
        return
    was, is_ = ("none" if value is _NO_DEFAULT else _text(value) for value in (before, after))
    yield f"default changed from {was} to {is_}: what is not written would mean something else"


def _rules(old: Schema, new: Schema) -> Iterator[str]:
    known = {rule["rule"] for rule in old.get("x-kubernetes-validations", ())}
    for rule in new.get("x-kubernetes-validations", ()):
        ratchets = rule.get("optionalOldSelf") and "oldSelf" in rule["rule"]
        if rule["rule"] not in known and not ratchets:
            yield f"a rule without ratchet is new or changed: {rule.get('message', rule['rule'])}"


def _types(node: Schema) -> set[str]:
    """Types of values that the node takes; an integer is a number, too."""
    if node.get("x-kubernetes-int-or-string"):
        return {"integer", "string"}
    kind = node.get("type")
    if kind is None:
        return {_ANYTHING} if node.get("x-kubernetes-preserve-unknown-fields") else set()
    return {"number", "integer"} if kind == "number" else {kind}


def _lost(before: Any, after: Any) -> list[Any]:
    return [each for each in before if each not in after]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
