"""A small kubelet: runs the pods of simulated nodes as local containers.

One asyncio process serves all nodes of a bench; each node has its own client certificate, Lease, Node object, watch
and HTTPS endpoint, as the apiserver's Node authorizer and NodeRestriction admission demand. Containers are bubblewrap
sandboxes in one network namespace per pod. CPU and memory limits are not enforced: there are no cgroups, so a limit
is what pods and schedulers read, not what the kernel does.
"""

from sim.kubelet.faults import register_kubelet_faults
from sim.kubelet.kubelets import Kubelets
from sim.kubelet.settings import ClusterAccess, KeyPair, KubeletSettings, NodeCertifier, NodeCredentials

__all__ = [
    "ClusterAccess",
    "KeyPair",
    "KubeletSettings",
    "Kubelets",
    "NodeCertifier",
    "NodeCredentials",
    "register_kubelet_faults",
]
