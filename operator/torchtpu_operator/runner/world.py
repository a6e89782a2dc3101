"""Who is which rank: a pure function from what the workers report to the order of ranks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .constants import (
    ENV_TORCH_TPU_TOPOLOGY,
    ENV_TPU_WORKER_HOSTNAMES,
    REASON_CHIP_VISIBILITY,
    REASON_WORKER_ENV_MISMATCH,
    REASON_WORKER_ID_CONFLICT,
)
from .failures import RunnerError
from .settings import Settings, dimensions

ORDER_PHYSICAL = "physical"
ORDER_WORKER_ID = "workerId"
HOST_BOUNDS = (2, 2, 1)
"""Chips of one host of a multi-host slice along x, y, z; every such host has four (torch_tpu fixes the same)."""
COORDS_TIMEOUT_SECONDS = 60.0
"""The chips' query starts the TPU runtime once; torch_tpu itself waits 300 s, but worker ids are a fair answer too."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Where one worker finds itself, before ranks exist."""

    index: int
    """Index of its placement group bundle."""
    slice_name: str
    """TPU_NAME of its pod."""
    worker_id: int
    """TPU_WORKER_ID of its pod: KubeRay's host index."""
    devices: tuple[int, ...]
    """TPU device ids on the host that Ray gave it; v7x numbers two per chip."""
    node_ip: str
    node_id: str
    """Ray's node id."""
    pod: str
    node: str = ""
    """Kubernetes node, if the pod knows it."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One rank's place in the world. Under PerHost a rank is a host and `device` is 0."""

    rank: int
    slice_index: int
    host: int
    """Position of its host in the slice's order."""
    device: int
    """Position of its device on the host: LOCAL_RANK."""
    report: Report


@dataclass(frozen=True, kw_only=True)
class World:
    places: tuple[Place, ...]
    """By rank: slice-major, then host, then device."""
    order: str
    """ORDER_PHYSICAL or ORDER_WORKER_ID."""
    note: str
    """Why that order, for people."""

    def host_ips(self, slice_index: int) -> tuple[str, ...]:
        """Addresses of the slice's hosts in their order."""
        return tuple(dict.fromkeys(p.report.node_ip for p in self.places if p.slice_index == slice_index))


def parse_report(index: int, answer: Mapping[str, Any]) -> Report:
    """A Report from what worker.describe_worker() answered. Raises RunnerError(WorkerEnvMismatch)."""
    try:
        worker_id = int(answer["worker_id"])
    except ValueError:
        raise RunnerError(
            f"pod {answer['pod']} has no TPU_WORKER_ID (got {answer['worker_id']!r})", reason=REASON_WORKER_ENV_MISMATCH
        ) from None
    fields = dict(answer) | {"index": index, "worker_id": worker_id, "devices": tuple(answer["devices"])}
    return Report(**fields)


def physical_host(coords: Sequence[int]) -> tuple[int, int, int]:
    """Host coordinates (z, y, x), which sort as torch_tpu sorts hosts, from the coordinates of one of its chips."""
    x, y, z = [*coords, 0, 0, 0][:3]
    return z // HOST_BOUNDS[2], y // HOST_BOUNDS[1], x // HOST_BOUNDS[0]


def order_hosts(
    settings: Settings, coords: Sequence[Sequence[Sequence[int] | None]]
) -> tuple[list[list[int]], str, str]:
    """Worker ids of each slice in rank order, the order's name and why.

    `coords[s][w]` are the coordinates [x, y, z, ...] of a chip on host w of slice s, None where the host cannot tell.
    Worker ids are given out before scheduling, so only the chips know the physical order; it is used if they all tell
    a sound one, since half an order would be none.
    """
    by_worker_id = [list(range(settings.hosts_per_slice)) for _ in settings.slices]
    if settings.hosts_per_slice == 1:
        return by_worker_id, ORDER_WORKER_ID, "one host per slice"
    bounds = [*dimensions(settings.topology), 1, 1][:3]
    wanted = {
        (z, y, x)
        for x in range(max(1, bounds[0] // HOST_BOUNDS[0]))
        for y in range(max(1, bounds[1] // HOST_BOUNDS[1]))
        for z in range(max(1, bounds[2] // HOST_BOUNDS[2]))
    }
    physical = []
    for slice_index, hosts in enumerate(coords):
        silent = [w for w, chip in enumerate(hosts) if not chip]
        if silent:
            return by_worker_id, ORDER_WORKER_ID, "the chips did not tell their coordinates"
        found = [physical_host(chip or ()) for chip in hosts]
        if set(found) != wanted or len(found) != len(wanted):
            return (
                by_worker_id,
                ORDER_WORKER_ID,
                f"the coordinates that the chips of slice {slice_index} told do not form {settings.topology}: "
                f"{[list(chip or ()) for chip in hosts]}",
            )
        physical.append(sorted(range(len(found)), key=found.__getitem__))
    return physical, ORDER_PHYSICAL, "coordinates of the chips"


def hosts_to_ask(settings: Settings, reports: Sequence[Report]) -> dict[tuple[int, int], int]:
    """(slice index, worker id) -> index into `reports` of the worker that shall ask that host's chips for coordinates.

    Empty where there is nothing to order; hosts that no worker of this job should be on are left out.
    """
    if settings.hosts_per_slice == 1:
        return {}
    index_of = {s.name: i for i, s in enumerate(settings.slices)}
    asked: dict[tuple[int, int], int] = {}
    for position, report in enumerate(reports):
        if report.slice_name in index_of and 0 <= report.worker_id < settings.hosts_per_slice:
            asked.setdefault((index_of[report.slice_name], report.worker_id), position)
    return asked


def coords_hint(settings: Settings, reports: Sequence[Report], slice_name: str) -> dict[str, str]:
    """What the TPU runtime must know of a slice to tell coordinates, before ranks exist: hosts by worker id."""
    ips = {r.worker_id: r.node_ip for r in reports if r.slice_name == slice_name}
    return {
        ENV_TPU_WORKER_HOSTNAMES: ",".join(ips[worker_id] for worker_id in sorted(ips)),
        ENV_TORCH_TPU_TOPOLOGY: settings.torch_topology,
    }


def check_reports(settings: Settings, reports: Sequence[Report]) -> None:
    """Raises RunnerError unless the workers cover every device of every host of every slice exactly once."""
    names = [s.name for s in settings.slices]
    foreign = sorted({r.slice_name for r in reports} - set(names))
    if foreign:
        raise RunnerError(
            f"workers run on hosts of {foreign} instead of {names}: TPU_NAME in their pods is wrong",
            reason=REASON_WORKER_ENV_MISMATCH,
        )
    hosts: dict[tuple[str, int], list[Report]] = {}
    for report in reports:
        hosts.setdefault((report.slice_name, report.worker_id), []).append(report)
    for name in names:
        ids = sorted({worker_id for slice_name, worker_id in hosts if slice_name == name})
        if ids != list(range(settings.hosts_per_slice)):
            raise RunnerError(
                f"slice {name} has hosts with TPU_WORKER_ID {ids} where 0..{settings.hosts_per_slice - 1} are needed",
                reason=REASON_WORKER_ID_CONFLICT,
            )
    for (name, worker_id), members in hosts.items():
        nodes = sorted({m.node_id for m in members})
        if len(nodes) != 1:
            raise RunnerError(
                f"{len(nodes)} hosts of slice {name} have TPU_WORKER_ID {worker_id}: "
                f"pods {sorted({m.pod for m in members})}",
                reason=REASON_WORKER_ID_CONFLICT,
            )
        seen = Counter(device for m in members for device in m.devices)
        per_worker = settings.devices_per_host // settings.workers_per_host
        if seen != Counter(range(settings.devices_per_host)) or any(len(m.devices) != per_worker for m in members):
            raise RunnerError(
                f"host {worker_id} of slice {name} (pod {members[0].pod}): its workers hold the TPU devices "
                f"{sorted(list(m.devices) for m in members)}; needed are 0..{settings.devices_per_host - 1}, "
                f"each once, {per_worker} per worker",
                reason=REASON_CHIP_VISIBILITY,
            )
    shared = [ip for ip, n in Counter(members[0].node_ip for members in hosts.values()).items() if n > 1]
    if shared:
        raise RunnerError(
            f"several hosts have the address {sorted(shared)}: TPU pods need a network address each",
            reason=REASON_WORKER_ENV_MISMATCH,
        )


def rank_workers(
    settings: Settings, reports: Sequence[Report], *, coords: Sequence[Sequence[Sequence[int] | None]]
) -> World:
    """Ranks by (slice, host, device). Raises RunnerError if the reports do not make a whole world."""
    check_reports(settings, reports)
    host_order, order, note = order_hosts(settings, coords)
    slice_index = {s.name: i for i, s in enumerate(settings.slices)}
    per_worker = settings.devices_per_host // settings.workers_per_host

    def key(report: Report) -> tuple[int, int, int]:
        index = slice_index[report.slice_name]
        return index, host_order[index].index(report.worker_id), min(report.devices) // per_worker

    places = []
    for rank, report in enumerate(sorted(reports, key=key)):
        index, host, device = key(report)
        places.append(Place(rank=rank, slice_index=index, host=host, device=device, report=report))
    return World(places=tuple(places), order=order, note=note)
