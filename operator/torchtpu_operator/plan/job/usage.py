"""What a job has used: chip-seconds and their cost, each billed once, and the budget that they are held against."""

from decimal import Decimal
from typing import Final

from torchtpu_operator.api import Reason
from torchtpu_operator.api.job_status import JobSlice
from torchtpu_operator.plan.job import ending
from torchtpu_operator.plan.job.draft import Draft

COST_STEP: Final = Decimal("0.0001")
RELEASE_SECONDS: Final = 60  # from the end of the grace until the slices are given back


def bill_dropped(draft: Draft, held: tuple[JobSlice, ...]) -> None:
    """The write that drops a slice adds its interval: each chip-second is billed once, whatever crashes."""
    kept = {(each.name, each.uid) for each in held}
    usage = draft.status.usage
    used, cost = 0, None if usage.estimated_cost is None else Decimal(usage.estimated_cost)
    for each in draft.status.slices:
        if (each.name, each.uid) in kept:
            continue
        seconds = _running(draft, each)
        used += seconds
        if seconds and each.price_per_chip_hour:
            cost = (cost or Decimal(0)) + Decimal(each.price_per_chip_hour) * seconds / 3600
    if used:
        text = None if cost is None else str(cost.quantize(COST_STEP))
        draft.set(usage=usage.model_copy(update={"chip_seconds": usage.chip_seconds + used, "estimated_cost": text}))


def budget_reached(draft: Draft) -> bool:
    """Whether the job must stop now so that grace and release still fit into its budget; then it is over."""
    budget, resolved = draft.spec.budget, draft.status.resolved
    if budget is None or resolved is None:
        return False
    used = draft.status.usage.chip_seconds + sum(_running(draft, each) for each in draft.status.slices)
    reserve = resolved.chips * (draft.spec.stop_grace_period_seconds + RELEASE_SECONDS)
    limit = int(Decimal(str(budget.chip_hours)) * 3600)
    left = limit - used - reserve
    if left <= 0:
        text = (
            f"{used} of {limit} chip-seconds are used (spec.budget.chipHours is {budget.chip_hours}), and stopping "
            f"{resolved.chips} chips may take {reserve} more"
        )
        ending.stop(draft, Reason.BUDGET_EXHAUSTED, text)
        return True
    if billing := sum(1 for each in draft.status.slices if each.billed_from is not None):
        draft.look_in(left / (_chips(draft) * billing))
    return False


def _running(draft: Draft, slice_: JobSlice) -> int:
    """Chip-seconds of a slice that are not billed yet."""
    if slice_.billed_from is None:
        return 0
    return int((draft.now - slice_.billed_from).total_seconds()) * _chips(draft)


def _chips(draft: Draft) -> int:
    resolved = draft.status.resolved
    return resolved.chips // draft.spec.num_slices if resolved is not None else 0
