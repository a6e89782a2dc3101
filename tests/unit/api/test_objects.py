"""Reading and writing objects, timestamps, conditions, kstatus."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec_cases import JOB
from torchtpu_operator.api import (
    Condition,
    JobStatus,
    Readiness,
    TorchTPUJob,
    find_condition,
    is_true,
    remove_condition,
    set_condition,
    set_readiness,
    to_dict,
)
from torchtpu_operator.api.conditions import kstatus, shorten
from torchtpu_operator.api.timestamps import format_time, parse_time

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=5)

TIMES = {
    "as the apiserver writes it": ("2026-11-30T12:00:00Z", NOW),
    "with microseconds, as in a Lease": ("2026-11-30T12:00:00.999999Z", NOW),
    "in another zone": ("2026-11-30T13:00:00+01:00", NOW),
}


@pytest.mark.parametrize(("text", "want"), TIMES.values(), ids=TIMES)
def test_time_is_read(text: str, want: datetime) -> None:
    assert parse_time(text) == want


def test_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        parse_time("2026-11-30T12:00:00")


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(timezone.utc)))  # noqa: UP017
def test_time_survives_the_round_trip(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)


def test_unknown_fields_are_skipped_and_unknown_fields_of_pods_are_kept() -> None:
    document = {
        **JOB,
        "metadata": {**JOB["metadata"], "uid": "u", "managedFields": [{"manager": "x"}]},
        "spec": {**JOB["spec"], "fromTheFuture": 1, "template": {"spec": {"hostNetwork": True}, "new": 2}},
        "status": {"observedGeneration": 3, "new": 1},
    }
    job = TorchTPUJob.from_object(document)
    written = job.to_object()
    assert (written["metadata"], written["spec"]["template"], written["status"]["observedGeneration"]) == (
        document["metadata"],
        {"spec": {"hostNetwork": True}},
        3,
    )


def test_empty_status_fields_are_not_written() -> None:
    assert to_dict(JobStatus(observed_generation=1)) == {
        "observedGeneration": 1,
        "restarts": 0,
        "disruptions": 0,
        "usage": {"chipSeconds": 0},
    }


def a_condition(*, status: bool | None = True, message: str = "m", since: datetime = NOW) -> Condition:
    return set_condition(
        (), type="Ready", status=status, reason="Running", message=message, observed_generation=1, now=since
    )[0]


def test_transition_time_moves_only_with_the_status() -> None:
    old = (a_condition(),)
    same = set_condition(old, type="Ready", status=True, reason="R", message="new", observed_generation=2, now=LATER)
    other = set_condition(old, type="Ready", status=None, reason="R", message="new", observed_generation=2, now=LATER)
    assert [(c.status, c.message, c.observed_generation, c.last_transition_time) for c in (*same, *other)] == [
        ("True", "new", 2, NOW),
        ("Unknown", "new", 2, LATER),
    ]


def test_conditions_are_found_and_removed() -> None:
    conditions = (a_condition(),)
    assert (
        is_true(conditions, "Ready"),
        find_condition(conditions, "Failed"),
        remove_condition(conditions, "Ready"),
    ) == (True, None, ())


@pytest.mark.parametrize(
    ("readiness", "want"),
    [(Readiness.CURRENT, "Current"), (Readiness.IN_PROGRESS, "InProgress"), (Readiness.FAILED, "Failed")],
)
def test_kstatus_sees_what_was_meant(readiness: Readiness, want: str) -> None:
    conditions = set_readiness((a_condition(),), readiness, reason="R", observed_generation=7, now=NOW)
    status = JobStatus(observed_generation=7, conditions=conditions)
    assert kstatus({"metadata": {"generation": 7}, "status": to_dict(status)}) == want


KSTATUS = {
    "a new object": ({"generation": 1}, {"observedGeneration": -1}, "InProgress"),
    "a changed spec": ({"generation": 2}, {"observedGeneration": 1}, "InProgress"),
    "a deleted object": ({"generation": 2, "deletionTimestamp": "x"}, {"observedGeneration": 2}, "Terminating"),
}


@pytest.mark.parametrize(("metadata", "status", "want"), KSTATUS.values(), ids=KSTATUS)
def test_kstatus(metadata: dict[str, object], status: dict[str, object], want: str) -> None:
    assert kstatus({"metadata": metadata, "status": status}) == want


@given(st.text(max_size=3000), st.integers(min_value=20, max_value=1024))
def test_a_long_text_fits_its_bytes_and_keeps_start_and_end(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short.encode()) <= limit
    head, _, tail = short.rpartition(" ... ")
    assert short == text or (text.startswith(head) and text.endswith(tail) and (head or tail))
