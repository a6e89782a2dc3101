"""The machines of the node pools: made, lost, repaired, ended by their maxRunDuration, removed."""

import asyncio
import logging
import random
import string
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sim.gke.node_specs import build_node_spec
from sim.gke.settings import Settings
from sim.gke.tpu_rules import Shape
from sim.nodes import NodeHost

_log = logging.getLogger(__name__)
_SUFFIX = string.ascii_lowercase + string.digits
_GROUP_PREFIX_LIMIT = 32
"""gke-<cluster>-<pool> is cut here before the group's hash is put after it."""


@dataclass(kw_only=True, eq=False)
class Instance:
    name: str
    zone: str
    is_lost: bool = False


@dataclass(kw_only=True, eq=False)
class Pool:
    """A node pool with its machines."""

    message: Any
    """The NodePool as it is returned."""
    shape: Shape
    instances: list[Instance] = field(default_factory=list)
    claimed_hosts: int = 0
    """Hosts of its zone or reservation that it holds, those under way included."""
    background: set[asyncio.Task[None]] = field(default_factory=set)
    """What goes on without an operation: ends with the pool."""

    @property
    def name(self) -> str:
        return str(self.message.name)


class Fleet:
    def __init__(
        self,
        host: NodeHost,
        settings: Settings,
        *,
        clock: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]],
        rng: random.Random,
    ) -> None:
        self._host, self._settings, self._clock, self._sleep, self._rng = host, settings, clock, sleep, rng

    async def add(self, pool: Pool, nodes_per_zone: int) -> None:
        """New machines; returns when all of their nodes are Ready."""
        instances = [
            Instance(name=name, zone=zone)
            for zone in pool.shape.zones
            for name in self._new_names(pool.name, nodes_per_zone)
        ]
        await self._register(pool, instances)

    async def _register(self, pool: Pool, instances: list[Instance]) -> None:
        if not instances:
            return
        config = pool.message.config
        duration: timedelta | None = config.max_run_duration if "max_run_duration" in config else None
        await self._sleep(self._settings.node_seconds)
        ends = None if duration is None else self._clock() + duration
        pool.instances += instances
        specs = [
            build_node_spec(
                pool.message,
                pool.shape,
                name=instance.name,
                zone=instance.zone,
                settings=self._settings,
                terminates_at=ends,
            )
            for instance in instances
        ]
        await asyncio.gather(*(self._host.add(spec) for spec in specs))
        if duration is not None:
            self.run_beside(pool, self._expire(pool, instances, duration.total_seconds()))

    async def remove(self, pool: Pool, instances: list[Instance]) -> None:
        """Machines go, with their Node objects."""
        await asyncio.gather(*(self._host.remove(instance.name) for instance in instances))
        pool.instances = [instance for instance in pool.instances if instance not in instances]

    async def lose(self, instance: Instance, *, keep_object: bool = True) -> None:
        """A host dies without notice; its Node object stays unless `keep_object` is false."""
        instance.is_lost = True
        await self._host.remove(instance.name, abrupt=True)
        if not keep_object:
            await self._host.remove(instance.name)

    async def recreate_lost(self, pool: Pool) -> None:
        """Auto-repair: a slice's machines all together, single hosts one by one, under their old names."""
        lost = [instance for instance in pool.instances if instance.is_lost or pool.shape.is_multi_host]
        await self.remove(pool, lost)
        await self._register(pool, [Instance(name=old.name, zone=old.zone) for old in lost])

    async def _expire(self, pool: Pool, instances: list[Instance], seconds: float) -> None:
        await self._sleep(seconds)
        present = [instance for instance in instances if instance in pool.instances]
        _log.info("maxRunDuration of %d machines of pool %s has ended", len(present), pool.name)
        await self.remove(pool, present)
        pool.claimed_hosts = len(pool.instances)

    def run_beside(self, pool: Pool, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        pool.background.add(task)
        task.add_done_callback(pool.background.discard)

    async def end_background(self, pool: Pool) -> None:
        """Nothing goes on beside the pool's operations any more."""
        tasks = [task for task in pool.background if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _new_names(self, pool: str, count: int) -> list[str]:
        prefix = f"gke-{self._settings.cluster}-{pool}"[:_GROUP_PREFIX_LIMIT].rstrip("-")
        group = f"{prefix}-{self._rng.getrandbits(32):08x}"
        suffixes: set[str] = set()
        while len(suffixes) < count:
            suffixes.add("".join(self._rng.choices(_SUFFIX, k=4)))
        return [f"{group}-{suffix}" for suffix in sorted(suffixes)]
