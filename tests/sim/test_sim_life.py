"""Whole lives of jobs in virtual time."""

from tests.sim.rig import Outside, a_cluster, in_virtual_time, now

NOTHING: dict[str, list[str]] = {"pools": [], "slices": [], "nodes": [], "rayClusters": [], "pods": []}


def gone(outside: Outside) -> bool:
    return outside.left() == NOTHING


def test_a_job_runs_once_and_leaves_nothing() -> None:
    async def live() -> tuple[list[str], int, list[str], list[str], bool]:
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


def test_a_job_costs_few_writes_and_none_once_it_is_over() -> None:
    async def live() -> tuple[int, int]:
        async with a_cluster() as outside:
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Succeeded" and gone(outside))
            writes = len(outside.calls.made)
            await outside.after(3600)
            return writes, len(outside.calls.made) - writes

    writes, later = in_virtual_time(live())
    assert (writes < 50, later) == (True, 0)


def test_a_running_job_is_watched_without_writes() -> None:
    async def live() -> int:
        async with a_cluster(run_seconds=2000.0) as outside:
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Running")
            await outside.after(10)
            writes = len(outside.calls.made)
            await outside.after(600)
            return len(outside.calls.made) - writes

    assert in_virtual_time(live()) == 0


def test_an_ended_job_is_deleted_at_its_time() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare()
            await outside.apply(ttlSecondsAfterFinished=900, logRetentionSeconds=3600)
            await outside.until(lambda: outside.phase() == "Succeeded", seconds=600)
            ended = now()
            await outside.until(lambda: outside.job() is None, seconds=1800)
            return round((now() - ended) / 900, 1), outside.left()

    assert in_virtual_time(live()) == (1.0, NOTHING)
