"""Every call of the operator to the outside world, counted; the process may die before or after any of them."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from torchtpu_operator.clients.kube_errors import NO_ANSWER, KubeError
from torchtpu_operator.plan.observed import CallFailed, FailureClass

WRITES = {
    "create",
    "replace",
    "merge",
    "apply",
    "delete",
    "create_node_pool",
    "delete_node_pool",
    "submit",
    "stop",
}
Side = Literal["before", "after"]


@dataclass
class Calls:
    """The calls of all processes of one run, in order."""

    die_at: tuple[int, Side] | None = None
    """Number of the call (from 0) and on which side of it the process dies."""
    only_writes: bool = True
    """Whether reads are counted too: a death around a read differs from one after the write before it in time alone."""
    made: list[str] = field(default_factory=list)
    died: asyncio.Event = field(default_factory=asyncio.Event)
    refuse: Callable[[str, tuple[Any, ...]], Exception | None] = lambda _name, _args: None
    """Called with the name of a call and its arguments before it takes effect; what it returns is raised."""

    late: dict[str, float] = field(default_factory=dict)
    """Calls by name that get no answer, once each, and take effect so many seconds later."""
    _strays: set[asyncio.Task[Any]] = field(default_factory=set)

    def watched(self, inner: Any, target: str) -> Any:
        return _Watched(inner, self, target)

    def stray(self, work: Coroutine[Any, Any, Any], seconds: float) -> None:
        """The call is on its way, whoever sent it."""

        async def arrive() -> None:
            await asyncio.sleep(seconds)
            with contextlib.suppress(KubeError):
                await work

        task = asyncio.create_task(arrive())
        self._strays.add(task)
        task.add_done_callback(self._strays.discard)

    async def enter(self, name: str, args: tuple[Any, ...]) -> int | None:
        if (error := self.refuse(name, args)) is not None:
            raise error
        if self.only_writes and name.rsplit(".", 1)[-1] not in WRITES:
            return None
        number = len(self.made)
        self.made.append(name)
        await self._die(number, "before")
        return number

    async def leave(self, number: int | None) -> None:
        if number is not None:
            await self._die(number, "after")

    async def _die(self, number: int, side: Side) -> None:
        if self.die_at == (number, side):
            self.died.set()
            await asyncio.Future()  # the process does nothing more


class _Watched:
    def __init__(self, inner: Any, calls: Calls, target: str) -> None:
        self._inner, self._calls, self._target = inner, calls, target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            label = _label(self._target, name, args, options)
            number = await self._calls.enter(label, args)
            if (seconds := self._calls.late.pop(label, None)) is not None:
                self._calls.stray(method(*args, **options), seconds)
                return _no_answer(label)
            try:
                return await method(*args, **options)
            finally:
                await self._calls.leave(number)

        return call


def _no_answer(label: str) -> CallFailed:
    """As each client says it."""
    if "kube." in label:
        raise KubeError("no answer: timed out", call=label, status=NO_ANSWER)
    return CallFailed(call=label, failure=FailureClass.TRANSIENT, message="no answer: timed out")


def _label(target: str, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> str:
    if target != "kube":
        return f"{target}.{name}"
    dry = "dry-run " if options.get("dry_run") else ""
    return f"{getattr(args[0], 'plural', args[0])} {dry}kube.{name}"
