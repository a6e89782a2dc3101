"""What a class remembers of failed requests, and whom it keeps from asking."""

from typing import Any

import pytest

from tests.builders import (
    ClassBuilder,
    JobBuilder,
    a_class,
    a_slice,
    an_offer,
    at,
)
from tests.unit.plan.allocation_cases import JOB, SMALL, TWO, Case, outage, planned
from torchtpu_operator.api import Reason
from torchtpu_operator.plan.actions import CreateSlice, WriteClassStatus


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
