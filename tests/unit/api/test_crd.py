"""The generated CRDs: committed as they are generated, explained in every field."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from torchtpu_operator.api.base import ApiEnum
from torchtpu_operator.api.crd import crd_files, main
from torchtpu_operator.api.rules import RULES

CRDS = {name: yaml.safe_load(text) for name, text in crd_files().items()}


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def test_committed_files_are_up_to_date() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("name", CRDS)
def test_every_field_is_explained(name: str) -> None:
    unexplained = [path for path, node in fields(schema_of(CRDS[name]), "") if not node.get("description")]
    assert unexplained == [".metadata", ".metadata.name"]


@pytest.mark.parametrize("name", CRDS)
def test_every_rule_is_in_the_crd(name: str) -> None:
    kind = CRDS[name]["spec"]["names"]["kind"]
    found = [entry["message"] for entry in validations(schema_of(CRDS[name]))]
    assert sorted(found) == sorted(rule.message for rule in RULES[kind] for _ in rule.at)


def test_a_list_or_map_that_a_rule_could_walk_is_bounded() -> None:
    """Without a bound the apiserver takes the largest possible one and refuses the rule as too costly."""
    unbounded = [
        f"{name}{path}"
        for name, crd in CRDS.items()
        for path, node in fields(schema_of(crd), "")
        if (node.get("type") == "array" and "maxItems" not in node) and path.startswith(".spec")
    ]
    assert unbounded == []


@pytest.mark.parametrize("name", CRDS)
def test_kubectl_apply_can_keep_it_in_an_annotation(name: str) -> None:
    """Without --server-side the whole object goes into an annotation, and all of these have 256 KiB."""
    assert len(json.dumps(CRDS[name], separators=(",", ":")).encode()) < 0.8 * 2**18


def fields(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            yield from fields(node[inner], path)


def validations(node: dict[str, Any]) -> Iterator[dict[str, str]]:
    yield from node.get("x-kubernetes-validations", ())
    for child in node.get("properties", {}).values():
        yield from validations(child)
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            yield from validations(node[inner])


def _seconds() -> dict[str, str]:
    return {
        f"{name}{path}": node["description"]
        for name, crd in CRDS.items()
        for path, node in fields(schema_of(crd), "")
        if path.endswith("Seconds") and path.startswith(".spec") and node.get("type") == "integer"
    }


def test_every_duration_says_its_unit() -> None:
    assert [path for path, text in _seconds().items() if "seconds" not in text] == []


def test_what_runs_out_says_when_its_clock_starts() -> None:
    """A bound on a back-off or on the life of a node begins where its field says so in other words."""
    starts = ("clock", "after its start", "from when", "longest wait before")
    assert [path for path, text in _seconds().items() if not any(word in text.lower() for word in starts)] == []


def test_every_word_has_a_meaning() -> None:
    def words(kind: type[ApiEnum]) -> Iterator[ApiEnum]:
        yield from kind
        for inner in kind.__subclasses__():
            yield from words(inner)

    assert [word for kind in ApiEnum.__subclasses__() for word in words(kind) if not word.meaning] == []


def test_descriptions_are_sentences() -> None:
    """They end as sentences do; a list of words and meanings may stand behind."""
    odd = [
        f"{name}{path}"
        for name, crd in CRDS.items()
        for path, node in fields(schema_of(crd), "")
        if (text := node.get("description", ""))
        and not (
            (text[0].isupper() or text.startswith(("metadata.", "uid ", "metav1.")))
            and text.partition("\n")[0].endswith(".")
        )
    ]
    assert odd == []
