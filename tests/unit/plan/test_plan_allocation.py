"""The allocation planner: which job gets which slice, what is released, deleted and remembered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.builders import (
    NOW,
    SETTINGS,
    ClassBuilder,
    JobBuilder,
    SliceBuilder,
    a_class,
    a_failure,
    a_job,
    a_slice,
    an_offer,
    at,
)
from tests.unit.plan.views import said
from torchtpu_operator.api import Reason
from torchtpu_operator.api.offer import LabelSelector
from torchtpu_operator.api.slice import Reuse, SliceReclaim
from torchtpu_operator.api.slice_class import OfferState, OfferStatus
from torchtpu_operator.plan import names
from torchtpu_operator.plan.actions import CreateSlice, WriteClassStatus
from torchtpu_operator.plan.allocation import AllocationObserved, AllocationPlan, plan_allocation, why_waiting
from torchtpu_operator.plan.allocation.grant import selects
from torchtpu_operator.plan.observed import FailureClass, Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    classes: tuple[ClassBuilder, ...] = (a_class(),)
    slices: tuple[SliceBuilder, ...] = ()
    jobs: tuple[JobBuilder, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    want: tuple[str, ...] = ()
    """Actions, without the statuses of classes."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """Reason by job name."""
    look: float | None = None


def observed(case: Case) -> AllocationObserved:
    return AllocationObserved(
        classes=tuple(each.build() for each in case.classes),
        slices=tuple(each.build() for each in case.slices),
        jobs=tuple(each.build() for each in case.jobs),
        namespace_labels=case.labels,
        priorities=case.priorities,
        outcomes=case.outcomes,
    )


def planned(case: Case) -> AllocationPlan:
    return plan_allocation(observed(case), now=NOW, settings=SETTINGS)


def name(job: JobBuilder, index: int = 0, sequence: int = 0) -> str:
    meta = job.job.metadata
    return names.slice_name(meta.name, job_uid=meta.uid, index=index, sequence=sequence)


def in_zones(*zones: str, **fields: Any) -> ClassBuilder:
    return a_class(offers=(an_offer(zones=zones, **fields),))


JOB = a_job().demanding()
SMALL = a_job("small", uid="uid-small", topology="2x4", chips_per_host=4, age=50).demanding()
OTHER = a_job("other", uid="uid-other", age=30).demanding()
TWO = a_job("two", uid="uid-two", num_slices=2).demanding()
PAIR = a_job("pair", uid="uid-pair", num_slices=2, age=20).demanding()
SPARE = a_slice("spare").ready().available()
KEPT = a_slice("spare", reclaim=SliceReclaim(idle_seconds=600, namespace="ml")).ready().available(released=-100)


def outage(
    *, zone: str = "us-east5-b", offer: str = "od", hosts: int = 4, until: float = 50, **fields: Any
) -> OfferStatus:
    return OfferStatus(
        name=offer,
        zone=zone,
        machine_type="ct6e-standard-4t",
        hosts=hosts,
        state=OfferState.UNAVAILABLE,
        reason="Stockout",
        message="no capacity",
        retry_after=at(until),
        failures=1,
        **fields,
    )


CASES = {
    # --- giving
    "a job with demand gets a slice": Case(jobs=(JOB,), want=(f"CreateSlice {name(JOB)}",)),
    "a job that asks for nothing gets nothing": Case(jobs=(a_job().demanding(0),)),
    "a job whose slice is on its way gets no second one": Case(jobs=(JOB,), slices=(a_slice(),)),
    "a job with two slices gets both": Case(
        jobs=(TWO,), want=(f"CreateSlice {name(TWO, 0)}", f"CreateSlice {name(TWO, 1)}")
    ),
    "a job that lost one of two gets that one, under the next number": Case(
        jobs=(a_job("two", uid="uid-two", num_slices=2).demanding(sequence=(0, 3)),),
        slices=(a_slice(job=TWO, index=0).ready(),),
        want=(f"CreateSlice {name(TWO, 1, 3)}",),
    ),
    "a job that is being deleted gets nothing": Case(jobs=(JOB.deleted(),)),
    "its class is gone": Case(classes=(), jobs=(JOB,), waits={"llama": "ClassNotFound"}),
    "its class is served by another installation": Case(
        classes=(a_class(controller_name="other/operator"),), jobs=(JOB,), waits={"llama": "ClassNotFound"}
    ),
    "its class is paused": Case(classes=(a_class(paused=True),), jobs=(JOB,), waits={"llama": "ClassPaused"}),
    "no offer serves the accelerator": Case(
        classes=(in_zones("us-east5-b", accelerators=("v5p",)),), jobs=(JOB,), waits={"llama": "NoMatchingOffer"}
    ),
    "the job wants another offer": Case(
        jobs=(a_job(offers=("spot",)).demanding(),), waits={"llama": "NoMatchingOffer"}
    ),
    # --- order
    "older jobs first: the limit has room for one": Case(
        classes=(a_class(limits={"chips": 16}),),
        jobs=(OTHER, JOB),
        want=(f"CreateSlice {name(JOB)}",),
        waits={"other": "WaitingForLimits"},
    ),
    "priority before age": Case(
        classes=(a_class(limits={"chips": 16}),),
        jobs=(JOB, a_job("other", uid="uid-other", age=30, priority_class_name="high").demanding()),
        priorities={"high": 100},
        want=(f"CreateSlice {name(OTHER)}",),
        waits={"llama": "WaitingForLimits"},
    ),
    "whoever holds a slice already comes first": Case(
        classes=(a_class(limits={"chips": 32}),),
        jobs=(JOB, TWO),
        slices=(a_slice(job=TWO, index=0).ready(),),
        want=(f"CreateSlice {name(TWO, 1)}",),
        waits={"llama": "WaitingForLimits"},
    ),
    "a job is granted wholly or not at all": Case(
        classes=(a_class(limits={"chips": 16}),), jobs=(TWO,), waits={"two": "WaitingForLimits"}
    ),
    # --- limits
    "the class is full": Case(
        classes=(a_class(limits={"chips": 20}),),
        jobs=(OTHER,),
        slices=(a_slice().ready(),),
        waits={"other": "WaitingForLimits"},
        want=(f"ReleaseSlice {name(JOB)}",),
    ),
    "the job is larger than any job may be": Case(
        classes=(a_class(limits={"chips_per_job": 8}),), jobs=(JOB,), waits={"llama": "WaitingForLimits"}
    ),
    "a namespace has its own limit, counted over the jobs of one pass too": Case(
        classes=(a_class(limits={"namespaces": ({"selector": {"match_labels": {"team": "ml"}}, "chips": 16},)}),),
        jobs=(JOB, OTHER),
        labels={"ml": {"team": "ml"}},
        want=(f"CreateSlice {name(JOB)}",),
        waits={"other": "WaitingForLimits"},
    ),
    "another namespace is not limited by it": Case(
        classes=(a_class(limits={"namespaces": ({"selector": {"match_labels": {"team": "ml"}}, "chips": 8},)}),),
        jobs=(JOB,),
        labels={"ml": {"team": "research"}},
        want=(f"CreateSlice {name(JOB)}",),
    ),
    "an offer has room for one slice, counted over the jobs of one pass too": Case(
        classes=(in_zones("us-east5-b", max_chips=16),),
        jobs=(JOB, OTHER),
        want=(f"CreateSlice {name(JOB)}",),
        waits={"other": "OffersExhausted"},
    ),
    "the second offer takes what the first has no room for": Case(
        classes=(a_class(offers=(an_offer("first", max_chips=16), an_offer("second"))),),
        jobs=(TWO,),
        want=(f"CreateSlice {name(TWO, 0)} from first", f"CreateSlice {name(TWO, 1)} from second"),
    ),
    "a reservation holds so many chips for all classes together": Case(
        classes=(
            a_class(offers=(an_offer("r", type="Reservation", reservation={"name": "res", "chips": 16}),)),
            a_class("wide", offers=(an_offer("q", type="Reservation", reservation={"name": "res"}),)).no_default(),
        ),
        jobs=(JOB, a_job("other", uid="uid-other", age=30, slice_class_name="wide").demanding()),
        want=(f"CreateSlice {name(JOB)} from r",),
        waits={"other": "OffersExhausted"},
    ),
    # --- zones and outages
    "the first zone is out: the second is asked": Case(
        classes=(in_zones("us-east5-b", "us-east5-a").status(offers=(outage(),)),),
        jobs=(JOB,),
        want=(f"CreateSlice {name(JOB)} in us-east5-a",),
        look=50.0,
    ),
    "all are out: the job waits, and it is looked again when the first may be asked": Case(
        classes=(in_zones("us-east5-b", "us-east5-a").status(offers=(outage(), outage(zone="us-east5-a", until=20))),),
        jobs=(JOB,),
        waits={"llama": "OffersExhausted"},
        look=20.0,
    ),
    "an outage of larger requests does not bar a smaller one": Case(
        classes=(a_class().status(offers=(outage(hosts=4),)),),
        jobs=(SMALL,),
        want=(f"CreateSlice {name(SMALL)}",),
        look=50.0,
    ),
    "an outage of smaller requests bars a larger one": Case(
        classes=(a_class().status(offers=(outage(hosts=2),)),),
        jobs=(JOB,),
        waits={"llama": "OffersExhausted"},
        look=50.0,
    ),
    "an outage that another class has met counts too": Case(
        classes=(a_class(), a_class("wide").no_default().status(offers=(outage(),))),
        jobs=(JOB,),
        waits={"llama": "OffersExhausted"},
        look=50.0,
    ),
    "an outage of spot says nothing of on-demand": Case(
        classes=(
            a_class(),
            a_class("cheap", offers=(an_offer("od", type="Spot"),)).no_default().status(offers=(outage(),)),
        ),
        jobs=(JOB,),
        want=(f"CreateSlice {name(JOB)}",),
        look=50.0,
    ),
    "an outage that is over is no bar": Case(
        classes=(a_class().status(offers=(outage(until=-1),)),), jobs=(JOB,), want=(f"CreateSlice {name(JOB)}",)
    ),
    "all slices of a job are in one zone": Case(
        classes=(in_zones("us-east5-a", "us-east5-b"),),
        jobs=(TWO,),
        slices=(a_slice(job=TWO, index=1, zone="us-east5-b").ready(),),
        want=(f"CreateSlice {name(TWO, 0)} in us-east5-b",),
    ),
    # --- warm slices
    "an available slice that fits is taken before anything is bought": Case(
        jobs=(JOB,), slices=(SPARE,), want=("ClaimSlice spare",)
    ),
    "the oldest job takes it; for the next one is bought": Case(
        jobs=(OTHER, JOB), slices=(SPARE,), want=("ClaimSlice spare", f"CreateSlice {name(OTHER)}")
    ),
    "another shape does not fit, and goes": Case(
        jobs=(SMALL,), slices=(SPARE,), want=(f"CreateSlice {name(SMALL)}", "DeleteSlice spare")
    ),
    "another namespace does not get it": Case(
        jobs=(a_job(namespace="research").demanding(),),
        slices=(SPARE,),
        want=(f"CreateSlice {name(JOB)}", "DeleteSlice spare"),
    ),
    "another namespace gets it where the class says so": Case(
        jobs=(a_job(namespace="research").demanding(),),
        slices=(a_slice("spare", reclaim=SliceReclaim(reuse=Reuse.CLASS, namespace="ml")).ready().available(),),
        want=("ClaimSlice spare",),
    ),
    "an unschedulable slice is given to nobody": Case(
        jobs=(JOB,),
        slices=(KEPT.spec(unschedulable=True),),
        want=(f"CreateSlice {name(JOB)}",),
        look=500.0,
    ),
    "one that is being deleted is given to nobody": Case(
        jobs=(JOB,), slices=(KEPT.deleted(),), want=(f"CreateSlice {name(JOB)}",)
    ),
    "a degraded one is given to nobody": Case(
        jobs=(JOB,),
        slices=(a_slice("spare").degraded().available(),),
        want=("DeleteSlice spare", f"CreateSlice {name(JOB)}"),
    ),
    "the zone of a job that holds one of two is out, and another has both: that one goes back": Case(
        classes=(in_zones("us-east5-a", "us-east5-b").status(offers=(outage(zone="us-east5-a"),)),),
        jobs=(TWO,),
        slices=(a_slice(job=TWO, index=0, zone="us-east5-a").ready(),),
        waits={"two": "OffersExhausted, gives back"},
        look=50.0,
    ),
    "the same, where the offer's bound has room for both only once the first is back": Case(
        classes=(in_zones("us-east5-a", "us-east5-b", max_chips=32).status(offers=(outage(zone="us-east5-a"),)),),
        jobs=(TWO,),
        slices=(a_slice(job=TWO, index=0, zone="us-east5-a").ready(),),
        waits={"two": "OffersExhausted, gives back"},
        look=50.0,
    ),
    "no zone has both: it keeps what it has": Case(
        classes=(
            in_zones("us-east5-a", "us-east5-b").status(offers=(outage(zone="us-east5-a"), outage(zone="us-east5-b"))),
        ),
        jobs=(TWO,),
        slices=(a_slice(job=TWO, index=0, zone="us-east5-a").ready(),),
        waits={"two": "OffersExhausted"},
        look=50.0,
    ),
    "of two holders that wait on one outage only the first keeps its part": Case(
        classes=(in_zones("us-east5-b").status(offers=(outage(),)),),
        jobs=(TWO, PAIR),
        slices=(a_slice(job=TWO, index=0).ready(), a_slice(job=PAIR, index=0).ready()),
        waits={"two": "OffersExhausted", "pair": "OffersExhausted, gives back"},
        look=50.0,
    ),
    "a warm slice in a zone that has no second one: both from another zone": Case(
        classes=(in_zones("us-east5-a", "us-east5-b").status(offers=(outage(zone="us-east5-a"),)),),
        jobs=(TWO,),
        slices=(a_slice("warm-a", zone="us-east5-a").ready().available(),),
        want=(
            f"CreateSlice {name(TWO, 0)} in us-east5-b",
            f"CreateSlice {name(TWO, 1)} in us-east5-b",
            "DeleteSlice warm-a",
        ),
        look=50.0,
    ),
    "warm slices in two zones: those of one zone are taken": Case(
        classes=(in_zones("us-east5-a", "us-east5-b"),),
        jobs=(TWO,),
        slices=(
            a_slice("warm-a", zone="us-east5-a").ready().available(),
            a_slice("warm-b", zone="us-east5-b").ready().available(),
        ),
        want=("ClaimSlice warm-a", f"CreateSlice {name(TWO, 1)} in us-east5-a", "DeleteSlice warm-b"),
    ),
    # --- taking back
    "its job is gone": Case(slices=(a_slice().ready(),), want=(f"ReleaseSlice {name(JOB)}",)),
    "its job was made anew": Case(
        jobs=(a_job(uid="uid-new").admitted(),), slices=(a_slice().ready(),), want=(f"ReleaseSlice {name(JOB)}",)
    ),
    "its job wants nothing more": Case(
        jobs=(a_job().demanding(0),), slices=(a_slice().ready(),), want=(f"ReleaseSlice {name(JOB)}",)
    ),
    "its job gave it up": Case(
        jobs=(a_job().demanding(sequence=(1,)),),
        slices=(a_slice().degraded(),),
        want=(f"ReleaseSlice {name(JOB)}", f"CreateSlice {name(JOB, 0, 1)}"),
    ),
    "a claim is let go also on a slice that is being deleted": Case(
        slices=(a_slice().ready().deleted(),), want=(f"ReleaseSlice {name(JOB)}",)
    ),
    "a failed slice goes, claimed or not": Case(
        jobs=(JOB,), slices=(a_slice().failed(),), want=(f"DeleteSlice {name(JOB)}",), look=60.0
    ),
    "the zone in which a slice has just failed is not asked again by the same plan": Case(
        classes=(in_zones("us-east5-b", "us-east5-a"),),
        jobs=(a_job().demanding(sequence=(1,)),),
        slices=(a_slice().failed(),),
        want=(f"ReleaseSlice {name(JOB)}", f"CreateSlice {name(JOB, 0, 1)} in us-east5-a"),
        look=60.0,
    ),
    "while a failed slice of the same name is still there, its job gets no other one under that name": Case(
        jobs=(JOB,), slices=(a_slice().failed().deleted(),), waits={"llama": "WaitingForSlices"}
    ),
    "a slice of the same name that nobody holds is still going (suspend and resume): no POST that must fail": Case(
        jobs=(JOB,), slices=(a_slice().available().deleting("op-1"),), waits={"llama": "WaitingForSlices"}
    ),
    "an accepted request that gave no nodes in time goes": Case(
        jobs=(JOB,),
        slices=(a_slice().asked("op-1", since=-2700),),
        want=(f"DeleteSlice {name(JOB)}",),
        look=60.0,
    ),
    "an accepted request has time until then": Case(
        jobs=(JOB,), slices=(a_slice().asked("op-1", since=-2600),), look=100.0
    ),
    "an offer may give it another time": Case(
        jobs=(JOB,), slices=(a_slice(wait_seconds=90).asked("op-1", since=-30),), look=60.0
    ),
    "a released slice without idle time goes": Case(slices=(SPARE,), want=("DeleteSlice spare",)),
    "a released slice stays for its idle time": Case(slices=(KEPT,), look=500.0),
    "the idle time is over": Case(
        slices=(
            a_slice("spare", reclaim=SliceReclaim(idle_seconds=60, namespace="ml")).ready().available(released=-60),
        ),
        want=("DeleteSlice spare",),
    ),
    "released before it was Ready: it goes": Case(
        slices=(a_slice("spare").asked("op-1").available(),), want=("DeleteSlice spare",), look=2690.0
    ),
    "one that only kubectl removes stays, also failed": Case(
        slices=(
            a_slice("mine", reclaim_policy="Retain").ready().available(),
            a_slice("bad", reclaim_policy="Retain").failed().available(),
        ),
    ),
    "the class of a slice is gone: the slice is still ours to delete": Case(
        classes=(), slices=(SPARE,), want=("DeleteSlice spare",)
    ),
    "a slice of another installation's class is none of ours": Case(
        classes=(a_class(controller_name="other/operator"),), slices=(SPARE, a_slice().ready())
    ),
    "a slice with a shape that does not exist stops nobody": Case(
        jobs=(JOB,), slices=(a_slice("odd", topology="9x9").available(),), want=(f"CreateSlice {name(JOB)}",)
    ),
    # --- answers
    "somebody was faster: looked at again, not asked again at once": Case(
        jobs=(JOB,), outcomes=(a_failure(FailureClass.CONFLICT),), look=0.5
    ),
    "the apiserver refuses: not asked again at once": Case(
        jobs=(JOB,), outcomes=(a_failure(FailureClass.PERMISSION),), look=2.0
    ),
}


def shown(case: Case, plan: AllocationPlan) -> tuple[str, ...]:
    """Actions, with zone or offer where the case is about them."""
    told = []
    for action in plan.actions:
        if isinstance(action, WriteClassStatus):
            continue
        text = said(action)
        if isinstance(action, CreateSlice):
            offer = action.manifest["spec"]["offer"]
            for suffix in (f" in {offer['zone']}", f" from {offer['name']}"):
                text = text + suffix if text + suffix in case.want else text
        told.append(text)
    return tuple(told)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_allocation(case: Case) -> None:
    plan = planned(case)
    by_uid = {each.job.metadata.uid: each.job.metadata.name for each in case.jobs}
    waits = {
        by_uid[uid]: wait.reason.value + (", gives back" if wait.give_back else "") for uid, wait in plan.waits.items()
    }
    assert (shown(case, plan), waits, plan.look_again) == (case.want, dict(case.waits), case.look)


def test_why_a_job_waits_is_what_the_plan_says() -> None:
    case = CASES["its class is paused"]
    wait = why_waiting(observed(case), JOB.job.metadata.uid, now=NOW, settings=SETTINGS)
    assert wait == planned(case).waits[JOB.job.metadata.uid]


def test_a_claim_and_a_release_carry_the_version_that_they_were_planned_from() -> None:
    claim = planned(CASES["an available slice that fits is taken before anything is bought"]).actions[-1]
    release = planned(CASES["its job is gone"]).actions[-1]
    delete = planned(CASES["a released slice without idle time goes"]).actions[-1]
    assert [getattr(each, "resource_version", None) for each in (claim, release, delete)] == ["20", "20", "20"]


def test_a_slice_is_a_snapshot_of_class_and_offer() -> None:
    offer = an_offer("spot", type="Spot", zones=("us-east5-a",), price_per_chip_hour="1.20", wait_seconds=900)
    class_ = a_class(offers=(offer,), max_lifetime_seconds=7200, reclaim={"idle_seconds": 60})
    (create,) = [
        each for each in planned(Case(classes=(class_,), jobs=(JOB,))).actions if isinstance(each, CreateSlice)
    ]
    spec = create.manifest["spec"]
    assert create.manifest["metadata"]["finalizers"] == ["torchtpu.dev/cleanup"]
    assert {key: spec[key] for key in ("offer", "reclaim", "reclaimPolicy", "maxLifetimeSeconds", "claimRef")} == {
        "offer": {
            "name": "spot",
            "type": "Spot",
            "zone": "us-east5-a",
            "provisioning": "Create",
            "waitSeconds": 900,
            "pricePerChipHour": "1.20",
        },
        "reclaim": {"idleSeconds": 60, "reuse": "Namespace", "namespace": "ml"},
        "reclaimPolicy": "Delete",
        "maxLifetimeSeconds": 7200,
        "claimRef": {
            "namespace": "ml",
            "name": "llama",
            "uid": JOB.job.metadata.uid,
            "sliceIndex": 0,
            "sequence": 0,
            "claimedAt": "2026-11-30T12:00:00Z",
        },
    }


# --- what a class remembers


def class_after(case: Case) -> ClassBuilder:
    """The default class with the status that the plan writes."""
    for action in planned(case).actions:
        if isinstance(action, WriteClassStatus):
            return case.classes[0].of_status(dict(action.status))
    return case.classes[0]


def remembered(class_: ClassBuilder) -> list[tuple[Any, ...]]:
    return [(each.name, each.reason, each.failures, each.retry_after) for each in class_.slice_class.status.offers]


def test_a_failed_slice_leaves_an_outage_and_the_summary_shows_it() -> None:
    class_ = class_after(Case(jobs=(JOB,), slices=(a_slice().failed(since=-3),)))
    assert (remembered(class_), class_.slice_class.status.summary) == ([("od", "Stockout", 1, at(57))], "0/1")


def test_an_outage_is_counted_once_whatever_is_repeated() -> None:
    first = Case(jobs=(JOB,), slices=(a_slice().failed(since=-3),))
    again = Case(classes=(class_after(first),), jobs=first.jobs, slices=first.slices)
    assert remembered(class_after(again)) == [("od", "Stockout", 1, at(57))]


def test_slices_that_fail_together_are_one_outage() -> None:
    slices = (a_slice(job=TWO, index=0).failed(since=-4), a_slice(job=TWO, index=1).failed(since=-1))
    assert remembered(class_after(Case(jobs=(TWO,), slices=slices))) == [("od", "Stockout", 1, at(59))]


def test_the_next_failure_after_an_outage_bars_for_twice_as_long() -> None:
    class_ = a_class().status(offers=(outage(until=-10),))
    after = class_after(Case(classes=(class_,), jobs=(JOB,), slices=(a_slice().failed(since=0),)))
    assert remembered(after) == [("od", "Stockout", 2, at(120))]


REFUSED = outage(until=21600).model_copy(update={"reason": "InvalidRequest", "generation": 1})
CHANGED = {
    "the same is not asked again": (a_class(), JOB, {"llama": "InvalidRequest"}),
    "a changed class is asked again": (a_class().meta(generation=2), JOB, {}),
    "slices of another size are asked for": (a_class(), SMALL, {}),
    "another offer of the class is asked": (a_class(offers=(an_offer(), an_offer("spot", type="Spot"))), JOB, {}),
}


@pytest.mark.parametrize(("class_", "job", "waits"), CHANGED.values(), ids=CHANGED)
def test_a_request_that_gke_calls_invalid(class_: ClassBuilder, job: JobBuilder, waits: dict[str, str]) -> None:
    plan = planned(Case(classes=(class_.status(offers=(REFUSED,)),), jobs=(job,)))
    names_by_uid = {job.job.metadata.uid: job.job.metadata.name}
    assert {names_by_uid[uid]: wait.reason for uid, wait in plan.waits.items()} == waits
    assert len([action for action in plan.actions if isinstance(action, CreateSlice)]) == (0 if waits else 1)


def test_what_gke_calls_invalid_in_one_class_says_nothing_of_another() -> None:
    """Their node pool templates differ."""
    other = a_class("other").no_default().status(offers=(REFUSED,))
    plan = planned(Case(classes=(a_class(), other), jobs=(JOB,)))
    assert [type(action) for action in plan.actions if isinstance(action, CreateSlice)] == [CreateSlice]


def test_a_change_of_the_class_takes_the_refusal_out_of_its_status() -> None:
    changed = a_class().meta(generation=2).status(offers=(REFUSED,))
    assert remembered(class_after(Case(classes=(changed,), jobs=(JOB,)))) == []


def test_what_is_not_the_offers_fault_leaves_no_outage() -> None:
    case = Case(jobs=(JOB,), slices=(a_slice().failed(Reason.NAME_CONFLICT),))
    assert remembered(class_after(case)) == []


def test_a_slice_that_became_ready_disproves_the_outage() -> None:
    class_ = a_class().status(offers=(outage(until=-100),))
    assert remembered(class_after(Case(classes=(class_,), jobs=(JOB,), slices=(a_slice().ready(since=-50),)))) == []


def test_the_status_of_a_class_is_written_before_the_failed_slice_is_deleted() -> None:
    actions = planned(Case(jobs=(JOB,), slices=(a_slice().failed(),))).actions
    assert [type(action).__name__ for action in actions] == ["WriteClassStatus", "DeleteSlice"]


def test_label_selectors_as_kubernetes_has_them() -> None:
    selector = LabelSelector.model_validate(
        {
            "matchLabels": {"a": "1"},
            "matchExpressions": [
                {"key": "b", "operator": "In", "values": ["2", "3"]},
                {"key": "c", "operator": "NotIn", "values": ["4"]},
                {"key": "d", "operator": "Exists"},
                {"key": "e", "operator": "DoesNotExist"},
            ],
        }
    )
    good = {"a": "1", "b": "2", "d": ""}
    bad = [{**good, "a": "2"}, {**good, "b": "4"}, {**good, "c": "4"}, {"a": "1", "b": "2"}, {**good, "e": "x"}]
    assert (selects(selector, good), selects(LabelSelector(), {}), [selects(selector, each) for each in bad]) == (
        True,
        True,
        [False] * 5,
    )
