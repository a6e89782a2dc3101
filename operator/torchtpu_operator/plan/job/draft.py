"""The plan of one TorchTPUJob while it is being made: a status to be written, actions and events."""

from datetime import datetime, timedelta
from typing import Any

from torchtpu_operator.api import (
    ConditionType,
    JobPhase,
    JobStatus,
    Readiness,
    Reason,
    TPUSlice,
    set_condition,
    set_readiness,
)
from torchtpu_operator.api.conditions import shorten
from torchtpu_operator.api.constants import MAX_MESSAGE
from torchtpu_operator.api.job_status import Attempt, Demand, Finishing, JobRetry
from torchtpu_operator.plan import retry
from torchtpu_operator.plan.actions import Action, Event, Plan
from torchtpu_operator.plan.job.observed import JobObserved
from torchtpu_operator.plan.observed import CallFailed, Settings

_READINESS = {
    JobPhase.PENDING: Readiness.IN_PROGRESS,
    JobPhase.PROVISIONING: Readiness.IN_PROGRESS,
    JobPhase.STARTING: Readiness.IN_PROGRESS,
    JobPhase.RESTARTING: Readiness.IN_PROGRESS,
    JobPhase.FINISHING: Readiness.IN_PROGRESS,
    JobPhase.RUNNING: Readiness.CURRENT,
    JobPhase.SUSPENDED: Readiness.CURRENT,
    JobPhase.SUCCEEDED: Readiness.CURRENT,
    JobPhase.FAILED: Readiness.FAILED,
}


def sequence_of(demand: Demand, index: int) -> int:
    """How often the job gave slice `index` up."""
    return demand.sequence[index] if index < len(demand.sequence) else 0


class Draft:
    """Collects one plan. `status` is the observed one with what this pass has found so far."""

    def __init__(self, observed: JobObserved, *, now: datetime, settings: Settings) -> None:
        self.observed, self.now, self.settings = observed, now, settings
        self.job, self.spec = observed.job, observed.job.spec
        self.status: JobStatus = observed.job.status.model_copy(
            update={"observed_generation": observed.job.metadata.generation}
        )
        self._actions: list[Action] = []
        self._last_actions: list[Action] = []
        self._events: list[Event] = []
        self._looks: list[float] = []

    # --- reading

    @property
    def attempt(self) -> Attempt | None:
        return self.status.attempt

    @property
    def live(self) -> Attempt | None:
        """The attempt that is under way."""
        attempt = self.status.attempt
        return attempt if attempt is not None and attempt.ended_at is None else None

    @property
    def demand(self) -> Demand:
        return self.status.demand or Demand()

    @property
    def held(self) -> dict[int, TPUSlice]:
        """The job's slices by index, without those that it has given up: they may bear its claim for a while longer."""
        return {
            claim.slice_index: slice_
            for slice_ in self.observed.slices
            if (claim := slice_.spec.claim_ref) is not None
            and claim.sequence >= sequence_of(self.demand, claim.slice_index)
        }

    # --- writing

    def set(self, **fields: Any) -> None:
        """Replace fields of the status."""
        self.status = self.status.model_copy(update=fields)

    def set_attempt(self, **fields: Any) -> None:
        """Replace fields of the attempt."""
        if self.status.attempt is None:
            raise AssertionError("there is no attempt to change")
        self.set(attempt=self.status.attempt.model_copy(update=fields))

    def act(self, *actions: Action) -> None:
        self._actions += actions

    def act_last(self, action: Action) -> None:
        """After all others of this plan: should it fail, nothing of weight was held up."""
        self._last_actions.append(action)

    def event(self, type_: str, reason: Reason, message: str) -> None:
        self._events.append(Event(type=type_, reason=reason.value, message=shorten(message, MAX_MESSAGE)))

    def condition(self, type_: ConditionType, status: bool | None, reason: Reason, message: str = "") -> None:
        conditions = set_condition(
            self.status.conditions,
            type=type_,
            status=status,
            reason=reason,
            message=message,
            observed_generation=self.job.metadata.generation,
            now=self.now,
        )
        self.set(conditions=conditions)

    def phase(self, phase: JobPhase, reason: Reason | str, message: str, *, stalled: bool = False) -> None:
        """Where the job is, why, and what happens next; Ready, Reconciling and Stalled follow."""
        text = shorten(message, MAX_MESSAGE)
        conditions = set_readiness(
            self.status.conditions,
            Readiness.FAILED if stalled else _READINESS[phase],
            reason=reason,
            message=text,
            observed_generation=self.job.metadata.generation,
            now=self.now,
        )
        self.set(phase=phase, message=text, conditions=conditions)

    def finish(self, outcome: ConditionType, reason: Reason | str, message: str) -> None:
        """The job's end is decided; what it holds is released before the condition is set."""
        finishing = Finishing(
            outcome=outcome, reason=str(reason), message=shorten(message, MAX_MESSAGE), since=self.now
        )
        self.set(finishing=finishing, retry=None, next_attempt_at=None)

    def back_off(self, failed: CallFailed, *, reason: Reason, message: str) -> None:
        """Remember a failed call; the count lives in status, so a restart does not reset it."""
        before = self.status.retry
        count = before.failures + 1 if before is not None and before.reason == reason else 1
        seconds = max(1.0, retry.delay(failed, count=count, uid=self.job.metadata.uid))
        again = JobRetry(
            reason=reason.value,
            message=shorten(message, MAX_MESSAGE),
            failures=count,
            at=self.now + timedelta(seconds=seconds),
        )
        self.set(retry=again)
        if count == 1:
            self.event("Warning", reason, message)

    def backing_off(self) -> bool:
        return self.status.retry is not None and self.now < self.status.retry.at

    # --- time

    def look_in(self, seconds: float) -> None:
        self._looks.append(max(0.0, seconds))

    def look_at(self, moment: datetime) -> None:
        self.look_in((moment - self.now).total_seconds())

    def overdue(self, since: datetime | None, seconds: int | None) -> bool:
        """Whether a deadline has passed; otherwise the next look is at its end at the latest."""
        if since is None or seconds is None:
            return False
        end = since + timedelta(seconds=seconds)
        if self.now >= end:
            return True
        self.look_at(end)
        return False

    def done(self, *, look_again: float | None = None) -> Plan[JobStatus]:
        """The finished plan; the earliest look wins."""
        looks = [*self._looks, *([look_again] if look_again is not None else [])]
        if self.status.retry is not None and self.now < self.status.retry.at:
            looks.append((self.status.retry.at - self.now).total_seconds())
        return Plan(
            status=self.status,
            actions=(*self._actions, *self._last_actions),
            events=tuple(self._events),
            look_again=min(looks) if looks else None,
        )
