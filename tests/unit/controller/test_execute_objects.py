"""Actions on the Kubernetes objects of an attempt."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from tests.doubles.kube import MemoryKube
from torchtpu_operator.clients.clock import SystemClock
from torchtpu_operator.clients.kinds import JOBS, PODS, RAY_CLUSTERS, SECRETS, Kind
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.caches import Caches
from torchtpu_operator.controller.executor import perform
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import NotActingError, Target, World
from torchtpu_operator.plan.actions import (
    CreateAuthSecret,
    CreateObject,
    DeleteRayCluster,
    DryRun,
    ForceDeletePod,
    ScaleWorkersToZero,
)
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Settings

TARGET = Target(key=Key("job", "ml", "a"), kind=JOBS, raw={"metadata": {"name": "a", "namespace": "ml", "uid": "u1"}})


class Rig:
    def __init__(self) -> None:
        self.kube, self.tokens = MemoryKube(), iter(["token-1", "token-2"])
        unused: Any = None
        self.world = World(
            kube=self.kube,
            gke=unused,
            ray=unused,
            heads=RayHeads(self.kube),
            caches=Caches(wake=lambda _: None),
            clock=SystemClock(),
            settings=Settings(installation="i", namespace="n", gke_parent="p"),
            new_token=lambda: next(self.tokens),
        )

    async def do(self, *actions: Any) -> list[Any]:
        outcomes = await perform(self.world, TARGET, actions)
        return [outcome.failure if isinstance(outcome, CallFailed) else "ok" for outcome in outcomes]

    async def a_cluster(self) -> str:
        groups = [
            {"groupName": "s0", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "numOfHosts": 4},
            {"groupName": "s1", "replicas": 0, "minReplicas": 0, "maxReplicas": 1, "numOfHosts": 4},
        ]
        manifest = {"metadata": {"name": "c", "namespace": "ml"}, "spec": {"workerGroupSpecs": groups}}
        made = await self.kube.create(RAY_CLUSTERS, manifest)
        return str(made["metadata"]["uid"])

    def groups(self) -> list[tuple[Any, ...]]:
        cluster = self.kube.peek(RAY_CLUSTERS, "c", namespace="ml") or {"spec": {"workerGroupSpecs": []}}
        return [
            (group["replicas"], group["minReplicas"], group["maxReplicas"], group["numOfHosts"])
            for group in cluster["spec"]["workerGroupSpecs"]
        ]

    def writes(self) -> list[str]:
        return [verb for verb, _, _ in self.kube.calls if verb not in ("get", "list")]


def owned(kind: Kind, name: str, uid: str = "u1") -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": "ml", "ownerReferences": [{"uid": uid}]},
    }


async def test_a_token_is_made_once_and_the_first_one_stays() -> None:
    rig = Rig()
    action = CreateAuthSecret(manifest=owned(SECRETS, "c-auth"), key="auth_token")
    answers = await rig.do(action, action)
    secret = rig.kube.peek(SECRETS, "c-auth", namespace="ml")
    assert secret is not None
    assert (answers, base64.b64decode(secret["data"]["auth_token"])) == (["ok", "ok"], b"token-1")


async def test_a_strangers_object_of_that_name_is_a_conflict_and_ends_the_pass() -> None:
    rig = Rig()
    await rig.kube.create(SECRETS, owned(SECRETS, "c-auth", uid="another"))
    answers = await rig.do(
        CreateAuthSecret(manifest=owned(SECRETS, "c-auth"), key="auth_token"),
        CreateObject(manifest=owned(RAY_CLUSTERS, "c")),
    )
    assert (answers, rig.kube.peek(RAY_CLUSTERS, "c", namespace="ml")) == ([FailureClass.CONFLICT], None)


async def test_an_object_of_ours_that_is_being_deleted_is_not_adopted() -> None:
    rig = Rig()
    manifest = owned(RAY_CLUSTERS, "c")
    made = await rig.kube.create(RAY_CLUSTERS, {**manifest, "metadata": {**manifest["metadata"], "finalizers": ["x"]}})
    await rig.kube.delete(RAY_CLUSTERS, "c", uid=made["metadata"]["uid"], namespace="ml")
    assert await rig.do(CreateObject(manifest=manifest)) == [FailureClass.CONFLICT]


async def test_worker_groups_go_to_zero_in_one_write_and_a_second_time_in_none() -> None:
    rig = Rig()
    uid = await rig.a_cluster()
    action = ScaleWorkersToZero(name="c", uid=uid)
    answers = await rig.do(action, action)
    assert (answers, rig.groups(), rig.writes()) == (
        ["ok", "ok"],
        [(0, 0, 1, 4), (0, 0, 1, 4)],
        ["create", "merge"],
    )


async def test_a_cluster_that_changed_between_read_and_write_is_read_again_later() -> None:
    rig = Rig()
    uid = await rig.a_cluster()

    def somebody_else(verb: str, kind: Kind, name: str) -> None:
        if verb == "merge":
            rig.kube.before = None
            rig.kube.put_status(RAY_CLUSTERS, "c", {"state": "ready"}, namespace="ml")

    rig.kube.before = somebody_else
    action = ScaleWorkersToZero(name="c", uid=uid)
    assert [await rig.do(action), await rig.do(action)] == [[FailureClass.CONFLICT], ["ok"]]


GONE = {
    "scaled": ScaleWorkersToZero(name="c", uid="another"),
    "deleted": DeleteRayCluster(name="x", uid="another"),
    "pod deleted": ForceDeletePod(name="x", uid="another"),
}


@pytest.mark.parametrize("action", GONE.values(), ids=GONE)
async def test_what_is_gone_or_another_is_left_alone(action: Any) -> None:
    rig = Rig()
    await rig.a_cluster()
    assert (await rig.do(action), rig.groups()[0][0]) == (["ok"], 1)


async def test_a_namesake_that_came_later_is_not_deleted() -> None:
    rig = Rig()
    await rig.a_cluster()
    answers = await rig.do(DeleteRayCluster(name="c", uid="another"))
    assert (answers, len(rig.groups())) == ([FailureClass.CONFLICT], 2)


async def test_a_dry_run_makes_nothing_and_what_is_there_has_passed() -> None:
    rig = Rig()
    await rig.a_cluster()
    manifests = (owned(RAY_CLUSTERS, "c"), owned(PODS, "head"), owned(PODS, "worker"))
    assert (await rig.do(DryRun(manifests=manifests)), rig.kube.all(PODS)) == (["ok"], [])


async def test_the_first_failure_ends_the_pass_with_its_words() -> None:
    rig = Rig()
    uid = await rig.a_cluster()

    def refuse(verb: str, kind: Kind, name: str) -> None:
        if kind == SECRETS:
            raise KubeError("secrets is forbidden", call="POST secrets", status=403)

    rig.kube.before = refuse
    outcomes = await perform(
        rig.world,
        TARGET,
        [
            ScaleWorkersToZero(name="c", uid=uid),
            CreateAuthSecret(manifest=owned(SECRETS, "c-auth"), key="auth_token"),
            DeleteRayCluster(name="c", uid=uid),
        ],
    )
    failed = CallFailed(call="POST secrets", failure=FailureClass.PERMISSION, message="secrets is forbidden")
    assert (len(outcomes), outcomes[-1], len(rig.groups())) == (2, failed, 2)


async def test_a_replica_without_its_lease_changes_nothing() -> None:
    rig = Rig()
    uid = await rig.a_cluster()
    over = replace(rig.world, acts=lambda: False)
    with pytest.raises(NotActingError):
        await perform(over, TARGET, [ScaleWorkersToZero(name="c", uid=uid)])
    assert rig.writes() == ["create"]
