"""Examples and the YAML of the documentation in a real kube-apiserver: every object, and the pods that come of the jobs."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from sim.control_plane import ApiServer
from tests.manifests import Document, Manifest, documented, examples
from torchtpu_operator.api.crd import crd_files

EXAMPLES = examples()
MANIFESTS = {**EXAMPLES, **documented()}
WRITTEN, RUNNING = "written", "running"
"""Namespaces: of what people write, and of the pods that come of it, which need their ServiceAccount to be there."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with ApiServer(tmp_path_factory.mktemp("manifests") / "data") as started:
        for text in crd_files().values():
            started.kubectl("apply", "--server-side", "-f", "-", input=text)
        started.kubectl("wait", "--for=create", "--timeout=60s", "crd/torchtpujobs.torchtpu.dev")
        started.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        for name in (WRITTEN, RUNNING):
            started.create_namespace(name)
        yield started


def accounts(manifest: Manifest) -> set[str]:
    """ServiceAccounts that the pods of its jobs run as."""
    return {
        pod["spec"]["serviceAccountName"]
        for pod in pods(manifest)
        if pod["spec"].get("serviceAccountName") not in (None, "default")
    }


def pods(manifest: Manifest) -> list[Document]:
    """The head and a worker of each slice, as KubeRay would make them of the planned RayCluster."""
    found = []
    for plan in manifest.plans():
        spec = plan["rayCluster"]["spec"]
        for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
            template = group["template"]
            template["spec"].pop("priorityClassName", None)  # a class of the cluster that the job is for
            name = f"{plan['rayCluster']['metadata']['name']}-{group.get('groupName', 'head')}"
            metadata = {**template["metadata"], "name": name, "namespace": RUNNING}
            found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    return found


def refusals(server: ApiServer, *documents: Document, namespace: str) -> str:
    """What a strict server-side dry run says against them; empty if it takes them all."""
    if not documents:
        return ""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    try:
        server.kubectl("create", "-n", namespace, "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    return ""


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_the_apiserver_takes_it_and_the_pods_that_it_leads_to(server: ApiServer, manifest: Manifest) -> None:
    written = [
        {**each, "metadata": {k: v for k, v in each["metadata"].items() if k != "namespace"}}
        for each in manifest.documents
    ]
    said = refusals(server, *written, namespace=WRITTEN)
    for name in accounts(manifest):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": RUNNING}}
        server.kubectl("apply", "-f", "-", input=json.dumps(account))
    assert (said, refusals(server, *pods(manifest), namespace=RUNNING)) == ("", "")


def test_a_mistake_would_be_found(server: ApiServer) -> None:
    """The dry run is strict about fields of ours and of pods."""
    [job] = EXAMPLES["hello-v6e-2x4.yaml"].of_kind("TorchTPUJob")
    misspelt = {**job, "spec": {**job["spec"], "chipPerHost": 4}}
    [pod, *_] = pods(EXAMPLES["hello-v6e-2x4.yaml"])
    wrong = {**pod, "spec": {**pod["spec"], "volumes": [{"name": "a", "gcsfuse": {}}]}}
    said = refusals(server, misspelt, namespace=WRITTEN), refusals(server, wrong, namespace=RUNNING)
    assert [('unknown field "chipPerHost"' in said[0]), ('unknown field "gcsfuse"' in said[1])] == [True, True], said
