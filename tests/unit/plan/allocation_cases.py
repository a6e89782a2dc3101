"""What allocation sees, and what it is to decide: the cases of its tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.builders import (
    NOW,
    SETTINGS,
    ClassBuilder,
    JobBuilder,
    SliceBuilder,
    a_class,
    a_job,
    a_slice,
    an_offer,
    at,
)
from tests.unit.plan.views import said
from torchtpu_operator.api.slice import SliceReclaim
from torchtpu_operator.api.slice_class import OfferState, OfferStatus
from torchtpu_operator.plan import names
from torchtpu_operator.plan.actions import CreateSlice, WriteClassStatus
from torchtpu_operator.plan.allocation import AllocationObserved, AllocationPlan, plan_allocation
from torchtpu_operator.plan.observed import Outcome


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


def check(case: Case) -> None:
    """Actions, waits and the next look are what is wanted."""
    plan = planned(case)
    by_uid = {each.job.metadata.uid: each.job.metadata.name for each in case.jobs}
    waits = {
        by_uid[uid]: wait.reason.value + (", gives back" if wait.give_back else "") for uid, wait in plan.waits.items()
    }
    assert (shown(case, plan), waits, plan.look_again) == (case.want, dict(case.waits), case.look)
