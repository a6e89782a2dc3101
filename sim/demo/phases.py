"""Where the time went, from the timestamps in the objects' status. They have whole seconds, and so has what follows."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from sim.demo.story import Story
from torchtpu_operator.api import TPUSlice

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


def measure_phases(story: Story) -> tuple[PhaseTime, ...]:
    """The phases that were reached, in order, until the last look. What the runner tells of its own has fractions."""
    job, slices = story.job, story.slices.values()
    if job is None:
        return ()
    status, attempt = job.status, job.status.attempt
    marks = _Marks(
        (
            job.metadata.creation_timestamp,
            _first(each.metadata.creation_timestamp for each in slices),
            attempt.started_at if attempt else None,
            attempt.running_at if attempt else None,
            attempt.ended_at if attempt else None,
            status.completion_time,
            story.pools_gone_at,
        )
    )
    parts = {
        "Provisioning": _provisioning(slices),
        "Starting": _starting(story),
        "Running": tuple(
            Part(what=_RUNNER[name], seconds=float(seconds))
            for name, seconds in (story.output.result or {}).get("phases", {}).items()
            if name in _RUNNER
        ),
    }
    return tuple(
        PhaseTime(name=name, seconds=seconds, parts=parts.get(name, ()), over=over)
        for name, seconds, over in marks.measure(story.now.at)
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


def _starting(story: Story) -> tuple[Part, ...]:
    attempt = story.job.status.attempt if story.job is not None else None
    if attempt is None:
        return ()
    head, workers = story.ready_times()
    return _parts(
        ("head Ready", attempt.started_at, head),
        ("workers Ready", head, workers),
        ("gate", workers, attempt.ray_cluster_ready_at),
        ("submission", attempt.submit_recorded_at, attempt.submitted_at),
        ("driver starts", attempt.submitted_at, attempt.running_at),
    )


def _parts(*spans: tuple[str, datetime | None, datetime | None]) -> tuple[Part, ...]:
    return tuple(
        Part(what=what, seconds=max(0.0, (end - start).total_seconds()))
        for what, start, end in spans
        if start is not None and end is not None
    )


def _first(times: Iterable[datetime | None]) -> datetime | None:
    known = [each for each in times if each is not None]
    return min(known) if known else None


def _last(times: Iterable[datetime | None]) -> datetime | None:
    known = [each for each in times if each is not None]
    return max(known) if known else None
