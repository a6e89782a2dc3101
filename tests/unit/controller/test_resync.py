"""The net under the watches, in virtual time."""

import asyncio
from typing import Any

import pytest

from tests.doubles.kube import MemoryKube
from torchtpu_operator.clients.kinds import JOBS, PRIORITY_CLASSES, RAY_CLUSTERS
from torchtpu_operator.controller.caches import ALLOCATION, Caches
from torchtpu_operator.controller.resync import Resync
from torchtpu_operator.controller.workqueue import Key, WorkQueue

pytestmark = pytest.mark.looptime

A = Key("job", "ml", "a")


def job(name: str) -> dict[str, Any]:
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"accelerator": "v6e", "topology": "4x4", "entrypoint": "x", "image": "i"},
    }


class Rig:
    def __init__(self) -> None:
        self.kube, self.runs, self.missed = MemoryKube(), list[Key](), list[tuple[str, int]]()
        self.queue = WorkQueue(jitter=lambda: 0.5)
        self.caches = Caches(wake=self.queue.add)
        self.resync = Resync(
            self.kube,
            self.caches,
            self.queue,
            every=300,
            monotonic=asyncio.get_running_loop().time,
            missed=lambda kind, count: self.missed.append((kind, count)),
        )

    def watch(self) -> None:
        self.kube.watch(
            JOBS, lambda event, obj: (self.caches.jobs.forget if event == "DELETED" else self.caches.jobs.remember)(obj)
        )

    async def drain(self, seconds: float) -> list[Key]:
        """What the queue runs meanwhile."""

        async def note(key: Key) -> None:
            self.runs.append(key)

        task = asyncio.create_task(self.queue.work(note))
        await asyncio.sleep(seconds)
        task.cancel()
        runs, self.runs = self.runs, []
        return sorted(set(runs))


async def test_the_first_lists_fill_the_caches_and_wake_everything() -> None:
    rig = Rig()
    await rig.kube.create(JOBS, job("a"))
    await rig.resync.fill()
    assert (len(rig.caches.jobs), rig.caches.kuberay, await rig.drain(1)) == (1, True, [ALLOCATION, A])


async def test_what_vanished_while_the_watch_was_broken_is_dropped_and_its_key_runs() -> None:
    rig = Rig()
    made = await rig.kube.create(JOBS, job("a"))
    await rig.resync.fill()
    await rig.drain(1)
    await rig.kube.delete(JOBS, "a", uid=made["metadata"]["uid"], namespace="ml")
    await rig.resync.look()
    got = (len(rig.caches.jobs), await rig.drain(1), rig.missed)
    assert got == (0, [ALLOCATION, A], [("torchtpujobs", 1)])


async def test_a_job_that_appears_during_the_list_survives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    await rig.resync.fill()
    rig.watch()
    listed = rig.kube.list

    async def slow_list(kind: Any, **options: Any) -> Any:
        answer = await listed(kind, **options)
        if kind == JOBS:
            await rig.kube.create(JOBS, job("late"))
        return answer

    monkeypatch.setattr(rig.kube, "list", slow_list)
    await rig.resync.look()
    assert [known.raw["metadata"]["name"] for known in rig.caches.jobs] == ["late"]


async def test_a_pass_looks_at_every_object_again_spread_over_time() -> None:
    rig = Rig()
    for number in range(20):
        await rig.kube.create(JOBS, job(f"job-{number}"))
    await rig.resync.fill()
    await rig.drain(1)
    await rig.resync.look()
    soon, later = await rig.drain(6), await rig.drain(60)
    assert (0 < len(soon) < 20, len({*soon, *later})) == (True, 21)


async def test_a_watch_that_stays_silent_makes_the_process_unhealthy() -> None:
    rig = Rig()
    await rig.resync.fill()
    problems = []
    for number in range(3):
        problems.append(rig.resync.problem)
        await rig.kube.create(JOBS, job(f"job-{number}"))
        await rig.resync.look()
    problems.append(rig.resync.problem)
    assert problems == ["", "", "", "the watch of torchtpujobs is silent"]


async def test_a_watch_that_is_only_a_moment_behind_is_not_silent() -> None:
    rig = Rig()
    await rig.resync.fill()
    rig.watch()
    for number in range(5):
        rig.kube.held_back = True
        await rig.kube.create(JOBS, job(f"job-{number}"))
        asyncio.get_running_loop().call_later(1, rig.kube.release)
        await rig.resync.look()
    assert (rig.resync.problem, rig.missed) == ("", [])


async def test_lists_that_never_succeed_make_the_process_unhealthy() -> None:
    rig = Rig()
    await rig.resync.fill()
    await asyncio.sleep(901)
    assert rig.resync.problem == "nothing was listed for 901 s"


async def test_kuberay_that_is_installed_later_wakes_the_jobs() -> None:
    rig = Rig()
    rig.kube.kuberay = False
    await rig.kube.create(JOBS, job("a"))
    await rig.resync.fill()
    before = rig.caches.kuberay
    await rig.drain(1)
    watching = asyncio.create_task(rig.resync.watch_kuberay())
    rig.kube.kuberay = True
    runs = await rig.drain(6)
    watching.cancel()
    assert (before, rig.caches.kuberay, runs) == (False, True, [A])


async def test_kinds_that_are_only_ranked_or_watched_have_their_place() -> None:
    rig = Rig()
    await rig.kube.create(
        PRIORITY_CLASSES,
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
    )
    await rig.resync.fill()
    with pytest.raises(KeyError):
        rig.caches.of(RAY_CLUSTERS)
    assert dict(rig.caches.priorities) == {"high": 1000}
