"""The Node object, its status and its Lease as GKE and a kubelet would write them. Pure."""

import platform
from datetime import UTC, datetime
from typing import Any, Final

from sim.kubelet.state import timestamp
from sim.nodes import TPU_RESOURCE, NodeSpec

Json = dict[str, Any]

KUBELET_PORT: Final = 10250
LEASE_NAMESPACE: Final = "kube-node-lease"


def build_node(node: NodeSpec) -> Json:
    """The object that the kubelet registers; its status follows."""
    zone = node.labels.get("topology.kubernetes.io/zone", "us-east5-a")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": {**node.labels, "kubernetes.io/hostname": node.name},
            "annotations": dict(node.annotations),
        },
        "spec": {
            "providerID": f"gce://demo/{zone}/{node.name}",
            "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints],
        },
    }


def build_capacity(node: NodeSpec, *, chips_published: bool, max_pods: int) -> dict[str, str]:
    """Capacity, and allocatable too: the simulated machine keeps nothing back."""
    capacity = {
        "cpu": str(node.cpu),
        "memory": f"{node.memory_gib}Gi",
        "ephemeral-storage": "100Gi",
        "pods": str(max_pods),
    }
    if node.tpu_chips:
        capacity[TPU_RESOURCE] = str(node.tpu_chips if chips_published else 0)
    return capacity


def build_node_status(
    node: NodeSpec,
    *,
    address: str,
    chips_published: bool,
    max_pods: int,
    version: str,
    booted: datetime,
    now: datetime,
    boot_id: str,
) -> Json:
    """A strategic merge patch of the status: Ready, addresses, resources, and where the kubelet listens."""
    capacity = build_capacity(node, chips_published=chips_published, max_pods=max_pods)
    healthy = {
        "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    }
    conditions = [
        {"type": kind, "status": "False", "reason": reason, "message": message}
        for kind, (reason, message) in healthy.items()
    ]
    conditions.append(
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    )
    times = {"lastHeartbeatTime": timestamp(now), "lastTransitionTime": timestamp(booted)}
    return {
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{**condition, **times} for condition in conditions],
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": node.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
            # The apiserver then speaks WebSocket for exec, where it would speak SPDY.
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
            "nodeInfo": {
                "machineID": boot_id,
                "systemUUID": boot_id,
                "bootID": boot_id,
                "kernelVersion": platform.release(),
                "osImage": "torchtpu simulated host",
                "containerRuntimeVersion": "bubblewrap://0.11.0",
                "kubeletVersion": version,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64" if platform.machine() == "x86_64" else platform.machine(),
            },
        }
    }


def build_lease(name: str, *, node_uid: str, seconds: int, now: datetime) -> Json:
    """The heartbeat."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}],
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": seconds,
            "renewTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
