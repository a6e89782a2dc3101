"""Fills an `AllocationObserved` from the caches, and keeps why jobs wait."""

from collections.abc import Mapping

from torchtpu_operator.controller.world import World
from torchtpu_operator.plan.allocation import AllocationObserved, Wait
from torchtpu_operator.plan.observed import Outcome


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
    """Why jobs wait, as the last pass of allocation found it: one computation serves all jobs.

    A job whose reason has changed is woken by that pass, so none reads an old one for long.
    """

    def __init__(self) -> None:
        self._waits: Mapping[str, Wait] = {}

    def publish(self, waits: Mapping[str, Wait]) -> list[str]:
        """Take over what a pass found; the uids of the jobs whose reason is another than before."""
        before, self._waits = self._waits, dict(waits)
        return [uid for uid in before.keys() | waits.keys() if before.get(uid) != waits.get(uid)]

    def of(self, job_uid: str) -> Wait | None:
        """None: the job has its slices, gets them next, or has not been looked at yet."""
        return self._waits.get(job_uid)
