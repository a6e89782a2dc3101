"""Objects that a cluster has before anybody uses it."""

from typing import Any

from sim.control_plane.identities import CLOUD_PROVIDER, COREDNS_ACCOUNT, KUBERAY_ACCOUNT

READ = ("get", "list", "watch")


def build_cluster_role(name: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }


def build_cluster_role_binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def build_account_subject(account: tuple[str, str]) -> dict[str, str]:
    namespace, name = account
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def build_namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def build_service_account(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}}


def build_dns_service(address: str) -> dict[str, Any]:
    """Reserves the name server's address; without kube-proxy the service itself forwards nothing."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "kube-system", "name": "kube-dns", "labels": {"k8s-app": "kube-dns"}},
        "spec": {
            "clusterIP": address,
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            ],
        },
    }


def build_coredns_access() -> list[dict[str, Any]]:
    """What CoreDNS' own deployment asks for."""
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    name = "system:coredns"
    return [
        build_service_account(*COREDNS_ACCOUNT),
        build_cluster_role(name, rules),
        build_cluster_role_binding(name, name, build_account_subject(COREDNS_ACCOUNT)),
    ]


def build_cloud_provider_access() -> list[dict[str, Any]]:
    """What GKE's own components do to Nodes: label, cordon and delete them, and evict their pods."""
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": [*READ, "patch", "update", "delete"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": [*READ, "delete"]},
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "delete"]},
    ]
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": CLOUD_PROVIDER}
    return [
        build_cluster_role(CLOUD_PROVIDER, rules),
        build_cluster_role_binding(CLOUD_PROVIDER, CLOUD_PROVIDER, subject),
    ]


def build_kuberay_access() -> list[dict[str, Any]]:
    """Binds the ClusterRole that KubeRay publishes to its account."""
    namespace, name = KUBERAY_ACCOUNT
    return [
        build_namespace(namespace),
        build_service_account(namespace, name),
        build_cluster_role_binding(name, name, build_account_subject(KUBERAY_ACCOUNT)),
    ]


def path_of(manifest: dict[str, Any]) -> str:
    """Where an object of the few kinds above lies in the API."""
    groups = {
        "Namespace": "/api/v1/namespaces",
        "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
        "Service": "/api/v1/namespaces/{namespace}/services",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    }
    metadata = manifest["metadata"]
    return f"{groups[manifest['kind']].format(namespace=metadata.get('namespace', ''))}/{metadata['name']}"
