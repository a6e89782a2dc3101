"""KubeRay's kinds and rights in a cluster."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sim import tools
from sim.control_plane import manifests
from sim.control_plane.api_client import ApiClient, ApiError
from sim.control_plane.identities import KUBERAY_ACCOUNT
from sim.control_plane.seed import CRD_PATH

CONFLICT = 409
TIMED_OUT = (0, 504)
"""No answer, or the apiserver's own word for one that it could not finish; either may have taken effect."""

_ATTEMPTS = 4


class CrdClient(Protocol):
    """As much of `ApiClient` as creates kinds and looks whether they are there."""

    def get(self, path: str) -> Any: ...

    def create(self, path: str, manifest: bytes) -> Any: ...


def read_crds() -> dict[str, bytes]:
    """CRD name -> YAML; the files are named <group>_<plural>.yaml."""
    found = {}
    for path in sorted(tools.kuberay_crds().glob("*.yaml")):
        group, plural = path.stem.split("_")
        found[f"{plural}.{group}"] = path.read_bytes()
    return found


def create_crds(client: CrdClient, crds: Mapping[str, bytes]) -> None:
    """Raises ApiError; those that exist stay as they are.

    One after another: together their schemas keep a loaded machine's apiserver busy for longer than its own time-out.
    """
    for name, manifest in crds.items():
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                client.create(CRD_PATH, manifest)
                break
            except ApiError as error:
                if error.status == CONFLICT:
                    break
                if error.status not in TIMED_OUT or attempt == _ATTEMPTS:
                    raise ApiError(f"{name}: {error}", status=error.status) from error


def grant_rights(client: ApiClient) -> None:
    """The ClusterRole that KubeRay publishes, and its ServiceAccount. Raises ApiError."""
    role = tools.kuberay_role().read_bytes()
    client.apply(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{KUBERAY_ACCOUNT[1]}", role)
    for each in manifests.build_kuberay_access():
        client.apply(manifests.path_of(each), each)


def is_served(client: CrdClient, crds: Iterable[str]) -> bool:
    """Asks discovery and not the CRDs' conditions: reading these megabytes slows down what one waits for."""
    try:
        # `resources` is null while the group exists but none of its kinds is established.
        found = {each["name"] for each in client.get("/apis/ray.io/v1")["resources"] or []}
    except ApiError as error:
        # 503: the group is known but its resources are not computed yet.
        if error.status not in (404, 503):
            raise
        return False
    return {crd.split(".")[0] for crd in crds} <= found
