"""Every field of a job's spec, edited in every phase: refused with the reason, or taken with the effect that is documented."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from sim.control_plane import ApiServer
from tests.doubles.cluster_rig import install_crds, wait_served
from tests.edit_cases import EDITS as FINE_EDITS
from torchtpu_operator.api import JobPhase
from torchtpu_operator.api.job import JobSpec
from torchtpu_operator.api.job_rules import CHANGES_WHILE_SUSPENDED, NEVER, NEVER_CHANGES, WHILE_SUSPENDED

pytestmark = pytest.mark.timeout(180)

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))

SPEC: dict[str, Any] = {
    "accelerator": "v6e",
    "topology": "4x4",
    "entrypoint": "python train.py",
    "image": "example.com/ray:2.60.0",
    "checkpointDir": "gs://a/b",
    "sliceClassName": "default",
    "offers": ["od"],
    "template": {"spec": {"serviceAccountName": "a"}},
}
EDITS: dict[str, Any] = {
    "accelerator": "v5e",
    "topology": "4x8",
    "numSlices": 2,
    "chipsPerHost": 4,
    "sliceClassName": "gold",
    "offers": ["od", "spot"],
    "launcher": "PerHost",
    "entrypoint": "python eval.py",
    "image": "example.com/ray:2.61.0",
    "rayVersion": "2.61.0",
    "workingDir": {"configMap": {"name": "code"}},
    "checkpointDir": "gs://a/c",
    "runtimeEnv": {"pip": ["einops"]},
    "env": [{"name": "A", "value": "1"}],
    "template": {"spec": {"serviceAccountName": "b"}},
    "head": {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
    "worker": {"template": {"spec": {"hostNetwork": True}}},
    "suspend": True,
    "managedBy": "kueue.x-k8s.io/multikueue",
    "priorityClassName": "research",
    "failurePolicy": {"maxRestarts": 3},
    "queueDeadlineSeconds": 60,
    "capacityDeadlineSeconds": 60,
    "startDeadlineSeconds": 60,
    "activeDeadlineSeconds": 60,
    "stopGracePeriodSeconds": 10,
    "budget": {"chipHours": 5},
    "logRetentionSeconds": 0,
    "ttlSecondsAfterFinished": 60,
}
ANY_TIME = set(EDITS) - set(NEVER_CHANGES) - set(CHANGES_WHILE_SUSPENDED)
"""What an edit of these does is in tests/sim/test_sim_edits.py."""


def test_every_field_is_edited_here() -> None:
    assert {field.alias or name for name, field in JobSpec.model_fields.items()} == set(EDITS)


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> Iterator[ApiServer]:
    install_crds(api_server)
    wait_served(api_server, "torchtpujobs.torchtpu.dev")
    api_server.create_namespace("edits")
    yield api_server
    api_server.kubectl("delete", "namespace", "edits", "--wait=false")


@pytest.fixture(scope="module")
def api(server: ApiServer) -> Iterator[client.CustomObjectsApi]:
    with config.new_client_from_config(str(server.kubeconfig)) as api_client:
        yield client.CustomObjectsApi(api_client)


def a_job(name: str, *, suspend: bool = False) -> dict[str, Any]:
    return {
        "apiVersion": "torchtpu.dev/v1alpha1",
        "kind": "TorchTPUJob",
        "metadata": {"name": name, "namespace": "edits"},
        "spec": {**SPEC, "suspend": suspend},
    }


def said(api: client.CustomObjectsApi, name: str, patch: dict[str, Any]) -> str:
    """The apiserver's words to this edit; empty where it is taken."""
    where = ("torchtpu.dev", "v1alpha1", "edits", "torchtpujobs", name)
    try:
        api.patch_namespaced_custom_object(
            *where, {"spec": patch}, dry_run="All", _content_type="application/merge-patch+json"
        )
    except ApiException as error:
        return str(json.loads(error.body)["message"]).rpartition(": Forbidden: ")[2]
    return ""


def expected(field: str, *, suspended: bool) -> str:
    if field in NEVER_CHANGES:
        return NEVER.format(field=field)
    if field in CHANGES_WHILE_SUSPENDED and not suspended:
        return WHILE_SUSPENDED.format(field=field)
    return ""


@pytest.mark.parametrize("phase", JobPhase)
def test_each_edit_is_refused_with_the_reason_or_taken(
    server: ApiServer, api: client.CustomObjectsApi, phase: JobPhase
) -> None:
    name, suspended = phase.lower(), phase is JobPhase.SUSPENDED
    server.kubectl("create", "-f", "-", input=json.dumps(a_job(name, suspend=suspended)))
    status = json.dumps({"status": {"phase": phase.value, "observedGeneration": 1}})
    server.kubectl("patch", "ttj", name, "-n", "edits", "--type=merge", "--subresource=status", "-p", status)
    edits = EDITS | ({"suspend": False} if suspended else {})
    got = {field: said(api, name, {field: value}) for field, value in edits.items()}
    assert got == {field: expected(field, suspended=suspended) for field in edits}


@pytest.mark.parametrize(("before", "after", "words"), FINE_EDITS.values(), ids=FINE_EDITS)
def test_a_change_is_seen_wherever_it_is(
    server: ApiServer, api: client.CustomObjectsApi, before: dict[str, Any], after: dict[str, Any], words: str
) -> None:
    stored = a_job("fine")
    stored["spec"].update(before)
    server.kubectl("create", "-f", "-", input=json.dumps(stored))
    try:
        assert replaced(api, "fine", after) == words
    finally:
        server.kubectl("delete", "ttj", "fine", "-n", "edits", "--wait=true")


def replaced(api: client.CustomObjectsApi, name: str, fields: dict[str, Any]) -> str:
    """The apiserver's words when these fields of the spec become exactly so."""
    where = ("torchtpu.dev", "v1alpha1", "edits", "torchtpujobs", name)
    document = api.get_namespaced_custom_object(*where)
    document["spec"].update(fields)
    try:
        api.replace_namespaced_custom_object(*where, document, dry_run="All")
    except ApiException as error:
        return str(json.loads(error.body)["message"]).rpartition(": Forbidden: ")[2]
    return ""


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_applying_an_unchanged_manifest_changes_nothing(server: ApiServer, how: tuple[str, ...]) -> None:
    documents = [
        {**document, "metadata": {"name": document["metadata"]["name"], "namespace": "edits"}}
        for path in EXAMPLES
        for document in yaml.safe_load_all(path.read_text())
        if document and document["kind"] == "TorchTPUJob"
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*documents, a_job("plain")]})
    server.kubectl("apply", *how, "-f", "-", input=text)
    before = generations(server)
    server.kubectl("apply", *how, "-f", "-", input=text)
    after = generations(server)
    server.kubectl("delete", "-f", "-", "--wait=true", input=text)
    assert (after, set(before.values())) == (before, {1})
    assert len(before) > len(documents)


def generations(server: ApiServer) -> dict[str, int]:
    """By name; the resourceVersion tells nothing, since an apply may move the time in managedFields."""
    items = json.loads(server.kubectl("get", "ttj", "-n", "edits", "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["generation"] for item in items}
