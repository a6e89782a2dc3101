"""Builders for the runner's tests: settings and what the workers of a healthy world report."""

import json
import math
import random
from collections.abc import Mapping

from torchtpu_operator.runner.settings import Settings, read_settings
from torchtpu_operator.runner.world import Report, World, rank_workers

# (Ray's accelerator type, topology, chips per host, devices per chip): every kind of shape there is.
SHAPES = {
    "v4 2x2x2": ("TPU-V4", "2x2x2", 4, 1),
    "v5e 2x4 on 4-chip hosts": ("TPU-V5LITEPOD", "2x4", 4, 1),
    "v5e 16x16": ("TPU-V5LITEPOD", "16x16", 4, 1),
    "v5p 2x2x2": ("TPU-V5P", "2x2x2", 4, 1),
    "v5p 2x2x1, one host": ("TPU-V5P", "2x2x1", 4, 1),
    "v5p 2x4x4": ("TPU-V5P", "2x4x4", 4, 1),
    "v5p 4x4x8": ("TPU-V5P", "4x4x8", 4, 1),
    "v6e 1x1, one chip": ("TPU-V6E", "1x1", 1, 1),
    "v6e 2x4 on one 8-chip host": ("TPU-V6E", "2x4", 8, 1),
    "v6e 2x4 on 4-chip hosts": ("TPU-V6E", "2x4", 4, 1),
    "v6e 4x4": ("TPU-V6E", "4x4", 4, 1),
    "v7x 2x2x1, one host": ("TPU-V7X", "2x2x1", 4, 2),
    "v7x 2x2x4": ("TPU-V7X", "2x2x4", 4, 2),
}


def an_env(shape: str = "v6e 4x4", *, slices: int = 1, launcher: str = "PerDevice", **changes: str) -> dict[str, str]:
    """What the operator sets for a shape of SHAPES."""
    accelerator, topology, chips_per_host, devices_per_chip = SHAPES[shape]
    dims = [*map(int, topology.split("x")), 1][:3]
    hosts = max(1, math.prod(dims) // chips_per_host)
    torch_topology = ",".join(map(str, dims + ([devices_per_chip] if devices_per_chip > 1 else [])))
    return {
        "TORCHTPU_LAUNCHER": launcher,
        "TORCHTPU_SLICES": json.dumps([{"name": f"s{i}", "hosts": hosts} for i in range(slices)]),
        "TORCHTPU_TOPOLOGY": topology,
        "TORCHTPU_ACCELERATOR_TYPE": accelerator,
        "TORCHTPU_CHIPS_PER_HOST": str(chips_per_host),
        "TORCHTPU_DEVICES_PER_CHIP": str(devices_per_chip),
        "TORCHTPU_TORCH_TOPOLOGY": torch_topology,
    } | changes


def some_settings(shape: str = "v6e 4x4", *, slices: int = 1, launcher: str = "PerDevice") -> Settings:
    return read_settings(an_env(shape, slices=slices, launcher=launcher))


def node_ip(slice_index: int, worker_id: int) -> str:
    return f"10.244.{slice_index}.{10 + worker_id}"


def reports_of(settings: Settings, *, seed: int | None = None) -> list[Report]:
    """One report per worker of a whole world; with a seed in an arbitrary order, as Ray's bundles come."""
    per_worker = settings.devices_per_host // settings.workers_per_host
    places = [
        (slice_index, worker_id, worker)
        for slice_index in range(len(settings.slices))
        for worker_id in range(settings.hosts_per_slice)
        for worker in range(settings.workers_per_host)
    ]
    if seed is not None:
        random.Random(seed).shuffle(places)
    return [
        Report(
            index=index,
            slice_name=settings.slices[s].name,
            worker_id=w,
            devices=tuple(range(d * per_worker, (d + 1) * per_worker)),
            node_ip=node_ip(s, w),
            node_id=f"node-{s}-{w}",
            pod=f"pod-{s}-{w}",
        )
        for index, (s, w, d) in enumerate(places)
    ]


def no_coords(settings: Settings) -> list[list[None]]:
    return [[None] * settings.hosts_per_slice for _ in settings.slices]


def a_world(settings: Settings, *, seed: int | None = None) -> World:
    return rank_workers(settings, reports_of(settings, seed=seed), coords=no_coords(settings))


def chip_coords(topology: str, order: list[int]) -> list[list[int]]:
    """Coordinates that the hosts of one slice would tell, host `order[i]` being the i-th in physical order."""
    x, y, z = [*map(int, topology.split("x")), 1][:3]
    physical = [[2 * hx, 2 * hy, hz] for hz in range(z) for hy in range(max(1, y // 2)) for hx in range(max(1, x // 2))]
    told: Mapping[int, list[int]] = {worker_id: physical[i] for i, worker_id in enumerate(order)}
    return [told[worker_id] for worker_id in range(len(order))]
