"""Events of a node's kubelet: the same one again counts up instead of making a new object."""

import asyncio
import hashlib
import logging
from datetime import UTC, datetime
from typing import Any, Final

from sim.kubelet.api import ApiClient, ApiError, ApiUnreachableError
from sim.kubelet.state import timestamp

Json = dict[str, Any]

_LONGEST_MESSAGE: Final = 1024

_log = logging.getLogger("sim.kubelet.events")


class EventRecorder:
    """Writes events one after another in the background. Events are a courtesy: one that is refused is only logged."""

    def __init__(self, api: ApiClient, *, node: str) -> None:
        self._api, self._node = api, node
        self._queue: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        self._counts: dict[str, int] = {}

    def emit(self, pod: Json, *, kind: str, reason: str, message: str, field: str = "") -> None:
        """Tell of something that happened to a pod; `kind` is Normal or Warning, `field` a container's path."""
        metadata = pod["metadata"]
        message = message[:_LONGEST_MESSAGE]
        digest = hashlib.sha256("\0".join((metadata["uid"], reason, field, message)).encode()).hexdigest()[:16]
        name = f"{metadata['name'][:200]}.{digest}"
        count = self._counts[name] = self._counts.get(name, 0) + 1
        now = timestamp(datetime.now(UTC))
        path = f"/api/v1/namespaces/{metadata['namespace']}/events"
        if count > 1:
            self._queue.put_nowait((f"{path}/{name}", {"count": count, "lastTimestamp": now}))
            return
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                **({"fieldPath": field} if field else {}),
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": self._node},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._queue.put_nowait((path, event))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            path, body = await self._queue.get()
            try:
                if body.get("kind") == "Event":
                    await self._api.create(path, body)
                else:
                    await self._api.patch(path, body, kind="merge-patch")
            except (ApiError, ApiUnreachableError) as error:
                _log.debug("node %s: event not written: %s", self._node, error)
