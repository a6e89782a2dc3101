"""The slice reconciler's decisions."""

from torchtpu_operator.plan.slice.observed import SliceNeeds, SliceObserved, slice_needs
from torchtpu_operator.plan.slice.planner import plan_slice

__all__ = ["SliceNeeds", "SliceObserved", "plan_slice", "slice_needs"]
