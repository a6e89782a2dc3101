"""Half an hour of everything at once, by seed; then all is healed, and the promises must hold."""

import random
from collections import Counter
from typing import Any

import pytest

from sim.gke.errors import Code
from sim.gke.faults import Fault, LostAnswer, Refusal, Stockout
from tests.sim.rig import NAMESPACE, Outside, a_cluster, in_virtual_time, now
from torchtpu_operator.clients.kinds import JOBS, NODES, PODS, RAY_CLUSTERS, SLICES

SEEDS = (1, 2)
JOBS_PER_RUN = 5
CHAOS_SECONDS = 1200.0


class Chaos:
    """One mischief after the other."""

    def __init__(self, outside: Outside, seed: int) -> None:
        self._outside, self._rng = outside, random.Random(seed)
        self._mischief = [
            self.lose_a_host,
            self.evict_a_pod,
            self.delete_a_ray_cluster,
            self.delete_a_slice,
            self.toggle_suspend,
            self.delete_a_job,
            self.break_gke,
            self.heal_gke,
            self.heal_gke,
            self.kill_the_operator,
            self.kill_the_operator,
        ]
        self.done: Counter[str] = Counter()

    async def go_on(self, seconds: float) -> None:
        end = now() + seconds
        while now() < end:
            await self._outside.after(self._rng.uniform(2, 40))
            mischief = self._rng.choice(self._mischief)
            self.done[mischief.__name__] += 1
            await mischief()

    def _one(self, kind: Any) -> dict[str, Any] | None:
        found = self._outside.kube.all(kind)
        return self._rng.choice(found) if found else None

    async def lose_a_host(self) -> None:
        if (node := self._one(NODES)) is not None and node["metadata"]["name"] not in self._outside.host.dead:
            await self._outside.gke.lose_node(node["metadata"]["name"], keep_object=self._rng.random() < 0.7)

    async def evict_a_pod(self) -> None:
        await self._delete(PODS)

    async def delete_a_ray_cluster(self) -> None:
        await self._delete(RAY_CLUSTERS)

    async def delete_a_slice(self) -> None:
        await self._delete(SLICES)

    async def delete_a_job(self) -> None:
        if self._rng.random() < 0.3:
            await self._delete(JOBS)

    async def _delete(self, kind: Any) -> None:
        if (obj := self._one(kind)) is not None:
            meta = obj["metadata"]
            await self._outside.kube.delete(kind, meta["name"], uid=meta["uid"], namespace=meta.get("namespace"))

    async def toggle_suspend(self) -> None:
        if (job := self._one(JOBS)) is not None and not job["metadata"].get("deletionTimestamp"):
            suspend = not job["spec"].get("suspend", False)
            await self._outside.kube.merge(
                JOBS, job["metadata"]["name"], {"spec": {"suspend": suspend}}, namespace=NAMESPACE
            )

    async def break_gke(self) -> None:
        faults: list[Fault] = [
            Stockout(zone=self._rng.choice(["us-east5-a", "us-east5-b"])),
            Refusal(method=self._rng.choice(["*", "CreateNodePool", "GetNodePool", "DeleteNodePool"])),
            Refusal(method="CreateNodePool", code=Code.PERMISSION_DENIED, message="Required permission"),
            LostAnswer(times=2, method=self._rng.choice(["CreateNodePool", "DeleteNodePool"])),
        ]
        self._outside.gke.faults.add(self._rng.choice(faults))

    async def heal_gke(self) -> None:
        self._outside.gke.faults.clear()

    async def kill_the_operator(self) -> None:
        made = len(self._outside.calls.made)
        self._outside.calls.die_at = (made + self._rng.randrange(6), self._rng.choice(["before", "after"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_after_chaos_nothing_is_left_and_no_promise_was_broken(seed: int) -> None:
    async def live() -> dict[str, Any]:
        async with a_cluster(run_seconds=60.0) as outside:
            zones = ["us-east5-a", "us-east5-b"]
            outside.chip_limit = 32
            await outside.prepare(offers=[{"name": "od", "type": "OnDemand", "zones": zones}], limits={"chips": 32})
            for number in range(JOBS_PER_RUN):
                await outside.apply(
                    f"job-{number}",
                    numSlices=1 + number % 2,
                    logRetentionSeconds=60 * (number % 2),
                    failurePolicy={"maxDisruptions": 1000, "maxRestarts": 1000, "backoff": {"maxSeconds": 30}},
                    startDeadlineSeconds=100000,
                )
            chaos = Chaos(outside, seed)
            await chaos.go_on(CHAOS_SECONDS)
            outside.gke.faults.clear()
            outside.calls.die_at = None
            for job in outside.kube.all(JOBS):
                await outside.change(job["metadata"]["name"], suspend=False)
            await outside.until(
                lambda: (
                    all((each.get("status") or {}).get("phase") == "Succeeded" for each in outside.kube.all(JOBS))
                    and not any(outside.left().values())
                ),
                seconds=8000,
                step=5,
            )
            ids = Counter(outside.ray.submissions)
            return {
                "left": outside.left(),
                "broken": outside.overlaps,
                "sent twice into one session": [each for each, count in ids.items() if count > 1],
                "sent into two sessions": [
                    name for name, count in Counter(name for name, _ in ids).items() if count > 1
                ],
            }

    nothing: dict[str, list[str]] = {"pools": [], "slices": [], "nodes": [], "rayClusters": [], "pods": []}
    assert in_virtual_time(live()) == {
        "left": nothing,
        "broken": [],
        "sent twice into one session": [],
        "sent into two sessions": [],
    }
