"""The Ray job's driver for launchers PerDevice and PerHost: reserve, rank, run, tell how it ended."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RuntimeEnvSetupError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from . import constants as c
from .contract import ports_of, rank_env
from .failures import RunnerError
from .printer import ContainerLog, Printer
from .ranks import Ranks, first_line, name_host
from .reserve import bundle_resources, explain_from_cluster, request
from .result import Result, result_line, world_line, world_table
from .settings import Settings, read_entrypoint, read_settings
from .worker import RankWorker
from .world import COORDS_TIMEOUT_SECONDS, Report, World, coords_hint, hosts_to_ask, parse_report, rank_workers


class StopRequested:
    """Set by SIGTERM, which Ray sends when the job is stopped."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self) -> bool:
        return self.requested

    def install(self) -> None:
        def on_signal(*_: object) -> None:
            self.requested = True

        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, on_signal)


@dataclass(kw_only=True)
class Run:
    """One run's state, filled phase by phase."""

    printer: Printer
    stop: StopRequested = field(default_factory=StopRequested)
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = time.monotonic() - began

    def wait(self, calls: Sequence[Any], *, seconds: float) -> tuple[list[Any], list[Any]]:
        """(done, not done) after all are done or the time is over. Raises RunnerError(Stopped)."""
        limit = time.monotonic() + seconds
        while True:
            done, rest = ray.wait(list(calls), num_returns=len(calls), timeout=min(0.5, seconds))
            if self.stop.requested:
                raise RunnerError("stopped before the entrypoint began", reason=c.REASON_STOPPED)
            if not rest or time.monotonic() >= limit:
                return done, rest


def reserve(run: Run, settings: Settings) -> Any:
    """The placement group, ready."""
    run.printer.message(
        f"reserving {len(settings.slices)} slice(s) {settings.accelerator_type} {settings.topology}: "
        f"{settings.num_hosts} hosts, {settings.num_devices} TPU devices"
    )
    with run.phase("reserve"):
        group = request(settings)
        if run.wait([group.ready()], seconds=settings.reserve_timeout_seconds)[1]:
            raise RunnerError(
                f"the slices are not free after {settings.reserve_timeout_seconds:g} s: "
                f"{explain_from_cluster(settings)}",
                reason=c.REASON_PLACEMENT_GROUP_TIMEOUT,
            )
    return group


def start_workers(run: Run, settings: Settings, group: Any) -> tuple[list[Any], list[Report]]:
    """One actor per bundle, and where each is. Nothing of the user's runs before all have reported in."""
    # By value: the workers need not find this package, whatever their PYTHONPATH.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__package__])
    guard_source = Path(__file__).with_name("guard.py").read_text()
    remote = ray.remote(RankWorker)
    with run.phase("workers"):
        actors = [
            remote.options(
                num_cpus=0,
                resources={"TPU": bundle_resources(settings)["TPU"]},
                max_concurrency=4,
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index),
            ).remote(guard_source)
            for index in range(settings.num_workers)
        ]
        calls = [actor.report.remote() for actor in actors]
        _, absent = run.wait(calls, seconds=settings.start_timeout_seconds)
        if absent:
            missing = [index for index, call in enumerate(calls) if call in set(absent)]
            where = sorted(
                {
                    f"{settings.slices[index // (settings.hosts_per_slice * settings.workers_per_host)].name} host "
                    f"{index // settings.workers_per_host % settings.hosts_per_slice}"
                    for index in missing
                }
            )
            raise RunnerError(
                f"{len(missing)} of {len(calls)} workers did not start within {settings.start_timeout_seconds:g} s: "
                f"{', '.join(where)}",
                reason=c.REASON_WORKER_INIT_TIMEOUT,
            )
        return actors, [_report(index, call) for index, call in enumerate(calls)]


def _report(index: int, call: Any) -> Report:
    try:
        answer = ray.get(call)
    except RuntimeEnvSetupError as e:
        raise RunnerError(f"Ray could not set up the runtimeEnv: {e}", reason=c.REASON_BAD_CONFIG) from e
    except RayActorError as e:
        raise RunnerError(f"worker {index} died while starting: {first_line(e)}", reason=c.REASON_WORKER_DIED) from e
    return parse_report(index, answer)


def ask_coords(
    run: Run, settings: Settings, actors: Sequence[Any], reports: Sequence[Report]
) -> list[list[Sequence[int] | None]]:
    """Chip coordinates by slice and worker id, None where unknown; one worker per host asks."""
    coords: list[list[Sequence[int] | None]] = [[None] * settings.hosts_per_slice for _ in settings.slices]
    asked = {
        host: actors[position].coords.remote(
            coords_hint(settings, reports, reports[position].slice_name), COORDS_TIMEOUT_SECONDS
        )
        for host, position in hosts_to_ask(settings, reports).items()
    }
    if not asked:
        return coords
    done, _ = run.wait(list(asked.values()), seconds=COORDS_TIMEOUT_SECONDS + 10)
    for (slice_index, worker_id), call in asked.items():
        if call in done:
            try:
                coords[slice_index][worker_id] = ray.get(call)
            except RayActorError as e:
                raise RunnerError(
                    f"worker {worker_id} of slice {slice_index} died while telling its chips' coordinates: "
                    f"{first_line(e)}",
                    reason=c.REASON_WORKER_DIED,
                ) from e
    return coords


def check_ports(run: Run, settings: Settings, world: World, actors: Sequence[Any]) -> None:
    """Raises RunnerError if a port that a rank needs is taken. `actors` by rank."""
    calls = [
        actor.busy_ports.remote(list(ports_of(settings, place)))
        for actor, place in zip(actors, world.places, strict=True)
    ]
    done, _ = run.wait(calls, seconds=30)
    taken = [
        f"{port} on {name_host(place)}"
        for call, place in zip(calls, world.places, strict=True)
        if call in done
        for port in ray.get(call)
    ]
    if taken:
        raise RunnerError(
            f"ports that the ranks need are in use: {'; '.join(taken)}. Move what listens there: torch_tpu takes "
            f"{c.SLICEBUILDER_BASE_PORT} + device, Megascale {c.MEGASCALE_BASE_PORT} + device, torch {c.MASTER_PORT}",
            reason=c.REASON_PORT_IN_USE,
        )


def execute(run: Run, env: Mapping[str, str], entrypoint_path: Path) -> Result:
    """The whole run. Raises RunnerError for what is not the entrypoint's doing."""
    settings = read_settings(env)
    if settings.launcher == c.LAUNCHER_DRIVER:
        raise RunnerError("launcher Driver runs the job's own command, not this runner", reason=c.REASON_BAD_CONFIG)
    entrypoint = read_entrypoint(entrypoint_path)
    with run.phase("connect"):
        ray.init(address=env.get("RAY_ADDRESS") or "auto", log_to_driver=False, logging_level="warning")
        run.stop.install()
    group = reserve(run, settings)
    actors, reports = start_workers(run, settings, group)
    with run.phase("order"):
        world = rank_workers(settings, reports, coords=ask_coords(run, settings, actors, reports))
        actors = [actors[place.report.index] for place in world.places]
        check_ports(run, settings, world, actors)
    run.printer.lines([world_line(settings, world)])
    run.printer.message(f"host order: {world.order} ({world.note})")
    run.printer.message("\n".join(world_table(settings, world)))
    seconds = ", ".join(f"{name} {spent:.1f} s" for name, spent in run.phases.items())
    run.printer.message(f"{settings.num_workers} workers ready: {seconds}; starting the entrypoint")
    session_id = str(time.time_ns())
    ranks = Ranks(settings, world, actors, printer=run.printer, grace_seconds=settings.stop_grace_seconds)
    with run.phase("run"):
        ranks.start(entrypoint, [rank_env(settings, world, place, session_id=session_id) for place in world.places])
        ranks.run(stop_requested=run.stop)
    dead_nodes = frozenset(node["NodeID"] for node in ray.nodes() if not node["Alive"])
    verdict = ranks.verdict(dead_nodes=dead_nodes)
    if run.stop.requested:
        raise RunnerError("stopped on request" + (f"; {verdict.message}" if verdict else ""), reason=c.REASON_STOPPED)
    if verdict is None:
        return Result(
            reason=c.REASON_SUCCEEDED,
            exit_code=0,
            message=f"all {settings.num_workers} workers ended with exit code 0",
            phases=run.phases,
        )
    place = world.places[verdict.rank]
    return Result(
        reason=verdict.reason,
        exit_code=verdict.exit_code,
        message=verdict.message,
        rank=verdict.rank,
        pod=place.report.pod,
        node=place.report.node,
        last_lines=verdict.tail,
        phases=run.phases,
    )


def main() -> int:
    """Exit code of the Ray job. The result line is the last thing printed."""
    in_pod = "RAY_CLUSTER_NAME" in os.environ
    run = Run(printer=Printer(container=ContainerLog.open() if in_pod else None))
    entrypoint_path = Path(os.environ.get(c.ENV_ENTRYPOINT_FILE) or f"{c.MOUNT_PATH}/{c.ENTRYPOINT_KEY}")
    try:
        result = execute(run, os.environ, entrypoint_path)
    except RunnerError as e:
        result = Result(reason=e.reason, exit_code=e.exit_code, message=str(e), phases=run.phases)
    except (RayError, ConnectionError) as e:
        result = Result(
            reason=c.REASON_RUNNER_ERROR,
            exit_code=c.EXIT_RUNNER_ERROR,
            message=f"Ray failed: {type(e).__name__}: {first_line(e)}",
            phases=run.phases,
        )
    except Exception as e:  # noqa: BLE001 - the top level: whatever it is, the result line must name it
        run.printer.lines(traceback.format_exc().splitlines())
        result = Result(
            reason=c.REASON_RUNNER_ERROR,
            exit_code=c.EXIT_RUNNER_ERROR,
            message=f"the runner has a bug: {type(e).__name__}: {e}",
            phases=run.phases,
        )
    run.printer.message(result.message)
    run.printer.lines([result_line(result)])
    return result.exit_code
