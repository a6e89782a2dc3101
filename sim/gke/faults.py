"""What can go wrong with the simulated GKE, as state that tests and `sim fault` switch on and off."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeVar

from sim.gke.creation_failures import Failure
from sim.gke.errors import Code, GkeError

_Sleep = Callable[[float], Awaitable[None]]


@dataclass(kw_only=True, eq=False)
class Fault:
    times: int | None = None
    """How often it strikes before it is over; None: until it is cleared."""


@dataclass(kw_only=True, eq=False)
class Refusal(Fault):
    """Calls of `method` (a pattern) are refused and do nothing."""

    method: str = "*"
    code: Code = Code.UNAVAILABLE
    message: str = "failed to connect to all addresses"


@dataclass(kw_only=True, eq=False)
class Silence(Fault):
    """Calls of `method` are not even read until the fault is cleared: the caller's deadline ends them."""

    method: str = "*"


@dataclass(kw_only=True, eq=False)
class LostAnswer(Fault):
    """Calls of `method` take effect, but the caller gets UNAVAILABLE, or silence until its deadline."""

    method: str = "CreateNodePool"
    silent: bool = False


@dataclass(kw_only=True, eq=False)
class Stockout(Fault):
    """Creates find no capacity. `nodes` of them exist all the same (RUNNING_WITH_ERROR)."""

    zone: str = "*"
    machine: str = "*"
    nodes: int = 0


@dataclass(kw_only=True, eq=False)
class OperationFault(Fault):
    """Accepted operations of one type end with `failure`."""

    operation: str = "CREATE_NODE_POOL"
    pool: str = "*"
    zone: str = "*"
    machine: str = "*"
    failure: Failure


@dataclass(kw_only=True, eq=False)
class SlowCreate(Fault):
    """Creates take `seconds` more."""

    pool: str = "*"
    seconds: float = 60.0


@dataclass(kw_only=True, eq=False)
class HungDeletion(Fault):
    """Pools whose deletion is accepted stay in STOPPING until the fault is cleared."""

    pool: str = "*"


_F = TypeVar("_F", bound=Fault)


@dataclass
class Faults:
    """The faults that are on. Adding and clearing take effect at once, for calls under way too."""

    active: list[Fault] = field(default_factory=list)
    sleep: _Sleep = asyncio.sleep
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, fault: _F) -> _F:
        self.active.append(fault)
        self._tell()
        return fault

    def clear(self, kind: type[Fault] = Fault) -> int:
        """Switch off all faults of a kind; returns how many there were."""
        before = len(self.active)
        self.active = [fault for fault in self.active if not isinstance(fault, kind)]
        self._tell()
        return before - len(self.active)

    def remove(self, fault: Fault) -> None:
        """Switch off one; absent is not an error."""
        self.active = [other for other in self.active if other is not fault]
        self._tell()

    async def before(self, method: str) -> None:
        """Hold or refuse a call."""
        while self._find(Silence, method=method) is not None:
            await self._changed.wait()
        refusal = self._find(Refusal, method=method)
        if refusal is not None:
            self._strike(refusal)
            raise GkeError(refusal.code, refusal.message)

    def loses_answer(self, method: str) -> bool:
        return self._find(LostAnswer, method=method) is not None

    async def lose_answer(self, method: str) -> None:
        """Never returns."""
        lost = self._find(LostAnswer, method=method)
        if lost is not None:
            self._strike(lost)
            # A silent one is over for later calls, but for this one there is no answer any more.
            while lost.silent:
                await self._changed.wait()
        raise GkeError(Code.UNAVAILABLE, "the connection was reset before the answer arrived")

    def stockout(self, *, zone: str, machine: str, strike: bool = True) -> Stockout | None:
        found = self._find(Stockout, zone=zone, machine=machine)
        return self._strike(found) if found is not None and strike else found

    def operation_failure(self, kind: str, *, pool: str, zone: str, machine: str) -> Failure | None:
        found = self._find(OperationFault, operation=kind, pool=pool, zone=zone, machine=machine)
        return None if found is None else self._strike(found).failure

    def extra_create_seconds(self, pool: str) -> float:
        found = self._find(SlowCreate, pool=pool)
        return 0.0 if found is None else self._strike(found).seconds

    async def hold_deletion(self, pool: str) -> None:
        while self._find(HungDeletion, pool=pool) is not None:
            await self._changed.wait()

    def _tell(self) -> None:
        """Wake what is held; it looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _find(self, kind: type[_F], **values: str) -> _F | None:
        for fault in self.active:
            if isinstance(fault, kind) and all(
                fnmatchcase(value, getattr(fault, name)) for name, value in values.items()
            ):
                return fault
        return None

    def _strike(self, fault: _F) -> _F:
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                self.remove(fault)
        return fault
