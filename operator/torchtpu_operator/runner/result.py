"""The machine-readable lines of the driver's output. Without ray, so that the operator and tests can use it too."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .constants import MAX_RESULT_BYTES, RESULT_PREFIX, WORLD_PREFIX
from .settings import Settings
from .world import World

_MAX_MESSAGE = 1024
_MAX_LINE = 512


@dataclass(frozen=True, kw_only=True)
class Result:
    """How the run ended. JSON keys are the camelCase of the fields; absent ones are left out."""

    reason: str
    """One of constants.REASONS."""
    exit_code: int
    """Exit code of the Ray job's driver: the failing rank's, 128 + n for signal n."""
    message: str
    rank: int | None = None
    """The rank (host under PerHost) that ended the run."""
    pod: str | None = None
    node: str | None = None
    last_lines: Sequence[str] = ()
    """The end of that rank's output."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds spent per phase: reserve, workers, order, run, stop."""


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = (limit - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def result_line(result: Result) -> str:
    """One line of at most MAX_RESULT_BYTES; of the last lines the first ones go if it is too long."""
    body: dict[str, Any] = {
        "reason": result.reason,
        "exitCode": result.exit_code,
        "message": _cut(result.message, _MAX_MESSAGE),
        "phases": {name: round(seconds, 2) for name, seconds in result.phases.items()},
    }
    if result.rank is not None:
        body["rank"] = result.rank
    if result.pod:
        body["pod"] = result.pod
    if result.node:
        body["node"] = result.node
    lines = [_cut(line, _MAX_LINE) for line in result.last_lines]
    while True:
        # ASCII JSON: no byte of it can be cut in two, whatever carries it.
        line = RESULT_PREFIX + json.dumps(body | ({"lastLines": lines} if lines else {}))
        if len(line) <= MAX_RESULT_BYTES or not lines:
            return line
        del lines[: max(1, len(lines) // 8)]


def parse_result(text: str) -> dict[str, Any] | None:
    """The last result line in a driver's log or in Ray's job message; None if there is none (yet) or it is cut."""
    for line in reversed(text.splitlines()):
        if line.startswith(RESULT_PREFIX):
            try:
                body = json.loads(line.removeprefix(RESULT_PREFIX))
            except ValueError:
                return None
            return body if isinstance(body, dict) else None
    return None


def world_line(settings: Settings, world: World) -> str:
    """Rank -> slice, host, chip, address, pod, node, for programs."""
    workers = [
        {
            "rank": p.rank,
            "slice": p.slice_index,
            "sliceName": p.report.slice_name,
            "host": p.host,
            "workerId": p.report.worker_id,
            "chip": min(p.report.devices) // settings.devices_per_chip,
            "device": p.device,
            "devices": list(p.report.devices),
            "nodeIp": p.report.node_ip,
            "pod": p.report.pod,
            "node": p.report.node,
        }
        for p in world.places
    ]
    return WORLD_PREFIX + json.dumps({"launcher": settings.launcher, "order": world.order, "workers": workers})


def world_table(settings: Settings, world: World) -> list[str]:
    """The same for people, one line per host."""
    rows = [("ranks", "slice", "host", "chips", "address", "pod", "node")]
    hosts: dict[tuple[int, int], list[int]] = {}
    for place in world.places:
        hosts.setdefault((place.slice_index, place.host), []).append(place.rank)
    for (slice_index, host), ranks in hosts.items():
        places = [world.places[r] for r in ranks]
        report = places[0].report
        chips = sorted({d // settings.devices_per_chip for p in places for d in p.report.devices})
        span = str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"
        rows.append(
            (span, str(slice_index), str(host), " ".join(map(str, chips)), report.node_ip, report.pod, report.node)
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
