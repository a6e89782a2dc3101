"""The plan of one TPUSlice while it is being made: a status to be written, actions and events."""

from datetime import datetime, timedelta
from typing import Any

from torchtpu_operator.api import Readiness, Reason, SlicePhase, SliceStatus, set_readiness
from torchtpu_operator.api.conditions import shorten
from torchtpu_operator.api.constants import MAX_MESSAGE
from torchtpu_operator.api.slice import ReclaimPolicy, SliceFailure, SliceNodes, SliceRetry, SliceUsage
from torchtpu_operator.plan import retry
from torchtpu_operator.plan.actions import Action, Event, Plan
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Settings
from torchtpu_operator.plan.reasons import explain, reason_of
from torchtpu_operator.plan.slice.observed import SliceObserved
from torchtpu_operator.tpu import Shape, ShapeError, resolve

CREATE = "CREATE_NODE_POOL"
DELETE = "DELETE_NODE_POOL"

_READINESS = {
    SlicePhase.PENDING: Readiness.IN_PROGRESS,
    SlicePhase.PROVISIONING: Readiness.IN_PROGRESS,
    SlicePhase.READY: Readiness.CURRENT,
    SlicePhase.DEGRADED: Readiness.IN_PROGRESS,
    SlicePhase.DELETING: Readiness.IN_PROGRESS,
    SlicePhase.FAILED: Readiness.FAILED,
}


class Draft:
    """Collects one plan. `status` is the observed one with what this pass has found so far."""

    def __init__(self, observed: SliceObserved, *, now: datetime, settings: Settings) -> None:
        self.observed, self.now, self.settings = observed, now, settings
        self.name = observed.slice.spec.node_pool.name
        spec = observed.slice.spec
        self.shape: Shape | None = None
        self.problem = ""
        try:
            self.shape = resolve(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)
        except ShapeError as error:  # made by hand: the schema does not know the shapes
            self.problem = f"spec.{error.field}: {error.message}"
        self.policy = spec.reclaim_policy or (ReclaimPolicy.DELETE if spec.claim_ref else ReclaimPolicy.RETAIN)
        self.status = observed.slice.status.model_copy(
            update={"observed_generation": observed.slice.metadata.generation}
        )
        self.look_now = False
        self._actions: list[Action] = []
        self._events: list[Event] = []

    def set(self, **fields: Any) -> None:
        """Replace fields of the status."""
        self.status = self.status.model_copy(update=fields)

    def act(self, action: Action) -> None:
        self._actions.append(action)

    def event(self, type_: str, reason: Reason, message: str) -> None:
        self._events.append(Event(type=type_, reason=reason.value, message=message))

    def phase(self, phase: SlicePhase, reason: Reason, message: str) -> None:
        """Where the slice is, why, and what happens next; the conditions follow."""
        text = shorten(message, MAX_MESSAGE)
        conditions = set_readiness(
            self.status.conditions,
            _READINESS[phase],
            reason=reason,
            message=text,
            observed_generation=self.observed.slice.metadata.generation,
            now=self.now,
        )
        self.set(phase=phase, message=text, conditions=conditions)

    def fail(self, reason: Reason, message: str) -> None:
        """This slice will not come: allocation records the outage and deletes it."""
        text = shorten(message, MAX_MESSAGE)
        self.set(failure=SliceFailure(reason=reason.value, message=text, at=self.now), retry=None)
        self.phase(SlicePhase.FAILED, reason, text)
        self.event("Warning", reason, text)

    def fail_as(self, failed: CallFailed) -> None:
        """What GKE said ends this slice. Texts that leave out where GKE looked are completed."""
        where = ""
        if failed.failure is FailureClass.POLICY_NOT_FOUND:
            project = self.settings.gke_parent.split("/")[1]
            region = self.observed.slice.spec.offer.zone.rpartition("-")[0]
            where = f" in project {project}, region {region}"
        self.fail(reason_of(failed), explain(failed) + where)

    def back_off(self, failed: CallFailed) -> None:
        """Say what failed and when it is tried again; the count lives in status, so a restart does not reset it."""
        before = self.status.retry
        count = before.failures + 1 if before is not None and before.reason == reason_of(failed) else 1
        seconds = max(1.0, retry.delay(failed, count=count, uid=self.observed.slice.metadata.uid))
        again = self.now + timedelta(seconds=seconds)
        self.set(retry=SliceRetry(reason=reason_of(failed).value, failures=count, at=again))
        phase = (
            SlicePhase.DELETING if self.observed.slice.metadata.deleting else self.status.phase or SlicePhase.PENDING
        )
        said = f"GKE: {explain(failed)}"  # the line is read at the job, where nothing else names the other side
        self.phase(phase, reason_of(failed), f"{said}; again at {again:%H:%M:%S} UTC")
        if count == 1:
            self.event("Warning", reason_of(failed), said)

    def backing_off(self) -> bool:
        return self.status.retry is not None and self.now < self.status.retry.at

    def count_nodes(self) -> None:
        """Nodes that are Ready with all their chips, and the running interval of usage."""
        nodes, shape = self.observed.nodes, self.shape
        if shape is None:
            return
        ready = sum(1 for node in nodes if node.ready and node.chips == shape.chips_per_host and not node.terminating)
        self.set(nodes=SliceNodes.counted(ready=ready, desired=shape.hosts))
        usage = self.status.usage
        if nodes and usage.since is None:
            first = min(node.created_at for node in nodes)
            self.set(usage=SliceUsage(chip_seconds=usage.chip_seconds, since=first))
            self.set(first_node_at=self.status.first_node_at or first)
        elif not nodes and usage.since is not None:
            used = int((self.now - usage.since).total_seconds()) * shape.chips
            self.set(usage=SliceUsage(chip_seconds=usage.chip_seconds + max(0, used), since=None))

    def done(self, *, look_again: float | None = None) -> Plan[SliceStatus]:
        """The finished plan; the earliest look wins."""
        looks = [look for look in (look_again, 0.0 if self.look_now else None, self._retry_in()) if look is not None]
        return Plan(
            status=self.status,
            actions=tuple(self._actions),
            events=tuple(self._events),
            look_again=min(looks) if looks else None,
        )

    def _retry_in(self) -> float | None:
        """None once the back-off is over: its count is kept until a call succeeds, but it no longer asks for a look."""
        if self.status.retry is None or not self.backing_off():
            return None
        return (self.status.retry.at - self.now).total_seconds()
