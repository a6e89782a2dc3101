# ruff: noqa: ARG001 - every action has one signature
"""Actions on the reconciled object itself and on the Kubernetes objects of a job's attempt."""

import base64
from collections.abc import Mapping
from typing import Any

from torchtpu_operator.api.constants import FINALIZER
from torchtpu_operator.clients.kinds import CONFIG_MAPS, PODS, RAY_CLUSTERS, kind_of
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.world import Target, World, refresh
from torchtpu_operator.plan.actions import (
    AddFinalizer,
    CreateAuthSecret,
    CreateObject,
    DeleteJob,
    DeleteRayCluster,
    DryRun,
    ForceDeletePod,
    RemoveFinalizer,
    ScaleWorkersToZero,
)
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Outcome, Performed

Obj = Mapping[str, Any]


async def add_finalizer(world: World, target: Target, action: AddFinalizer) -> Outcome:
    finalizers = list(target.raw["metadata"].get("finalizers") or ())
    if FINALIZER not in finalizers:
        await _write_finalizers(world, target, [*finalizers, FINALIZER])
    return Performed(call=type(action).__name__)


async def remove_finalizer(world: World, target: Target, action: RemoveFinalizer) -> Outcome:
    finalizers = list(target.raw["metadata"].get("finalizers") or ())
    if FINALIZER in finalizers:
        await _write_finalizers(world, target, [name for name in finalizers if name != FINALIZER])
    return Performed(call=type(action).__name__)


async def _write_finalizers(world: World, target: Target, finalizers: list[str]) -> None:
    assert target.kind is not None
    meta = target.raw["metadata"]
    patch = {"metadata": {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"], "finalizers": finalizers}}
    try:
        target.raw = await world.kube.merge(target.kind, meta["name"], patch, namespace=target.namespace)
    except KubeError as error:
        if error.is_conflict or error.is_absent:
            await refresh(world, target.kind, meta["name"], namespace=target.namespace, by=target.key)
        if not error.is_absent:
            raise
        return
    world.caches.remember(target.kind, target.raw, by=target.key)


async def delete_job(world: World, target: Target, action: DeleteJob) -> Outcome:
    assert target.kind is not None
    meta = target.raw["metadata"]
    try:
        left = await world.kube.delete(
            target.kind,
            meta["name"],
            uid=meta["uid"],
            namespace=target.namespace,
            resource_version=meta["resourceVersion"],
        )
    except KubeError as error:
        if error.is_conflict:  # edited in between, perhaps to keep it: decide anew
            await refresh(world, target.kind, meta["name"], namespace=target.namespace, by=target.key)
        raise
    if left is None:
        world.caches.forget(target.kind, target.raw, by=target.key)
    else:
        world.caches.remember(target.kind, left, by=target.key)
    return Performed(call=f"DELETE {target.kind.name} {meta['name']}")


async def dry_run(world: World, target: Target, action: DryRun) -> Outcome:
    for manifest in action.manifests:
        try:
            await world.kube.create(kind_of(manifest), manifest, dry_run=True)
        except KubeError as error:
            if error.is_conflict and error.reason == "AlreadyExists":
                continue  # the real one is there: it has passed already
            raise
    for namespace, name in action.config_maps:
        if await world.kube.get(CONFIG_MAPS, name, namespace=namespace) is None:
            text = f"ConfigMap {namespace}/{name} does not exist"
            return CallFailed(call=f"GET configmaps/{name}", failure=FailureClass.NOT_FOUND, message=text)
    return Performed(call="DryRun")


async def create_object(world: World, target: Target, action: CreateObject) -> Outcome:
    return await _create_or_adopt(world, target, action.manifest)


async def create_auth_secret(world: World, target: Target, action: CreateAuthSecret) -> Outcome:
    token = base64.b64encode(world.new_token().encode()).decode()
    return await _create_or_adopt(world, target, {**action.manifest, "data": {action.key: token}})


async def _create_or_adopt(world: World, target: Target, manifest: Obj) -> Outcome:
    kind, meta = kind_of(manifest), manifest["metadata"]
    call = f"POST {kind.plural}/{meta['name']}"
    try:
        await world.kube.create(kind, manifest)
    except KubeError as error:
        if not (error.is_conflict and error.reason == "AlreadyExists"):
            raise
        there = await world.kube.get(kind, meta["name"], namespace=meta["namespace"])
        if there is None:
            return _conflict(call, f"{kind.name} {meta['name']} was there and went at the same moment")
        if not any(owner["uid"] == target.uid for owner in there["metadata"].get("ownerReferences") or ()):
            return _conflict(
                call,
                f"{kind.name} {meta['namespace']}/{meta['name']} exists and is not this job's; rename or delete it",
            )
        if there["metadata"].get("deletionTimestamp"):
            return _conflict(call, f"{kind.name} {meta['name']} of before is still being deleted")
    return Performed(call=call)


async def scale_workers_to_zero(world: World, target: Target, action: ScaleWorkersToZero) -> Outcome:
    call = f"scale RayCluster {action.name} to 0"
    cluster = await world.kube.get(RAY_CLUSTERS, action.name, namespace=target.namespace)
    if cluster is None or cluster["metadata"]["uid"] != action.uid:
        return Performed(call=call)  # there is nothing of ours to scale
    groups = (cluster.get("spec") or {}).get("workerGroupSpecs") or []
    if any(group.get("replicas") or group.get("minReplicas") for group in groups):
        # A merge patch replaces a list as a whole, so it is read and written under one resourceVersion.
        patch = {
            "metadata": {"resourceVersion": cluster["metadata"]["resourceVersion"], "uid": action.uid},
            "spec": {"workerGroupSpecs": [{**group, "replicas": 0, "minReplicas": 0} for group in groups]},
        }
        await world.kube.merge(RAY_CLUSTERS, action.name, patch, namespace=target.namespace)
    return Performed(call=call)


async def delete_ray_cluster(world: World, target: Target, action: DeleteRayCluster) -> Outcome:
    await world.kube.delete(RAY_CLUSTERS, action.name, uid=action.uid, namespace=target.namespace)
    return Performed(call=f"DELETE RayCluster {action.name}")


async def force_delete_pod(world: World, target: Target, action: ForceDeletePod) -> Outcome:
    await world.kube.delete(PODS, action.name, uid=action.uid, namespace=target.namespace, grace_seconds=0)
    return Performed(call=f"DELETE Pod {action.name}")


def _conflict(call: str, message: str) -> CallFailed:
    return CallFailed(call=call, failure=FailureClass.CONFLICT, message=message)
