"""Writes a pod's status: one patch at a time, only when it differs, always from the newest state."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from sim.kubelet.api import ApiClient, ApiError, ApiUnreachableError, pod_path
from sim.kubelet.status import PodView, build_status_patch

Json = dict[str, Any]

_RETRY: Final = 1.0
_GONE: Final = (404, 409)
"""The object is gone, or another has its name (the uid in the patch does not fit)."""

_INVALID: Final = 422
"""The next state may be valid again; this one never is."""

_log = logging.getLogger("sim.kubelet.status")


class StatusWriter:
    """`view` tells the present state, `written` gets the object as it is after a patch."""

    def __init__(self, api: ApiClient, *, view: Callable[[], PodView], written: Callable[[Json], None]) -> None:
        self._api, self._view, self._written = api, view, written
        self._dirty = asyncio.Event()
        self._lock = asyncio.Lock()
        self._last: Json | None = None

    def changed(self) -> None:
        """Something in the view has changed."""
        self._dirty.set()

    async def run(self) -> None:
        """Write what changes until cancelled."""
        while True:
            await self._dirty.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write the present state; returns once the apiserver has it, or has no such pod any more."""
        async with self._lock:
            while True:
                self._dirty.clear()
                view = self._view()
                patch = build_status_patch(view, now=datetime.now(UTC))
                if _comparable(patch) == self._last:
                    return
                try:
                    self._written(await self._api.patch(pod_path(view.pod, part="status"), patch))
                except ApiError as error:
                    if error.code in _GONE:
                        return
                    if error.code == _INVALID:
                        _log.error("pod %s: status is invalid: %s", view.pod["metadata"]["name"], error)
                        return
                    _log.warning("pod %s: status refused, again in 1 s: %s", view.pod["metadata"]["name"], error)
                except ApiUnreachableError as error:
                    _log.info("pod %s: status not written, again in 1 s: %s", view.pod["metadata"]["name"], error)
                else:
                    self._last = _comparable(patch)
                    return
                await asyncio.sleep(_RETRY)


def _comparable(patch: Json) -> Json:
    """Without the times of conditions, which follow from their values."""
    status = patch["status"]
    conditions = [{**condition, "lastTransitionTime": None} for condition in status["conditions"]]
    return {**status, "conditions": conditions}
