"""Objects that older versions stored: read by today's models without a loss, and each field of the API among them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stored_objects import Document, stored_objects
from torchtpu_operator.api.crd import build_crd
from torchtpu_operator.api.job_rules import CAMEL_CASED
from torchtpu_operator.api.validate import KINDS, parse

STORED = dict(stored_objects())
# not yet supported, or the operator's own: refused, and so in no stored object
REFUSED = (
    "spec.offer.flexStart",
    "spec.offers.flexStart",
    "spec.offers.existing",
    "template.spec.restartPolicy",
    "template.spec.nodeName",
    *(f"spec.runtimeEnv.{field}" for field in CAMEL_CASED),
)


@pytest.mark.parametrize("document", STORED.values(), ids=STORED)
def test_stored_object_is_valid_and_read_without_a_loss(document: Document) -> None:
    parse(document)
    read = KINDS[document["kind"]].from_object(document).to_object()
    assert lost(document["spec"], read["spec"], "spec") + lost(document["status"], read["status"], "status") == []


def lost(stored: Any, read: Any, path: str) -> list[str]:
    """Paths that are in the stored part and not in the one that was read; what is empty may go."""
    if stored in (None, "", [], {}):
        return []
    if isinstance(stored, dict) and isinstance(read, dict):
        return [entry for key, value in stored.items() for entry in lost(value, read.get(key), f"{path}.{key}")]
    if isinstance(stored, list) and isinstance(read, list) and len(stored) == len(read):
        return [entry for i, pair in enumerate(zip(stored, read, strict=True)) for entry in lost(*pair, f"{path}[{i}]")]
    return [] if stored == read else [f"{path}: {stored!r} is read as {read!r}"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_in_some_stored_object(kind: str) -> None:
    """A new field is added to an object of the coming version; those of released versions stay as they are."""
    schema = build_crd(KINDS[kind])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    wanted = {path for root in ("spec", "status") for path in fields(schema["properties"][root], root)}
    stored = {path for document in STORED.values() if document["kind"] == kind for path in used(document, schema, "")}
    missing = {path for path in once(wanted) - once(stored) if not any(each in path for each in REFUSED)}
    assert missing == set()


def once(paths: set[str]) -> set[str]:
    """The same types in several places count once."""
    return {re.sub(r"^spec\.(head|worker)\.template", "spec.template", path).replace("initC", "c") for path in paths}


def fields(node: Document, path: str) -> Iterator[str]:
    """Those that somebody looks into; what the schema merely names of other APIs' types is passed as it is."""
    if node.get("x-kubernetes-preserve-unknown-fields") and "type" not in node:
        return
    yield path
    for name, child in node.get("properties", {}).items():
        yield from fields(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            yield from fields(node[inner], path)


def used(value: Any, node: Document, path: str) -> Iterator[str]:
    """Paths of the schema for which the object has a value."""
    yield path
    if isinstance(value, list):
        for item in value:
            yield from used(item, node.get("items", {}), path)
    elif isinstance(value, dict):
        for name, child in node.get("properties", {}).items():
            if name in value:
                yield from used(value[name], child, f"{path}.{name}".lstrip("."))
        if isinstance(inner := node.get("additionalProperties"), dict):
            for item in value.values():
                yield from used(item, inner, path)
