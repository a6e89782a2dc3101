"""All ranks of a run: start them, carry their output, end them together."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayActorError

from .constants import (
    REASON_ENTRYPOINT_FAILED,
    REASON_HOST_LOST,
    REASON_NO_PROGRESS,
    REASON_RUNNER_ERROR,
    REASON_WORKER_DIED,
)
from .failures import EXIT_CODES
from .printer import Printer
from .settings import Settings
from .world import Place, World

FAILURE_GRACE_SECONDS = 5.0
"""From SIGTERM to SIGKILL when another rank failed: the rest hangs in a collective or has nothing to save."""
SETTLE_SECONDS = 0.5
"""After the first failure: the others' failures come within moments, and the earliest is the cause."""
POLL_SECONDS = 10.0
LOST_AFTER_SECONDS = 30.0
"""How long a worker may be unreachable (Ray itself needs about as long to declare a host dead)."""
DUMP_SECONDS = 5.0
"""For stacks to be printed and to arrive, before what still lives is stopped."""
STOP_MARGIN_SECONDS = 10.0
"""Beyond the grace, for guards to kill and for last lines to arrive."""
POLL_BYTES = 256 * 1024
TOTAL_RATE = 8 * 1024 * 1024
"""Bytes of output per second over all ranks: what one head can carry, and its disk for some hours."""
MIN_RATE = 16 * 1024
BURST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class End:
    """How one rank ended."""

    rank: int
    exit_code: int
    at: float
    """Unix time on its host."""
    tail: Sequence[str] = ()
    error: str | None = None
    """The entrypoint could not even be started."""


@dataclass(kw_only=True)
class Tally:
    """What is known of all ranks."""

    ends: dict[int, End] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    """Rank -> what Ray said; its actor is dead or out of reach."""
    hung: int | None = None
    """The rank that was silent for longest, when all were silent for too long."""

    @property
    def failed(self) -> bool:
        return self.hung is not None or bool(self.lost) or any(end.exit_code for end in self.ends.values())


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Why the run ended without success."""

    reason: str
    exit_code: int
    message: str
    rank: int
    tail: Sequence[str] = ()


def name_worker(settings: Settings, place: Place) -> str:
    """`rank 3`, or `host 1` under PerHost."""
    return f"{'host' if settings.per_host else 'rank'} {place.rank}"


def name_host(place: Place) -> str:
    node = f", node {place.report.node}" if place.report.node else ""
    return f"slice {place.slice_index} host {place.host} (pod {place.report.pod}, {place.report.node_ip}{node})"


def judge(settings: Settings, world: World, tally: Tally, *, dead_nodes: frozenset[str]) -> Verdict | None:
    """The cause among all that went wrong; None if nothing did. A lost host outweighs the exit codes that follow it."""
    if tally.hung is not None:
        place = world.places[tally.hung]
        end = tally.ends.get(tally.hung)
        return Verdict(
            reason=REASON_NO_PROGRESS,
            exit_code=EXIT_CODES[REASON_NO_PROGRESS],
            message=f"no rank printed a line or touched its heartbeat file for {settings.no_progress_seconds:g} s "
            f"(failurePolicy.noProgressSeconds); silent for longest: {name_worker(settings, place)} on {name_host(place)}; "
            "the stacks of all ranks are in the log",
            rank=tally.hung,
            tail=end.tail if end is not None else (),
        )
    if tally.lost:
        hosts: dict[tuple[int, int], list[int]] = {}
        for place in world.places:
            hosts.setdefault((place.slice_index, place.host), []).append(place.rank)
        for ranks in hosts.values():
            place = world.places[ranks[0]]
            gone = all(rank in tally.lost for rank in ranks)
            if gone and (len(ranks) > 1 or place.report.node_id in dead_nodes):
                span = f"{ranks[0]}" if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"
                return Verdict(
                    reason=REASON_HOST_LOST,
                    exit_code=EXIT_CODES[REASON_HOST_LOST],
                    message=f"host lost: {name_host(place)}, ranks {span}: {tally.lost[ranks[0]]}",
                    rank=ranks[0],
                )
        rank = min(tally.lost)
        place = world.places[rank]
        return Verdict(
            reason=REASON_WORKER_DIED,
            exit_code=EXIT_CODES[REASON_WORKER_DIED],
            message=f"Ray lost the worker of {name_worker(settings, place)} on {name_host(place)}: {tally.lost[rank]}",
            rank=rank,
        )
    failures = [end for end in tally.ends.values() if end.exit_code]
    if not failures:
        return None
    end = min(failures, key=lambda e: (e.at, e.rank))
    place = world.places[end.rank]
    who = f"{name_worker(settings, place)} on {name_host(place)}"
    if end.error:
        return Verdict(
            reason=REASON_RUNNER_ERROR,
            exit_code=end.exit_code,
            message=f"{who}: {end.error}",
            rank=end.rank,
        )
    signal = f" (signal {end.exit_code - 128})" if end.exit_code > 128 else ""
    return Verdict(
        reason=REASON_ENTRYPOINT_FAILED,
        exit_code=end.exit_code,
        message=f"{who} ended with exit code {end.exit_code}{signal}",
        rank=end.rank,
        tail=end.tail,
    )


def first_line(error: BaseException) -> str:
    """The telling part of one of Ray's exceptions: a line, without the prose that follows."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "cause" in line.lower() or "died" in line.lower() or "unavailable" in line]
    return (telling or lines or [type(error).__name__])[0]


class Ranks:
    """The running workers. Built once, used by one thread."""

    def __init__(
        self, settings: Settings, world: World, actors: Sequence[Any], *, printer: Printer, grace_seconds: float
    ) -> None:
        """`actors` by rank."""
        self._settings, self._world, self._actors = settings, world, actors
        self._printer, self._grace = printer, grace_seconds
        self._linger = min(2.0, max(0.05, len(actors) / 160))
        self._tally = Tally()
        self._pending: dict[Any, int] = {}
        self._unreachable: dict[int, float] = {}
        self._signs: dict[int, float] = {}
        """Rank -> when it last gave a sign of life (monotonic)."""
        self._beats: dict[int, float] = {}

    def start(self, entrypoint: str, contracts: Sequence[Mapping[str, str | None]]) -> None:
        """Start the entrypoint on every rank; `contracts` by rank. A rank that cannot be reached counts as lost."""
        rate = max(MIN_RATE, TOTAL_RATE / len(self._actors))
        calls = [
            actor.start.remote(
                entrypoint, contract=dict(contract), cwd=self._settings.working_dir, rate=rate, burst=BURST_BYTES
            )
            for actor, contract in zip(self._actors, contracts, strict=True)
        ]
        for rank, call in enumerate(calls):
            try:
                ray.get(call, timeout=LOST_AFTER_SECONDS)
            except (RayActorError, ray.exceptions.GetTimeoutError) as e:
                self._tally.lost[rank] = first_line(e)
            else:
                self._signs[rank] = time.monotonic()
                self._poll(rank)

    def run(self, *, stop_requested: Callable[[], bool]) -> Tally:
        """Until every rank has ended, by itself or stopped because another failed or because we were asked to."""
        failed_at: float | None = None
        give_up_at: float | None = None
        while self._pending:
            self._collect()
            now = time.monotonic()
            self._expire(now)
            if give_up_at is None and stop_requested():
                give_up_at = now + self._grace + STOP_MARGIN_SECONDS
                self._printer.message(f"stopping all ranks: SIGTERM now, SIGKILL after {self._grace:g} s")
                self._stop(self._grace)
            if give_up_at is None and self._tally.hung is None and self._hang(now):
                failed_at = now + DUMP_SECONDS - SETTLE_SECONDS
            if give_up_at is None and self._tally.failed:
                failed_at = failed_at or now
                if now >= failed_at + SETTLE_SECONDS:
                    grace = min(self._grace, FAILURE_GRACE_SECONDS)
                    give_up_at = now + grace + STOP_MARGIN_SECONDS
                    verdict = self.verdict(dead_nodes=frozenset())
                    running = len(self._pending)
                    if verdict is not None and running:
                        self._printer.message(f"{verdict.message}; stopping the other {running}")
                    self._stop(grace)
            if give_up_at is not None and now >= give_up_at:
                for rank in self._pending.values():
                    self._tally.lost.setdefault(rank, "it did not answer while it was being stopped")
                break
        return self._tally

    def _hang(self, now: float) -> bool:
        """Whether nobody has given a sign of life for too long; then all are told to print their stacks."""
        limit = self._settings.no_progress_seconds
        if limit is None or self._tally.failed or not self._signs or now < max(self._signs.values()) + limit:
            return False
        waiting = set(self._pending.values())
        self._tally.hung = min(waiting, key=lambda rank: (self._signs.get(rank, 0.0), rank))
        self._printer.message(
            f"no sign of life for {limit:g} s: printing the stacks of {len(waiting)} ranks, then stopping"
        )
        for rank in waiting:
            self._actors[rank].dump.remote()
        return True

    def verdict(self, *, dead_nodes: frozenset[str]) -> Verdict | None:
        return judge(self._settings, self._world, self._tally, dead_nodes=dead_nodes)

    def _poll(self, rank: int) -> None:
        call = self._actors[rank].poll.remote(wait=POLL_SECONDS, linger=self._linger, limit=POLL_BYTES)
        self._pending[call] = rank

    def _collect(self) -> None:
        if not ray.wait(list(self._pending), num_returns=1, timeout=0.25)[0]:
            return
        ready, _ = ray.wait(list(self._pending), num_returns=len(self._pending), timeout=0)
        for call in ready:
            rank = self._pending.pop(call)
            try:
                answer = ray.get(call)
            except ActorDiedError as e:
                self._tally.lost[rank] = first_line(e)
            except RayActorError as e:
                self._unreachable.setdefault(rank, time.monotonic())
                if time.monotonic() - self._unreachable[rank] >= LOST_AFTER_SECONDS:
                    self._tally.lost[rank] = first_line(e)
                else:
                    self._poll(rank)
            else:
                self._unreachable.pop(rank, None)
                self._accept(rank, answer)

    def _accept(self, rank: int, answer: Mapping[str, Any]) -> None:
        prefix = f"[{name_worker(self._settings, self._world.places[rank])}] "
        self._printer.lines([prefix + line for line in answer["lines"]])
        if answer["lines"] or answer["beat"] > self._beats.get(rank, 0.0):
            self._signs[rank], self._beats[rank] = time.monotonic(), answer["beat"]
        if answer["end"]:
            end = answer["end"]
            self._tally.ends[rank] = End(
                rank=rank,
                exit_code=end.get("exit", EXIT_CODES[REASON_RUNNER_ERROR]),
                at=end.get("at", 0.0),
                tail=answer["tail"],
                error=end.get("error"),
            )
        if not answer["finished"]:
            self._poll(rank)

    def _expire(self, now: float) -> None:
        """Unreachable for too long is lost, also where no call fails."""
        for call, rank in list(self._pending.items()):
            if rank in self._unreachable and now - self._unreachable[rank] >= LOST_AFTER_SECONDS:
                del self._pending[call]
                self._tally.lost[rank] = f"no answer for {LOST_AFTER_SECONDS:g} s"

    def _stop(self, grace: float) -> None:
        for rank in self._pending.values():
            self._actors[rank].stop.remote(grace)
