"""Where the time went, from the timestamps in the objects' status. They have whole seconds, and so has what follows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from torchtpu_operator.api import TorchTPUJob, TPUSlice

NAMES = ("Pending", "Provisioning", "Starting", "Running", "Finishing", "Clean-up")


@dataclass(frozen=True, kw_only=True)
class Part:
    what: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PhaseTime:
    name: str
    """One of NAMES."""
    seconds: float
    parts: tuple[Part, ...] = ()
    """What is known of its inside; need not add up."""
    over: bool = True


@dataclass(frozen=True)
class _Marks:
    """When each phase began; None: not reached."""

    times: tuple[datetime | None, ...]

    def measure(self, now: datetime) -> list[tuple[str, float, bool]]:
        """A phase that was skipped has no time of its own; the last one that was reached runs until now."""
        reached = [(name, at) for name, at in zip((*NAMES, ""), self.times, strict=True) if at is not None]
        ends = [at for _, at in reached[1:]]
        if reached and reached[-1][0]:
            ends.append(now)
        return [
            (name, max(0.0, (end - at).total_seconds()), index + 1 < len(reached))
            for index, ((name, at), end) in enumerate(zip(reached, ends, strict=False))
        ]


def measure_phases(
    job: TorchTPUJob,
    slices: Collection[TPUSlice],
    *,
    now: datetime,
    pools_gone_at: datetime | None,
    result: Mapping[str, Any] | None = None,
) -> tuple[PhaseTime, ...]:
    """The phases that were reached, in order. `result` is the runner's last line; its phases have fractions."""
    status, attempt = job.status, job.status.attempt
    marks = _Marks(
        (
            job.metadata.creation_timestamp,
            _first(each.metadata.creation_timestamp for each in slices),
            attempt.started_at if attempt else None,
            attempt.running_at if attempt else None,
            attempt.ended_at if attempt else None,
            status.completion_time,
            pools_gone_at,
        )
    )
    parts = {
        "Provisioning": _provisioning(slices),
        "Starting": _starting(job),
        "Running": tuple(
            Part(what=_RUNNER[name], seconds=float(seconds))
            for name, seconds in (result or {}).get("phases", {}).items()
            if name in _RUNNER
        ),
    }
    return tuple(
        PhaseTime(name=name, seconds=seconds, parts=parts.get(name, ()), over=over)
        for name, seconds, over in marks.measure(now)
    )


_RUNNER = {
    "connect": "driver joins Ray",
    "reserve": "placement group",
    "workers": "workers start",
    "order": "ranks in order",
    "run": "entrypoint",
}


def _provisioning(slices: Collection[TPUSlice]) -> tuple[Part, ...]:
    asked = _first(each.metadata.creation_timestamp for each in slices)
    return _parts(
        ("GKE accepts the pool", asked, accepted := _last(each.status.created_at for each in slices)),
        ("first node", accepted, first := _last(each.status.first_node_at for each in slices)),
        ("all nodes Ready with chips", first, _last(each.status.ready_at for each in slices)),
    )


def _starting(job: TorchTPUJob) -> tuple[Part, ...]:
    attempt = job.status.attempt
    if attempt is None:
        return ()
    return _parts(
        ("RayCluster until the gate opens", attempt.started_at, attempt.ray_cluster_ready_at),
        ("submission", attempt.submit_recorded_at, attempt.submitted_at),
        ("driver starts", attempt.submitted_at, attempt.running_at),
    )


def _parts(*spans: tuple[str, datetime | None, datetime | None]) -> tuple[Part, ...]:
    return tuple(
        Part(what=what, seconds=(end - start).total_seconds())
        for what, start, end in spans
        if start is not None and end is not None
    )


def _first(times: Any) -> datetime | None:
    known = [each for each in times if each is not None]
    return min(known) if known else None


def _last(times: Any) -> datetime | None:
    known = [each for each in times if each is not None]
    return max(known) if known else None
