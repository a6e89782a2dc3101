"""What the chart installs: whole manifests, rights, and values that it refuses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.chart.helm import CHART, NAMESPACE, REPO, VALUES, HelmError, helm, render
from torchtpu_operator.controller.permissions import PERMISSIONS

GOLDEN = Path(__file__).parent / "golden"
FULL: dict[str, Any] = {
    "gke": {
        "project": "demo",
        "location": "us-east5-b",
        "cluster": "bench",
        "endpoint": "10.96.0.20:443",
        "insecure": True,
    },
    "defaultClass": {"name": "shared", "spec": {"limits": {"chips": 1000000}, "reclaim": {"idleSeconds": 600}}},
    "crds": {"install": False},
    "image": {"repository": "registry.example.com/tpu/operator", "tag": "1.2.3", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "pull"}],
    "replicas": 2,
    "logLevel": "DEBUG",
    "extraEnv": [{"name": "TORCHTPU_WORKERS", "value": "8"}],
    "serviceAccount": {"annotations": {"iam.gke.io/gcp-service-account": "tpu@demo.iam.gserviceaccount.com"}},
    "resources": {"limits": {"memory": "2Gi"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "ml"},
    "nodeSelector": {"iam.gke.io/gke-metadata-server-enabled": "true"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClass": {"create": True},
    "metrics": {"service": {"annotations": {"c": "d"}}},
    "networkPolicy": {"enabled": True, "scrapeFrom": [{"namespaceSelector": {}}]},
}


def by_kind(values: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [manifest for manifest in render(values) if manifest["kind"] == kind]


@pytest.mark.parametrize(("name", "values"), [("least", VALUES), ("full", FULL)])
def test_the_whole_release_is_the_golden_one(name: str, values: dict[str, Any], request: pytest.FixtureRequest) -> None:
    manifests = [manifest for manifest in render(values) if manifest["kind"] != "CustomResourceDefinition"]
    path = GOLDEN / f"{name}.yaml"
    if request.config.getoption("--golden", default=False):
        path.write_text(yaml.safe_dump_all(manifests, sort_keys=False, width=120))
    assert manifests == list(yaml.safe_load_all(path.read_text()))


def test_crds_are_those_of_the_repository_and_are_kept() -> None:
    crds = by_kind(VALUES, "CustomResourceDefinition")
    kept = [crd["metadata"].pop("annotations") for crd in crds]
    want = [yaml.safe_load(path.read_text()) for path in sorted((REPO / "crds").glob("*.yaml"))]
    assert (crds, kept) == (want, [{"helm.sh/resource-policy": "keep"}] * 3)


def rights(roles: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """(group, resource, verb)"""
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_operator_has_the_rights_that_it_uses_and_no_other() -> None:
    cluster = [role for role in by_kind(VALUES, "ClusterRole") if role["metadata"]["name"] == "torchtpu-operator"]
    want = {
        scope: {right for row in PERMISSIONS if row.own_namespace is scope for right in row.each()}
        for scope in (False, True)
    }
    assert {False: rights(cluster), True: rights(by_kind(VALUES, "Role"))} == want


def test_nobody_else_gets_rights_on_slices_and_classes() -> None:
    roles = [role for role in by_kind(VALUES, "ClusterRole") if role["metadata"]["name"] != "torchtpu-operator"]
    labels = {
        role["metadata"]["name"].removeprefix("torchtpu-operator-"): sorted(
            key.rpartition("-")[2] for key in role["metadata"]["labels"] if "aggregate-to" in key
        )
        for role in roles
    }
    resources = {resource for _, resource, _ in rights(roles)}
    assert (labels, resources) == (
        {"view": ["admin", "edit", "view"], "edit": ["admin", "edit"]},
        {"torchtpujobs", "torchtpujobs/status"},
    )


NAMES = {
    "torchtpu-operator": "torchtpu-operator",
    "torchtpu": "torchtpu-operator",
    "my-torchtpu-operator": "my-torchtpu-operator",
    "prod": "prod-torchtpu-operator",
}


@pytest.mark.parametrize(("release", "want"), NAMES.items(), ids=NAMES)
def test_names_say_the_operator_once(release: str, want: str) -> None:
    text = helm("template", release, str(CHART), "--show-only", "templates/deployment.yaml", values=VALUES)
    assert yaml.safe_load(text)["metadata"]["name"] == want


def test_a_digest_wins_over_a_tag() -> None:
    digest = "sha256:" + "a" * 64
    [deployment] = by_kind(VALUES | {"image": {"tag": "1.2.3", "digest": digest}}, "Deployment")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"ghcr.io/torchtpu/torchtpu-operator@{digest}"


SWITCHES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "no CRDs": ({"crds": {"install": False}}, {"CustomResourceDefinition"}),
    "no default class": ({"defaultClass": {"create": False}}, {"TPUSliceClass"}),
    "an account of one's own": ({"serviceAccount": {"create": False, "name": "mine"}}, {"ServiceAccount"}),
    "rights from elsewhere": (
        {"rbac": {"create": False}},
        {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
    ),
    "no metrics service": ({"metrics": {"service": {"enabled": False}}}, {"Service"}),
    "one replica needs no disruption budget": ({"replicas": 1}, set()),
}


@pytest.mark.parametrize(("values", "missing"), SWITCHES.values(), ids=SWITCHES)
def test_parts_can_be_left_out(values: dict[str, Any], missing: set[str]) -> None:
    def kinds(some: Mapping[str, Any]) -> set[str]:
        return {manifest["kind"] for manifest in render(some)}

    assert kinds(VALUES) - kinds(VALUES | values) == missing


def test_everything_with_a_namespace_is_in_the_release_s() -> None:
    namespaces = {manifest["metadata"].get("namespace") for manifest in render(VALUES)}
    assert namespaces == {None, NAMESPACE}


GKE = VALUES["gke"]
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no project": ({"gke": GKE | {"project": ""}}, " gke.project: required, the GKE cluster that"),
    "no location": ({"gke": GKE | {"location": ""}}, " gke.location: required, the GKE cluster that"),
    "no cluster": ({"gke": GKE | {"cluster": ""}}, " gke.cluster: required, the GKE cluster that"),
    "nothing": ({"gke": {}}, " gke.project, gke.location, gke.cluster: required, the GKE cluster that"),
    "a zone of another region": (
        {"defaultClass": {"zones": ["us-east5-b", "us-west4-a"]}},
        "defaultClass.zones: us-west4-a is not in us-east5, the region of gke.location",
    ),
    "a zone of another region than the cluster's zone": (
        {"gke": GKE | {"location": "us-east5-a"}, "defaultClass": {"zones": ["us-east4-a"]}},
        "defaultClass.zones: us-east4-a is not in us-east5, the region of gke.location",
    ),
    "a region and no zones": (
        {"defaultClass": {"zones": []}},
        'gke.location "us-east5" is a region, so name the zones that the default class may use',
    ),
    "a region as a zone": ({"defaultClass": {"zones": ["us-east5"]}}, "at '/defaultClass/zones/0': 'us-east5'"),
    "plain text to Google": ({"gke": GKE | {"insecure": True}}, "at '/gke/endpoint': minLength"),
    "an endpoint with a scheme": ({"gke": GKE | {"endpoint": "https://gke"}}, "at '/gke/endpoint'"),
    "a misspelt value": ({"gke": GKE | {"projekt": "demo"}}, "additional properties 'projekt' not allowed"),
    "a misspelt top-level value": ({"replica": 2}, "additional properties 'replica' not allowed"),
    "a log level that is none": ({"logLevel": "TRACE"}, "at '/logLevel'"),
    "ten replicas": ({"replicas": 10}, "at '/replicas'"),
    "half a digest": ({"image": {"digest": "sha256:abc"}}, "at '/image/digest'"),
    "an environment variable without a name": ({"extraEnv": [{"value": "x"}]}, "missing property 'name'"),
    "an account that is neither made nor named": ({"serviceAccount": {"create": False}}, "serviceAccount.name"),
    "a memory limit as a string": ({"resources": "1Gi"}, "at '/resources'"),
}


@pytest.mark.parametrize(("values", "words"), REFUSED.values(), ids=REFUSED)
def test_nonsense_is_refused_with_the_field_s_name(values: dict[str, Any], words: str) -> None:
    with pytest.raises(HelmError) as refusal:
        render(VALUES | values)
    assert words in str(refusal.value)


def test_helm_lint_is_content() -> None:
    assert "0 chart(s) failed" in helm("lint", str(CHART), "--strict", values=VALUES)
