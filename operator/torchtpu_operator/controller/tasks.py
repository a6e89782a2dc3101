"""Ending tasks for certain."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

log = logging.getLogger(__name__)

_AGAIN = 0.2
_TIMES = 20


async def ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended; their results are not asked for.

    One cancellation is not enough: aiohttp takes one that comes together with its own time-out for the time-out (its
    nested timers both uncancel), and the task goes on as if nothing had been said.
    """
    left = {task for task in tasks if not task.done()}
    for _ in range(_TIMES):
        if not left:
            return
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN)
    log.error("tasks that do not end: %s", ", ".join(sorted(task.get_name() for task in left)))
