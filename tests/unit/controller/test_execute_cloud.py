"""Submitting a Ray job: at most once, into the session that was recorded, whatever gets lost on the way."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from tests.doubles.kube import MemoryKube
from tests.doubles.ray_head import Head, RayServer, ray_server
from torchtpu_operator.clients.clock import SystemClock
from torchtpu_operator.clients.kinds import JOBS, RAY_CLUSTERS
from torchtpu_operator.clients.ray_jobs import HttpRayJobs, build_session
from torchtpu_operator.controller.caches import Caches
from torchtpu_operator.controller.executor import perform
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import Target, World
from torchtpu_operator.plan.actions import StopRayJob, SubmitRayJob
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Settings

SUBMIT = SubmitRayJob(
    ray_cluster="c",
    submission_id="u1-1",
    session_name="session_1",
    entrypoint="python -m runner",
    metadata={"torchtpu.dev/job-uid": "u1"},
    runtime_env={},
)
TARGET = Target(key=Key("job", "ml", "a"), kind=JOBS, raw={"metadata": {"name": "a", "namespace": "ml", "uid": "u1"}})


@dataclass
class Rig:
    world: World
    head: Head
    kube: MemoryKube

    async def do(self, action: Any = SUBMIT) -> Any:
        (outcome,) = await perform(self.world, TARGET, [action])
        return outcome.failure if isinstance(outcome, CallFailed) else "ok"


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    server: RayServer
    async with ray_server() as server, build_session() as session:
        head = server.heads["c-head-svc"] = Head()
        kube = MemoryKube()
        no_gke: Any = None
        await kube.create(RAY_CLUSTERS, {"metadata": {"name": "c", "namespace": "ml"}, "spec": {}})
        kube.put_status(RAY_CLUSTERS, "c", {"head": {"serviceName": "c-head-svc"}}, namespace="ml")
        world = World(
            kube=kube,
            gke=no_gke,
            ray=HttpRayJobs(session, base_url=server.base_url),
            heads=RayHeads(kube),
            caches=Caches(wake=lambda _: None),
            clock=SystemClock(),
            settings=Settings(installation="i", namespace="n", gke_parent="p"),
            new_token=lambda: "t",
        )
        yield Rig(world=world, head=head, kube=kube)


async def test_the_job_is_posted_once_however_often_it_is_asked(rig: Rig) -> None:
    answers = [await rig.do() for _ in range(3)]
    assert (answers, [each["submission_id"] for each in rig.head.submissions]) == (["ok"] * 3, ["u1-1"])


async def test_an_answer_that_was_lost_is_looked_up_at_once(rig: Rig) -> None:
    rig.head.lose_submit_answer = True
    assert (await rig.do(), len(rig.head.submissions)) == ("ok", 1)


async def test_a_post_that_never_arrived_is_an_open_failure(rig: Rig) -> None:
    def agent_missing(request: web.Request) -> web.Response | None:
        return web.Response(status=500, text="No available agent") if request.method == "POST" else None

    rig.head.intercept = agent_missing
    assert (await rig.do(), rig.head.submissions) == (FailureClass.TRANSIENT, [])


async def test_nothing_is_posted_into_another_session(rig: Rig) -> None:
    rig.head.session_name = "session_2"
    assert (await rig.do(), rig.head.submissions) == (FailureClass.CONFLICT, [])


async def test_a_job_of_that_id_that_is_over_is_taken_as_it_is(rig: Rig) -> None:
    await rig.do()
    rig.head.finish("u1-1", "FAILED")
    rig.head.session_name = "session_2"
    assert (await rig.do(), len(rig.head.submissions)) == ("ok", 1)


async def test_an_id_that_somebody_else_took_is_a_conflict(rig: Rig) -> None:
    rig.head.jobs["u1-1"] = {"status": "RUNNING", "metadata": {"torchtpu.dev/job-uid": "another"}}
    assert await rig.do() == FailureClass.CONFLICT


async def test_without_its_raycluster_nothing_is_submitted_and_nothing_left_to_stop(rig: Rig) -> None:
    cluster = rig.kube.peek(RAY_CLUSTERS, "c", namespace="ml")
    assert cluster is not None
    await rig.kube.delete(RAY_CLUSTERS, "c", uid=cluster["metadata"]["uid"], namespace="ml")
    stop = StopRayJob(ray_cluster="c", submission_id="u1-1")
    assert [await rig.do(), await rig.do(stop)] == [FailureClass.CONFLICT, "ok"]


async def test_a_stop_reaches_the_head(rig: Rig) -> None:
    rig.head.first_status = "RUNNING"
    await rig.do()
    await rig.do(StopRayJob(ray_cluster="c", submission_id="u1-1"))
    assert (rig.head.stopped, rig.head.jobs["u1-1"]["status"]) == (["u1-1"], "STOPPED")
