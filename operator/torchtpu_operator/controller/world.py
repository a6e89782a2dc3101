"""What observers and executor work with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torchtpu_operator.clients.clock import Clock
from torchtpu_operator.clients.gke import Gke
from torchtpu_operator.clients.kinds import Kind
from torchtpu_operator.clients.kube import KubeApi
from torchtpu_operator.clients.ray_jobs import RayJobs
from torchtpu_operator.controller.caches import Caches
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.plan.observed import Settings


class NotActingError(Exception):
    """This replica may not change anything any more: its lease is over."""


@dataclass(frozen=True, kw_only=True)
class World:
    kube: KubeApi
    gke: Gke
    ray: RayJobs
    heads: RayHeads
    caches: Caches
    clock: Clock
    settings: Settings
    new_token: Callable[[], str]
    """A fresh secret for one Ray cluster."""
    acts: Callable[[], bool] = lambda: True
    """Whether this replica may change anything now."""

    def check_acts(self) -> None:
        """Before every change: a worker may have been held up past the end of the lease. Raises NotActingError."""
        if not self.acts():
            raise NotActingError("the lease is over; this replica changes nothing any more")


@dataclass(kw_only=True)
class Target:
    """What a reconcile is about. `raw` is replaced by the answer to each own write, so that its version is the newest;
    empty for allocation, which is about no single object."""

    key: Key
    kind: Kind | None = None
    raw: Mapping[str, Any]

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def namespace(self) -> str | None:
        """None for a cluster-scoped object."""
        namespace = self.raw["metadata"].get("namespace")
        return str(namespace) if namespace else None


async def refresh(world: World, kind: Kind, name: str, *, namespace: str | None = None, by: Key) -> None:
    """Read one object live into its cache, after a 409 or 404 has shown that the cache is behind. Raises KubeError."""
    known = world.caches.of(kind).get(name, namespace=namespace or "")  # before the GET: a namesake may come after it
    live = await world.kube.get(kind, name, namespace=namespace)
    if live is not None:
        world.caches.remember(kind, live, by=by)
    elif known is not None:
        world.caches.forget(kind, known.raw, by=by)
