"""The operator dies before and after every write that it makes, and begins again with an empty memory.

Reads are not enumerated: a death around one differs from a death after the write before it in time alone.
"""

import pytest

from tests.sim.rig import Outside, a_cluster, in_virtual_time
from tests.sim.rig_calls import Side

SIDES: tuple[Side, ...] = ("before", "after")


def gone(outside: Outside) -> bool:
    return not any(outside.left().values())


async def a_life(die_at: tuple[int, Side] | None, *, down_seconds: float = 3.0) -> tuple[list[str], dict[str, object]]:
    """The writes of the run until all is over, and what it came to."""
    async with a_cluster(down_seconds=down_seconds, run_seconds=8.0) as outside:
        outside.calls.die_at = die_at
        await outside.prepare()
        await outside.apply()
        await outside.until(lambda: outside.phase() == "Succeeded" and gone(outside))
        status = (outside.job() or {})["status"]
        return outside.calls.made, {
            "died": die_at is None or outside.deaths == 1,
            "submissions": len(outside.ray.submissions),
            "attempts": status["attempt"]["number"],
            "pools asked for": len(outside.creations()),
            "broken promises": outside.overlaps,
            "chip-seconds": 0 < status["usage"]["chipSeconds"] < 60 * 8,
        }


GOOD = {
    "died": True,
    "submissions": 1,
    "attempts": 1,
    "pools asked for": 1,
    "broken promises": [],
    "chip-seconds": True,
}


@pytest.mark.parametrize("side", SIDES)
def test_a_death_around_every_write_of_a_job_changes_nothing(side: Side) -> None:
    writes, _ = in_virtual_time(a_life(None))
    assert len(writes) > 30
    bad: dict[str, object] = {}
    for number, call in enumerate(writes):
        try:
            _, found = in_virtual_time(a_life((number, side)))
        except Exception as error:  # noqa: BLE001 - every point is tried, and all that fail are shown together
            found = {"error": str(error)[:1500]}
        if found != GOOD:
            bad[f"{side} write {number} ({call})"] = found
    assert bad == {}


async def a_deletion(at_write: int) -> tuple[int, dict[str, object]]:
    """The job is deleted right after the operator's write number `at_write`."""
    async with a_cluster(run_seconds=8.0) as outside:
        await outside.prepare()
        await outside.apply()
        await outside.until(lambda: len(outside.calls.made) >= at_write or outside.phase() == "Succeeded", step=0.02)
        await outside.delete()
        await outside.until(lambda: outside.job() is None and gone(outside))
        return len(outside.calls.made), {"submissions": len(outside.ray.submissions) <= 1, "broken": outside.overlaps}


def test_a_deletion_at_every_step_ends_clean() -> None:
    writes, _ = in_virtual_time(a_life(None))
    bad: dict[str, object] = {}
    for number, call in enumerate(writes, start=1):
        try:
            _, found = in_virtual_time(a_deletion(number))
        except Exception as error:  # noqa: BLE001 - every step is tried, and all that fail are shown together
            found = {"error": str(error)[:1500]}
        if found != {"submissions": True, "broken": []}:
            bad[f"after write {number} ({call})"] = found
    assert bad == {}
