"""Giving slices to jobs: whole jobs only, warm slices first, then new ones from the offers in their order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchtpu_operator.api import ClaimRef, Reason, SlicePhase, TorchTPUJob, TPUSlice, TPUSliceClass, to_dict
from torchtpu_operator.api.offer import LabelSelector, Offer, OfferType, Provisioning, Reservation
from torchtpu_operator.api.slice import Reuse
from torchtpu_operator.plan.actions import Action, ClaimSlice, CreateSlice, JobRef
from torchtpu_operator.plan.allocation import outages
from torchtpu_operator.plan.allocation.manifest import build_slice
from torchtpu_operator.plan.allocation.observed import Wait
from torchtpu_operator.plan.allocation.state import State, sequence_of, shape_of_job, shape_of_slice, wanted
from torchtpu_operator.plan.names import slice_name
from torchtpu_operator.tpu import Shape

# What an offer of these types needs is built with later issues; until then they are passed over, and the job says so.
UNSUPPORTED = {OfferType.EXISTING, OfferType.FLEX_START}


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What one job gets, or why it gets nothing."""

    actions: tuple[Action, ...] = ()
    wait: Wait | None = None
    made: tuple[TPUSlice, ...] = ()
    """New slices, as they will be."""
    taken: frozenset[str] = frozenset()
    """Warm slices that it takes over."""


def grant(state: State, job: TorchTPUJob, *, leaving: set[str], taken: set[str]) -> Grant:
    """The next slices of one job; what this plan has given to jobs before it is in `state`."""
    class_ = state.class_of(job)
    if class_ is None:
        return Grant(wait=Wait(reason=Reason.CLASS_NOT_FOUND, message="its TPUSliceClass is gone: create it again"))
    shape, held = shape_of_job(job), state.held_by(job)
    missing = [index for index in range(wanted(job)) if index not in held]
    warm = _warm(state, job, class_, shape=shape, missing=missing, unavailable=leaving | taken)
    fresh = [index for index in missing if index not in warm]
    for index in fresh:
        if (name := _name(job, index)) in state.names:
            # the job asks under its next number once it has noticed, or the name is free once GKE is done
            text = f"slice {name} of before is still being deleted"
            return Grant(wait=Wait(reason=Reason.WAITING_FOR_SLICES, message=text))
    if fresh and (wait := _refused(state, job, class_, shape=shape, count=len(fresh))):
        return Grant(wait=wait)
    zone = next((slice_.spec.offer.zone for slice_ in (*held.values(), *warm.values())), None)
    chosen = _choose(state, job, class_, shape=shape, count=len(fresh), zone=zone)
    if isinstance(chosen, Wait) and zone is not None:
        mine = frozenset(slice_.metadata.name for slice_ in held.values())
        elsewhere = _choose(state, job, class_, shape=shape, count=wanted(job), zone=None, without=mine)
        if isinstance(elsewhere, Wait):
            return Grant(wait=chosen)
        if held:
            text = f"{chosen.message}; giving its slices back, since zone {elsewhere[0][1]} may have all of them"
            return Grant(wait=Wait(reason=chosen.reason, message=text, give_back=True))
        if _refused(state, job, class_, shape=shape, count=len(missing)):
            return Grant(wait=chosen)
        warm, fresh, chosen = {}, missing, elsewhere  # too few warm ones, in a zone that has no more
    if isinstance(chosen, Wait):
        return Grant(wait=chosen)
    actions: list[Action] = []
    for index, slice_ in warm.items():
        claim = _claim(state, job, index)
        ref = _ref(job, index)
        version = slice_.metadata.resource_version or ""
        actions.append(
            ClaimSlice(name=slice_.metadata.name, resource_version=version, claim_ref=to_dict(claim), claimant=ref)
        )
    made: list[TPUSlice] = []
    for index, (offer, where) in zip(fresh, chosen, strict=True):
        manifest = build_slice(job, class_, offer=offer, zone=where, claim=_claim(state, job, index))
        actions.append(CreateSlice(manifest=manifest, claimant=_ref(job, index)))
        made.append(TPUSlice.from_object(manifest))
    return Grant(
        actions=tuple(actions),
        made=tuple(made),
        taken=frozenset(slice_.metadata.name for slice_ in warm.values()),
    )


def _name(job: TorchTPUJob, index: int) -> str:
    return slice_name(job.metadata.name, job_uid=job.metadata.uid, index=index, sequence=sequence_of(job, index))


def _claim(state: State, job: TorchTPUJob, index: int) -> ClaimRef:
    return ClaimRef(
        namespace=job.metadata.namespace or "",
        name=job.metadata.name,
        uid=job.metadata.uid,
        slice_index=index,
        sequence=sequence_of(job, index),
        claimed_at=state.now,
    )


def _ref(job: TorchTPUJob, index: int) -> JobRef:
    return JobRef(
        namespace=job.metadata.namespace or "",
        name=job.metadata.name,
        uid=job.metadata.uid,
        sequence=sequence_of(job, index),
        slice_index=index,
    )


def _warm(
    state: State, job: TorchTPUJob, class_: TPUSliceClass, *, shape: Shape, missing: list[int], unavailable: set[str]
) -> dict[int, TPUSlice]:
    """Available slices that fit, by the index that they would take; all in one zone, that of the job if it has one."""
    fitting = [
        slice_
        for slice_ in state.slices
        if slice_.spec.claim_ref is None
        and not slice_.metadata.deleting
        and not slice_.spec.unschedulable
        and slice_.metadata.name not in unavailable
        and slice_.status.phase is SlicePhase.READY
        and slice_.spec.slice_class_name == class_.metadata.name
        and shape_of_slice(slice_) == shape
        and (job.spec.offers is None or slice_.spec.offer.name in job.spec.offers)
        and (
            slice_.spec.reclaim.reuse is Reuse.CLASS or slice_.spec.reclaim.namespace in (None, job.metadata.namespace)
        )
    ]
    held = state.held_by(job)
    zones = [slice_.spec.offer.zone for slice_ in held.values()] or [slice_.spec.offer.zone for slice_ in fitting]
    if not zones:
        return {}
    best = max(sorted(set(zones)), key=zones.count)
    here = {slice_.metadata.name: slice_ for slice_ in fitting if slice_.spec.offer.zone == best}
    # One that bears the very name that would be made for an index is for that index: the name is taken otherwise.
    mine = {index: here.pop(_name(job, index)) for index in missing if _name(job, index) in here}
    return mine | dict(zip((index for index in missing if index not in mine), here.values(), strict=False))


def _refused(state: State, job: TorchTPUJob, class_: TPUSliceClass, *, shape: Shape, count: int) -> Wait | None:
    """Why the class gives no new slices: paused, or a limit."""
    name = class_.metadata.name
    if class_.spec.paused:
        return Wait(
            reason=Reason.CLASS_PAUSED, message=f"class {name} is paused: no new capacity until an admin resumes it"
        )
    limits, need = class_.spec.limits, shape.chips * count
    whole = shape.chips * wanted(job)
    if limits.chips_per_job is not None and whole > limits.chips_per_job:
        text = f"the job needs {whole} chips, class {name} allows {limits.chips_per_job} to one job: ask an admin, or use fewer"
        return Wait(reason=Reason.WAITING_FOR_LIMITS, message=text)
    living = [slice_ for slice_ in state.living() if slice_.spec.slice_class_name == name]
    used = state.chips(living)
    if limits.chips is not None and used + need > limits.chips:
        text = f"class {name} has {used} of {limits.chips} chips in use and the job needs {need} more; it is next when some are released"
        return Wait(reason=Reason.WAITING_FOR_LIMITS, message=text)
    namespace = job.metadata.namespace or ""
    labels = state.observed.namespace_labels.get(namespace, {})
    for limit in limits.namespaces:
        if not selects(limit.selector, labels):
            continue
        mine = state.chips(
            slice_ for slice_ in living if slice_.spec.claim_ref and slice_.spec.claim_ref.namespace == namespace
        )
        if mine + need > limit.chips:
            text = f"namespace {namespace} has {mine} of {limit.chips} chips of class {name} in use and the job needs {need} more"
            return Wait(reason=Reason.WAITING_FOR_LIMITS, message=text)
    return None


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """metav1.LabelSelector: all of matchLabels and all of matchExpressions."""
    for key, value in (selector.match_labels or {}).items():
        if labels.get(key) != value:
            return False
    for need in selector.match_expressions or ():
        here, values = labels.get(need.key), need.values or ()
        holds = {
            "In": here in values and here is not None,
            "NotIn": here not in values,
            "Exists": here is not None,
            "DoesNotExist": here is None,
        }
        if not holds.get(need.operator, False):
            return False
    return True


def _choose(
    state: State,
    job: TorchTPUJob,
    class_: TPUSliceClass,
    *,
    shape: Shape,
    count: int,
    zone: str | None,
    without: frozenset[str] = frozenset(),
) -> list[tuple[Offer, str]] | Wait:
    """An offer for each new slice, all in one zone; or why there is none. `without`: slices that do not count."""
    if count == 0:
        return []
    usable = [offer for offer in class_.spec.offers if is_usable(job, offer)]
    if not usable:
        named = ", ".join(offer.name for offer in class_.spec.offers)
        text = f"no offer of class {class_.metadata.name} ({named}) serves {job.spec.accelerator} for this job: change spec.offers or the class"
        return Wait(reason=Reason.NO_MATCHING_OFFER, message=text)
    why: list[str] = []
    for_a_person = True  # until something is found that time may change
    for where in _zones(usable, only=zone):
        chosen: list[tuple[Offer, str]] = []
        for offer in (each for each in usable if where in each.zones):
            if outage := outages.barred(state, class_, offer, zone=where, shape=shape):
                for_a_person = for_a_person and outage.reason in outages.UNTIL_CHANGED
                until = f"{outage.retry_after:%H:%M:%S} UTC" if outage.retry_after else "later"
                again = "when the class is changed" if outage.reason in outages.UNTIL_CHANGED else f"at {until}"
                why.append(f"{offer.name} in {where}: {outage.reason}, asked again {again}: {outage.message}")
                continue
            for_a_person = False
            free = _free(state, class_, offer, without=without)
            if free is not None and free < shape.chips:
                why.append(f"{offer.name}: {max(0, free)} of its chips are free, {shape.chips} are needed")
                continue
            room = count if free is None else free // shape.chips
            chosen += [(offer, where)] * min(room, count - len(chosen))
        if len(chosen) == count:
            return chosen
    reason = Reason.INVALID_REQUEST if why and for_a_person else Reason.OFFERS_EXHAUSTED
    return Wait(reason=reason, message="; ".join(dict.fromkeys(why)) or f"no offer in zone {zone}")


def is_usable(job: TorchTPUJob, offer: Offer) -> bool:
    """Whether the offer is for this job, whatever is free there now."""
    return (
        offer.type not in UNSUPPORTED
        and offer.provisioning is Provisioning.CREATE  # ScaleUp needs capacity pods, which nobody makes yet
        and (job.spec.offers is None or offer.name in job.spec.offers)
        and (not offer.accelerators or job.spec.accelerator in offer.accelerators)
    )


def _zones(offers: list[Offer], *, only: str | None) -> Iterator[str]:
    """Zones in the order in which the offers name them."""
    for where in dict.fromkeys(zone for offer in offers for zone in offer.zones):
        if only is None or where == only:
            yield where


def _free(state: State, class_: TPUSliceClass, offer: Offer, *, without: frozenset[str]) -> int | None:
    """Chips that the offer still has; None: nobody has set a bound."""
    bounds = []
    living = state.living(without=without)
    if offer.max_chips is not None:
        bounds.append(
            offer.max_chips
            - state.chips(
                slice_
                for slice_ in living
                if slice_.spec.slice_class_name == class_.metadata.name and slice_.spec.offer.name == offer.name
            )
        )
    if offer.reservation is not None:
        key = _reservation(offer.reservation)
        told = [
            other.reservation.chips
            for each in state.classes.values()
            for other in each.spec.offers
            if other.reservation is not None and other.reservation.chips and _reservation(other.reservation) == key
        ]
        if told:
            drawn = state.chips(
                slice_
                for slice_ in living
                if slice_.spec.offer.reservation is not None and _reservation(slice_.spec.offer.reservation) == key
            )
            bounds.append(min(told) - drawn)
    return min(bounds, default=None)


def _reservation(reservation: Reservation) -> tuple[str, str, str, str]:
    return (reservation.project or "", reservation.name, reservation.block or "", reservation.sub_block or "")
