"""Command lines and files of the control plane's programs."""

from pathlib import Path

import pytest

from sim.control_plane import manifests, programs
from sim.control_plane.pki import KeyPair
from sim.control_plane.programs import Address, build_corefile

PAIR = KeyPair(certificate=Path("/c"), key=Path("/k"))


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.tools.path", lambda binary: Path("/bin") / binary)


def _api_server(advertise: str | None) -> dict[str, str]:
    argv = programs.kube_apiserver_argv(
        listen=Address(host="10.96.0.1", port=443),
        advertise=advertise,
        etcd=Address(host="127.0.0.1", port=2379),
        server=PAIR,
        etcd_client=PAIR,
        kubelet_client=PAIR,
        ca=Path("/ca"),
        service_account_key=PAIR,
    )
    assert argv[0] == Path("/bin/kube-apiserver")
    return dict(str(word).removeprefix("--").split("=", 1) for word in argv[1:])


def test_the_apiserver_is_guarded_as_in_a_normal_cluster() -> None:
    flags = _api_server("10.96.0.1")
    guards = ("authorization-mode", "enable-admission-plugins", "client-ca-file", "disable-admission-plugins")
    assert {name: flags.get(name) for name in guards} == {
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "client-ca-file": "/ca",
        "disable-admission-plugins": None,
    }


REACHED = {
    "with pods, at the address that they know": ("10.96.0.1", {"advertise-address": "10.96.0.1"}),
    "without pods, nowhere": (None, {"advertise-address": "10.96.0.1", "endpoint-reconciler-type": "none"}),
}


@pytest.mark.parametrize(("advertise", "want"), REACHED.values(), ids=REACHED)
def test_where_the_apiserver_is_published(advertise: str | None, want: dict[str, str]) -> None:
    flags = _api_server(advertise)
    assert {name: flags[name] for name in ("advertise-address", "endpoint-reconciler-type") if name in flags} == want


def test_the_catch_all_zone_has_a_server_block_of_its_own() -> None:
    corefile = build_corefile(address="10.96.0.10", kubeconfig=Path("/kubeconfig"))
    assert corefile == (
        "cluster.local in-addr.arpa ip6.arpa {\n"
        "    bind 10.96.0.10\n"
        "    errors\n"
        "    health 10.96.0.10:8080\n"
        "    kubernetes cluster.local in-addr.arpa ip6.arpa {\n"
        "        kubeconfig /kubeconfig\n"
        "        ttl 1\n"
        "    }\n"
        "}\n"
        ". {\n"
        "    bind 10.96.0.10\n"
        "    template IN ANY . {\n"
        "        rcode NXDOMAIN\n"
        "    }\n"
        "}\n"
    )


PATHS = {
    "a namespace": (manifests.build_namespace("ml"), "/api/v1/namespaces/ml"),
    "an account": (manifests.build_service_account("ml", "a"), "/api/v1/namespaces/ml/serviceaccounts/a"),
    "the name server": (manifests.build_dns_service("10.96.0.10"), "/api/v1/namespaces/kube-system/services/kube-dns"),
    "a role": (
        manifests.build_cluster_role("r", []),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/r",
    ),
    "a binding": (
        manifests.build_cluster_role_binding("b", "r", {}),
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/b",
    ),
}


@pytest.mark.parametrize(("manifest", "want"), PATHS.values(), ids=PATHS)
def test_where_an_object_lies(manifest: dict[str, object], want: str) -> None:
    assert manifests.path_of(manifest) == want
