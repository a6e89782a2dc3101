"""The CRDs in a real kube-apiserver: accepted, complete, and refusing in the same words as the Python side."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from sim import tools
from sim.control_plane import ApiServer
from sim.control_plane.api_client import wait_until
from tests.spec_cases import JOB, SLICE, Document, generated, job
from tests.spec_fuzz import random_jobs
from tests.spelling_cases import ALL as CASES
from torchtpu_operator.api import (
    ClassSpec,
    JobPhase,
    JobStatus,
    ObjectMeta,
    Reason,
    TorchTPUJob,
    TPUSliceClass,
    set_condition,
    to_dict,
)
from torchtpu_operator.api.conditions import kstatus
from torchtpu_operator.api.crd import crd_files
from torchtpu_operator.api.job_status import (
    Attempt,
    AttemptOutcome,
    AttemptRecord,
    Demand,
    JobSlice,
    JobUsage,
    ResolvedJob,
)
from torchtpu_operator.api.offer import Offer, OfferType
from torchtpu_operator.api.rules import violations
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.api.validate import KINDS, InvalidObjectError, parse
from torchtpu_operator.cli.errors import CommandError
from torchtpu_operator.cli.plan import build_plan

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
_PREFIXES = ("Invalid value: ", "Forbidden: ", "Required value: ")


class Api:
    """Create, patch and judge objects of our kinds."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self.objects = client.CustomObjectsApi(api_client)
        self.extensions = client.ApiextensionsV1Api(api_client)

    def wait_for(self, crd: str) -> None:
        """`kubectl wait` fails on a CRD whose status has no conditions yet."""

        def established() -> bool:
            found = self.extensions.read_custom_resource_definition(crd).status
            conditions = (found.conditions if found else None) or ()
            return any(each.type == "Established" and each.status == "True" for each in conditions)

        wait_until(established, what=crd, seconds=60, check=lambda: None)
        wait_until(lambda: self._serves(crd), what=crd, seconds=60, check=lambda: None)

    def _serves(self, crd: str) -> bool:
        plural, _, group = crd.partition(".")
        version = "v1" if group == "ray.io" else "v1alpha1"
        try:
            self.objects.list_cluster_custom_object(group, version, plural)
        except ApiException as error:
            if error.status not in (404, 429):
                raise
            return False
        return True

    def create(self, document: Document, *, dry_run: bool = False) -> Document:
        arguments: dict[str, Any] = {"field_validation": "Strict"} | ({"dry_run": "All"} if dry_run else {})
        plural = KINDS[document["kind"]].plural
        namespace = document["metadata"].get("namespace")
        if namespace:
            made = self.objects.create_namespaced_custom_object(
                "torchtpu.dev", "v1alpha1", namespace, plural, document, **arguments
            )
        else:
            made = self.objects.create_cluster_custom_object("torchtpu.dev", "v1alpha1", plural, document, **arguments)
        return dict(made)

    def patch(self, document: Document, patch: Document, *, status: bool = False) -> Document:
        plural, meta = KINDS[document["kind"]].plural, document["metadata"]
        scope, where = ("namespaced", [meta["namespace"]]) if "namespace" in meta else ("cluster", [])
        call = getattr(self.objects, f"patch_{scope}_custom_object{'_status' if status else ''}")
        return dict(
            call(
                "torchtpu.dev",
                "v1alpha1",
                *where,
                plural,
                meta["name"],
                patch,
                _content_type="application/merge-patch+json",
            )
        )

    def delete(self, document: Document) -> None:
        plural, meta = KINDS[document["kind"]].plural, document["metadata"]
        if "namespace" in meta:
            self.objects.delete_namespaced_custom_object(
                "torchtpu.dev", "v1alpha1", meta["namespace"], plural, meta["name"]
            )
        else:
            self.objects.delete_cluster_custom_object("torchtpu.dev", "v1alpha1", plural, meta["name"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """No controllers: a CRD is judged by the apiserver alone."""
    with ApiServer(tmp_path_factory.mktemp("crds") / "data") as started:
        yield started


@pytest.fixture(scope="module")
def api(server: ApiServer) -> Iterator[Api]:
    with config.new_client_from_config(str(server.kubeconfig)) as api_client:
        made = Api(api_client)
        for text in crd_files().values():
            server.kubectl("apply", "--server-side", "-f", "-", input=text)
        for kind in KINDS.values():
            made.wait_for(f"{kind.plural}.torchtpu.dev")
        yield made


def said_by_apiserver(api: Api, document: Document, *, whole: bool = False) -> tuple[str, ...]:
    try:
        api.create(document, dry_run=True)
    except ApiException as error:
        return (json.loads(error.body)["message"],) if whole else causes(error)
    return ()


def causes(error: ApiException) -> tuple[str, ...]:
    status = json.loads(error.body)
    found = status.get("details", {}).get("causes")
    assert found, status["message"]
    return tuple(f"{cause['field']}: {plain(cause['message'])}" for cause in found if cause["field"] != "<nil>")


def said_by_python(document: Document) -> tuple[str, ...]:
    try:
        parse(document)
    except InvalidObjectError as error:
        return tuple(f"{violation.path}: {plain(violation.message)}" for violation in error.violations)
    return ()


def plain(message: str) -> str:
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return message


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_apiserver_says(api: Api, case: tuple[Document, tuple[str, ...]]) -> None:
    document, want = case
    assert sorted(said_by_apiserver(api, document)) == sorted(want)


def test_apiserver_and_python_agree_on_hundreds_of_objects(api: Api) -> None:
    documents = dict(generated())
    differing = {
        name: (server, python)
        for name, document in documents.items()
        if sorted(server := said_by_apiserver(api, document)) != sorted(python := said_by_python(document))
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
def test_update(api: Api, case: tuple[Document, Document, tuple[str, ...]]) -> None:
    document, change, want = case
    old = api.create(document)
    try:
        new = api.patch(document, {"spec": change})
        server: tuple[str, ...] = ()
    except ApiException as error:
        new = {**old, "spec": merged(old["spec"], change)}
        server = causes(error)
    finally:
        api.delete(document)
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


def test_new_job_has_visible_defaults_and_is_not_current_for_kstatus(api: Api) -> None:
    made = api.create(JOB)
    api.delete(JOB)
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


def test_full_status_survives_the_round_trip(api: Api) -> None:
    api.create(JOB)
    try:
        stored = api.patch(JOB, {"status": to_dict(FULL_STATUS)}, status=True)
    finally:
        api.delete(JOB)
    assert TorchTPUJob.from_object(stored).status == FULL_STATUS


def test_status_and_finalizers_are_written_to_a_job_that_later_rules_would_refuse(api: Api) -> None:
    """Rules judge spec and name alone: whatever they say, a controller can always let go of an object."""
    document = job(template={"spec": {"containers": [{"name": "ray"}], "volumes": [{"name": "a", "emptyDir": {}}]}})
    api.create(document)
    api.patch(document, {"metadata": {"finalizers": ["torchtpu.dev/cleanup"]}})
    api.patch(document, {"status": {"phase": "Pending", "message": "x"}}, status=True)
    made = api.patch(document, {"metadata": {"finalizers": None}})
    api.delete(document)
    assert (made["status"]["phase"], made["spec"]["template"]) == ("Pending", document["spec"]["template"])


def test_columns_answer_what_and_why(api: Api, server: ApiServer) -> None:
    api.create(JOB)
    api.patch(JOB, {"status": to_dict(FULL_STATUS)}, status=True)
    table = server.kubectl("get", "ttj", "llama-ft").splitlines()
    api.delete(JOB)
    assert [line.split() for line in (table[0], table[1].replace("v6e 4x4", "v6e-4x4"))] == [
        ["NAME", "PHASE", "SHAPE", "SLICES", "ATTEMPT", "AGE", "MESSAGE"],
        ["llama-ft", "Running", "v6e-4x4", "1/1", "2", table[1].split()[6], "16", "workers", "run"],
    ]


def test_kuberay_takes_every_golden_ray_cluster(api: Api, server: ApiServer) -> None:
    """KubeRay 1.5.0's own CRD, with unknown fields refused; and the pods of its templates, by the apiserver."""
    manifests = {path.stem: yaml.safe_load(path.read_text()) for path in GOLDEN.glob("*-*.yaml")}
    server.kubectl("apply", "--server-side", "-f", str(tools.kuberay_crds() / "ray.io_rayclusters.yaml"))
    api.wait_for("rayclusters.ray.io")
    server.kubectl("create", "serviceaccount", "trainer")
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
                server.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=json.dumps(document))
            except subprocess.CalledProcessError as error:
                refused[f"{document['kind']} {document['metadata']['name']}"] = error.stderr
    assert (refused, len(manifests)) == ({}, 5)


def test_what_the_apiserver_accepts_is_planned_and_what_it_refuses_is_refused(api: Api) -> None:
    """Random jobs around the edges of the schema: the same verdict here and there, and never an exception."""
    differing, accepted = [], 0
    for document in random_jobs(seed=20261130, count=300):
        said = said_by_apiserver(api, document, whole=True)
        try:
            plan_job(document)
        except (CommandError, InvalidObjectError) as error:
            python = str(error)
        else:
            python = ""
            accepted += 1
        if bool(said) != bool(python):
            differing.append((document, said, python))
    assert differing == []
    assert accepted > 10


def plan_job(document: Document) -> None:
    obj = parse(document)
    assert isinstance(obj, TorchTPUJob)
    names = obj.spec.offers or ("od",)
    offers = tuple(Offer(name=name, type=OfferType.ON_DEMAND, zones=("us-east5-b",)) for name in names)
    slice_class = TPUSliceClass(
        metadata=ObjectMeta(name="default"),
        spec=ClassSpec(offers=offers, job_defaults=JobDefaults(image="example.com/ray:1")),
    )
    build_plan(obj, slice_class, zone=None, parent=None)
