"""What a job asks of allocation, by a live GET: the last look before capacity is bought or given away."""

from collections.abc import Mapping
from typing import Any

from torchtpu_operator.clients.kinds import JOBS
from torchtpu_operator.clients.kube import KubeApi
from torchtpu_operator.plan.actions import JobRef
from torchtpu_operator.plan.observed import CallFailed, DemandSeen, FailureClass


async def demand_of(api: KubeApi, *, namespace: str, name: str) -> DemandSeen | None:
    """None: there is no job of that name (the uid is for the caller to compare). Raises KubeError."""
    job = await api.get(JOBS, name, namespace=namespace)
    return read_demand(job) if job else None


def read_demand(job: Mapping[str, Any]) -> DemandSeen:
    demand = (job.get("status") or {}).get("demand") or {}
    return DemandSeen(
        uid=job["metadata"]["uid"],
        slices=int(demand.get("slices") or 0),
        sequence=tuple(int(number) for number in demand.get("sequence") or ()),
    )


async def refusal(api: KubeApi, claimant: JobRef) -> CallFailed | None:
    """Why this job must not be given this slice now; None: it still asks for exactly it. Raises KubeError."""
    seen = await demand_of(api, namespace=claimant.namespace, name=claimant.name)
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
