"""From a RayCluster to its head: address and token."""

import base64
from typing import Any

import pytest

from tests.doubles.kube import MemoryKube
from torchtpu_operator.clients.kinds import SECRETS
from torchtpu_operator.clients.ray_jobs import RayHead
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.plan.observed import CallFailed, FailureClass

FORBIDDEN = CallFailed(call="GET", failure=FailureClass.PERMISSION, message="HTTP 403")


def a_cluster(*, service: str = "c-head-svc", token: bool = True, **container: Any) -> dict[str, Any]:
    env = {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "c-auth", "key": "auth_token"}}}
    ray = {"name": "ray", "env": [env] if token else [], **container}
    return {
        "metadata": {"name": "c", "namespace": "ml", "uid": "u1"},
        "spec": {"headGroupSpec": {"template": {"spec": {"containers": [ray]}}}},
        "status": {"head": {"serviceName": service}} if service else {},
    }


async def put_token(kube: MemoryKube, token: str) -> None:
    if there := kube.peek(SECRETS, "c-auth", namespace="ml"):
        await kube.delete(SECRETS, "c-auth", uid=there["metadata"]["uid"], namespace="ml")
    data = {"auth_token": base64.b64encode(token.encode()).decode()}
    await kube.create(SECRETS, {"metadata": {"name": "c-auth", "namespace": "ml"}, "data": data})


async def the_head(heads: RayHeads, cluster: dict[str, Any]) -> RayHead | CallFailed:
    async def same(head: RayHead) -> RayHead | CallFailed:
        return head

    return await heads.ask(cluster, same)


async def test_address_from_status_token_from_the_secret_that_the_head_itself_reads() -> None:
    kube = MemoryKube()
    await put_token(kube, "t1")
    ports = [{"name": "gcs", "containerPort": 6379}, {"name": "dashboard", "containerPort": 9999}]
    want = RayHead(namespace="ml", service="c-head-svc", port=9999, token="t1")
    assert await the_head(RayHeads(kube), a_cluster(ports=ports)) == want


async def test_the_secret_is_read_once_while_the_token_is_good() -> None:
    kube = MemoryKube()
    await put_token(kube, "t1")
    heads = RayHeads(kube)
    kube.calls.clear()
    for _ in range(5):
        await the_head(heads, a_cluster())
    assert kube.calls == [("get", "secrets", "c-auth")]


async def test_a_refused_token_is_read_again_and_the_call_repeated_once() -> None:
    kube = MemoryKube()
    await put_token(kube, "old")
    heads = RayHeads(kube)
    await the_head(heads, a_cluster())
    await put_token(kube, "new")
    tried: list[str | None] = []

    async def call(head: RayHead) -> str | CallFailed:
        tried.append(head.token)
        return "hello" if head.token == "new" else FORBIDDEN

    assert (await heads.ask(a_cluster(), call), tried) == ("hello", ["old", "new"])


async def test_a_token_that_stays_refused_is_an_answer_and_no_loop() -> None:
    kube = MemoryKube()
    await put_token(kube, "t1")
    tried: list[str | None] = []

    async def call(head: RayHead) -> str | CallFailed:
        tried.append(head.token)
        return FORBIDDEN

    assert (await RayHeads(kube).ask(a_cluster(), call), tried) == (FORBIDDEN, ["t1"])


PROBLEMS = {
    "KubeRay has not made the service yet": (a_cluster(service=""), FailureClass.TRANSIENT),
    "a service name that is none cannot redirect the call": (
        a_cluster(service="evil.example.com/x?"),
        FailureClass.TRANSIENT,
    ),
    "the Secret is gone": (a_cluster(), FailureClass.NOT_FOUND),
}


@pytest.mark.parametrize(("cluster", "failure"), PROBLEMS.values(), ids=PROBLEMS)
async def test_no_head_without_address_and_token(cluster: dict[str, Any], failure: FailureClass) -> None:
    answer = await the_head(RayHeads(MemoryKube()), cluster)
    assert isinstance(answer, CallFailed)
    assert answer.failure is failure


async def test_a_cluster_without_authentication_is_asked_without_a_token() -> None:
    want = RayHead(namespace="ml", service="c-head-svc", port=8265, token=None)
    assert await the_head(RayHeads(MemoryKube()), a_cluster(token=False)) == want
