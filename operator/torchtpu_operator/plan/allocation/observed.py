"""What allocation looks at: all classes, all slices, all jobs; and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchtpu_operator.api import Reason, TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.plan.actions import Action
from torchtpu_operator.plan.observed import Outcome


@dataclass(frozen=True, kw_only=True)
class AllocationObserved:
    classes: tuple[TPUSliceClass, ...]
    slices: tuple[TPUSlice, ...]
    jobs: tuple[TorchTPUJob, ...]
    namespace_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels by namespace."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """Value by PriorityClass name."""
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Why a job has no slices yet."""

    reason: Reason
    message: str
    give_back: bool = False
    """Waiting with what it holds helps nobody: another zone may have all of it, or an older job needs the chips."""


@dataclass(frozen=True, kw_only=True)
class AllocationPlan:
    actions: tuple[Action, ...] = ()
    waits: Mapping[str, Wait] = field(default_factory=dict)
    """By job uid: jobs with demand that get nothing in this plan."""
    look_again: float | None = None
