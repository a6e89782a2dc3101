"""Which job gets which slice, in what order, within which limits, from which zone."""

import pytest

from tests.builders import (
    NOW,
    SETTINGS,
    a_class,
    a_job,
    a_slice,
    an_offer,
)
from tests.unit.plan.allocation_cases import (
    JOB,
    OTHER,
    SMALL,
    TWO,
    Case,
    check,
    in_zones,
    name,
    observed,
    outage,
    planned,
)
from torchtpu_operator.api.offer import LabelSelector
from torchtpu_operator.plan.actions import CreateSlice
from torchtpu_operator.plan.allocation import why_waiting
from torchtpu_operator.plan.allocation.grant import selects

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
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_allocation(case: Case) -> None:
    check(case)


def test_why_a_job_waits_is_what_the_plan_says() -> None:
    case = CASES["its class is paused"]
    wait = why_waiting(observed(case), JOB.job.metadata.uid, now=NOW, settings=SETTINGS)
    assert wait == planned(case).waits[JOB.job.metadata.uid]


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
