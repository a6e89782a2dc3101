"""The kinds of Kubernetes objects that the operator talks about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class Kind:
    group: str
    """"" is the core group."""
    version: str
    plural: str
    name: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The request path; `namespace` None means all namespaces (list) or a cluster-scoped kind.

        Names are quoted: one that a user wrote must not lead to another object.
        """
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if namespace and self.namespaced:
            parts.append(f"namespaces/{_quoted(namespace)}")
        parts.append(self.plural)
        parts += [_quoted(part) for part in (name, subresource) if part]
        return "/".join(parts)


def _quoted(part: str) -> str:
    # an HTTP client takes dots for folders, quoted or not; no object has such a name
    return "%00" if part in (".", "..") else quote(part, safe=":")


GROUP, VERSION = "torchtpu.dev", "v1alpha1"

JOBS = Kind(GROUP, VERSION, "torchtpujobs", "TorchTPUJob")
SLICES = Kind(GROUP, VERSION, "tpuslices", "TPUSlice", namespaced=False)
CLASSES = Kind(GROUP, VERSION, "tpusliceclasses", "TPUSliceClass", namespaced=False)
RAY_CLUSTERS = Kind("ray.io", "v1", "rayclusters", "RayCluster")
PODS = Kind("", "v1", "pods", "Pod")
NODES = Kind("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Kind("", "v1", "secrets", "Secret")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
EVENTS = Kind("", "v1", "events", "Event")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
ACCESS_REVIEWS = Kind(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

_BY_NAME = {
    (kind.api_version, kind.name): kind
    for kind in (JOBS, SLICES, CLASSES, RAY_CLUSTERS, PODS, NODES, NAMESPACES, SECRETS, CONFIG_MAPS, EVENTS, LEASES)
}


def kind_of(manifest: Mapping[str, Any]) -> Kind:
    """The kind of a manifest; KeyError for one that the operator has no business with."""
    return _BY_NAME[manifest["apiVersion"], manifest["kind"]]
