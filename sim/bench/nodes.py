"""The nodes that a bench has before any TPU node pool is made."""

from sim.nodes import NodeSpec

CPU_POOL = "cpu-pool"
CPU_MACHINE = "n2-standard-16"


def build_cpu_node(number: int, *, zone: str, region: str, cluster: str) -> NodeSpec:
    """One of GKE's ordinary machines: 16 cores and 64 GiB as Kubernetes sees them."""
    name = f"gke-{cluster}-{CPU_POOL}-{number:04x}"
    return NodeSpec(
        name=name,
        labels={
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/instance-type": CPU_MACHINE,
            "beta.kubernetes.io/os": "linux",
            "cloud.google.com/gke-boot-disk": "pd-balanced",
            "cloud.google.com/gke-container-runtime": "containerd",
            "cloud.google.com/gke-cpu-scaling-level": "16",
            "cloud.google.com/gke-nodepool": CPU_POOL,
            "cloud.google.com/gke-os-distribution": "cos",
            "cloud.google.com/gke-provisioning": "standard",
            "cloud.google.com/machine-family": "n2",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": CPU_MACHINE,
            "topology.kubernetes.io/region": region,
            "topology.kubernetes.io/zone": zone,
        },
        cpu=16,
        memory_gib=64,
    )
