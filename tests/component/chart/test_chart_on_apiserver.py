"""The chart through its whole life on a real kube-apiserver: install, edits by people, upgrade, uninstall, again."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config

from sim import tools
from sim.control_plane import ApiServer
from torchtpu_operator.controller.permissions import PERMISSIONS

CHART = Path(__file__).parents[3] / "charts" / "torchtpu-operator"
NAME, NAMESPACE = "torchtpu-operator", "torchtpu-system"
VALUES: dict[str, Any] = {
    "gke": {"project": "demo", "location": "us-east5", "cluster": "bench"},
    "defaultClass": {"zones": ["us-east5-b"]},
}
JOB: dict[str, Any] = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TorchTPUJob",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {"accelerator": "v6e", "topology": "4x4", "image": "example.com/ray:2.60.0", "entrypoint": "true"},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with ApiServer(tmp_path_factory.mktemp("api")) as server:
        yield server


def helm(api: ApiServer, *argv: str, values: dict[str, Any] | None = None) -> None:
    """Raises CalledProcessError, whose stderr pytest shows."""
    command = [str(tools.path("helm")), *argv, "--kubeconfig", str(api.kubeconfig), "--namespace", NAMESPACE]
    if values is not None:
        command += ["--values", "-"]
    subprocess.run(command, input=json.dumps(values or {}), check=True, capture_output=True, text=True)


def read(api: ApiServer, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(api.kubectl("get", *what, "-o", "json"))
    return found


def default_class(api: ApiServer) -> dict[str, Any]:
    spec: dict[str, Any] = read(api, "tpusliceclass", "default")["spec"]
    return spec


def deployment(api: ApiServer) -> tuple[int, str]:
    """(replicas, log level)"""
    spec = read(api, "-n", NAMESPACE, "deployment", NAME)["spec"]
    [container] = spec["template"]["spec"]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    return spec["replicas"], environment["TORCHTPU_LOG_LEVEL"]


def objects(api: ApiServer) -> dict[str, list[str]]:
    """What there is of the chart's: plural -> names."""
    custom = ["torchtpujobs", "tpusliceclasses"]
    found = {plural: read(api, plural, "-A")["items"] for plural in custom}
    found["deployments"] = read(api, "deployments", "-n", NAMESPACE)["items"]
    found["crds"] = [crd for crd in read(api, "crds")["items"] if crd["spec"]["group"] == "torchtpu.dev"]
    return {plural: sorted(item["metadata"]["name"] for item in items) for plural, items in found.items()}


def test_the_chart_s_life(api: ApiServer) -> None:
    crds = ["torchtpujobs.torchtpu.dev", "tpusliceclasses.torchtpu.dev", "tpuslices.torchtpu.dev"]

    helm(api, "install", NAME, str(CHART), "--create-namespace", values=VALUES)
    api.kubectl("apply", "-f", "-", input=yaml.safe_dump(JOB))
    installed = (objects(api), default_class(api)["offers"][0]["zones"], deployment(api))

    # People change what they may change: an upgrade neither fails on it nor takes it back.
    api.kubectl("patch", "tpusliceclass", "default", "--type=merge", "-p", '{"spec": {"limits": {"chips": 64}}}')
    api.kubectl("scale", "-n", NAMESPACE, f"deployment/{NAME}", "--replicas=3")
    helm(api, "upgrade", NAME, str(CHART), values=VALUES | {"logLevel": "DEBUG"})
    upgraded = (deployment(api), default_class(api)["limits"])

    helm(api, "uninstall", NAME)
    left = objects(api)
    helm(api, "install", NAME, str(CHART), values=VALUES)
    again = (objects(api), default_class(api)["limits"])

    every = {"crds": crds, "deployments": [NAME], "torchtpujobs": ["train"], "tpusliceclasses": ["default"]}
    assert (installed, upgraded, left, again) == (
        (every, ["us-east5-b"], (1, "INFO")),
        ((3, "DEBUG"), {"chips": 64}),
        every | {"deployments": []},
        (every, {"chips": 64}),
    )


NEVER = (
    ("list", "secrets", ""),
    ("delete", "secrets", ""),
    ("update", "secrets", ""),
    ("patch", "nodes", ""),
    ("delete", "nodes", ""),
    ("patch", "pods", ""),
    ("create", "pods/exec", ""),
    ("delete", "namespaces", ""),
    ("create", "leases", "coordination.k8s.io"),
    ("create", "deployments", "apps"),
    ("delete", "customresourcedefinitions", "apiextensions.k8s.io"),
    ("create", "clusterroles", "rbac.authorization.k8s.io"),
    ("create", "torchtpujobs", "torchtpu.dev"),
    ("delete", "tpusliceclasses", "torchtpu.dev"),
    ("patch", "tpusliceclasses", "torchtpu.dev"),
)
"""(verb, resource, group) in a namespace that is not the operator's own."""


def may(account: client.AuthorizationV1Api, verb: str, resource: str, group: str, namespace: str) -> bool:
    plural, _, subresource = resource.partition("/")
    attributes = client.V1ResourceAttributes(
        verb=verb, resource=plural, group=group, namespace=namespace, subresource=subresource or None
    )
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    return bool(account.create_self_subject_access_review(review).status.allowed)


def test_the_operator_s_account_may_do_what_it_does_and_little_else(api: ApiServer) -> None:
    helm(api, "upgrade", "--install", NAME, str(CHART), "--create-namespace", values=VALUES)
    kubeconfig = api.service_account_kubeconfig(NAMESPACE, NAME)
    with config.new_client_from_config(config_file=str(kubeconfig)) as connection:
        account = client.AuthorizationV1Api(connection)
        denied = [
            (resource, verb)
            for permission in PERMISSIONS
            for group, resource, verb in permission.each()
            if not may(account, verb, resource, group, NAMESPACE if permission.own_namespace else "default")
        ]
        allowed = [
            (verb, resource) for verb, resource, group in NEVER if may(account, verb, resource, group, "default")
        ]
    assert (denied, allowed) == ([], [])


def test_the_operator_s_pod_meets_the_restricted_pod_security_standard(api: ApiServer) -> None:
    helm(api, "upgrade", "--install", NAME, str(CHART), "--create-namespace", values=VALUES)
    template = read(api, "-n", NAMESPACE, "deployment", NAME)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator", "namespace": NAMESPACE}} | {
        "spec": template["spec"]
    }
    api.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    said = api.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(pod))
    assert said == "pod/operator created (server dry run)\n"
