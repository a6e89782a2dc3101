"""Allocation's actions: TPUSlices are made, claimed, released and deleted here alone, each under the version planned from."""

from collections.abc import Mapping
from typing import Any

from torchtpu_operator.clients.kinds import CLASSES, SLICES
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.demand import refusal
from torchtpu_operator.controller.world import Target, World, refresh
from torchtpu_operator.plan.actions import (
    ClaimSlice,
    CreateSlice,
    DeleteSlice,
    ReleaseSlice,
    WriteClassStatus,
)
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Outcome, Performed


async def create_slice(world: World, target: Target, action: CreateSlice) -> Outcome:
    name = action.manifest["metadata"]["name"]
    call = f"POST TPUSlice {name}"
    if no := await refusal(world, action.claimant, by=target.key):
        return no
    try:
        made = await world.kube.create(SLICES, action.manifest)
    except KubeError as error:
        if not error.is_conflict:
            raise
        there = await world.kube.get(SLICES, name)
        if there is None or not _claimed_by(there, action):
            return CallFailed(
                call=call,
                failure=FailureClass.CONFLICT,
                message=f"TPUSlice {name} exists and is not claimed by job {action.claimant.uid}",
            )
        made = there
    world.caches.remember(SLICES, made, by=target.key)
    return Performed(call=call)


def _claimed_by(slice_: Mapping[str, Any], action: CreateSlice) -> bool:
    claim = (slice_.get("spec") or {}).get("claimRef") or {}
    want = action.claimant
    return (claim.get("uid"), claim.get("sliceIndex"), claim.get("sequence", 0)) == (
        want.uid,
        want.slice_index,
        want.sequence,
    ) and not slice_["metadata"].get("deletionTimestamp")


async def claim_slice(world: World, target: Target, action: ClaimSlice) -> Outcome:
    if no := await refusal(world, action.claimant, by=target.key):
        return no
    await _write_claim(world, target, action.name, action.resource_version, dict(action.claim_ref))
    return Performed(call=f"claim TPUSlice {action.name}")


async def release_slice(world: World, target: Target, action: ReleaseSlice) -> Outcome:
    if not await refusal(world, action.claimant, by=target.key):
        return Performed(call=f"TPUSlice {action.name} stays: its job still asks for it")
    await _write_claim(world, target, action.name, action.resource_version, None)
    return Performed(call=f"release TPUSlice {action.name}")


async def _write_claim(
    world: World, target: Target, name: str, version: str, claim_ref: Mapping[str, Any] | None
) -> None:
    # Never by server-side apply: two applies with different claims by one field manager would both succeed.
    patch = {"metadata": {"resourceVersion": version}, "spec": {"claimRef": claim_ref}}
    try:
        written = await world.kube.merge(SLICES, name, patch)
    except KubeError as error:
        if error.is_conflict or error.is_absent:
            await refresh(world, SLICES, name, by=target.key)
        raise
    world.caches.remember(SLICES, written, by=target.key)


async def delete_slice(world: World, target: Target, action: DeleteSlice) -> Outcome:
    try:
        left = await world.kube.delete(SLICES, action.name, uid=action.uid, resource_version=action.resource_version)
    except KubeError as error:
        if error.is_conflict:
            await refresh(world, SLICES, action.name, by=target.key)
        raise
    if left is None:
        gone = {"metadata": {"name": action.name, "uid": action.uid}}
        world.caches.forget(SLICES, gone, by=target.key)
    else:
        world.caches.remember(SLICES, left, by=target.key)
    return Performed(call=f"DELETE TPUSlice {action.name}: {action.why}")


async def write_class_status(world: World, target: Target, action: WriteClassStatus) -> Outcome:
    body = {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.name,
        "metadata": {"name": action.name, "resourceVersion": action.resource_version},
        "status": action.status,
    }
    try:
        written = await world.kube.apply(CLASSES, body, subresource="status")
    except KubeError as error:
        if error.is_conflict or error.is_absent:
            await refresh(world, CLASSES, action.name, by=target.key)
        raise
    world.caches.remember(CLASSES, written, by=target.key)
    return Performed(call=f"status of TPUSliceClass {action.name}")
