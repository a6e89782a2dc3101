"""Files that a kubelet writes into every container: /etc/hosts, /etc/resolv.conf, /etc/hostname. Pure but `write`."""

from pathlib import Path
from typing import Any, Final

from sim.kubelet.sandbox import Mount

Json = dict[str, Any]

_LONGEST_HOSTNAME: Final = 63


def pod_hostname(pod: Json) -> str:
    """The pod's host name: its own, or its name cut to what a host name may have."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"][:_LONGEST_HOSTNAME].rstrip("-."))


def build_hosts(pod: Json, *, address: str, cluster_domain: str) -> str:
    """/etc/hosts: the pod resolves its own name to its address, as gloo and others need."""
    hostname, subdomain = pod_hostname(pod), pod["spec"].get("subdomain")
    names = hostname
    if subdomain:
        names = f"{hostname}.{subdomain}.{pod['metadata']['namespace']}.svc.{cluster_domain} {hostname}"
    lines = [
        "# Kubernetes-managed hosts file (simulated kubelet).",
        "127.0.0.1 localhost",
        "::1 localhost ip6-localhost ip6-loopback",
        f"{address} {names}",
        *(f"{alias['ip']} {' '.join(alias['hostnames'])}" for alias in pod["spec"].get("hostAliases") or ()),
    ]
    return "\n".join(lines) + "\n"


def build_resolv_conf(pod: Json, *, server: str, cluster_domain: str) -> str:
    """/etc/resolv.conf by dnsPolicy and dnsConfig; there is no resolver but the cluster's."""
    namespace, policy = pod["metadata"]["namespace"], pod["spec"].get("dnsPolicy", "ClusterFirst")
    config = pod["spec"].get("dnsConfig") or {}
    servers = [*([] if policy == "None" else [server]), *(config.get("nameservers") or ())]
    cluster = [f"{namespace}.svc.{cluster_domain}", f"svc.{cluster_domain}", cluster_domain]
    searches = [*(cluster if policy.startswith("ClusterFirst") else ()), *(config.get("searches") or ())]
    options = {"ndots": "5"} if policy.startswith("ClusterFirst") else {}
    options |= {option["name"]: option.get("value") or "" for option in config.get("options") or ()}
    lines = [f"search {' '.join(searches)}"] if searches else []
    lines += [f"nameserver {address}" for address in servers]
    if options:
        lines.append("options " + " ".join(f"{name}:{value}" if value else name for name, value in options.items()))
    return "\n".join(lines) + "\n"


def write(folder: Path, pod: Json, *, address: str, dns: str, cluster_domain: str) -> list[Mount]:
    """Write the files and say where containers see them."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "hosts": build_hosts(pod, address=address, cluster_domain=cluster_domain),
        "resolv.conf": build_resolv_conf(pod, server=dns, cluster_domain=cluster_domain),
        "hostname": pod_hostname(pod) + "\n",
    }
    mounts = []
    for name, text in contents.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
        mounts.append(Mount(source=folder / name, target=f"/etc/{name}"))
    return mounts
