"""The allocation reconciler's decisions."""

from torchtpu_operator.plan.allocation.observed import AllocationObserved, AllocationPlan, Wait
from torchtpu_operator.plan.allocation.planner import plan_allocation, why_waiting

__all__ = ["AllocationObserved", "AllocationPlan", "Wait", "plan_allocation", "why_waiting"]
