"""The Lease, in virtual time, between replicas that share one in-memory API."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.doubles.kube import MemoryKube
from torchtpu_operator.clients.kinds import LEASES, Kind
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.lease import DURATION, NAME, RENEW_DEADLINE, RETRY, Lease

pytestmark = pytest.mark.looptime

NAMESPACE = "torchtpu-system"


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=time())


def time() -> float:
    return asyncio.get_running_loop().time()


def a_lease(kube: Any, identity: str) -> Lease:
    return Lease(
        kube,
        namespace=NAMESPACE,
        identity=identity,
        clock=Clock(),
        monotonic=asyncio.get_running_loop().time,
        jitter=lambda: 0.5,
    )


def holder(kube: MemoryKube) -> str:
    lease = kube.peek(LEASES, NAME, namespace=NAMESPACE)
    return lease["spec"]["holderIdentity"] if lease else "nobody"


async def seconds_to_acquire(lease: Lease) -> float:
    begun = time()
    await lease.acquire()
    return time() - begun


async def test_the_first_one_takes_it_at_once_and_renews_it() -> None:
    kube = MemoryKube()
    lease = a_lease(kube, "one")
    waited = await seconds_to_acquire(lease)
    holding = asyncio.create_task(lease.hold())
    await asyncio.sleep(300)
    held = (waited, lease.held, holding.done(), holder(kube))
    holding.cancel()
    assert held == (0, True, False, "one")


async def test_of_two_at_once_one_holds_it() -> None:
    kube = MemoryKube()
    leases = [a_lease(kube, name) for name in ("one", "two")]
    acquiring = [asyncio.create_task(lease.acquire()) for lease in leases]
    await asyncio.sleep(RETRY / 2)
    assert sorted(task.done() for task in acquiring) == [False, True]
    for task in acquiring:
        task.cancel()


async def test_a_leader_that_dies_is_followed_within_twenty_seconds_but_not_before_its_time() -> None:
    kube = MemoryKube()
    first, second = a_lease(kube, "one"), a_lease(kube, "two")
    await first.acquire()
    waited = await seconds_to_acquire(second)
    assert (DURATION <= waited <= 20, first.held, holder(kube)) == (True, False, "two")


async def test_a_released_one_is_taken_at_the_next_look() -> None:
    kube = MemoryKube()
    first, second = a_lease(kube, "one"), a_lease(kube, "two")
    await first.acquire()
    acquiring = asyncio.create_task(seconds_to_acquire(second))
    await asyncio.sleep(1)
    await first.release()
    assert (await acquiring <= RETRY * 1.2, first.held, holder(kube)) == (True, False, "two")


async def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    kube = MemoryKube()
    lease = a_lease(kube, "one")
    await lease.acquire()

    def unreachable(verb: str, kind: Kind, name: str) -> None:
        raise KubeError("no answer", call="PUT", status=0)

    kube.before = unreachable
    begun = time()
    await lease.hold()
    assert (time() - begun <= RENEW_DEADLINE < DURATION, lease.held) == (True, False)


async def test_a_leader_that_slept_too_long_does_not_take_it_back_from_its_heir() -> None:
    kube = MemoryKube()
    first, second = a_lease(kube, "one"), a_lease(kube, "two")
    await first.acquire()
    await second.acquire()
    await first.hold()
    await first.release()
    assert (first.held, second.held, holder(kube)) == (False, True, "two")


async def test_one_failed_renewal_is_forgiven() -> None:
    kube = MemoryKube()
    lease = a_lease(kube, "one")
    await lease.acquire()
    failures = iter([KubeError("no answer", call="PUT", status=0)])

    def once(verb: str, kind: Kind, name: str) -> None:
        if error := next(failures, None):
            raise error

    kube.before = once
    holding = asyncio.create_task(lease.hold())
    await asyncio.sleep(60)
    held = (lease.held, holding.done())
    holding.cancel()
    assert held == (True, False)


async def test_a_restarted_replica_of_the_same_name_goes_on_at_once() -> None:
    kube = MemoryKube()
    await a_lease(kube, "one").acquire()
    assert await seconds_to_acquire(a_lease(kube, "one")) == 0
