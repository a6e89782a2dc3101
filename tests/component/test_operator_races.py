"""Deciding writes on a real kube-apiserver: whoever planned from an older version loses, and is told so."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient

from sim.control_plane import ApiServer
from tests.doubles.cluster_rig import Api, install_crds, until_served
from torchtpu_operator.clients.clock import SystemClock
from torchtpu_operator.clients.kinds import CLASSES, CONFIG_MAPS, JOBS, NODES, SLICES
from torchtpu_operator.clients.kube_config import load_configuration
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.caches import ALLOCATION, Caches
from torchtpu_operator.controller.executor import perform
from torchtpu_operator.controller.ray_heads import RayHeads
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import Target, World
from torchtpu_operator.plan.actions import (
    AddFinalizer,
    ClaimSlice,
    CreateObject,
    CreateSlice,
    DeleteSlice,
    DryRun,
    JobRef,
    ReleaseSlice,
    RemoveFinalizer,
)
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Outcome, Settings

pytestmark = pytest.mark.timeout(120)

NAMESPACE = "races"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
async def api(api_server: ApiServer) -> AsyncIterator[Api]:
    install_crds(api_server)
    names = api_server.kubectl("get", "namespace", "-o", "name").split()
    if f"namespace/{NAMESPACE}" not in names:
        api_server.create_namespace(NAMESPACE)
    configuration = await load_configuration(kubeconfig=str(api_server.kubeconfig))
    async with ApiClient(configuration) as client:
        api = Api(client)
        await until_served(api, JOBS, SLICES, CLASSES)
        yield api
        for kind in (SLICES, JOBS):
            for obj in await api.list(kind):
                meta = obj["metadata"]
                await api.merge(kind, meta["name"], {"metadata": {"finalizers": None}}, namespace=meta.get("namespace"))
                await api.delete(kind, meta["name"], uid=meta["uid"], namespace=meta.get("namespace"))


@pytest.fixture
def world(api: Api) -> World:
    return a_world(api)


def a_world(api: Api) -> World:
    unused: Any = None
    return World(
        kube=api,
        gke=unused,
        ray=unused,
        heads=RayHeads(api),
        caches=Caches(wake=lambda _: None),
        clock=SystemClock(),
        settings=Settings(
            installation="i", namespace="torchtpu-system", gke_parent="projects/p/locations/l/clusters/c"
        ),
        new_token=lambda: "token",
    )


async def a_job(api: Api, name: str, *, slices: int = 1, sequence: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """A job that asks for slices."""
    await api.create(
        JOBS,
        {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.name,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"accelerator": "v6e", "topology": "4x4", "entrypoint": "x", "image": "i"},
        },
    )
    demand = {"slices": slices, "sequence": list(sequence)}
    await api.put_status(JOBS, name, {"observedGeneration": 1, "demand": demand}, NAMESPACE)
    job = await api.get(JOBS, name, namespace=NAMESPACE)
    assert job is not None
    return job


def ref(job: dict[str, Any], **changes: Any) -> JobRef:
    meta = job["metadata"]
    return JobRef(**({"namespace": NAMESPACE, "name": meta["name"], "uid": meta["uid"]} | changes))


def claim(job: dict[str, Any], *, sequence: int = 0) -> dict[str, Any]:
    meta = job["metadata"]
    return {
        "namespace": NAMESPACE,
        "name": meta["name"],
        "uid": meta["uid"],
        "sliceIndex": 0,
        "sequence": sequence,
        "claimedAt": "2026-11-30T12:00:00Z",
    }


def slice_manifest(name: str, *, claim_ref: dict[str, Any] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "sliceClassName": "default",
        "accelerator": "v6e",
        "topology": "4x4",
        "offer": {"name": "od", "type": "OnDemand", "zone": "us-east5-b"},
        "nodePool": {"name": name},
    }
    if claim_ref:
        spec["claimRef"] = claim_ref
    return {"apiVersion": SLICES.api_version, "kind": SLICES.name, "metadata": {"name": name}, "spec": spec}


async def do(world: World, *actions: Any, target: Target | None = None) -> list[Any]:
    """What each action came to: its class of failure, or ok."""
    outcomes = await perform(world, target or Target(key=ALLOCATION, raw={}), actions)
    return [verdict(outcome) for outcome in outcomes]


def verdict(outcome: Outcome) -> Any:
    return outcome.failure if isinstance(outcome, CallFailed) else "ok"


async def test_of_two_claims_from_one_version_the_second_loses_and_its_cache_learns_who_won(
    api: Api, world: World
) -> None:
    first, second = await a_job(api, "first"), await a_job(api, "second")
    made = await api.create(SLICES, slice_manifest("warm"))
    world.caches.slices.remember(made)
    version = made["metadata"]["resourceVersion"]
    other = a_world(api)
    won = await do(
        other, ClaimSlice(name="warm", resource_version=version, claim_ref=claim(first), claimant=ref(first))
    )
    lost = await do(
        world, ClaimSlice(name="warm", resource_version=version, claim_ref=claim(second), claimant=ref(second))
    )
    held_by = world.caches.slices.by("claimant", first["metadata"]["uid"])
    assert (won, lost, len(held_by)) == (["ok"], [FailureClass.CONFLICT], 1)


async def test_of_many_claims_at_the_same_moment_one_wins(api: Api) -> None:
    jobs = [await a_job(api, f"job-{number}") for number in range(6)]
    made = await api.create(SLICES, slice_manifest("wanted"))
    version = made["metadata"]["resourceVersion"]
    answers = await asyncio.gather(
        *(
            do(
                a_world(api),
                ClaimSlice(name="wanted", resource_version=version, claim_ref=claim(job), claimant=ref(job)),
            )
            for job in jobs
        )
    )
    assert sorted(map(str, answers)) == sorted(map(str, [["ok"], *([[FailureClass.CONFLICT]] * 5)]))


async def test_a_slice_that_was_claimed_a_moment_ago_is_not_deleted(api: Api, world: World) -> None:
    job = await a_job(api, "claims")
    made = await api.create(SLICES, slice_manifest("idle"))
    planned = made["metadata"]
    await do(
        world,
        ClaimSlice(name="idle", resource_version=planned["resourceVersion"], claim_ref=claim(job), claimant=ref(job)),
    )
    deletion = DeleteSlice(
        name="idle", uid=planned["uid"], resource_version=planned["resourceVersion"], why="idle too long"
    )
    answer = await do(world, deletion)
    live = await api.get(SLICES, "idle")
    assert (answer, live and live["metadata"].get("deletionTimestamp")) == ([FailureClass.CONFLICT], None)


async def test_a_slice_that_terminates_is_not_claimed(api: Api, world: World) -> None:
    job = await a_job(api, "late")
    made = await api.create(SLICES, slice_manifest("leaving"))
    made = await api.merge(SLICES, "leaving", {"metadata": {"finalizers": ["torchtpu.dev/cleanup"]}})
    planned = made["metadata"]
    await do(
        world, DeleteSlice(name="leaving", uid=planned["uid"], resource_version=planned["resourceVersion"], why="")
    )
    answer = await do(
        world,
        ClaimSlice(
            name="leaving", resource_version=planned["resourceVersion"], claim_ref=claim(job), claimant=ref(job)
        ),
    )
    known = world.caches.slices.get("leaving")
    assert (answer, known and known.model.metadata.deleting) == ([FailureClass.CONFLICT], True)


DEMANDS = {
    "the job asks for nothing any more": {"slices": 0},
    "the job has given that slice up since": {"sequence": (1,)},
}


@pytest.mark.parametrize("demand", DEMANDS.values(), ids=DEMANDS)
async def test_nothing_is_granted_without_demand(api: Api, world: World, demand: dict[str, Any]) -> None:
    job = await a_job(api, "fickle", **demand)
    made = await api.create(SLICES, slice_manifest("warm"))
    version = made["metadata"]["resourceVersion"]
    answers = [
        await do(world, CreateSlice(manifest=slice_manifest("new", claim_ref=claim(job)), claimant=ref(job))),
        await do(world, ClaimSlice(name="warm", resource_version=version, claim_ref=claim(job), claimant=ref(job))),
    ]
    left = [(each["metadata"]["name"], each["spec"].get("claimRef")) for each in await api.list(SLICES)]
    assert (answers, left) == ([[FailureClass.CONFLICT]] * 2, [("warm", None)])


async def test_nothing_is_granted_to_a_namesake_that_came_later(api: Api, world: World) -> None:
    job = await a_job(api, "again")
    answer = await do(
        world,
        CreateSlice(manifest=slice_manifest("new", claim_ref=claim(job)), claimant=ref(job, uid="another-uid")),
    )
    assert (answer, await api.list(SLICES)) == ([FailureClass.CONFLICT], [])


async def test_a_slice_made_twice_is_one_slice(api: Api, world: World) -> None:
    job = await a_job(api, "twice")
    action = CreateSlice(manifest=slice_manifest("mine", claim_ref=claim(job)), claimant=ref(job))
    answers = await do(world, action, action)
    stranger = await a_job(api, "stranger")
    foreign = await do(
        world, CreateSlice(manifest=slice_manifest("mine", claim_ref=claim(stranger)), claimant=ref(stranger))
    )
    assert (answers, foreign, len(await api.list(SLICES))) == (["ok", "ok"], [FailureClass.CONFLICT], 1)


async def test_a_moved_slice_has_only_the_new_claim_and_is_released_only_when_its_job_lets_go(
    api: Api, world: World
) -> None:
    first, second = await a_job(api, "first"), await a_job(api, "second")
    await do(world, CreateSlice(manifest=slice_manifest("moving", claim_ref=claim(first)), claimant=ref(first)))
    known = world.caches.slices.get("moving")
    assert known is not None
    version = known.raw["metadata"]["resourceVersion"]
    await do(world, ClaimSlice(name="moving", resource_version=version, claim_ref=claim(second), claimant=ref(second)))
    moved = await api.get(SLICES, "moving")
    assert moved is not None
    release = ReleaseSlice(name="moving", resource_version=moved["metadata"]["resourceVersion"], claimant=ref(second))
    await do(world, release)
    still_held = await api.get(SLICES, "moving")
    await api.put_status(JOBS, "second", {"demand": {"slices": 0, "sequence": [0]}}, NAMESPACE)
    await do(world, release)
    released = await api.get(SLICES, "moving")
    claims = [each and each["spec"].get("claimRef") for each in (moved, still_held, released)]
    assert claims == [claim(second), claim(second), None]


def about(job: dict[str, Any]) -> Target:
    meta = job["metadata"]
    return Target(key=Key("job", meta["namespace"], meta["name"]), kind=JOBS, raw=job)


async def test_a_finalizer_goes_on_only_on_the_version_that_was_seen_and_others_stay(api: Api, world: World) -> None:
    job = await a_job(api, "kept")
    stale = about(job)
    job = await api.merge(JOBS, "kept", {"metadata": {"finalizers": ["example.com/other"]}}, namespace=NAMESPACE)
    answers = [await do(world, AddFinalizer(), target=stale), await do(world, AddFinalizer(), target=about(job))]
    live = await api.get(JOBS, "kept", namespace=NAMESPACE)
    assert live is not None
    answers.append(await do(world, RemoveFinalizer(), target=about(live)))
    after = await api.get(JOBS, "kept", namespace=NAMESPACE)
    assert after is not None
    got = (answers, live["metadata"]["finalizers"], after["metadata"]["finalizers"])
    want = (
        [[FailureClass.CONFLICT], ["ok"], ["ok"]],
        ["example.com/other", "torchtpu.dev/cleanup"],
        ["example.com/other"],
    )
    assert got == want


async def test_the_last_finalizer_lets_the_object_go_from_the_cache_too(api: Api, world: World) -> None:
    job = await a_job(api, "leaves")
    target = about(job)
    await do(world, AddFinalizer(), target=target)
    await api.delete(JOBS, "leaves", uid=job["metadata"]["uid"], namespace=NAMESPACE)
    leaving = await api.get(JOBS, "leaves", namespace=NAMESPACE)
    assert leaving is not None
    world.caches.jobs.remember(leaving)
    answer = await do(world, RemoveFinalizer(), target=about(leaving))
    late = world.caches.jobs.remember(leaving)
    got = (answer, await api.get(JOBS, "leaves", namespace=NAMESPACE), len(world.caches.jobs), late)
    assert got == (["ok"], None, 0, False)


def config_map(job: dict[str, Any]) -> dict[str, Any]:
    meta = job["metadata"]
    owner = {"apiVersion": JOBS.api_version, "kind": JOBS.name, "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "runner", "namespace": NAMESPACE, "ownerReferences": [owner]},
    }


async def test_an_object_of_ours_is_adopted_and_a_strangers_is_refused(api: Api, world: World) -> None:
    mine, theirs = await a_job(api, "mine"), await a_job(api, "theirs")
    create = CreateObject(manifest=config_map(mine))
    answers = [
        await do(world, create, create, target=about(mine)),
        await do(world, CreateObject(manifest=config_map(theirs)), target=about(theirs)),
    ]
    made = await api.get(CONFIG_MAPS, "runner", namespace=NAMESPACE)
    assert made is not None
    await api.delete(CONFIG_MAPS, "runner", uid=made["metadata"]["uid"], namespace=NAMESPACE)
    assert answers == [["ok", "ok"], [FailureClass.CONFLICT]]


async def test_a_dry_run_carries_the_apiservers_words_and_makes_nothing(api: Api, world: World) -> None:
    job = await a_job(api, "tries")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "try", "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "ray", "image": "i", "imagePullPolcy": "Always"}]},
    }
    (outcome,) = await perform(world, about(job), [DryRun(manifests=(pod,))])
    assert isinstance(outcome, CallFailed)
    assert (outcome.failure, "imagePullPolcy" in outcome.message) == (FailureClass.INVALID, True)


async def test_what_the_adapter_says_of_absence_conflict_and_silence(api: Api) -> None:
    made = await api.create(SLICES, slice_manifest("plain"))
    uid = made["metadata"]["uid"]
    silent = Api(api._client, timeout=0.0001)
    errors = []
    for call in (
        api.delete(SLICES, "plain", uid="another"),
        api.merge(SLICES, "nothing", {"metadata": {"labels": {"a": "b"}}}),
        api.create(SLICES, slice_manifest("plain")),
        silent.get(NODES, "nothing"),
    ):
        try:
            await call
        except KubeError as error:
            errors.append((error.status, error.reason))
    gone = [await api.delete(SLICES, "plain", uid=uid), await api.delete(SLICES, "plain", uid=uid)]
    got = (await api.get(SLICES, "plain"), gone, errors)
    assert got == (None, [None, None], [(409, "Conflict"), (404, "NotFound"), (409, "AlreadyExists"), (0, "")])


async def test_status_is_written_under_its_version_and_takes_the_whole_place(api: Api) -> None:
    job = await a_job(api, "told")
    body = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "metadata": {
            "name": "told",
            "namespace": NAMESPACE,
            "uid": job["metadata"]["uid"],
            "resourceVersion": job["metadata"]["resourceVersion"],
        },
        "status": {"observedGeneration": 1, "phase": "Pending", "message": "one"},
    }
    first = await api.apply(JOBS, body, subresource="status")
    try:
        await api.apply(JOBS, body, subresource="status")
        stale = 200
    except KubeError as error:
        stale = error.status
    assert (first["status"]["message"], stale) == ("one", 409)
