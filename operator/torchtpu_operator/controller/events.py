"""Kubernetes events, so that `kubectl describe` tells an object's story.

The name of an event is a hash of what it says and of whom: the same event again, also after a restart of the operator,
raises the count of the one that is there. Written in the background: events inform, they must never hold up a reconcile.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torchtpu_operator.api.timestamps import format_time
from torchtpu_operator.clients.calls import shortened
from torchtpu_operator.clients.clock import Clock
from torchtpu_operator.clients.kinds import EVENTS, Kind
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.plan.actions import Event

log = logging.getLogger(__name__)

COMPONENT = "torchtpu-operator"
_KNOWN = 4_000
_WAITING = 1_000
_BURST, _REFILL_SECONDS = 25, 30.0  # per object, as client-go's spam filter, which refills ten times slower
_REPEAT_SECONDS = 10.0  # the same event is counted in memory and written at most so often


class EventApi(Protocol):
    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> dict[str, Any] | None: ...

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]: ...

    async def merge(
        self, kind: Kind, name: str, patch: Mapping[str, Any], *, namespace: str | None = None
    ) -> dict[str, Any]: ...


@dataclass
class _Series:
    count: int
    written: float


@dataclass
class _Bucket:
    tokens: float
    at: float


class EventRecorder:
    def __init__(
        self,
        api: EventApi,
        *,
        clock: Clock,
        identity: str,
        monotonic: Callable[[], float],
        seen: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`seen` is told written, dropped or failed once per event."""
        self._api, self._clock, self._identity, self._monotonic, self._seen = api, clock, identity, monotonic, seen
        self._series: OrderedDict[str, _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._waiting: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(_WAITING)

    def record(self, about: Mapping[str, Any], event: Event) -> None:
        """Note an event about an object (as the API gives it, with apiVersion and kind). Never blocks, never raises."""
        uid = about["metadata"]["uid"]
        digest = hashlib.sha256("\0".join((uid, event.type, event.reason, event.message)).encode()).hexdigest()[:16]
        now = self._monotonic()
        series = self._series.get(digest)
        if series is None:
            if not self._allowed(uid, now):
                self._seen("dropped")
                return
            series = self._series[digest] = _Series(0, now - _REPEAT_SECONDS)
        series.count += 1
        self._series.move_to_end(digest)
        while len(self._series) > _KNOWN:
            self._series.popitem(last=False)
        if now - series.written < _REPEAT_SECONDS:
            return
        series.written = now
        try:
            self._waiting.put_nowait((digest, self._event(about, event, digest)))
        except asyncio.QueueFull:
            self._seen("dropped")

    async def write(self) -> None:
        """Writes what is recorded, one after the other; ends only by cancellation."""
        while True:
            digest, body = await self._waiting.get()
            try:
                await self._write(digest, body)
                self._seen("written")
            except KubeError as error:
                self._seen("failed")
                level = logging.DEBUG if error.status in (403, 404) else logging.WARNING  # its namespace is going
                log.log(level, "event %s not written: %s", body["reason"], error)
            finally:
                self._waiting.task_done()

    async def flush(self, *, seconds: float) -> None:
        """Until all is written, or the time is over."""
        try:
            await asyncio.wait_for(self._waiting.join(), seconds)
        except TimeoutError:
            log.warning("%d events not written before the end", self._waiting.qsize())

    def _allowed(self, uid: str, now: float) -> bool:
        bucket = self._buckets.setdefault(uid, _Bucket(_BURST, now))
        self._buckets.move_to_end(uid)
        while len(self._buckets) > _KNOWN:
            self._buckets.popitem(last=False)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.at) / _REFILL_SECONDS)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _event(self, about: Mapping[str, Any], event: Event, digest: str) -> dict[str, Any]:
        meta, now = about["metadata"], format_time(self._clock.now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{meta['name']}.{digest}",
                # Events about cluster-scoped objects live in `default`, as everybody's do.
                "namespace": meta.get("namespace") or "default",
            },
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": meta["name"],
                "uid": meta["uid"],
                **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
            },
            "type": event.type,
            "reason": event.reason,
            "message": shortened(event.message),
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._identity,
        }

    async def _write(self, digest: str, body: dict[str, Any]) -> None:
        series = self._series.get(digest)
        more = series.count if series else 1
        if series:
            series.count = 0
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        try:
            await self._api.create(EVENTS, body | {"count": more})
            return
        except KubeError as error:
            if not error.is_conflict:
                raise
        known = await self._api.get(EVENTS, name, namespace=namespace) or {}
        patch = {"count": int(known.get("count") or 0) + more, "lastTimestamp": body["lastTimestamp"]}
        await self._api.merge(EVENTS, name, patch, namespace=namespace)
