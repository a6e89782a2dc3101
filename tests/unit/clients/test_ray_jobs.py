"""The Ray client against heads that answer as Ray 2.60 does."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.doubles.ray_head import Head, RayServer, ray_node, ray_server
from torchtpu_operator.clients.ray_jobs import HttpRayJobs, RayHead, RayJob, RayVersion, build_session
from torchtpu_operator.plan.observed import CallFailed, FailureClass, RayJobSeen, RayNodeSeen

HEAD = RayHead(namespace="ml", service="h-head-svc", token="secret-token")
ID = "uid-1"


@pytest.fixture
async def server() -> AsyncIterator[RayServer]:
    async with ray_server() as server:
        server.heads["h-head-svc"] = Head(token="secret-token")
        yield server


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with build_session() as session:
        yield session


@pytest.fixture
def head(server: RayServer) -> Head:
    return server.heads["h-head-svc"]


@pytest.fixture
def ray(server: RayServer, session: aiohttp.ClientSession) -> HttpRayJobs:
    return HttpRayJobs(session, base_url=server.base_url)


async def submit(ray: HttpRayJobs, **changes: Any) -> CallFailed | None:
    arguments: dict[str, Any] = {"submission_id": ID, "entrypoint": "x", "metadata": {"job": "a"}, "runtime_env": {}}
    return await ray.submit(HEAD, **(arguments | changes))


async def test_version_and_nodes(ray: HttpRayJobs, head: Head) -> None:
    head.nodes = [
        ray_node("s", 1, chips=4, pod_type="v6e-16", topology="4x4"),
        {"node_id": "head", "node_ip": "10.0.0.9", "state": "DEAD", "labels": {}, "resources_total": {}},
    ]
    want = (
        RayVersion(ray="2.60.0", session_name="session_1"),
        (
            RayNodeSeen(
                node_id="s-1",
                alive=True,
                ip="10.0.0.2",
                tpus=4.0,
                slice_name="s",
                worker_id="1",
                pod_type="v6e-16",
                topology="4x4",
            ),
            RayNodeSeen(node_id="head", alive=False, ip="10.0.0.9", tpus=0.0),
        ),
    )
    assert (await ray.version(HEAD), await ray.nodes(HEAD)) == want


async def test_a_submission_is_accepted_and_seen(ray: HttpRayJobs, head: Head) -> None:
    answer = await submit(ray)
    want = RayJob(seen=RayJobSeen(submission_id=ID, status="PENDING"), metadata={"job": "a"})
    assert (answer, await ray.job(HEAD, ID), len(head.submissions)) == (None, want, 1)


async def test_a_second_submission_of_one_id_counts_as_accepted_and_runs_nothing(ray: HttpRayJobs, head: Head) -> None:
    await submit(ray)
    assert (await submit(ray), len(head.submissions)) == (None, 1)


async def test_a_submission_whose_answer_is_lost_is_a_failure_that_may_have_taken_effect(
    ray: HttpRayJobs, head: Head
) -> None:
    head.lose_submit_answer = True
    answer = await submit(ray)
    assert isinstance(answer, CallFailed)
    assert (answer.failure, (await ray.job(HEAD, ID)) is None) == (FailureClass.TRANSIENT, False)


async def test_an_unknown_job_is_none_and_stopping_it_is_no_error(ray: HttpRayJobs) -> None:
    assert (await ray.job(HEAD, "nope"), await ray.stop(HEAD, "nope")) == (None, None)


async def test_a_failed_jobs_message_carries_the_runners_result(ray: HttpRayJobs, head: Head) -> None:
    await submit(ray)
    line = 'TORCHTPU_RESULT {"reason": "RankFailed", "exitCode": 3, "rank": 7}'
    head.finish(ID, "FAILED", message="x" * 19_000 + "\n" + line, driver_exit_code=3, error_type="JOB_X")
    job = await ray.job(HEAD, ID)
    assert isinstance(job, RayJob)
    seen = (job.seen.status, job.seen.exit_code, job.seen.error_type, job.seen.result, len(job.seen.message))
    assert seen == ("FAILED", 3, "JOB_X", {"reason": "RankFailed", "exitCode": 3, "rank": 7}, 1024)


LINES = {
    "of the rank that failed": ('boom\nTORCHTPU_RESULT {"reason": "RankFailed", "lastLines": ["a", "b"]}', ("a", "b")),
    "of a driver, without colours": ("\x1b[36m(W pid=1)\x1b[0m up\nValueError: x\n", ("(W pid=1) up", "ValueError: x")),
    "of one that said nothing": ("", ()),
    "the last forty of many, each of bounded length": (
        "\n".join(["y" * 5000] * 60),
        (*["y" * 679 + " ... " + "y" * 340] * 40,),
    ),
}


@pytest.mark.parametrize(("output", "lines"), LINES.values(), ids=LINES)
async def test_the_last_lines(ray: HttpRayJobs, head: Head, output: str, lines: tuple[str, ...]) -> None:
    """From Ray's message, whose first line is Ray's own, as from the log."""
    await submit(ray)
    head.finish(ID, "FAILED", message=f"Job entrypoint command failed with exit code 3, last available logs:\n{output}")
    job = await ray.job(HEAD, ID)
    assert isinstance(job, RayJob)
    assert (job.seen.last_lines, job.with_log(output).seen.last_lines) == (lines, lines)


async def test_the_log_is_its_end(ray: HttpRayJobs, head: Head) -> None:
    head.logs[ID] = "begin" + "x" * (2 * 1024 * 1024) + "end"
    log = await ray.log_tail(HEAD, ID)
    assert isinstance(log, str)
    assert (len(log), log[-3:]) == (1024 * 1024, "end")


async def test_the_token_is_sent_with_every_request_and_never_shown(ray: HttpRayJobs, head: Head) -> None:
    await ray.version(HEAD)
    await submit(ray)
    sent = {authorization for _, _, authorization in head.seen}
    assert (sent, "secret-token" in repr(HEAD)) == ({"Bearer secret-token"}, False)


REFUSALS = {
    "no token": (401, FailureClass.PERMISSION),
    "a wrong token": (403, FailureClass.PERMISSION),
    "a bad request": (400, FailureClass.INVALID),
    "no agent yet": (500, FailureClass.TRANSIENT),
    "a proxy in between": (502, FailureClass.TRANSIENT),
    "too many requests": (429, FailureClass.THROTTLED),
}


@pytest.mark.parametrize(("status", "failure"), REFUSALS.values(), ids=REFUSALS)
async def test_refusals(ray: HttpRayJobs, head: Head, status: int, failure: FailureClass) -> None:
    head.intercept = lambda _: web.Response(status=status, text="Traceback\n  File x\nRuntimeError: why\n")
    want = CallFailed(call="GET /api/version", failure=failure, message=f"HTTP {status}: RuntimeError: why")
    assert await ray.version(HEAD) == want


async def test_a_redirect_is_not_followed_with_the_token(ray: HttpRayJobs, server: RayServer, head: Head) -> None:
    server.heads["thief"] = Head()
    head.intercept = lambda _: web.Response(status=302, headers={"Location": "/thief/api/version"})
    answer = await ray.version(HEAD)
    assert isinstance(answer, CallFailed)
    assert (answer.failure, server.heads["thief"].seen) == (FailureClass.TRANSIENT, [])


async def test_text_that_is_no_json_is_unreadable_not_absent(ray: HttpRayJobs, head: Head) -> None:
    head.intercept = lambda _: web.Response(text="<html>")
    answer = await ray.job(HEAD, ID)
    assert isinstance(answer, CallFailed)
    assert answer.failure is FailureClass.TRANSIENT


async def test_a_head_that_is_not_there_is_no_answer(session: aiohttp.ClientSession) -> None:
    calls: list[tuple[str, str, str]] = []

    def seen(*, target: str, verb: str, code: str) -> None:
        calls.append((target, verb, code))

    ray = HttpRayJobs(session, base_url="http://127.0.0.1:1/{head_service}", seen=seen)
    answer = await ray.version(HEAD)
    assert isinstance(answer, CallFailed)
    assert (answer.failure, calls) == (FailureClass.TRANSIENT, [("ray", "version", "no-answer")])


async def test_a_head_that_hangs_is_left_alone_by_reads_but_not_by_stops(
    session: aiohttp.ClientSession, server: RayServer, head: Head
) -> None:
    ray = HttpRayJobs(session, base_url=server.base_url, read_seconds=0.05)
    head.hangs = True
    answers = [await ray.version(HEAD) for _ in range(5)]
    head.hangs = False
    await ray.stop(HEAD, ID)
    after = await ray.version(HEAD)
    kinds = {answer.failure for answer in answers if isinstance(answer, CallFailed)}
    paths = [path for _, path, _ in head.seen]
    assert (kinds, len(answers), paths, isinstance(after, RayVersion)) == (
        {FailureClass.TRANSIENT},
        5,
        ["/api/version", f"/api/jobs/{ID}/stop", "/api/version"],
        True,
    )
