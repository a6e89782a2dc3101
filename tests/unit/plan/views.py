"""Plans as short values, so that one assertion shows all of what was decided."""

from dataclasses import dataclass
from typing import Any

from torchtpu_operator.api import ConditionType, JobStatus, SliceStatus
from torchtpu_operator.api.conditions import Condition, kstatus
from torchtpu_operator.plan import actions
from torchtpu_operator.plan.actions import Action, Plan

_READINESS = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a plan comes to."""

    phase: str = ""
    reason: str = ""
    do: tuple[str, ...] = ()
    tell: tuple[str, ...] = ()
    """Reasons of the events."""
    look: float | None = None


def seen(plan: Plan[Any]) -> Seen:
    status: JobStatus | SliceStatus = plan.status
    return Seen(
        phase=status.phase.value if status.phase else "",
        reason=readiness_reason(status.conditions),
        do=tuple(said(action) for action in plan.actions),
        tell=tuple(event.reason for event in plan.events),
        look=None if plan.look_again is None else round(plan.look_again, 1),
    )


def readiness_reason(conditions: tuple[Condition, ...]) -> str:
    """The reason of the one readiness condition that is True."""
    return next((each.reason for each in conditions if each.type in _READINESS and each.status == "True"), "")


def said(action: Action) -> str:
    """An action in a few words."""
    name = type(action).__name__
    match action:
        case actions.CreateNodePool(request=request):
            return f"{name} {request['nodePool']['name']}"
        case actions.CreateSlice(manifest=manifest):
            return f"{name} {manifest['metadata']['name']}"
        case actions.CreateObject(manifest=manifest):
            return f"{name} {manifest['kind']}"
        case (
            actions.DryRun()
            | actions.AddFinalizer()
            | actions.RemoveFinalizer()
            | actions.DeleteJob()
            | actions.CreateAuthSecret()
        ):
            return name
        case actions.SubmitRayJob(submission_id=key) | actions.StopRayJob(submission_id=key):
            return f"{name} {key}"
        case _:
            return f"{name} {action.name}"


def kstatus_of(status: Any, *, generation: int = 1, deleting: bool = False) -> str:
    """What Argo CD, Flux and kubectl would see of an object with this status."""
    metadata: dict[str, Any] = {"generation": generation}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    return kstatus({"metadata": metadata, "status": status.model_dump(mode="json", by_alias=True)})
