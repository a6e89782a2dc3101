"""Documents that do not even satisfy the schema."""

import pytest

from tests.spec_cases import JOB, Document, job
from torchtpu_operator.api.validate import InvalidObjectError, parse

CASES: dict[str, tuple[Document, tuple[str, ...]]] = {
    "another kind": (
        {"apiVersion": "ray.io/v1", "kind": "RayJob"},
        ('kind: "RayJob" is not known: use one of TorchTPUJob, TPUSlice, TPUSliceClass',),
    ),
    "no kind": ({}, ('kind: "" is not known: use one of TorchTPUJob, TPUSlice, TPUSliceClass',)),
    "a misspelt kind": (
        {**JOB, "kind": "TorchTpuJob"},
        ('kind: "TorchTpuJob" is not known: did you mean TorchTPUJob?',),
    ),
    "another version": (
        {**JOB, "apiVersion": "torchtpu.dev/v1"},
        ('apiVersion: "torchtpu.dev/v1" is not known: use torchtpu.dev/v1alpha1',),
    ),
    "no version": (
        {key: value for key, value in JOB.items() if key != "apiVersion"},
        ('apiVersion: "" is not known: use torchtpu.dev/v1alpha1',),
    ),
    "a field in Python's spelling": (job(num_slices=2), ("spec.num_slices: unknown field: did you mean numSlices?",)),
    "no spec": (
        {key: value for key, value in JOB.items() if key != "spec"},
        ("spec: Required value",),
    ),
    "a misspelt field": (job(topolgy="4x4"), ("spec.topolgy: unknown field: did you mean topology?",)),
    "a misspelt field deep inside": (
        job(failurePolicy={"backoff": {"initalSeconds": 1}}),
        ("spec.failurePolicy.backoff.initalSeconds: unknown field: did you mean initialSeconds?",),
    ),
    "a field like no other": (job(gpu=1), ("spec.gpu: unknown field",)),
    "a float where a whole number or text may be": (
        job(budget={"chipHours": 1.5}),
        (
            'spec.budget.chipHours: Invalid value: "number": spec.budget.chipHours in body must be of type '
            'integer,string: "number"',
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_schema(case: tuple[Document, tuple[str, ...]]) -> None:
    document, want = case
    with pytest.raises(InvalidObjectError) as raised:
        parse(document)
    assert tuple(str(violation) for violation in raised.value.violations) == want


def test_fields_of_other_apis_pass() -> None:
    overlay = {"spec": {"volumes": [{"name": "a", "emptyDir": {}}], "containers": [{"name": "ray", "tty": True}]}}
    parsed = parse(job(template=overlay, runtimeEnv={"pip": ["einops"]})).to_object()
    assert (parsed["spec"]["template"], parsed["spec"]["runtimeEnv"]) == (overlay, {"pip": ["einops"]})
