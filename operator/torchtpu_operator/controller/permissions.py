"""Every right on the Kubernetes API that the operator uses, and why. The chart's roles are tested against this table."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Permission:
    group: str
    """"" is the core group."""
    resource: str
    """Plural, or plural/subresource."""
    verbs: tuple[str, ...]
    why: str
    own_namespace: bool = False
    """Needed in the operator's own namespace only (a Role); else in the whole cluster (a ClusterRole)."""

    def each(self) -> Iterator[tuple[str, str, str]]:
        """(group, resource, verb)"""
        for verb in self.verbs:
            yield self.group, self.resource, verb


_WATCHED = ("get", "list", "watch")

PERMISSIONS: tuple[Permission, ...] = (
    Permission(
        group="torchtpu.dev",
        resource="torchtpujobs",
        verbs=(*_WATCHED, "patch", "delete"),
        why="read jobs, put the finalizer on and off, delete finished ones after their TTL",
    ),
    Permission(group="torchtpu.dev", resource="torchtpujobs/status", verbs=("patch",), why="write a job's status"),
    Permission(
        group="torchtpu.dev",
        resource="torchtpujobs/finalizers",
        verbs=("update",),
        why="own RayClusters, Secrets and ConfigMaps where OwnerReferencesPermissionEnforcement is on",
    ),
    Permission(
        group="torchtpu.dev",
        resource="tpuslices",
        verbs=(*_WATCHED, "create", "patch", "delete"),
        why="make, claim, release and delete slices",
    ),
    Permission(group="torchtpu.dev", resource="tpuslices/status", verbs=("patch",), why="write a slice's status"),
    Permission(group="torchtpu.dev", resource="tpusliceclasses", verbs=_WATCHED, why="read the offers"),
    Permission(
        group="torchtpu.dev", resource="tpusliceclasses/status", verbs=("patch",), why="show the state of the offers"
    ),
    Permission(
        group="ray.io",
        resource="rayclusters",
        verbs=(*_WATCHED, "create", "patch", "delete"),
        why="one RayCluster per attempt: made, scaled to zero, deleted",
    ),
    Permission(
        group="",
        resource="pods",
        verbs=(*_WATCHED, "create", "delete"),
        why="watch Ray's pods; server-side dry run of a job's pods; force-delete those on lost nodes",
    ),
    Permission(group="", resource="nodes", verbs=_WATCHED, why="see when a slice's hosts are there and healthy"),
    Permission(group="", resource="namespaces", verbs=_WATCHED, why="allowedNamespaces; the installation's identity"),
    Permission(group="scheduling.k8s.io", resource="priorityclasses", verbs=_WATCHED, why="order the jobs that wait"),
    Permission(
        group="",
        resource="secrets",
        verbs=("get", "create"),
        why="the token of each RayCluster: made once, read to talk to its head; never listed or watched",
    ),
    Permission(
        group="",
        resource="configmaps",
        verbs=("get", "create"),
        why="the runner of each attempt, and the last lines of a rank that failed",
    ),
    Permission(group="", resource="events", verbs=("get", "create", "patch"), why="tell the story of each object"),
    Permission(
        group="apiextensions.k8s.io",
        resource="customresourcedefinitions",
        verbs=_WATCHED,
        why="begin to watch RayClusters when KubeRay is installed later",
    ),
    Permission(
        group="coordination.k8s.io",
        resource="leases",
        verbs=("get", "create", "update"),
        why="one of several replicas acts",
        own_namespace=True,
    ),
)
