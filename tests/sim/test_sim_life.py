"""Whole lives of jobs in virtual time."""

from tests.sim.rig import Outside, a_cluster, in_virtual_time, now

NOTHING: dict[str, list[str]] = {"pools": [], "slices": [], "nodes": [], "rayClusters": [], "pods": []}


def gone(outside: Outside) -> bool:
    return outside.left() == NOTHING


def test_a_job_runs_once_and_leaves_nothing() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Succeeded" and gone(outside))
            return outside.phases, len(outside.ray.submissions), outside.creations(), outside.overlaps, now() < 90

    phases, submissions, creations, overlaps, soon = in_virtual_time(live())
    assert (phases, submissions, len(creations), overlaps, soon) == (
        ["Pending", "Provisioning", "Starting", "Running", "Finishing", "Succeeded"],
        1,
        1,
        [],
        True,
    )
