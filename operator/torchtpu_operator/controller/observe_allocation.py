"""Fills an `AllocationObserved` from the caches, and answers why a job waits by the same plan."""

from collections.abc import Mapping
from datetime import timedelta

from torchtpu_operator.controller.world import World
from torchtpu_operator.plan.allocation import AllocationObserved, Wait, plan_allocation
from torchtpu_operator.plan.observed import Outcome

_KEPT = timedelta(seconds=2)


def observe_allocation(world: World, *, outcomes: tuple[Outcome, ...] = ()) -> AllocationObserved:
    """Raises UnreadableError if any object cannot be read: what is not understood must not count as free or absent."""
    caches = world.caches
    return AllocationObserved(
        classes=tuple(known.model for known in caches.classes),
        slices=tuple(known.model for known in caches.slices),
        jobs=tuple(known.model for known in caches.jobs),
        namespace_labels={namespace.name: namespace.labels for namespace in caches.namespaces},
        priorities=dict(caches.priorities),
        outcomes=outcomes,
    )


class Waits:
    """Why jobs wait: one computation serves all jobs until something changes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._generation = -1
        self._computed = world.clock.now() - _KEPT
        self._waits: Mapping[str, Wait] = {}

    def of(self, job_uid: str) -> Wait | None:
        """None: the job has its slices, gets them next, or allocation itself cannot say."""
        now, generation = self._world.clock.now(), self._world.caches.generation
        if generation != self._generation or now - self._computed >= _KEPT:
            observed = observe_allocation(self._world)
            self._waits = plan_allocation(observed, now=now, settings=self._world.settings).waits
            self._generation, self._computed = generation, now
        return self._waits.get(job_uid)
