"""CustomResourceDefinitions from the models and the rule table: `python -m torchtpu_operator.api.crd [--check]`."""

import argparse
import copy
import sys
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import MEANINGS, ApiObject
from torchtpu_operator.api.describe import describe_spec, with_meanings
from torchtpu_operator.api.job import TorchTPUJob
from torchtpu_operator.api.rules import RULES
from torchtpu_operator.api.slice import TPUSlice
from torchtpu_operator.api.slice_class import TPUSliceClass

FOLDERS: Final = ("crds", "charts/torchtpu-operator/crd-files")  # a chart cannot read files outside itself

Schema = dict[str, Any]

_DROP = {"title", "$defs", "examples", "deprecated", "const", MEANINGS}
_API_VERSION = f"Group and version of this object: {constants.API_VERSION}."
_KIND = "Kind of this object: {kind}."
_NAMES: Final = {
    TorchTPUJob: ("torchtpujob", "ttj", "Namespaced"),
    TPUSlice: ("tpuslice", "tpus", "Cluster"),
    TPUSliceClass: ("tpusliceclass", "tpusc", "Cluster"),
}
_DEFAULT_CLASS = constants.ANNOTATION_DEFAULT_CLASS.replace(".", r"\.")
_COLUMNS: Final[dict[type[ApiObject], list[tuple[str, str, str, int]]]] = {
    TorchTPUJob: [
        ("Phase", ".status.phase", "string", 0),
        ("Shape", ".status.resolved.shape", "string", 0),
        ("Slices", ".status.slicesReady", "string", 0),
        ("Attempt", ".status.attempt.number", "integer", 0),
        ("Age", ".metadata.creationTimestamp", "date", 0),
        ("Message", ".status.message", "string", 0),
        ("Restarts", ".status.restarts", "integer", 1),
        ("Disruptions", ".status.disruptions", "integer", 1),
        ("Class", ".status.resolved.sliceClassName", "string", 1),
        ("RayCluster", ".status.attempt.rayCluster", "string", 1),
    ],
    TPUSlice: [
        ("Phase", ".status.phase", "string", 0),
        ("Accelerator", ".spec.accelerator", "string", 0),
        ("Topology", ".spec.topology", "string", 0),
        ("Offer", ".spec.offer.name", "string", 0),
        ("Claimed-By", ".spec.claimRef.name", "string", 0),
        ("Nodes", ".status.nodes.summary", "string", 0),
        ("Age", ".metadata.creationTimestamp", "date", 0),
        ("Message", ".status.message", "string", 0),
        ("Zone", ".spec.offer.zone", "string", 1),
        ("Namespace", ".spec.claimRef.namespace", "string", 1),
        ("Class", ".spec.sliceClassName", "string", 1),
    ],
    TPUSliceClass: [
        ("Default", f".metadata.annotations.{_DEFAULT_CLASS}", "string", 0),
        ("Offers", ".status.summary", "string", 0),
        ("Paused", ".spec.paused", "boolean", 0),
        ("Slices", ".status.slices", "integer", 0),
        ("Chips", ".status.chips", "integer", 0),
        ("Age", ".metadata.creationTimestamp", "date", 0),
    ],
}


def build_crd(model: type[ApiObject]) -> Schema:
    """The CustomResourceDefinition of one kind."""
    singular, short, scope = _NAMES[model]
    schema = structural(model)
    schema["properties"] = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND.format(kind=model.__name__)},
        # no descriptions: the apiserver shows its own for metadata
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}},
        "spec": schema["properties"]["spec"],
        # kstatus takes an object without status for Current: it must not look finished before we have seen it
        "status": {**schema["properties"]["status"], "default": {"observedGeneration": -1}},
    }
    schema["required"] = ["spec"]
    describe_spec(model.__name__, schema["properties"]["spec"])
    for rule in RULES[model.__name__]:
        for path in rule.at:
            _node(schema, path).setdefault("x-kubernetes-validations", []).append(rule.validation())
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{model.plural}.{constants.GROUP}"},
        "spec": {
            "group": constants.GROUP,
            "scope": scope,
            "names": {
                "kind": model.__name__,
                "listKind": f"{model.__name__}List",
                "plural": model.plural,
                "singular": singular,
                "shortNames": [short],
                "categories": ["torchtpu"],
            },
            "versions": [
                {
                    "name": constants.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": kind, "jsonPath": path} | ({"priority": priority} if priority else {})
                        for name, path, kind, priority in _COLUMNS[model]
                    ],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def structural(model: type[BaseModel]) -> Schema:
    """The model's JSON schema in the structural form that a CRD accepts; ValueError for what has none."""
    document = model.model_json_schema(mode="validation", by_alias=True)
    return _walk(document, document.get("$defs", {}), ())


def _walk(node: Schema, defs: Schema, path: tuple[str, ...]) -> Schema:
    if reference := node.get("$ref"):
        name = reference.rsplit("/", 1)[1]
        if name in path:
            raise ValueError(f"recursive model {name}: not expressible in a CRD")
        return _walk({**defs[name], **{k: v for k, v in node.items() if k != "$ref"}}, defs, (*path, name))
    if options := node.get("anyOf"):
        kept = [option for option in options if option.get("type") != "null"]
        rest = {k: v for k, v in node.items() if k != "anyOf"}
        if len(kept) == 1:
            return _walk({**kept[0], **rest}, defs, path)
        if {option.get("type") for option in kept} == {"integer", "string"}:
            return _walk({**rest, "x-kubernetes-int-or-string": True}, defs, path)
        raise ValueError(f"union {kept} has no structural form")
    out: Schema = {}
    for key, value in node.items():
        if key in _DROP or (key == "default" and value in (None, "", [], {})):
            continue
        if key == "properties":
            out[key] = {name: _walk(schema, defs, path) for name, schema in value.items()}
        elif key == "items":
            out[key] = _walk(value, defs, path)
        elif key == "additionalProperties":
            if isinstance(value, dict) and value:
                out[key] = _walk(value, defs, path)
            elif value is True and "properties" in node:
                out["x-kubernetes-preserve-unknown-fields"] = True
        elif key == "default":
            out[key] = _without_empty(value)
        else:
            out[key] = copy.deepcopy(value)
    if description := with_meanings(node):
        out["description"] = description
    if "const" in node:
        out["enum"] = [node["const"]]
    if out.get("type") == "object" and not ({"properties", "additionalProperties"} & out.keys()):
        out["x-kubernetes-preserve-unknown-fields"] = True
    return out


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_empty(v) for k, v in value.items() if v not in (None, "", [], {})}
    return value


def _node(schema: Schema, path: str) -> Schema:
    node = schema
    for step in path.split(".") if path else ():
        name, star, _ = step.partition("[*]")
        node = node["properties"][name]
        if star:
            node = node["items"]
    return node


class Dumper(yaml.SafeDumper):
    """Text of several lines as a block, so that a diff of the CRDs can be read."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _represent_text)


def crd_files() -> dict[str, str]:
    """File name -> text, for `crds/`."""
    return {
        f"{constants.GROUP}_{model.plural}.yaml": yaml.dump(build_crd(model), Dumper=Dumper, sort_keys=False, width=120)
        for model in _NAMES
    }


def main(argv: list[str] | None = None) -> int:
    """Write `crds/` and the chart's copy, or with --check say what differs (exit code 1)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[3], help="root of the repository")
    options = parser.parse_args(argv)
    wanted = {options.root / folder / name: text for folder in FOLDERS for name, text in crd_files().items()}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    if options.check:
        for path in stale:
            print(f"{path} is out of date: run python -m torchtpu_operator.api.crd", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], "utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
