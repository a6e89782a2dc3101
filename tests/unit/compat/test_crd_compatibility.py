"""What counts as an incompatible change of a CRD, and that ours has none since each release."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.compat.snapshot import is_released, versions
from tests.crd_compatibility import incompatible
from torchtpu_operator.api.crd import crd_files

Schema = dict[str, Any]

BASE: Schema = {
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Job", "plural": "jobs", "shortNames": ["j"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "default": {"count": 1},
                                "properties": {
                                    "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
                                    "name": {"type": "string", "minLength": 1, "maxLength": 63},
                                    "size": {"x-kubernetes-int-or-string": True},
                                    "mode": {"type": "string", "enum": ["Fast", "Slow"]},
                                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "offers": {
                                        "type": "array",
                                        "maxItems": 4,
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "zone": {"type": "string", "nullable": True},
                                            },
                                        },
                                    },
                                },
                                "x-kubernetes-validations": [{"rule": "self.count < 5", "message": "too many"}],
                            }
                        },
                    }
                },
            }
        ],
    }
}


def spec_of(crd: Schema) -> Schema:
    node: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return node


def field(name: str, **changes: Any) -> Callable[[Schema], None]:
    """Set keywords of one field of the spec; None takes one away."""

    def change(crd: Schema) -> None:
        node = spec_of(crd)["properties"][name]
        node.update(changes)
        for key, value in changes.items():
            if value is None:
                del node[key]

    return change


def add_field(name: str, schema: Schema) -> Callable[[Schema], None]:
    return lambda crd: spec_of(crd)["properties"].update({name: schema})


def drop_field(name: str) -> Callable[[Schema], None]:
    return lambda crd: spec_of(crd)["properties"].pop(name)


def spec(**changes: Any) -> Callable[[Schema], None]:
    return lambda crd: spec_of(crd).update(changes)


def rule(**entry: Any) -> Callable[[Schema], None]:
    return lambda crd: spec_of(crd)["x-kubernetes-validations"].append(entry)


def renamed(crd: Schema) -> None:
    properties = spec_of(crd)["properties"]
    properties["title"] = properties.pop("name")


def item(**changes: Any) -> Callable[[Schema], None]:
    return lambda crd: spec_of(crd)["properties"]["offers"]["items"].update(changes)


def zone(schema: Schema) -> Callable[[Schema], None]:
    return lambda crd: spec_of(crd)["properties"]["offers"]["items"]["properties"].update(zone=schema)


def names(**changes: Any) -> Callable[[Schema], None]:
    return lambda crd: crd["spec"]["names"].update(changes)


def version(**changes: Any) -> Callable[[Schema], None]:
    return lambda crd: crd["spec"]["versions"][0].update(changes)


# sentence -> (change of BASE, what is said of it; nothing: compatible)
CHANGES: dict[str, tuple[Callable[[Schema], Any], list[str]]] = {
    "nothing": (lambda _: None, []),
    "a new field": (add_field("extra", {"type": "string", "maxLength": 3}), []),
    "a new field with a default, which the default of its parent repeats": (
        lambda crd: (
            add_field("extra", {"type": "integer", "default": 3})(crd),
            spec(default={"count": 1, "extra": 3})(crd),
        ),
        [],
    ),
    "a new field with rules of its own": (
        add_field("extra", {"type": "object", "x-kubernetes-validations": [{"rule": "has(self.a)", "message": "a"}]}),
        [],
    ),
    "a field taken away": (drop_field("name"), ["spec.name: the field is gone: stored objects would lose it"]),
    "a field renamed": (renamed, ["spec.name: the field is gone: stored objects would lose it"]),
    "a field that is kept, but not typed any more": (
        lambda crd: (
            drop_field("name")(crd),
            spec(**{"x-kubernetes-preserve-unknown-fields": True})(crd),
        ),
        [],
    ),
    "a field of another type": (field("name", type="integer"), ["spec.name: type changed from string to integer"]),
    "an integer that may have a fraction": (field("count", type="number"), []),
    "a number or a text that was a number": (
        lambda crd: (
            field("count", type=None, default=None)(crd),
            field("count", **{"x-kubernetes-int-or-string": True, "default": 1})(crd),
        )[0],
        [],
    ),
    "a text that was a number or a text": (
        field("size", type="string", **{"x-kubernetes-int-or-string": None}),
        ["spec.size: type changed from integer or string to string"],
    ),
    "a new required field": (spec(required=["name"]), ["spec: name is newly required"]),
    "a required field that has a default": (spec(required=["count"]), []),
    "a required field of an item": (
        item(required=["name", "zone"]),
        ["spec.offers[*]: zone is newly required"],
    ),
    "a higher minimum": (field("count", minimum=2), ["spec.count: minimum tightened from 1 to 2"]),
    "a lower minimum": (field("count", minimum=0), []),
    "a lower maximum": (field("count", maximum=8), ["spec.count: maximum tightened from 9 to 8"]),
    "a higher maximum": (field("count", maximum=10), []),
    "an excluded minimum": (field("count", exclusiveMinimum=True), ["spec.count: exclusiveMinimum is new"]),
    "bounds taken away": (field("name", minLength=None, maxLength=None), []),
    "a longer minimum": (field("name", minLength=2), ["spec.name: minLength tightened from 1 to 2"]),
    "a shorter maximum": (field("name", maxLength=62), ["spec.name: maxLength tightened from 63 to 62"]),
    "fewer items": (field("offers", maxItems=3), ["spec.offers: maxItems tightened from 4 to 3"]),
    "at least one item": (field("offers", minItems=1), ["spec.offers: minItems tightened from none to 1"]),
    "a bounded map": (field("labels", maxProperties=9), ["spec.labels: maxProperties tightened from none to 9"]),
    "a pattern": (field("name", pattern="^a"), ["spec.name: pattern changed from none to ^a"]),
    "a format": (field("name", format="date-time"), ["spec.name: format changed from none to date-time"]),
    "another value in an enum": (field("mode", enum=["Fast", "Slow", "Off"]), []),
    "a value lost from an enum": (field("mode", enum=["Fast"]), ["spec.mode: enum lost Slow"]),
    "an enum taken away": (field("mode", enum=None), []),
    "an enum for what was free": (field("name", enum=["a"]), ["spec.name: enum is new: only a are taken"]),
    "another default": (
        field("count", default=2),
        ["spec.count: default changed from 1 to 2: what is not written would mean something else"],
    ),
    "a default where there was none": (
        field("name", default="a"),
        ["spec.name: default changed from none to a: what is not written would mean something else"],
    ),
    "a default taken away": (
        field("count", default=None),
        ["spec.count: default changed from 1 to none: what is not written would mean something else"],
    ),
    "unknown fields no longer kept": (
        field("open", **{"x-kubernetes-preserve-unknown-fields": None}),
        ["spec.open: unknown fields are no longer kept: stored objects would lose theirs"],
    ),
    "null no longer taken": (zone({"type": "string"}), ["spec.offers[*].zone: null is no longer taken"]),
    "values of a map of another type": (
        field("labels", additionalProperties={"type": "integer"}),
        ["spec.labels{*}: type changed from string to integer"],
    ),
    "a map that has become an object": (
        field("labels", additionalProperties=None),
        ["spec.labels: additionalProperties is gone"],
    ),
    "a list whose entries may not repeat": (
        field("offers", **{"x-kubernetes-list-map-keys": ["name", "zone"]}),
        ['spec.offers: x-kubernetes-list-map-keys changed from ["name"] to ["name", "zone"]'],
    ),
    "a new rule": (
        rule(rule="has(self.name)", message="a name, please"),
        ["spec: a rule without ratchet is new or changed: a name, please"],
    ),
    "a new rule that lets old objects pass": (
        rule(rule="(oldSelf.hasValue() && !has(oldSelf.value().name)) || has(self.name)", optionalOldSelf=True),
        [],
    ),
    "a new rule that asks for the old object and does not look at it": (
        rule(rule="has(self.name)", message="a name, please", optionalOldSelf=True),
        ["spec: a rule without ratchet is new or changed: a name, please"],
    ),
    "a field that can no longer be changed": (
        rule(rule="self.count == oldSelf.count", message="count never changes"),
        ["spec: a rule without ratchet is new or changed: count never changes"],
    ),
    "a rule in other words": (
        spec(**{"x-kubernetes-validations": [{"rule": "self.count < 5", "message": "at most four"}]}),
        [],
    ),
    "a rule taken away": (spec(**{"x-kubernetes-validations": []}), []),
    "another scope": (
        lambda crd: crd["spec"].update(scope="Cluster"),
        ["scope changed from Namespaced to Cluster"],
    ),
    "another plural": (names(plural="tasks"), ["plural changed from jobs to tasks"]),
    "a short name taken away": (names(shortNames=["t"]), ["short name j is gone: scripts use it"]),
    "a version no longer served": (version(served=False), ["version v1 is no longer served"]),
    "no status subresource": (version(subresources={}), ["subresource status is gone"]),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_change_of_a_crd(case: tuple[Callable[[Schema], Any], list[str]]) -> None:
    change, want = case
    new = copy.deepcopy(BASE)
    change(new)
    assert incompatible(BASE, new) == want


SNAPSHOTS = {f"{folder.name} {path.stem}": path for folder in versions() for path in sorted(folder.glob("*.yaml"))}


@pytest.mark.parametrize("snapshot", SNAPSHOTS.values(), ids=SNAPSHOTS)
def test_crd_keeps_what_each_version_promised(snapshot: Path) -> None:
    """Until the version is released, `make snapshot` writes its snapshot anew."""
    assert incompatible(yaml.safe_load(snapshot.read_text("utf-8")), yaml.safe_load(crd_files()[snapshot.name])) == []


def test_every_version_has_a_snapshot_of_every_crd() -> None:
    found = {folder.name: {path.name for path in folder.glob("*.yaml")} for folder in versions()}
    assert found
    assert found == {name: set(crd_files()) for name in found}


def test_a_version_is_released_once_the_changelog_has_its_heading() -> None:
    changelog = "## [Unreleased]\n\n## [0.2.0] - 2027-01-15\n"
    assert [is_released(version, changelog=changelog) for version in ("0.2.0", "0.3.0", "0.2")] == [True, False, False]
