"""Fills a `SliceObserved`: the live looks that the plan asks for, the nodes from the cache."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torchtpu_operator.api import TPUSlice
from torchtpu_operator.clients.calls import shortened
from torchtpu_operator.clients.gke_errors import CODES, classify
from torchtpu_operator.clients.kube_errors import KubeError, call_failed
from torchtpu_operator.controller.demand import demand_of
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import World
from torchtpu_operator.plan.node_pool import owns
from torchtpu_operator.plan.observed import (
    CallFailed,
    DemandSeen,
    FailureClass,
    OperationSeen,
    OperationStarted,
    Outcome,
    Ownership,
    PoolSeen,
)
from torchtpu_operator.plan.slice import SliceNeeds, SliceObserved, slice_needs

Json = Mapping[str, Any]

_BROKEN = frozenset({"ERROR", "RUNNING_WITH_ERROR"})


async def observe_slice(world: World, slice_: TPUSlice, *, key: Key, outcomes: tuple[Outcome, ...]) -> SliceObserved:
    needs = _with_answers(slice_needs(slice_, now=world.clock.now()), outcomes)
    name = slice_.spec.node_pool.name
    pool: PoolSeen | CallFailed | None = None
    operation: OperationSeen | CallFailed | None = None
    # The operation first: a pool that is read after its operation ended is in its final state.
    if needs.operation:
        operation = await world.gke.get_operation(needs.operation)
    elif needs.find_operation:
        operation = await world.gke.find_operation(name)
    if needs.pool:
        pool = await _pool(world, slice_, name)
    return SliceObserved(
        slice=slice_,
        needs=needs,
        pool=pool,
        operation=operation,
        nodes=tuple(node.seen for node in world.caches.nodes.by("pool", name)),
        claimant=await _claimant(world, slice_, by=key) if needs.claimant else None,
        outcomes=outcomes,
    )


def _with_answers(needs: SliceNeeds, outcomes: tuple[Outcome, ...]) -> SliceNeeds:
    """An operation whose name has just been answered, but is not in status yet, need not be searched for."""
    started = [outcome.name for outcome in outcomes if isinstance(outcome, OperationStarted)]
    return replace(needs, operation=started[-1], find_operation=False) if started and needs.find_operation else needs


async def _pool(world: World, slice_: TPUSlice, name: str) -> PoolSeen | CallFailed | None:
    answer = await world.gke.get_node_pool(name)
    if answer is None or isinstance(answer, CallFailed):
        return answer
    return read_pool(answer, ownership=owns(answer, slice_, installation=world.settings.installation))


def read_pool(pool: Json, *, ownership: Ownership) -> PoolSeen:
    """A NodePool (proto3 JSON) as a plan sees it."""
    status = str(pool.get("status") or "STATUS_UNSPECIFIED")
    conditions = pool.get("conditions") or ()
    told = [str(pool.get("statusMessage") or ""), *(str(condition.get("message") or "") for condition in conditions)]
    return PoolSeen(
        name=str(pool["name"]),
        status=status,
        ownership=ownership,
        message=shortened("; ".join(dict.fromkeys(text for text in told if text))),
        failure=_failure(pool) if status in _BROKEN else None,
    )


def _failure(pool: Json) -> FailureClass | None:
    """The class of the first condition that names a cause, else of the status message."""
    for condition in pool.get("conditions") or ():
        text = f"{condition.get('code') or ''}: {condition.get('message') or ''}"
        found = classify(code=_code(condition.get("canonicalCode")), message=text, asynchronous=True)
        if found is not FailureClass.TRANSIENT:
            return found
    message = str(pool.get("statusMessage") or "")
    found = classify(code="", message=message, asynchronous=True)
    return None if found is FailureClass.TRANSIENT else found


def _code(canonical: object) -> str:
    """google.rpc.Code by name; JSON has the name, or the number where the enum is not known."""
    return CODES.get(canonical, "") if isinstance(canonical, int) else str(canonical or "")


async def _claimant(world: World, slice_: TPUSlice, *, by: Key) -> DemandSeen | CallFailed | None:
    claim = slice_.spec.claim_ref
    if claim is None:
        return None
    try:
        return await demand_of(world, namespace=claim.namespace, name=claim.name, by=by)
    except KubeError as error:
        return call_failed(error)
