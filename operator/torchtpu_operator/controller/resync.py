"""The net under the watches: list everything, drop what is gone, look at every object again.

kopf sends no DELETED for what vanished while a watch was broken, and a watch may go silent. What a list shows and the
watch did not is counted; if that goes on, only a new process helps.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable

from torchtpu_operator.clients.kinds import NODES, PODS, RAY_CLUSTERS, Kind
from torchtpu_operator.clients.kube import KubeApi
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.caches import ALLOCATION, Caches, job_key, slice_key
from torchtpu_operator.controller.watching import CACHED
from torchtpu_operator.controller.workqueue import Key, WorkQueue

log = logging.getLogger(__name__)

_GRACE = 2.0  # the watch may be this much behind the list without being broken
_SPREAD = 0.2  # of the interval: a pass over all objects must not stand in front of fresh events
_FIRST_AFTER = 10.0
_SILENT_PASSES = 3
_KUBERAY_ABSENT_SECONDS, _KUBERAY_PRESENT_SECONDS = 5.0, 60.0


class Resync:
    def __init__(
        self,
        api: KubeApi,
        caches: Caches,
        queue: WorkQueue,
        *,
        every: float,
        monotonic: Callable[[], float],
        missed: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        """`missed` is told how many objects of a kind the watch had not brought."""
        self._api, self._caches, self._queue, self._every = api, caches, queue, every
        self._monotonic, self._missed = monotonic, missed
        self._last = monotonic()
        self._silent: dict[Kind, int] = {}

    @property
    def age(self) -> float:
        """Seconds since the last whole pass."""
        return self._monotonic() - self._last

    @property
    def problem(self) -> str:
        """Why only a restart helps; "" while all is well."""
        if self.age > 3 * self._every:
            return f"nothing was listed for {self.age:.0f} s"
        silent = [kind.plural for kind, passes in self._silent.items() if passes >= _SILENT_PASSES]
        return f"the watch of {', '.join(silent)} is silent" if silent else ""

    async def fill(self) -> None:
        """The first lists, before any worker runs: a cache that is half full would look like loss. Raises KubeError."""
        await self.look_for_kuberay()
        for kind, labels in CACHED.items():
            for obj in await self._api.list(kind, labels=labels):
                self._caches.of(kind).remember(obj)
        self._last = self._monotonic()

    async def run(self) -> None:
        """Passes for ever; ends only by cancellation."""
        await asyncio.sleep(min(_FIRST_AFTER, self._every))  # what went between our first list and kopf's
        while True:
            try:
                await self.look()
            except KubeError as error:
                log.warning("resync not finished: %s", error)
            await asyncio.sleep(self._every)

    async def look(self) -> None:
        """One pass. Raises KubeError."""
        for kind, labels in CACHED.items():
            await self._look_at(kind, labels)
        for job in self._caches.jobs:
            self._later(job_key(job.raw))
        for slice_ in self._caches.slices:
            self._later(slice_key(slice_.raw["metadata"]["name"]))
        self._later(ALLOCATION)
        self._last = self._monotonic()

    async def look_for_kuberay(self) -> None:
        """Raises KubeError."""
        served = await self._api.served(RAY_CLUSTERS.group, RAY_CLUSTERS.version)
        self._caches.set_kuberay(RAY_CLUSTERS.plural in served)

    async def watch_kuberay(self) -> None:
        """Notices that KubeRay is installed or removed; ends only by cancellation."""
        while True:
            await asyncio.sleep(_KUBERAY_PRESENT_SECONDS if self._caches.kuberay else _KUBERAY_ABSENT_SECONDS)
            try:
                await self.look_for_kuberay()
            except KubeError as error:
                log.warning("cannot see whether KubeRay is installed: %s", error)

    async def _look_at(self, kind: Kind, labels: str) -> None:
        cache = self._caches.of(kind)
        before = cache.snapshot()
        objects = await self._api.list(kind, labels=labels)
        behind = [obj for obj in objects if cache.is_behind(obj)]
        present = {(obj["metadata"].get("namespace") or "", obj["metadata"]["name"]) for obj in objects}
        unseen = before.keys() - present
        if behind or unseen:
            await asyncio.sleep(_GRACE)
        behind = [obj for obj in behind if cache.is_behind(obj)]
        for obj in behind:
            cache.remember(obj)
        gone = cache.forget_absent(before, present)
        for namespace, name in gone:
            log.info("%s %s is gone; the watch had not said so", kind.plural, "/".join(filter(None, (namespace, name))))
        self._note(kind, len(behind) + len(gone))

    def _note(self, kind: Kind, count: int) -> None:
        # Nodes and pods change all the time, so a list is a little ahead of their watch without anything being wrong.
        self._silent[kind] = self._silent.get(kind, 0) + 1 if count and kind not in (NODES, PODS) else 0
        if count:
            self._missed(kind.plural, count)

    def _later(self, key: Key) -> None:
        part = int.from_bytes(hashlib.sha256("/".join(key).encode()).digest()[:4], "big") / 2**32
        self._queue.add_after(key, part * _SPREAD * self._every)
