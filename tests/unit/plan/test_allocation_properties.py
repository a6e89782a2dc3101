"""What holds of the allocation's plan for every combination of observations, not only for those that somebody thought of."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    NOW,
    SETTINGS,
    ClassBuilder,
    a_class,
    a_job,
    a_slice,
    an_offer,
    at,
)
from tests.unit.plan.strategies import MANY, ages, in_state
from torchtpu_operator.api import SlicePhase
from torchtpu_operator.api.slice_class import OfferState, OfferStatus
from torchtpu_operator.plan.actions import (
    CreateSlice,
    DeleteSlice,
    WriteClassStatus,
)
from torchtpu_operator.plan.allocation import AllocationObserved, plan_allocation


@st.composite
def allocation_worlds(draw: st.DrawFn) -> AllocationObserved:
    zones = draw(st.sampled_from([("us-east5-b",), ("us-east5-a", "us-east5-b")]))
    offers = (
        an_offer("od", zones=zones, max_chips=draw(st.sampled_from([None, 16, 40]))),
        an_offer("spot", type="Spot", zones=("us-east5-b",)),
    )
    outages = draw(
        st.lists(
            st.builds(
                OfferStatus,
                name=st.sampled_from(["od", "spot"]),
                zone=st.sampled_from(["us-east5-a", "us-east5-b"]),
                machine_type=st.just("ct6e-standard-4t"),
                hosts=st.sampled_from([2, 4]),
                state=st.just(OfferState.UNAVAILABLE),
                reason=st.just("Stockout"),
                retry_after=st.sampled_from([at(-30), at(30), at(-30000)]),
                failures=st.integers(1, 5),
            ),
            max_size=3,
            unique_by=lambda each: (each.name, each.zone, each.hosts),
        )
    )
    limits: dict[str, Any] = draw(
        st.fixed_dictionaries({}, optional={"chips": st.sampled_from([16, 32, 48]), "chips_per_job": st.just(16)})
    )
    class_ = a_class(offers=offers, limits=limits, paused=draw(st.integers(0, 6)) == 0).status(offers=tuple(outages))
    jobs_, slices_ = [], []
    for number in range(draw(st.integers(0, 4))):
        count = draw(st.sampled_from([1, 1, 2]))
        plain = a_job(f"job-{number}", uid=f"uid-{number}", num_slices=count, age=number)
        wanted = draw(st.sampled_from([0, count, count, count]))
        sequence = draw(st.sampled_from([(0,) * count, (1,) * count]))
        job = plain.demanding(wanted, sequence=sequence)
        if draw(st.integers(0, 4)) == 0:
            job = job.deleted()
        if draw(st.integers(0, 9)):
            jobs_.append(job)
        for index in range(count):
            kind = draw(st.sampled_from([None, None, "new", "asked", "ready", "failed", "going", "degraded"]))
            if kind is None:
                continue
            at_sequence = draw(st.sampled_from([0, 1]))
            made = a_slice(job=plain, index=index, sequence=at_sequence, zone=draw(st.sampled_from(zones)))
            made = made.asked("op", since=-draw(ages)) if kind == "asked" else in_state(made, kind)
            if draw(st.integers(0, 3)) == 0:
                made = made.available(released=draw(st.sampled_from([None, -5])))
            slices_.append(made)
    return AllocationObserved(
        classes=(class_.build(),),
        slices=tuple(each.build() for each in slices_),
        jobs=tuple(each.build() for each in jobs_),
    )


@MANY
@given(allocation_worlds())
def test_allocation_keeps_its_promises(observed: AllocationObserved) -> None:
    plan = plan_allocation(observed, now=NOW, settings=SETTINGS)
    by_uid = {job.metadata.uid: job for job in observed.jobs}
    names = {slice_.metadata.name for slice_ in observed.slices}
    created = [action for action in plan.actions if isinstance(action, CreateSlice)]
    made: list[str] = [action.manifest["metadata"]["name"] for action in created]
    # no name twice, none that is taken
    assert len(made) == len(set(made))
    assert not names & set(made)
    # never more slices than the job asks for, each under the number that the job now has
    for uid, job in by_uid.items():
        demand = job.status.demand
        assert demand is not None, "each job of these worlds has said what it asks for"
        held = [
            slice_
            for slice_ in observed.slices
            if (claim := slice_.spec.claim_ref)
            and claim.uid == uid
            and not slice_.metadata.deleting
            and claim.sequence >= demand.sequence[claim.slice_index]
            and claim.slice_index < demand.slices
        ]
        mine = [action for action in created if action.claimant.uid == uid]
        wanted = demand.slices
        assert len(held) + len(mine) <= wanted or not mine
        # wholly or not at all
        assert (
            not mine
            or len(held) + len(mine) + sum(1 for each in plan.actions if type(each).__name__ == "ClaimSlice") >= wanted
        )
        zones = {action.manifest["spec"]["offer"]["zone"] for action in mine} | {
            each.spec.offer.zone for each in held if mine
        }
        assert len(zones) <= 1 or len({each.spec.offer.zone for each in held}) > 1
    # a sound slice that somebody holds is never deleted
    for action in plan.actions:
        if isinstance(action, DeleteSlice):
            slice_ = next(each for each in observed.slices if each.metadata.name == action.name)
            claim = slice_.spec.claim_ref
            assert claim is None or slice_.status.phase in (SlicePhase.FAILED, SlicePhase.PROVISIONING)
            assert action.resource_version == slice_.metadata.resource_version
    # limits
    limit = observed.classes[0].spec.limits.chips
    living = [each for each in observed.slices if each.status.phase is not SlicePhase.FAILED or each.metadata.deleting]
    if limit is not None and created:
        assert (len(living) + len(created)) * 16 <= limit
    # nobody waits without a reason
    assert set(plan.waits) <= by_uid.keys()


@MANY
@given(allocation_worlds())
def test_class_status_comes_to_rest(observed: AllocationObserved) -> None:
    for _ in range(3):
        plan = plan_allocation(observed, now=NOW, settings=SETTINGS)
        writes = [action for action in plan.actions if isinstance(action, WriteClassStatus)]
        if not writes:
            return
        (write,) = writes
        written = ClassBuilder(observed.classes[0]).of_status(dict(write.status)).build()
        observed = replace(observed, classes=(written,))
    raise AssertionError("the status of the class never comes to rest")
