"""Taking slices back: claims that no longer stand, slices that failed, waited too long or idle too long."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from torchtpu_operator.api import Reason, SlicePhase, TPUSlice, TPUSliceClass, to_dict
from torchtpu_operator.api.slice import ReclaimPolicy, SliceFailure
from torchtpu_operator.plan.actions import Action, DeleteSlice, JobRef, ReleaseSlice, WriteClassStatus
from torchtpu_operator.plan.allocation import outages
from torchtpu_operator.plan.allocation.state import DEFAULT_WAIT_SECONDS, State, policy_of


@dataclass
class Released:
    """What this step found, for the granting step after it."""

    actions: list[Action] = field(default_factory=list)
    looks: list[datetime] = field(default_factory=list)
    leaving: set[str] = field(default_factory=set)
    """Slices that this plan deletes: no longer to be given to anybody."""
    idle: dict[str, DeleteSlice] = field(default_factory=dict)
    """Deletions of sound slices whose time is over: carried out only if no waiting job takes them."""


def release(state: State) -> Released:
    """Releases and deletions, outages first: a failed slice is deleted only after its lesson is written."""
    found = Released()
    failed = [slice_ for slice_ in state.slices if _ended(state, slice_, found) is not None]
    _write_classes(state, failed, found)
    for slice_ in state.slices:
        _one(state, slice_, failed=slice_ in failed, found=found)
    return found


def _ended(state: State, slice_: TPUSlice, found: Released) -> SliceFailure | None:
    """Why this slice will not come: its own failure, or an accepted request that waited longer than its offer allows."""
    if slice_.metadata.deleting or policy_of(slice_) is ReclaimPolicy.RETAIN:
        return None
    if slice_.status.phase is SlicePhase.FAILED:
        return slice_.status.failure
    return _overdue(state, slice_, found)


def _overdue(state: State, slice_: TPUSlice, found: Released) -> SliceFailure | None:
    operation = slice_.status.operation
    if slice_.status.phase is not SlicePhase.PROVISIONING or operation is None or operation.accepted_at is None:
        return None
    offer = slice_.spec.offer
    seconds = offer.wait_seconds or DEFAULT_WAIT_SECONDS[offer.provisioning.value]
    end = operation.accepted_at + timedelta(seconds=seconds)
    if state.now < end:
        found.looks.append(end)
        return None
    text = f"offer {offer.name} in {offer.zone} gave no nodes within {seconds} s"
    return SliceFailure(reason=Reason.CAPACITY_TIMEOUT.value, message=text, at=end)


def _write_classes(state: State, failed: list[TPUSlice], found: Released) -> None:
    learned: dict[str, TPUSliceClass] = {}
    for name, class_ in state.classes.items():
        mine = [
            slice_.model_copy(
                update={"status": slice_.status.model_copy(update={"failure": _ended(state, slice_, Released())})}
            )
            for slice_ in failed
            if slice_.spec.slice_class_name == name
        ]
        here = [slice_ for slice_ in state.slices if slice_.spec.slice_class_name == name and slice_ not in failed]
        status = outages.record(class_, mine, now=state.now)
        status = outages.forget(status, generation=class_.metadata.generation, ready=here, now=state.now)
        barred = {(each.name, each.zone) for each in status.offers if each.retry_after and each.retry_after > state.now}
        pairs = [(offer.name, zone) for offer in class_.spec.offers for zone in offer.zones or ("",)]
        status = status.model_copy(
            update={
                "observed_generation": class_.metadata.generation,
                "slices": len(here),
                "chips": state.chips(here),
                "summary": f"{sum(1 for pair in pairs if pair not in barred)}/{len(pairs)}",
            }
        )
        if status != class_.status:
            version = class_.metadata.resource_version or ""
            found.actions.append(WriteClassStatus(name=name, resource_version=version, status=to_dict(status)))
        # What has just been learned counts in this very pass: the job may have asked anew before allocation came to run.
        learned[name] = class_.model_copy(update={"status": status})
    state.classes = learned


def _one(state: State, slice_: TPUSlice, *, failed: bool, found: Released) -> None:
    claim = slice_.spec.claim_ref
    version, uid = slice_.metadata.resource_version or "", slice_.metadata.uid
    if claim is not None and not state.holds(slice_):
        ref = JobRef(
            namespace=claim.namespace,
            name=claim.name,
            uid=claim.uid,
            sequence=claim.sequence,
            slice_index=claim.slice_index,
        )
        found.actions.append(ReleaseSlice(name=slice_.metadata.name, resource_version=version, claimant=ref))
        return
    if slice_.metadata.deleting or policy_of(slice_) is ReclaimPolicy.RETAIN:
        return
    why = _why_delete(state, slice_, failed=failed, found=found)
    if not why:
        return
    delete = DeleteSlice(name=slice_.metadata.name, uid=uid, resource_version=version, why=why)
    if slice_.status.phase is SlicePhase.READY:
        found.idle[slice_.metadata.name] = delete
    else:
        found.leaving.add(slice_.metadata.name)
        found.actions.append(delete)


def _why_delete(state: State, slice_: TPUSlice, *, failed: bool, found: Released) -> str:
    """Why the slice goes now; empty: it stays."""
    if failed:
        return "it failed" if slice_.status.phase is SlicePhase.FAILED else "its offer gave no nodes in time"
    if slice_.spec.claim_ref is not None:
        return ""
    if slice_.status.phase is not SlicePhase.READY:
        return "nobody holds it and it is not Ready"
    if slice_.status.released_at is None:
        return "" if slice_.spec.reclaim.idle_seconds else "nobody holds it"
    end = slice_.status.released_at + timedelta(seconds=slice_.spec.reclaim.idle_seconds)
    if state.now >= end:
        return "nobody took it within its idle time"
    found.looks.append(end)
    return ""
