"""Calls that time out and take effect later, and watches that are behind."""

from collections.abc import Callable
from typing import Any

from tests.sim.rig import Outside, a_cluster, in_virtual_time

LATE = (
    "gke.create_node_pool",
    "gke.delete_node_pool",
    "ray.submit",
    "tpuslices kube.create",
    "tpuslices kube.merge",
    "tpuslices kube.delete",
    "tpuslices kube.apply",
    "torchtpujobs kube.merge",
    "torchtpujobs kube.apply",
    "configmaps kube.create",
    "secrets kube.create",
    "rayclusters kube.create",
    "rayclusters kube.delete",
)
GOOD: dict[str, Any] = {"phase": "Succeeded", "attempts": 1, "submissions": 1, "pools": 1, "left": [], "broken": []}


def gone(outside: Outside) -> bool:
    return not any(outside.left().values())


def a_life(prepare: Callable[[Outside], None], **options: Any) -> dict[str, Any]:
    async def live() -> dict[str, Any]:
        async with a_cluster(run_seconds=8.0, **options) as outside:
            prepare(outside)
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() in ("Succeeded", "Failed") and gone(outside))
            await outside.after(200)  # whatever is still on its way arrives
            return {
                "phase": outside.phase(),
                "attempts": (outside.job() or {})["status"]["attempt"]["number"],
                "submissions": len(outside.ray.submissions),
                "pools": len(outside.creations()),
                "left": [name for names in outside.left().values() for name in names],
                "broken": outside.overlaps,
            }

    return in_virtual_time(live())


def delay(call: str, *, seconds: float) -> Callable[[Outside], None]:
    return lambda outside: outside.calls.late.update({call: seconds})


def test_a_call_that_times_out_and_happens_a_second_later_happens_once() -> None:
    found = {call: a_life(delay(call, seconds=1.0)) for call in LATE}
    assert found == dict.fromkeys(LATE, GOOD)


def test_a_call_that_happens_after_it_was_repeated_happens_once() -> None:
    """The repeated call carries the same name, so that the late one finds the place taken."""
    calls = ("gke.create_node_pool", "gke.delete_node_pool", "ray.submit", "tpuslices kube.create")
    found = {call: a_life(delay(call, seconds=7.0)) for call in calls}
    assert found == dict.fromkeys(calls, GOOD)


def test_a_job_that_is_deleted_while_a_call_is_still_on_its_way_leaves_nothing() -> None:
    async def live(call: str, seconds: float) -> dict[str, Any]:
        async with a_cluster(run_seconds=8.0) as outside:
            outside.calls.late[call] = seconds
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: call not in outside.calls.late, step=0.02)
            await outside.delete()
            await outside.until(lambda: outside.job() is None)
            await outside.after(400)
            return outside.left()

    calls = ("gke.create_node_pool", "tpuslices kube.create", "rayclusters kube.create", "ray.submit")
    found = {(call, seconds): in_virtual_time(live(call, seconds)) for call in calls for seconds in (1.0, 40.0)}
    nothing: dict[str, list[str]] = {"pools": [], "slices": [], "nodes": [], "rayClusters": [], "pods": []}
    assert found == dict.fromkeys(found, nothing)


def test_watches_that_are_seconds_behind_change_nothing() -> None:
    found = {seconds: a_life(lambda _: None, watch_seconds=seconds) for seconds in (0.5, 2.0, 10.0)}
    assert found == dict.fromkeys(found, GOOD)
