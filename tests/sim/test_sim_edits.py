"""Edits of a live job that are taken: what each of them does, in virtual time."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sim.gke.faults import Stockout
from tests.sim.rig import Outside, a_cluster, in_virtual_time, now
from torchtpu_operator.clients.kinds import PODS

Edited = tuple[object, ...]
Live = Callable[[Outside], Awaitable[Edited]]


def gone(outside: Outside) -> bool:
    return not any(outside.left().values())


def ended(outside: Outside) -> tuple[str, str]:
    conditions = ((outside.job() or {}).get("status") or {}).get("conditions") or ()
    found = [each for each in conditions if each["type"] in ("Complete", "Failed") and each["status"] == "True"]
    return (found[0]["type"], found[0]["reason"]) if found else ("", "")


async def running(outside: Outside, **spec: Any) -> None:
    await outside.prepare()
    await outside.apply(**spec)
    await outside.until(lambda: outside.phase() == "Running")


async def over(outside: Outside, *, seconds: float = 600) -> None:
    await outside.until(lambda: ended(outside)[0] != "" and gone(outside), seconds=seconds)


async def active_deadline(outside: Outside) -> Edited:
    await running(outside)
    began = now()
    await outside.change(activeDeadlineSeconds=60)
    await over(outside)
    return ended(outside), now() - began < 90


async def active_deadline_taken_away(outside: Outside) -> Edited:
    await running(outside, activeDeadlineSeconds=60)
    await outside.change(activeDeadlineSeconds=None)
    await outside.after(300)
    return outside.phase(), ended(outside)


async def more_restarts(outside: Outside) -> Edited:
    outside.ray.outcomes[:] = ["FAILED", "FAILED"]
    outside.ray.run_seconds = 20
    await running(outside)
    await outside.change(failurePolicy={"maxRestarts": 2})
    await over(outside, seconds=900)
    return ended(outside), len(outside.ray.submissions), len(outside.creations())


async def suspended(outside: Outside) -> Edited:
    await running(outside)
    await outside.change(suspend=True)
    await outside.until(lambda: outside.phase() == "Suspended" and gone(outside))
    return ended(outside), outside.left()["pools"]


async def an_image_while_suspended(outside: Outside) -> Edited:
    await running(outside)
    await outside.change(suspend=True)
    await outside.until(lambda: outside.phase() == "Suspended" and gone(outside))
    await outside.change(image="example.com/ray:2.61.0", suspend=False)
    await outside.until(lambda: outside.phase() == "Running")
    return tuple(sorted({pod["spec"]["containers"][0]["image"] for pod in outside.kube.view(PODS)}))


async def capacity_deadline(outside: Outside) -> Edited:
    outside.gke.faults.add(Stockout())
    await outside.prepare()
    await outside.apply()
    await outside.until(lambda: "Stockout" in outside.said())
    began = now()
    await outside.change(capacityDeadlineSeconds=60)
    await over(outside)
    return ended(outside), now() - began < 90


async def start_deadline(outside: Outside) -> Edited:
    outside.kuberay.broken_images.add("example.com/nothing:1")
    await outside.prepare()
    await outside.apply(image="example.com/nothing:1")
    await outside.until(lambda: outside.phase() == "Starting")
    began = now()
    await outside.change(startDeadlineSeconds=60)
    await over(outside)
    return ended(outside), now() - began < 90


async def queue_deadline(outside: Outside) -> Edited:
    await outside.prepare(paused=True)
    await outside.apply()
    await outside.until(lambda: "paused" in outside.said())
    began = now()
    await outside.change(queueDeadlineSeconds=60)
    await over(outside)
    return ended(outside), now() - began < 90


async def log_retention(outside: Outside) -> Edited:
    await running(outside, logRetentionSeconds=3600)
    await outside.change(logRetentionSeconds=0)
    outside.ray.run_seconds = 0
    await over(outside, seconds=120)
    return ended(outside), outside.left()["rayClusters"]


async def time_to_live(outside: Outside) -> Edited:
    await running(outside)
    outside.ray.run_seconds = 0
    await over(outside)
    await outside.change(ttlSecondsAfterFinished=60)
    await outside.until(lambda: outside.job() is None, seconds=120)
    return (outside.job(),)


async def a_budget(outside: Outside) -> Edited:
    await running(outside)
    await outside.change(budget={"chipHours": 1})
    await over(outside, seconds=1000)
    return (ended(outside),)


async def priority_and_grace(outside: Outside) -> Edited:
    """For the next attempt: the pods of this one are what they are."""
    await running(outside)
    await outside.change(priorityClassName="research", stopGracePeriodSeconds=10)
    await outside.after(60)
    return outside.phase(), len(outside.ray.submissions)


SUCCEEDED = ("Complete", "Succeeded")
EDITS: dict[str, tuple[Live, Edited]] = {
    "a nearer activeDeadlineSeconds ends it": (active_deadline, (("Failed", "ActiveDeadlineExceeded"), True)),
    "without activeDeadlineSeconds it runs on": (active_deadline_taken_away, ("Running", ("", ""))),
    "a larger maxRestarts counts from the next failure": (more_restarts, (SUCCEEDED, 3, 1)),
    "suspend gives all back": (suspended, (("", ""), [])),
    "an image that was changed while suspended runs after it": (an_image_while_suspended, ("example.com/ray:2.61.0",)),
    "a nearer capacityDeadlineSeconds ends the wait": (
        capacity_deadline,
        (("Failed", "CapacityDeadlineExceeded"), True),
    ),
    "a nearer startDeadlineSeconds ends the start": (start_deadline, (("Failed", "StartDeadlineExceeded"), True)),
    "a nearer queueDeadlineSeconds ends the wait": (queue_deadline, (("Failed", "QueueDeadlineExceeded"), True)),
    "logRetentionSeconds is what it is at the end": (log_retention, (SUCCEEDED, [])),
    "ttlSecondsAfterFinished counts also when it comes after the end": (time_to_live, (None,)),
    "a budget counts what was used before it": (a_budget, (("Failed", "BudgetExhausted"),)),
    "priority and grace end nothing: they are the next attempt's": (priority_and_grace, ("Running", 1)),
}


@pytest.mark.parametrize(("live", "want"), EDITS.values(), ids=EDITS)
def test_edit(live: Live, want: Edited) -> None:
    async def inside() -> Edited:
        async with a_cluster(run_seconds=20_000.0) as outside:
            return await live(outside)

    assert in_virtual_time(inside()) == want
