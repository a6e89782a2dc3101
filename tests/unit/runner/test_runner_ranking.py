"""Which worker gets which rank."""

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.unit.runner.worlds import SHAPES, a_world, chip_coords, no_coords, reports_of, some_settings
from torchtpu_operator.runner import constants as c
from torchtpu_operator.runner.failures import RunnerError
from torchtpu_operator.runner.settings import Settings
from torchtpu_operator.runner.world import ORDER_PHYSICAL, ORDER_WORKER_ID, Report, order_hosts, rank_workers


@pytest.mark.parametrize("launcher", [c.LAUNCHER_PER_DEVICE, c.LAUNCHER_PER_HOST])
@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_are_slice_major_then_host_then_device_whatever_the_order_of_bundles(
    shape: str, slices: int, launcher: str
) -> None:
    settings = some_settings(shape, slices=slices, launcher=launcher)
    world = a_world(settings, seed=7)
    per_worker = settings.devices_per_host // settings.workers_per_host
    assert [(p.rank, p.report.slice_name, p.report.worker_id, p.report.devices) for p in world.places] == [
        (
            (s * settings.hosts_per_slice + host) * settings.workers_per_host + worker,
            f"s{s}",
            host,
            tuple(range(worker * per_worker, (worker + 1) * per_worker)),
        )
        for s in range(slices)
        for host in range(settings.hosts_per_slice)
        for worker in range(settings.workers_per_host)
    ]


@hypothesis_settings(max_examples=50, deadline=None)
@given(
    shape=st.sampled_from([s for s in SHAPES if some_settings(s).hosts_per_slice > 1]),
    slices=st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
def test_hosts_follow_the_chips_coordinates_when_all_hosts_tell_them(shape: str, slices: int, seed: int) -> None:
    settings = some_settings(shape, slices=slices)
    rng = random.Random(seed)
    orders = [rng.sample(range(settings.hosts_per_slice), settings.hosts_per_slice) for _ in range(slices)]
    coords = [chip_coords(settings.topology, order) for order in orders]
    world = rank_workers(settings, reports_of(settings, seed=seed), coords=coords)
    first_of_hosts = world.places[:: settings.devices_per_host]
    assert world.order == ORDER_PHYSICAL
    assert [p.report.worker_id for p in first_of_hosts] == [worker_id for order in orders for worker_id in order]
    assert [p.rank for p in world.places] == list(range(settings.num_devices))
    assert [p.device for p in world.places] == list(range(settings.devices_per_host)) * settings.num_hosts


COORDS = {
    "one host silent": [[0, 0, 0], [2, 0, 0], None, [2, 2, 0]],
    "every process sees itself as the first chip of a slice of its own": [[0, 0, 0]] * 4,
    "a host outside of the slice": [[0, 0, 0], [2, 0, 0], [0, 2, 0], [4, 2, 0]],
    "nobody tells": [None] * 4,
}


@pytest.mark.parametrize("coords", COORDS.values(), ids=COORDS)
def test_half_an_order_is_none(coords: list[list[int] | None]) -> None:
    order, name, note = order_hosts(some_settings("v6e 4x4"), [coords])
    assert (order, name, bool(note)) == ([[0, 1, 2, 3]], ORDER_WORKER_ID, True)


def test_hosts_sort_with_x_fastest_and_z_slowest() -> None:
    settings = some_settings("v5p 2x4x4")
    told = [[0, 2, 3], [0, 0, 3], [0, 2, 1], [0, 0, 1], [0, 2, 0], [0, 0, 0], [0, 2, 2], [1, 1, 2]]
    assert order_hosts(settings, [told])[0] == [[5, 4, 3, 2, 7, 6, 1, 0]]


def spoil(reports: list[Report], index: int, **changes: Any) -> list[Report]:
    return [dataclasses.replace(r, **changes) if r.index == index else r for r in reports]


def broken_worlds(settings: Settings) -> dict[str, tuple[list[Report], str, str]]:
    whole = reports_of(settings)
    return {
        "a pod with another TPU_NAME": (
            spoil(whole, 3, slice_name="other"),
            c.REASON_WORKER_ENV_MISMATCH,
            "workers run on hosts of ['other'] instead of ['s0']: TPU_NAME in their pods is wrong",
        ),
        "a worker id that two hosts have": (
            [dataclasses.replace(r, worker_id=1) if r.worker_id == 2 else r for r in whole],
            c.REASON_WORKER_ID_CONFLICT,
            "slice s0 has hosts with TPU_WORKER_ID [0, 1, 3] where 0..3 are needed",
        ),
        "an old host still there under the id of its successor": (
            spoil(whole, 5, node_id="node-old", pod="pod-old"),
            c.REASON_WORKER_ID_CONFLICT,
            "2 hosts of slice s0 have TPU_WORKER_ID 1: pods ['pod-0-1', 'pod-old']",
        ),
        "two workers on one chip": (
            spoil(whole, 5, devices=(0,)),
            c.REASON_CHIP_VISIBILITY,
            "host 1 of slice s0 (pod pod-0-1): its workers hold the TPU devices [[0], [0], [2], [3]]; "
            "needed are 0..3, each once, 1 per worker",
        ),
        "a worker that sees all chips": (
            spoil(whole, 5, devices=(0, 1, 2, 3)),
            c.REASON_CHIP_VISIBILITY,
            "host 1 of slice s0 (pod pod-0-1): its workers hold the TPU devices [[0], [0, 1, 2, 3], [2], [3]]; "
            "needed are 0..3, each once, 1 per worker",
        ),
        "hosts on the host network of one machine": (
            [dataclasses.replace(r, node_ip="10.0.0.1") for r in whole],
            c.REASON_WORKER_ENV_MISMATCH,
            "several hosts have the address ['10.0.0.1']: TPU pods need a network address each",
        ),
    }


@pytest.mark.parametrize("name", broken_worlds(some_settings()))
def test_a_world_that_is_not_whole_is_refused_by_name(name: str) -> None:
    settings = some_settings()
    reports, reason, message = broken_worlds(settings)[name]
    with pytest.raises(RunnerError) as e:
        rank_workers(settings, reports, coords=no_coords(settings))
    assert (e.value.reason, str(e.value)) == (reason, message)
