"""The event recorder, in virtual time."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.doubles.kube import MemoryKube
from torchtpu_operator.clients.kinds import EVENTS, Kind
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.events import EventRecorder
from torchtpu_operator.plan.actions import Event

pytestmark = pytest.mark.looptime

JOB = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TorchTPUJob",
    "metadata": {"name": "a", "namespace": "ml", "uid": "u1"},
}
SLICE = {"apiVersion": "torchtpu.dev/v1alpha1", "kind": "TPUSlice", "metadata": {"name": "s", "uid": "u2"}}


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=asyncio.get_running_loop().time())


@contextlib.asynccontextmanager
async def recording(kube: MemoryKube, results: Counter[str] | None = None) -> AsyncIterator[EventRecorder]:
    counter = Counter[str]() if results is None else results
    recorder = EventRecorder(
        kube,
        clock=Clock(),
        identity="me",
        monotonic=asyncio.get_running_loop().time,
        seen=lambda result: counter.update([result]),
    )
    task = asyncio.create_task(recorder.write())
    yield recorder
    await recorder.flush(seconds=10)
    task.cancel()


def told(kube: MemoryKube) -> list[tuple[Any, ...]]:
    return sorted(
        (each["metadata"]["namespace"], each["involvedObject"]["name"], each["reason"], each["count"])
        for each in kube.all(EVENTS)
    )


def event(reason: str = "AttemptStarted", message: str = "attempt 1") -> Event:
    return Event(type="Normal", reason=reason, message=message)


async def test_an_event_says_what_kubectl_shows() -> None:
    kube = MemoryKube()
    async with recording(kube) as recorder:
        recorder.record(JOB, event())
    (made,) = kube.all(EVENTS)
    shown = {key: made[key] for key in made if key not in ("apiVersion", "kind", "metadata")}
    assert shown == {
        "involvedObject": {
            "apiVersion": "torchtpu.dev/v1alpha1",
            "kind": "TorchTPUJob",
            "namespace": "ml",
            "name": "a",
            "uid": "u1",
        },
        "type": "Normal",
        "reason": "AttemptStarted",
        "message": "attempt 1",
        "firstTimestamp": "2026-11-30T00:00:00Z",
        "lastTimestamp": "2026-11-30T00:00:00Z",
        "count": 1,
        "source": {"component": "torchtpu-operator"},
        "reportingComponent": "torchtpu-operator",
        "reportingInstance": "me",
    }


async def test_the_same_event_again_raises_the_count_and_another_message_is_another_event() -> None:
    kube = MemoryKube()
    async with recording(kube) as recorder:
        for _ in range(5):
            recorder.record(JOB, event())
            await asyncio.sleep(20)
        recorder.record(JOB, event(message="attempt 2"))
    assert told(kube) == [("ml", "a", "AttemptStarted", 1), ("ml", "a", "AttemptStarted", 5)]


async def test_a_burst_of_one_event_is_written_once_and_counted_with_the_next() -> None:
    kube = MemoryKube()
    async with recording(kube) as recorder:
        for _ in range(100):
            recorder.record(JOB, event())
        await asyncio.sleep(20)
        recorder.record(JOB, event())
    writes = [verb for verb, plural, _ in kube.calls if plural == "events"]
    assert (told(kube), len(writes) < 6) == ([("ml", "a", "AttemptStarted", 101)], True)


async def test_after_a_restart_the_same_event_is_found_again() -> None:
    kube = MemoryKube()
    for _ in range(2):
        async with recording(kube) as recorder:
            recorder.record(JOB, event())
    assert told(kube) == [("ml", "a", "AttemptStarted", 2)]


async def test_events_of_cluster_scoped_objects_live_in_default() -> None:
    kube = MemoryKube()
    async with recording(kube) as recorder:
        recorder.record(SLICE, event("NodesReady"))
    assert told(kube) == [("default", "s", "NodesReady", 1)]


async def test_one_chatty_object_is_cut_short_and_does_not_silence_another() -> None:
    kube, results = MemoryKube(), Counter[str]()
    async with recording(kube, results) as recorder:
        for number in range(100):
            recorder.record(JOB, event(message=str(number)))
        recorder.record(SLICE, event())
    assert results == {"written": 26, "dropped": 75}


async def test_an_event_that_cannot_be_written_is_given_up_and_the_next_is_not() -> None:
    kube, results = MemoryKube(), Counter[str]()
    errors = iter([KubeError("namespace is being terminated", call="POST", status=403)])

    def first(verb: str, kind: Kind, name: str) -> None:
        if error := next(errors, None):
            raise error

    kube.before = first
    async with recording(kube, results) as recorder:
        recorder.record(JOB, event("A"))
        recorder.record(JOB, event("B"))
    assert (told(kube), results) == ([("ml", "a", "B", 1)], {"failed": 1, "written": 1})
