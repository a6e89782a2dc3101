"""The CRDs in a real kube-apiserver: accepted, complete, and refusing in the same words as the Python side."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from sim import tools
from sim.control_plane import ApiServer
from tests.crd_api import Api, causes, said_by_apiserver, said_by_python
from tests.spec_cases import JOB, SLICE, Document, generated, job
from tests.spelling_cases import ALL as CASES
from torchtpu_operator.api import (
    JobPhase,
    JobStatus,
    Reason,
    TorchTPUJob,
    set_condition,
    to_dict,
)
from torchtpu_operator.api.conditions import kstatus
from torchtpu_operator.api.job_status import (
    Attempt,
    AttemptOutcome,
    AttemptRecord,
    Demand,
    JobSlice,
    JobUsage,
    ResolvedJob,
)
from torchtpu_operator.api.rules import violations
from torchtpu_operator.api.validate import KINDS

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FULL_STATUS = JobStatus(
    observed_generation=1,
    phase=JobPhase.RUNNING,
    message="16 workers run",
    resolved=ResolvedJob(
        slice_class_name="default",
        shape="v6e 4x4",
        machine_type="ct6e-standard-4t",
        hosts_per_slice=4,
        chips_per_host=4,
        chips=16,
        workers=16,
    ),
    demand=Demand(slices=1, sequence=(0,), first_request_at=NOW),
    slices=(JobSlice(index=0, name="llama-ft-0-1", uid="u", offer="od", zone="us-east5-b", billed_from=NOW),),
    slices_ready="1/1",
    attempt=Attempt(number=2, ray_cluster="llama-ft-1-a2", submission_id="u-2", started_at=NOW, running_at=NOW),
    attempts=(AttemptRecord(number=1, outcome=AttemptOutcome.DISRUPTION, reason="SlicePreempted", ended_at=NOW),),
    disruptions=1,
    usage=JobUsage(chip_seconds=160, estimated_cost="0.05"),
    start_time=NOW,
    conditions=set_condition(
        (), type="Ready", status=True, reason=Reason.RUNNING, message="ok", observed_generation=1, now=NOW
    ),
)
GOLDEN = Path(__file__).parents[1] / "golden" / "ray_cluster"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_apiserver_says(crds: Api, case: tuple[Document, tuple[str, ...]]) -> None:
    document, want = case
    assert sorted(said_by_apiserver(crds, document)) == sorted(want)


def test_apiserver_and_python_agree_on_hundreds_of_objects(crds: Api) -> None:
    documents = dict(generated())
    differing = {
        name: (server, python)
        for name, document in documents.items()
        if sorted(server := said_by_apiserver(crds, document)) != sorted(python := said_by_python(document))
    }
    assert differing == {}
    assert len(documents) > 500


UPDATES: dict[str, tuple[Document, Document, tuple[str, ...]]] = {
    "another topology": (
        job(),
        {"topology": "4x8"},
        ("spec.topology: topology never changes: make a new job",),
    ),
    "chips per host, given later": (
        job(topology="2x4"),
        {"chipsPerHost": 8},
        ("spec.chipsPerHost: chipsPerHost never changes: make a new job",),
    ),
    "offers taken away": (
        job(offers=["od"]),
        {"offers": None},
        ("spec.offers: offers never changes: make a new job",),
    ),
    "another image while running": (
        job(),
        {"image": "example.com/ray:2.61.0"},
        ("spec.image: image changes only while the job is suspended: set spec.suspend to true first",),
    ),
    "a volume, which the schema does not know, while running": (
        job(template={"spec": {"containers": [{"name": "ray"}]}}),
        {"template": {"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}}},
        ("spec.template: template changes only while the job is suspended: set spec.suspend to true first",),
    ),
    "an image and suspend in one": (
        job(),
        {"image": "example.com/ray:2.61.0", "suspend": True},
        ("spec.image: image changes only while the job is suspended: set spec.suspend to true first",),
    ),
    "an image while suspended": (job(suspend=True), {"image": "example.com/ray:2.61.0"}, ()),
    "an image with the resume": (job(suspend=True), {"image": "example.com/ray:2.61.0", "suspend": False}, ()),
    "another topology while suspended": (
        job(suspend=True),
        {"topology": "4x8"},
        ("spec.topology: topology never changes: make a new job",),
    ),
    "suspend": (job(), {"suspend": True}, ()),
    "a deadline": (job(), {"activeDeadlineSeconds": 60}, ()),
    "a deadline taken away": (job(), {"capacityDeadlineSeconds": None}, ()),
    "more restarts": (job(), {"failurePolicy": {"maxRestarts": 3}}, ()),
    "a slice's zone": (
        SLICE,
        {"offer": {"zone": "us-east5-a"}},
        ("spec.offer: offer never changes: a slice is a snapshot of class and offer",),
    ),
    "a claim": (
        SLICE,
        {
            "claimRef": {
                "namespace": "ml",
                "name": "j",
                "uid": "u",
                "sliceIndex": 0,
                "sequence": 0,
                "claimedAt": "2026-11-30T12:00:00Z",
            }
        },
        (),
    ),
}


@pytest.mark.parametrize("case", UPDATES.values(), ids=UPDATES)
def test_update(crds: Api, case: tuple[Document, Document, tuple[str, ...]]) -> None:
    document, change, want = case
    old = crds.create(document)
    try:
        new = crds.patch(document, {"spec": change})
        server: tuple[str, ...] = ()
    except ApiException as error:
        new = {**old, "spec": merged(old["spec"], change)}
        server = causes(error)
    finally:
        crds.delete(document)
    model = KINDS[document["kind"]]
    found = violations(model.from_object(new), old=model.from_object(old))
    assert (server, tuple(str(violation) for violation in found)) == (want, want)


def merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        result[key] = merged(result.get(key), value)
        if value is None:
            del result[key]
    return result


def test_new_job_has_visible_defaults_and_is_not_current_for_kstatus(crds: Api) -> None:
    made = crds.create(JOB)
    crds.delete(JOB)
    del made["spec"]["image"], made["spec"]["accelerator"], made["spec"]["topology"], made["spec"]["entrypoint"]
    assert (made["spec"], made["status"]["observedGeneration"], kstatus(made)) == (
        {
            "numSlices": 1,
            "launcher": "PerDevice",
            "suspend": False,
            "managedBy": "torchtpu.dev/operator",
            "failurePolicy": {
                "maxRestarts": 0,
                "maxDisruptions": 20,
                "backoff": {"initialSeconds": 10, "maxSeconds": 600},
            },
            "capacityDeadlineSeconds": 14400,
            "startDeadlineSeconds": 1800,
            "stopGracePeriodSeconds": 60,
            "logRetentionSeconds": 3600,
        },
        -1,
        "InProgress",
    )


def test_full_status_survives_the_round_trip(crds: Api) -> None:
    crds.create(JOB)
    try:
        stored = crds.patch(JOB, {"status": to_dict(FULL_STATUS)}, status=True)
    finally:
        crds.delete(JOB)
    assert TorchTPUJob.from_object(stored).status == FULL_STATUS


def test_columns_answer_what_and_why(crds: Api, crd_server: ApiServer) -> None:
    crds.create(JOB)
    crds.patch(JOB, {"status": to_dict(FULL_STATUS)}, status=True)
    table = crd_server.kubectl("get", "ttj", "llama-ft").splitlines()
    crds.delete(JOB)
    assert [line.split() for line in (table[0], table[1].replace("v6e 4x4", "v6e-4x4"))] == [
        ["NAME", "PHASE", "SHAPE", "SLICES", "ATTEMPT", "AGE", "MESSAGE"],
        ["llama-ft", "Running", "v6e-4x4", "1/1", "2", table[1].split()[6], "16", "workers", "run"],
    ]


def test_kuberay_takes_every_golden_ray_cluster(crds: Api, crd_server: ApiServer) -> None:
    """KubeRay 1.5.0's own CRD, with unknown fields refused; and the pods of its templates, by the apiserver."""
    manifests = {path.stem: yaml.safe_load(path.read_text()) for path in GOLDEN.glob("*-*.yaml")}
    crd_server.kubectl("apply", "--server-side", "-f", str(tools.kuberay_crds() / "ray.io_rayclusters.yaml"))
    crds.wait_for("rayclusters.ray.io")
    crd_server.kubectl("create", "serviceaccount", "trainer")
    refused = {}
    for name, manifest in manifests.items():
        for template in (
            manifest["spec"]["headGroupSpec"]["template"],
            *(group["template"] for group in manifest["spec"]["workerGroupSpecs"]),
        ):
            template["spec"]["volumes"][0]["configMap"].pop("items")  # a placeholder in the golden file
            template["spec"].pop("priorityClassName", None)
        manifest["metadata"]["namespace"] = "default"
        pods = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{role}", "namespace": "default"},
                "spec": template["spec"],
            }
            for role, template in (
                ("head", manifest["spec"]["headGroupSpec"]["template"]),
                ("worker", manifest["spec"]["workerGroupSpecs"][0]["template"]),
            )
        ]
        for document in (manifest, *pods):
            try:
                crd_server.kubectl(
                    "create", "--dry-run=server", "--validate=strict", "-f", "-", input=json.dumps(document)
                )
            except subprocess.CalledProcessError as error:
                refused[f"{document['kind']} {document['metadata']['name']}"] = error.stderr
    assert (refused, len(manifests)) == ({}, 5)
