"""Slices that are there already: claimed, kept warm, released and deleted."""

import pytest

from tests.builders import (
    a_class,
    a_failure,
    a_job,
    a_slice,
)
from tests.unit.plan.allocation_cases import (
    JOB,
    KEPT,
    OTHER,
    PAIR,
    SMALL,
    SPARE,
    TWO,
    Case,
    check,
    in_zones,
    name,
    outage,
    planned,
)
from torchtpu_operator.api.slice import Reuse, SliceReclaim
from torchtpu_operator.plan.observed import FailureClass

CASES = {
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_allocation(case: Case) -> None:
    check(case)


def test_a_claim_and_a_release_carry_the_version_that_they_were_planned_from() -> None:
    claim = planned(CASES["an available slice that fits is taken before anything is bought"]).actions[-1]
    release = planned(CASES["its job is gone"]).actions[-1]
    delete = planned(CASES["a released slice without idle time goes"]).actions[-1]
    assert [getattr(each, "resource_version", None) for each in (claim, release, delete)] == ["20", "20", "20"]
