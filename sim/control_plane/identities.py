"""Who there is in a cluster: certificates of its servers and programs, and kubeconfigs for those who need one."""

from collections.abc import Sequence
from pathlib import Path

from sim.control_plane.kubeconfig import build_kubeconfig, certificate_user, write_kubeconfig
from sim.control_plane.pki import CertificateAuthority, KeyPair

API_SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)

CLOUD_PROVIDER = "system:cloud-provider"
KUBERAY_ACCOUNT = ("kuberay-system", "kuberay-operator")
COREDNS_ACCOUNT = ("kube-system", "coredns")


class Identities:
    """A fresh authority in `folder` and what it signed. The apiserver is reached at `url`."""

    def __init__(self, folder: Path, *, url: str, api_server_addresses: Sequence[str]) -> None:
        self._folder, self.url = folder, url
        self._ca = CertificateAuthority(folder / "pki")
        issue = self._ca.issue
        self.api_server = issue("apiserver", "kube-apiserver", names=API_SERVER_NAMES, addresses=api_server_addresses)
        self.etcd = issue("etcd", "etcd", names=["localhost"], addresses=["127.0.0.1"])
        self.etcd_client = issue("etcd-client", "kube-apiserver-etcd-client")
        self.kubelet_client = issue("kubelet-client", "kube-apiserver-kubelet-client")
        self.cloud = issue("cloud", CLOUD_PROVIDER)
        self.admin = issue("admin", "bench-admin", organizations=["system:masters"])
        self.service_account_key = self._ca.signing_key("service-accounts")

    @property
    def ca(self) -> KeyPair:
        return self._ca.key_pair

    def admin_kubeconfig(self, path: Path, *, url: str | None = None) -> Path:
        """For the person who owns the bench; `url` is where the apiserver is seen from there."""
        return self._write(path, certificate_user(self.admin), url)

    def program_kubeconfig(self, name: str, user: str) -> Path:
        """For a program of the control plane that is the Kubernetes user `user`."""
        return self._write(self._folder / f"{name}.kubeconfig", certificate_user(self._ca.issue(name, user)), None)

    def account_kubeconfig(self, name: str, namespace: str, account: str) -> Path:
        """For a control plane program with exactly a ServiceAccount's rights, before it could ask for a token."""
        user = f"system:serviceaccount:{namespace}:{account}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        pair = self._ca.issue(name, user, organizations=groups)
        return self._write(self._folder / f"{name}.kubeconfig", certificate_user(pair), None)

    def node(self, node: str, *, address: str) -> tuple[KeyPair, KeyPair]:
        """A node's client certificate and that of its kubelet's endpoint."""
        client = self._ca.issue(f"node-{node}", f"system:node:{node}", organizations=["system:nodes"])
        return client, self._ca.issue(f"node-{node}-server", f"system:node:{node}", names=[node], addresses=[address])

    def _write(self, path: Path, user: dict[str, str], url: str | None) -> Path:
        ca = self._ca.certificate.read_bytes()
        return write_kubeconfig(path, build_kubeconfig(server=url or self.url, ca=ca, user=user))
