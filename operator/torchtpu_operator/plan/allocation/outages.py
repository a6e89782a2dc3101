"""What a failed request teaches: which offers are not asked for a while, read across classes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from torchtpu_operator.api import ClassStatus, Reason, TPUSlice, TPUSliceClass
from torchtpu_operator.api.offer import Offer
from torchtpu_operator.api.slice_class import OfferState, OfferStatus
from torchtpu_operator.plan.allocation.state import State, shape_of_slice
from torchtpu_operator.tpu import Shape

# Seconds until an offer is asked again after the first failure; doubled each time, up to an hour. Capacity comes and goes in
# minutes; what a person must mend is asked now and then, since nobody tells us when it is mended.
BARS: Mapping[str, int] = {
    Reason.STOCKOUT: 60,
    Reason.CAPACITY_TIMEOUT: 60,
    Reason.RESERVATION_FULL: 60,
    Reason.QUOTA_EXCEEDED: 120,
    Reason.RESERVATION_INVALID: 300,
    Reason.RESERVATION_MISMATCH: 300,
    Reason.WRONG_ZONE: 600,
    Reason.INVALID_REQUEST: 6 * 3600,
    Reason.PLACEMENT_POLICY_NOT_FOUND: 120,
    Reason.NETWORK_EXHAUSTED: 300,
    Reason.TOO_MANY_NODE_POOLS: 300,
    Reason.CLUSTER_NOT_FOUND: 300,
    Reason.NODE_POOL_BROKEN: 120,
    Reason.UNKNOWN_ERROR: 120,
}
LONGEST_BAR = 3600
UNTIL_CHANGED = {Reason.INVALID_REQUEST}  # the class's own fault: the same again would be refused again
FORGET_SECONDS = 6 * 3600  # an outage that is long over says nothing of today


@dataclass(frozen=True, kw_only=True)
class Source:
    """What an outage is about, whatever class or offer name it was met under."""

    zone: str
    machine_type: str
    type: str
    reservation: str


def source(offer: Offer, *, zone: str, machine_type: str) -> Source:
    reservation = offer.reservation
    name = f"{reservation.project or ''}/{reservation.name}/{reservation.block or ''}" if reservation else ""
    return Source(zone=zone, machine_type=machine_type, type=offer.type.value, reservation=name)


def barred(state: State, class_: TPUSliceClass, offer: Offer, *, zone: str, shape: Shape) -> OfferStatus | None:
    """The outage that keeps this offer of the class from being asked for this shape: the one that ends last."""
    asked = source(offer, zone=zone, machine_type=shape.machine_type)
    found: OfferStatus | None = None
    for each in state.classes.values():
        offers = {known.name: known for known in each.spec.offers}
        for outage in each.status.offers:
            known = offers.get(outage.name)
            if known is None or outage.state is OfferState.AVAILABLE or outage.retry_after is None:
                continue
            if outage.reason in UNTIL_CHANGED:  # it is about this class as it was then, and about that very size
                meant = each.metadata.name == class_.metadata.name and outage.hosts == shape.hosts
                meant = meant and outage.generation == each.metadata.generation
            else:
                meant = outage.hosts <= shape.hosts
            same = source(known, zone=outage.zone, machine_type=outage.machine_type) == asked
            if same and meant and outage.retry_after > state.now:
                found = (
                    outage
                    if found is None or found.retry_after is None or outage.retry_after > found.retry_after
                    else found
                )
    return found


def record(class_: TPUSliceClass, failed: Iterable[TPUSlice], *, now: datetime) -> ClassStatus:
    """The class's status with the outages of its failed slices in it, each counted once."""
    offers = {(each.name, each.zone, each.machine_type, each.hosts): each for each in class_.status.offers}
    for slice_ in failed:
        failure, shape = slice_.status.failure, shape_of_slice(slice_)
        if failure is None or failure.reason not in BARS:
            continue
        key = (slice_.spec.offer.name, slice_.spec.offer.zone, shape.machine_type, shape.hosts)
        before, at = offers.get(key), failure.at or now
        # A request that failed before the bar ended was sent before it: the same outage, however often it is seen.
        same = before is not None and before.retry_after is not None and at < before.retry_after
        count = 1 if before is None else before.failures if same else before.failures + 1
        first = BARS[failure.reason]
        until = at + timedelta(seconds=max(first, min(LONGEST_BAR, first * 2 ** min(count - 1, 12))))
        if same and before is not None and before.retry_after is not None and before.retry_after >= until:
            continue
        offers[key] = OfferStatus(
            name=key[0],
            zone=key[1],
            machine_type=key[2],
            hosts=key[3],
            state=OfferState.UNAVAILABLE,
            reason=failure.reason,
            message=failure.message,
            retry_after=until,
            failures=count,
            generation=class_.metadata.generation,
        )
    return class_.status.model_copy(update={"offers": tuple(offers.values())})


def forget(status: ClassStatus, *, generation: int, ready: Iterable[TPUSlice], now: datetime) -> ClassStatus:
    """Without the outages that a slice from the same offer or a change of the class has disproved, or long over."""
    disproved = {
        (slice_.spec.offer.name, slice_.spec.offer.zone, shape_of_slice(slice_).machine_type): slice_.status.ready_at
        for slice_ in ready
        if slice_.status.ready_at is not None
    }
    kept = []
    for outage in status.offers:
        if outage.retry_after is None or now >= outage.retry_after + timedelta(seconds=FORGET_SECONDS):
            continue
        if outage.reason in UNTIL_CHANGED and outage.generation != generation:
            continue
        came = disproved.get((outage.name, outage.zone, outage.machine_type))
        if came is not None and came >= outage.retry_after:
            continue
        kept.append(outage)
    return status.model_copy(update={"offers": tuple(kept)})
