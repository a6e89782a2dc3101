"""`kubectl explain` reads as documentation: what the apiserver publishes about our kinds."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sim.control_plane import ApiServer
from tests.crd_api import Api
from torchtpu_operator.api.base import ApiModel, model_in
from torchtpu_operator.api.validate import KINDS

SHORT = {"ttj": "TorchTPUJob", "tpus": "TPUSlice", "tpusc": "TPUSliceClass"}


@pytest.fixture(scope="module")
def published(crds: Api, crd_server: ApiServer) -> dict[str, Any]:
    """Kind -> its schema in /openapi/v3."""
    document = json.loads(crd_server.kubectl("get", "--raw", "/openapi/v3/apis/torchtpu.dev/v1alpha1"))
    return {kind: document["components"]["schemas"][f"dev.torchtpu.v1alpha1.{kind}"] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_published_field_is_described(published: dict[str, Any], kind: str) -> None:
    found = list(fields(published[kind], ""))
    assert [path for path, node in found if not node.get("description", "").strip()] == []
    assert len(found) > 40


@pytest.mark.parametrize("kind", KINDS)
def test_every_default_is_published_and_told(published: dict[str, Any], kind: str) -> None:
    """kubectl explain leaves out the schema's `default`, so the text has it, too."""
    spec = published[kind]["properties"]["spec"]
    untold = [path for path, node in fields(spec, "spec") if _scalar_default(node) not in (None, *_told(node))]
    assert (untold, list(unpublished(KINDS[kind].model_fields["spec"].annotation, spec, "spec"))) == ([], [])


@pytest.mark.parametrize("short", SHORT)
@pytest.mark.parametrize("part", ["", ".spec", ".status"])
def test_kubectl_explains(crds: Api, crd_server: ApiServer, short: str, part: str) -> None:
    text = crd_server.kubectl("explain", f"{short}{part}", "--recursive")
    assert text.split()[:6] == ["GROUP:", "torchtpu.dev", "KIND:", SHORT[short], "VERSION:", "v1alpha1"]
    assert ("<no description>" in text, "<empty>" in text) == (False, False)


def test_kubectl_explains_a_field_with_its_unit_clock_default_and_bounds(crds: Api, crd_server: ApiServer) -> None:
    text = " ".join(crd_server.kubectl("explain", "ttj.spec.startDeadlineSeconds").split())
    assert text.partition(" FIELD: ")[2] == (
        "startDeadlineSeconds <integer> DESCRIPTION: Longest start of one attempt, in seconds; then the job fails. Its "
        "clock starts when all slices are Ready and ends when the program runs. Default: 1800. 1 or more. Changes "
        "at any time."
    )


def fields(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            yield from fields(node[inner], path)


def unpublished(model: Any, node: dict[str, Any], path: str) -> Iterator[str]:
    """Fields whose default in the model is not the schema's."""
    found = model_in(model)
    if found is None or not issubclass(found, ApiModel):
        return
    for name, field in found.model_fields.items():
        alias = field.alias or name
        schema = node["properties"][alias]
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if not isinstance(default, ApiModel) and default not in (None, "", (), {}) and schema.get("default") != default:
            yield f"{path}.{alias}: {default!r}"
        yield from unpublished(field.annotation, schema.get("items", schema), f"{path}.{alias}")


def _scalar_default(node: dict[str, Any]) -> Any:
    default = node.get("default")
    return None if isinstance(default, (dict, list)) else default


def _told(node: dict[str, Any]) -> Iterator[Any]:
    """The default, if the description tells it."""
    default = node.get("default")
    words = str(default).lower() if isinstance(default, bool) else str(default)
    if f"Default: {words}." in node["description"]:
        yield default
