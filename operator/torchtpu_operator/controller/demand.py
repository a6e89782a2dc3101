"""What a job asks of allocation, by a live GET: the last look before capacity is bought or given away."""

from collections.abc import Mapping
from typing import Any

from torchtpu_operator.clients.kinds import JOBS
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import World, refresh
from torchtpu_operator.plan.actions import JobRef
from torchtpu_operator.plan.observed import CallFailed, DemandSeen, FailureClass


async def demand_of(world: World, *, namespace: str, name: str, by: Key) -> DemandSeen | None:
    """None: there is no job of that name (the uid is for the caller to compare). Raises KubeError.

    What is read goes into the cache too: whoever planned from an older state must not plan the same again.
    """
    await refresh(world, JOBS, name, namespace=namespace, by=by)
    known = world.caches.jobs.get(name, namespace=namespace)
    return read_demand(known.raw) if known else None


def read_demand(job: Mapping[str, Any]) -> DemandSeen:
    demand = (job.get("status") or {}).get("demand") or {}
    return DemandSeen(
        uid=job["metadata"]["uid"],
        slices=int(demand.get("slices") or 0),
        sequence=tuple(int(number) for number in demand.get("sequence") or ()),
    )


async def refusal(world: World, claimant: JobRef, *, by: Key) -> CallFailed | None:
    """Why this job must not have this slice now; None: it still asks for exactly it. Raises KubeError."""
    seen = await demand_of(world, namespace=claimant.namespace, name=claimant.name, by=by)
    who = f"job {claimant.namespace}/{claimant.name}"
    index = claimant.slice_index
    if seen is None or seen.uid != claimant.uid:
        problem = f"{who} is gone"
    elif seen.slices <= index:
        problem = f"{who} does not ask for slice {index} any more"
    elif (seen.sequence[index] if index < len(seen.sequence) else 0) != claimant.sequence:
        problem = f"{who} has given slice {index} up since"
    else:
        return None
    return CallFailed(call="GET demand", failure=FailureClass.CONFLICT, message=problem)
