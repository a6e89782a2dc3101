"""The work queue, in virtual time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from torchtpu_operator.controller.tasks import ended
from torchtpu_operator.controller.workqueue import Key, WorkQueue

pytestmark = pytest.mark.looptime

A, B = Key("job", "ml", "a"), Key("job", "ml", "b")
Run = tuple[float, str]


def now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


@asynccontextmanager
async def working(
    queue: WorkQueue, reconcile: Callable[[Key], Awaitable[float | None]], *, workers: int = 2
) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(queue.work(reconcile)) for _ in range(workers)]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def a_queue() -> WorkQueue:
    return WorkQueue(jitter=lambda: 0.5)  # the middle of the spread: back-offs are exact


async def test_wake_ups_while_a_key_runs_fold_into_one_more_run() -> None:
    queue, runs = a_queue(), list[Run]()

    async def reconcile(key: Key) -> None:
        runs.append((now(), key.name))
        await asyncio.sleep(1)

    async with working(queue, reconcile):
        queue.add(A)
        await asyncio.sleep(0.5)
        for _ in range(5):
            queue.add(A)
        await asyncio.sleep(5)
    assert runs == [(0, "a"), (1, "a")]


async def test_one_key_never_runs_twice_at_a_time_and_two_keys_do() -> None:
    queue, at_a_time, most = a_queue(), dict[str, int](), list[tuple[str, int, int]]()

    async def reconcile(key: Key) -> None:
        at_a_time[key.name] = at_a_time.get(key.name, 0) + 1
        most.append((key.name, at_a_time[key.name], sum(at_a_time.values())))
        await asyncio.sleep(1)
        at_a_time[key.name] -= 1

    async with working(queue, reconcile):
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(0.5)
        queue.add(A)
        await asyncio.sleep(5)
    assert most == [("a", 1, 1), ("b", 1, 2), ("a", 1, 2)]


async def test_the_answer_of_a_run_sets_the_next_one() -> None:
    queue, runs = a_queue(), list[Run]()

    async def reconcile(key: Key) -> float | None:
        runs.append((now(), key.name))
        return 10.0 if len(runs) < 3 else None

    async with working(queue, reconcile):
        queue.add(A)
        await asyncio.sleep(100)
    assert runs == [(0, "a"), (10, "a"), (20, "a")]


async def test_of_several_wishes_the_earliest_wins_and_an_event_beats_them_all() -> None:
    queue, runs = a_queue(), list[Run]()

    async def reconcile(key: Key) -> None:
        runs.append((now(), key.name))

    async with working(queue, reconcile):
        queue.add_after(A, 30)
        queue.add_after(A, 20)
        queue.add_after(A, 40)
        queue.add_after(B, 30)
        await asyncio.sleep(5)
        queue.add(B)
        await asyncio.sleep(100)
    assert runs == [(5, "b"), (20, "a")]


async def test_a_key_that_fails_backs_off_twofold_and_starts_anew_after_a_success() -> None:
    queue, runs = a_queue(), list[Run]()
    failing = {1, 2, 3, 5}

    async def reconcile(key: Key) -> None:
        runs.append((now(), key.name))
        if len(runs) in failing:
            raise RuntimeError("no")
        if len(runs) == 4:
            queue.add_after(key, 100)

    async with working(queue, reconcile):
        queue.add(A)
        await asyncio.sleep(300)
    assert runs == [(0, "a"), (1, "a"), (3, "a"), (7, "a"), (107, "a"), (108, "a")]


async def test_a_key_that_fails_stops_nobody_else() -> None:
    queue, runs = a_queue(), list[Run]()

    async def reconcile(key: Key) -> None:
        if key == A:
            raise RuntimeError("no")
        runs.append((now(), key.name))

    async with working(queue, reconcile, workers=1):
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(0.1)
    assert runs == [(0, "b")]


async def test_a_forgotten_key_does_not_come_back() -> None:
    queue, runs = a_queue(), list[Run]()

    async def reconcile(key: Key) -> None:
        runs.append((now(), key.name))

    async with working(queue, reconcile):
        queue.add_after(A, 10)
        queue.forget(A)
        await asyncio.sleep(100)
    assert runs == []


async def test_depth_and_age_tell_of_what_waits() -> None:
    queue = a_queue()
    queue.add(A)
    await asyncio.sleep(7)
    queue.add(B)
    queue.add(B)
    assert (queue.depth, round(queue.oldest_seconds, 5), queue.idle) == (2, 7.0, False)


async def test_a_stopped_queue_begins_no_further_run() -> None:
    queue, runs = a_queue(), list[Run]()

    async def reconcile(key: Key) -> None:
        runs.append((now(), key.name))
        await asyncio.sleep(1)

    task = asyncio.create_task(queue.work(reconcile))
    queue.add(A)
    queue.add(B)
    await asyncio.sleep(0.5)
    queue.stop()
    await asyncio.sleep(10)
    assert (runs, task.done()) == ([(0, "a")], True)


async def test_a_task_that_takes_a_cancellation_for_a_time_out_is_cancelled_again() -> None:
    swallowed = 0

    async def works() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed > 2:
                    raise

    task = asyncio.create_task(works())
    await asyncio.sleep(1)
    await ended([task])
    assert (task.cancelled(), swallowed) == (True, 3)


async def test_a_task_that_never_ends_does_not_hold_up_the_process_for_ever() -> None:
    end = asyncio.Event()

    async def works() -> None:
        while not end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await end.wait()

    task = asyncio.create_task(works())
    await asyncio.sleep(1)
    begun = now()
    await ended([task])
    took = now() - begun
    end.set()
    await asyncio.gather(task, return_exceptions=True)
    assert took == pytest.approx(4)
