"""Documents that do not even satisfy the schema."""

import pytest

from tests.spec_cases import JOB, Document, job, slice_class
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
    "a field of a nested object, one level too high": (
        job(noProgressSeconds=900, max_restarts=2),
        (
            "spec.noProgressSeconds: unknown field: did you mean spec.failurePolicy.noProgressSeconds?",
            "spec.max_restarts: unknown field: did you mean spec.failurePolicy.maxRestarts?",
        ),
    ),
    "a field of the spec, one level too low": (
        job(failurePolicy={"activeDeadlineSeconds": 60}),
        ("spec.failurePolicy.activeDeadlineSeconds: unknown field: did you mean spec.activeDeadlineSeconds?",),
    ),
    "a field of the spec beside it": (
        {**job(), "numSlices": 2},
        ("numSlices: unknown field: did you mean spec.numSlices?",),
    ),
    "names of other APIs": (
        job(command=["python"], replicas=2, backoffLimit=3, spot=True, serviceAccountName="trainer"),
        (
            "spec.command: unknown field: did you mean spec.entrypoint?",
            "spec.replicas: unknown field: did you mean spec.numSlices?",
            "spec.backoffLimit: unknown field: did you mean spec.failurePolicy.maxRestarts?",
            "spec.spot: unknown field: did you mean spec.sliceClassName, of a class with such an offer?",
            "spec.serviceAccountName: unknown field: did you mean spec.template.spec.serviceAccountName?",
        ),
    ),
    "a field of an offer, beside the offers": (
        slice_class(zones=["us-east5-b"], spot=True, default=True),
        (
            "spec.zones: unknown field: did you mean spec.offers[].zones?",
            "spec.spot: unknown field",
            'spec.default: unknown field: did you mean the annotation torchtpu.dev/is-default-class: "true"?',
        ),
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
