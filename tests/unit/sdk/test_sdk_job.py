"""TorchTPUJob for users: built, read, checked, written."""

import ast
import copy
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import torchtpu_operator
from tests.spec_cases import CASES, Document, job, slice_class
from tests.spec_fuzz import random_jobs
from torchtpu_operator import InvalidObjectError, TorchTPUJob, TPUSlice, TPUSliceClass, WorkingDir, secret_key
from torchtpu_operator.api import ClassSpec, JobSpec
from torchtpu_operator.api.validate import parse, without_nulls
from torchtpu_operator.sdk.fields import ClassOptions, JobFields, MetadataFields

ROOT = Path(__file__).parents[3]
KINDS = {kind.KIND: kind for kind in (TorchTPUJob, TPUSlice, TPUSliceClass)}


def new(**fields: Any) -> TorchTPUJob:
    given = {"accelerator": "v6e", "topology": "4x4", "entrypoint": "python train.py", **fields}
    return TorchTPUJob.new("llama-ft", **given)


def said(document: Document) -> tuple[str, ...]:
    try:
        KINDS[document["kind"]].from_dict(document).validate()
    except InvalidObjectError as error:
        return tuple(str(violation) for violation in error.violations)
    return ()


BUILT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the shortest": ({}, {}),
    "None is as if not given": ({"image": None, "env": None}, {}),
    "a default that is given is written": ({"num_slices": 1}, {"numSlices": 1}),
    "env as a mapping": (
        {"env": {"B": "x", "A": 8, "T": secret_key("hf", "token"), "P": {"fieldRef": {"fieldPath": "spec.nodeName"}}}},
        {
            "env": [
                {"name": "B", "value": "x"},
                {"name": "A", "value": "8"},
                {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
                {"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ]
        },
    ),
    "env as in YAML": ({"env": [{"name": "A", "value": "$(B)"}]}, {"env": [{"name": "A", "value": "$(B)"}]}),
    "workingDir as an address": ({"working_dir": "gs://b/c.zip"}, {"workingDir": {"uri": "gs://b/c.zip"}}),
    "a model": ({"working_dir": WorkingDir(uri="gs://b/c.zip")}, {"workingDir": {"uri": "gs://b/c.zip"}}),
    "runtimeEnv in Ray's words": (
        {"runtime_env": {"pip": ["einops"], "env_vars": {"A": "1"}}},
        {"runtimeEnv": {"env_vars": {"A": "1"}, "pip": ["einops"]}},
    ),
    "a pod overlay, unknown fields and nulls kept": (
        {"template": {"spec": {"affinity": None, "volumes": [{"name": "a", "emptyDir": {}}]}}},
        {"template": {"spec": {"affinity": None, "volumes": [{"name": "a", "emptyDir": {}}]}}},
    ),
    "an enum": ({"launcher": torchtpu_operator.Launcher.DRIVER}, {"launcher": "Driver"}),
}


@pytest.mark.parametrize(("fields", "spec"), BUILT.values(), ids=BUILT)
def test_new(fields: dict[str, Any], spec: dict[str, Any]) -> None:
    short = {"accelerator": "v6e", "topology": "4x4", "entrypoint": "python train.py"}
    assert new(**fields).validate().to_dict() == {
        "apiVersion": "torchtpu.dev/v1alpha1",
        "kind": "TorchTPUJob",
        "metadata": {"name": "llama-ft"},
        "spec": {**short, **spec},
    }


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a number as text": (
        {"num_slices": "2"},
        'spec.numSlices: Invalid value: "string": spec.numSlices in body must be of type integer: "string"',
    ),
    "True has two spellings": (
        {"env": {"A": True}},
        'spec.env[0].value: Invalid value: "boolean": spec.env[0].value in body must be of type string: "boolean"',
    ),
    "a typo deep inside": (
        {"failure_policy": {"maxRestart": 1}},
        "spec.failurePolicy.maxRestart: unknown field: did you mean maxRestarts?",
    ),
}


@pytest.mark.parametrize(("fields", "want"), REFUSED.values(), ids=REFUSED)
def test_wrong_types_are_refused_at_once(fields: dict[str, Any], want: str) -> None:
    with pytest.raises(InvalidObjectError) as raised:
        new(**fields)
    assert str(raised.value) == f"TorchTPUJob llama-ft is invalid:\n  {want}"


UNKNOWN: dict[str, str] = {
    "gpus": "",
    "numSlices": ": did you mean num_slices?",
    "max_restarts": ": did you mean failure_policy.max_restarts?",
    "replicas": ": did you mean num_slices?",
    "serviceAccountName": ": did you mean template.spec.serviceAccountName?",
}


@pytest.mark.parametrize(("name", "hint"), UNKNOWN.items())
def test_an_unknown_argument_is_a_type_error(name: str, hint: str) -> None:
    with pytest.raises(TypeError) as raised:
        new(**{name: 1})
    assert str(raised.value) == f"TorchTPUJob has no field {name!r}{hint}"


def test_an_unknown_argument_of_a_class_is_a_type_error() -> None:
    typo: Any = {"offer": 1}
    with pytest.raises(TypeError, match=r"TPUSliceClass has no field 'offer': did you mean offers\?"):
        TPUSliceClass.new("x", offers=[], **typo)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_validate_says_what_the_rules_say(case: tuple[Document, tuple[str, ...]]) -> None:
    document, _ = case
    try:
        parse(document)
        want: tuple[str, ...] = ()
    except InvalidObjectError as error:
        want = tuple(str(violation) for violation in error.violations)
    assert said(document) == want


def test_verdicts_on_random_jobs_are_those_of_the_rules_and_good_ones_survive() -> None:
    for document in random_jobs(seed=4, count=500):
        try:
            parse(document)
            want: tuple[str, ...] = ()
        except InvalidObjectError as error:
            want = tuple(str(violation) for violation in error.violations)
        assert said(document) == want
        if not want:
            made = TorchTPUJob.from_dict(document)
            assert (made.to_dict(), TorchTPUJob.from_yaml(made.to_yaml())) == (
                without_nulls(document, TorchTPUJob),
                made,
            )


def documents() -> dict[str, Document]:
    found = {name: document for name, (document, want) in CASES.items() if not want}
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") in KINDS:
                found[path.name] = document
    return found


@pytest.mark.parametrize("document", documents().values(), ids=documents())
def test_round_trip(document: Document) -> None:
    obj = KINDS[document["kind"]].from_dict(document)
    without_status = {key: value for key, value in without_nulls(document, type(obj)).items() if key != "status"}
    again = type(obj).from_yaml(obj.to_yaml())
    assert (obj.to_dict(), again, again.to_yaml()) == (without_status, obj, obj.to_yaml())


def test_what_the_cluster_added_is_left_out() -> None:
    live = copy.deepcopy(job())
    live["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-11-30T12:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "finalizers": ["torchtpu.dev/cleanup", "example.com/mine"],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    live["status"] = {"observedGeneration": 2, "phase": "Running", "message": "running", "newField": 1}
    found = TorchTPUJob.from_dict(live)
    want = {**job(), "metadata": {**job()["metadata"], "finalizers": ["example.com/mine"]}}
    assert (found.status.message, found.to_dict()) == ("running", want)


def test_order_of_fields_is_that_of_the_reference() -> None:
    shuffled = {key: job()["spec"][key] for key in ("image", "entrypoint", "topology", "accelerator")}
    text = TorchTPUJob.from_dict({**job(), "spec": shuffled}).to_yaml()
    assert list(yaml.safe_load(text)["spec"]) == ["accelerator", "topology", "entrypoint", "image"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_entrypoint_survives(text: str) -> None:
    assert TorchTPUJob.from_yaml(new(entrypoint=text).to_yaml()).spec.entrypoint == text


def test_replace() -> None:
    changed = new(image="a", env={"A": "1"}).replace(name="other", image=None, namespace="ml", num_slices=2)
    assert changed.to_dict() == {
        **new().to_dict(),
        "metadata": {"name": "other", "namespace": "ml"},
        "spec": {**new().to_dict()["spec"], "numSlices": 2, "env": [{"name": "A", "value": "1"}]},
    }


SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "one slice": ({}, "v6e 4x4: 16 chips on 4 ct6e-standard-4t hosts, 16 workers"),
    "one host": ({"topology": "2x4"}, "v6e 2x4: 8 chips on 1 ct6e-standard-8t host, 8 workers"),
    "two devices per chip": (
        {"accelerator": "v7x", "topology": "2x2x2", "num_slices": 2},
        "2 x v7x 2x2x2: 16 chips on 4 tpu7x-standard-4t hosts, 32 workers",
    ),
}


@pytest.mark.parametrize(("fields", "want"), SHAPES.values(), ids=SHAPES)
def test_shape(fields: dict[str, Any], want: str) -> None:
    assert str(new(**fields).shape) == want


def test_a_shape_that_does_not_exist() -> None:
    with pytest.raises(InvalidObjectError) as raised:
        _ = new(topology="4x2").shape
    assert str(raised.value) == 'spec.topology: accelerator v6e has no topology "4x2": did you mean "2x4"?'


YAML: dict[str, tuple[str, str]] = {
    "nothing": ("", "YAML: expected one TorchTPUJob, found 0"),
    "two": (2 * f"---\n{yaml.safe_dump(job())}", "YAML: expected one TorchTPUJob, found 2"),
    "not YAML": (
        "a: [",
        "YAML: not YAML: line 1, column 5: while parsing a flow node, expected the node content, but found",
    ),
    "the name of a file": (
        "jobs/job.yaml",
        'YAML: expected an object with apiVersion and kind, found str: to read a file, give Path("jobs/job.yaml")',
    ),
    "a list": ("- a", "YAML: expected an object with apiVersion and kind, found list"),
    "another version": (
        yaml.safe_dump({**job(), "apiVersion": "torchtpu.dev/v1"}),
        "kind: expected torchtpu.dev/v1alpha1 TorchTPUJob, found torchtpu.dev/v1 TorchTPUJob",
    ),
}


@pytest.mark.parametrize(("text", "want"), YAML.values(), ids=YAML)
def test_what_is_not_one_job(text: str, want: str) -> None:
    with pytest.raises(InvalidObjectError) as raised:
        TorchTPUJob.from_yaml(text)
    assert str(raised.value).startswith(want)


def test_from_a_file_with_other_objects(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump_all([{"apiVersion": "v1", "kind": "ConfigMap"}, job(), slice_class()]))
    assert (TorchTPUJob.from_yaml(path).to_dict(), TPUSliceClass.from_yaml(path).to_dict()) == (job(), slice_class())


def test_a_class() -> None:
    made = TPUSliceClass.new("default", offers=slice_class()["spec"]["offers"], default=True, paused=True)
    want = slice_class(paused=True)
    want["metadata"]["annotations"] = {"torchtpu.dev/is-default-class": "true"}
    assert (made.validate().to_dict(), made.is_default) == (want, True)


def test_every_field_is_an_argument() -> None:
    beside = {"name", "namespace", *get_type_hints(MetadataFields)}
    jobs, classes = get_type_hints(JobFields).keys() - beside, get_type_hints(ClassOptions).keys() - beside
    assert (jobs, classes | {"offers"}) == (set(JobSpec.model_fields), set(ClassSpec.model_fields))


def test_help_tells_every_field() -> None:
    text = TorchTPUJob.new.__doc__ or ""
    assert [name for name in JobSpec.model_fields if f"\n{name}: " not in text] == []


LIGHT = """
import sys
import torchtpu_operator
before = [name for name in sys.modules if name.startswith(("torchtpu_operator.", "pydantic"))]
for name in torchtpu_operator.__all__:
    getattr(torchtpu_operator, name)
heavy = {"kopf", "kubernetes", "grpc", "google.cloud", "ray", "torch", "aiohttp", "asyncio"}
print(before, sorted(heavy & sys.modules.keys()))
"""


def test_importing_it_is_light() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, cwd=ROOT / "operator"
    )
    assert done.stdout.strip() == "[] []"


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Torch'"):
        _ = torchtpu_operator.Torch
    assert set(torchtpu_operator.__all__) <= set(dir(torchtpu_operator))


def test_type_checkers_without_pydantic_s_plugin_see_the_defaults() -> None:
    """They know `Field(default=...)` alone: with `Field(None)` every field of a model would be a required argument."""
    positional = [
        f"{path.name}:{call.lineno}"
        for path in (ROOT / "operator/torchtpu_operator/api").glob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Field" and call.args
    ]
    assert positional == []


def test_type_checkers_see_the_names_where_they_are() -> None:
    tree = ast.parse((ROOT / "operator/torchtpu_operator/__init__.py").read_text())
    seen = {
        alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    homes = {name: f"torchtpu_operator.{home}" for name, home in torchtpu_operator._HOMES.items()}
    assert {name: module for name, module in seen.items() if module != "typing"} == homes
