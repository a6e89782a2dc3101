"""Command lines of the control plane's programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sim import tools
from sim.control_plane.pki import KeyPair

SERVICE_NETWORK = "10.96.0.0/16"
CLUSTER_DOMAIN = "cluster.local"
ISSUER = f"https://kubernetes.default.svc.{CLUSTER_DOMAIN}"

SMALL_HEAP = {"GOGC": "50"}
"""Collect garbage twice as often: saves about a third of the memory for a few per cent of CPU.

Not for kube-apiserver: while it takes in KubeRay's megabytes of schema that would cost 5 more CPU seconds.
"""

KUBERAY_GATES = "RayMultiHostIndexing=true,RayClusterStatusConditions=true"


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a program listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def etcd_argv(*, data: Path, client: Address, peer: Address, pair: KeyPair, ca: Path) -> Sequence[str | Path]:
    """One member. Its data need not outlive a power cut, so it never waits for the disk."""
    flags: dict[str, str | Path | int] = {
        "name": "bench",
        "data-dir": data,
        "listen-client-urls": f"https://{client}",
        "advertise-client-urls": f"https://{client}",
        "listen-peer-urls": f"https://{peer}",
        "initial-advertise-peer-urls": f"https://{peer}",
        "initial-cluster": f"bench=https://{peer}",
        "peer-cert-file": pair.certificate,
        "peer-key-file": pair.key,
        "peer-trusted-ca-file": ca,
        "peer-client-cert-auth": "true",
        "cert-file": pair.certificate,
        "key-file": pair.key,
        "trusted-ca-file": ca,
        "client-cert-auth": "true",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    return [tools.path("etcd"), *_flags(flags)]


def kube_apiserver_argv(
    *,
    listen: Address,
    advertise: str | None,
    etcd: Address,
    server: KeyPair,
    etcd_client: KeyPair,
    kubelet_client: KeyPair,
    ca: Path,
    service_account_key: KeyPair,
    program: Path | None = None,
) -> Sequence[str | Path]:
    """With TLS, RBAC, the Node authorizer and the admission plugins of a normal cluster.

    `advertise` is where pods find it; None: there are no pods, and no endpoints are written. `program`: another build.
    """
    flags: dict[str, str | Path | int] = {
        "bind-address": listen.host,
        "secure-port": listen.port,
        "etcd-servers": f"https://{etcd}",
        "etcd-cafile": ca,
        "etcd-certfile": etcd_client.certificate,
        "etcd-keyfile": etcd_client.key,
        "client-ca-file": ca,
        "tls-cert-file": server.certificate,
        "tls-private-key-file": server.key,
        "kubelet-client-certificate": kubelet_client.certificate,
        "kubelet-client-key": kubelet_client.key,
        "kubelet-certificate-authority": ca,
        # The default asks for the node's Hostname first, which no DNS server here knows.
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-key-file": service_account_key.certificate,
        "service-account-signing-key-file": service_account_key.key,
        "service-account-issuer": ISSUER,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "service-cluster-ip-range": SERVICE_NETWORK,
        "allow-privileged": "true",
        "profiling": "false",
    }
    if advertise is None:
        # The default reconciler refuses to publish a loopback address and says so every ten seconds.
        flags |= {"advertise-address": listen.host, "endpoint-reconciler-type": "none"}
    else:
        flags["advertise-address"] = advertise
    return [program or tools.path("kube-apiserver"), *_flags(flags)]


def kube_controller_manager_argv(
    *,
    kubeconfig: Path,
    ca: KeyPair,
    server: KeyPair,
    service_account_key: KeyPair,
    controllers: Sequence[str],
    port: int,
) -> Sequence[str | Path]:
    """`controllers` as in its own flag: `*` is all that are on by default. Port 0: no endpoint."""
    flags: dict[str, str | Path | int] = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "tls-cert-file": server.certificate,
        "tls-private-key-file": server.key,
        "secure-port": port,
        "leader-elect": "false",
        "controllers": ",".join(controllers),
        "use-service-account-credentials": "true",
        "service-account-private-key-file": service_account_key.key,
        "root-ca-file": ca.certificate,
        "cluster-signing-cert-file": ca.certificate,
        "cluster-signing-key-file": ca.key,
        "profiling": "false",
    }
    return [tools.path("kube-controller-manager"), *_flags(flags)]


def kube_scheduler_argv(*, kubeconfig: Path, server: KeyPair, port: int) -> Sequence[str | Path]:
    flags: dict[str, str | Path | int] = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "tls-cert-file": server.certificate,
        "tls-private-key-file": server.key,
        "secure-port": port,
        "leader-elect": "false",
        "profiling": "false",
    }
    return [tools.path("kube-scheduler"), *_flags(flags)]


def coredns_argv(*, corefile: Path) -> Sequence[str | Path]:
    return [tools.path("coredns"), "-conf", corefile]


def build_corefile(*, address: str, kubeconfig: Path) -> str:
    """The cluster's zones from the apiserver; every other name does not exist, as there is no upstream.

    The catch-all has a server block of its own: within one block CoreDNS asks `template` before `kubernetes`.
    """
    zones = f"{CLUSTER_DOMAIN} in-addr.arpa ip6.arpa"
    return f"""\
{zones} {{
    bind {address}
    errors
    health {address}:8080
    kubernetes {zones} {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
. {{
    bind {address}
    template IN ANY . {{
        rcode NXDOMAIN
    }}
}}
"""


def kuberay_argv(*, metrics: Address, probe: Address) -> Sequence[str | Path]:
    """Its kubeconfig comes by the environment: the flag of that name belongs to a library and is not always there."""
    flags = {
        "feature-gates": KUBERAY_GATES,
        "enable-leader-election": "false",
        "metrics-addr": str(metrics),
        "health-probe-bind-address": str(probe),
        "log-stdout-encoder": "console",
    }
    return [tools.path("kuberay-operator"), *_flags(flags)]


def _flags(flags: Mapping[str, str | Path | int]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]
