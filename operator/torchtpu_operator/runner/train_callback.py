"""Launcher Driver: Ray Train's ranks in physical order, with the whole launch contract, the user's script unchanged.

Ray Train imports the class named in RAY_TRAIN_CALLBACKS in the process that calls `trainer.fit()` and puts it before
its own callbacks. What it needs of Ray Train is internal (tried on Ray 2.60): if a piece is missing, or the workers are
not whole slices of this job with one device each, the callback says so and leaves Ray's order as it is.
"""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ray

from . import constants as c
from .contract import rank_env
from .failures import RunnerError
from .printer import ContainerLog, Printer
from .result import world_line, world_table
from .settings import Settings, read_settings
from .worker import describe_worker, query_coords
from .world import (
    COORDS_TIMEOUT_SECONDS,
    Report,
    World,
    coords_hint,
    hosts_to_ask,
    parse_report,
    rank_workers,
)

if TYPE_CHECKING:
    _Base = object
else:
    try:
        from ray.train.v2._internal.execution.callback import WorkerGroupCallback as _Base
    except ImportError:
        # A base that Ray accepts but whose hooks it will not call: announced in __init__.
        from ray.train.v2.api.callback import RayTrainCallback as _Base

# Ray ships the callback to its controller, and functions on to the workers: by value, since a script may have replaced
# PYTHONPATH for them in its own runtime_env.
ray.cloudpickle.register_pickle_by_value(sys.modules[__package__])

_RAYS_OWN = frozenset(
    {c.ENV_MASTER_ADDR, c.ENV_MASTER_PORT} | {name for name in c.RUNNER_ENV if name.startswith("PET_")}
)
"""Set by Ray's backend later (a free port), or torchrun's."""


def set_env(contract: Mapping[str, str | None]) -> None:
    """Runs in a train worker, before its backend starts."""
    for name, value in contract.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def job_of(settings: Settings, reports: Sequence[Report]) -> Settings | None:
    """The settings narrowed to the slices that these workers use; None if they do not use whole slices.

    A script may run several trainers, each on some of the job's slices.
    """
    used = {r.slice_name for r in reports}
    narrowed = dataclasses.replace(settings, slices=tuple(s for s in settings.slices if s.name in used))
    if len(narrowed.slices) != len(used) or len(reports) != narrowed.num_devices:
        return None
    return narrowed if all(len(r.devices) == 1 for r in reports) else None


def order_report(before: Sequence[Report], world: World) -> dict[str, Any]:
    """Slice, host and device of every rank, as Ray Train had them and as they are now."""
    slices = {r.slice_name for r in before}

    def say(report: Report) -> str:
        where = f"{report.worker_id}:{','.join(map(str, report.devices))}"
        return where if len(slices) == 1 else f"{report.slice_name}/{where}"

    return {
        "order": world.order,
        "before": [say(r) for r in before],
        "after": [say(p.report) for p in world.places],
        "moved": sum(r.index != p.report.index for r, p in zip(before, world.places, strict=True)),
    }


class SliceOrderCallback(_Base):
    """Puts the workers of a train run into the order of their chips and gives each the launch environment."""

    def __init__(self) -> None:
        self._contracts: list[dict[str, str | None]] = []
        # Of the process that calls fit(): the controller may run where the job's variables are not.
        self._job_env = {name: value for name, value in os.environ.items() if name in c.OPERATOR_ENV}
        if not hasattr(_Base, "before_init_train_context"):
            self._say(f"Ray {ray.__version__} has no callback before ranks are sent: ranks stay in Ray Train's order")

    def before_init_train_context(self, workers: list[Any]) -> dict[str, list[Any]]:
        """`workers` have ranks, which are not sent yet: reorder the list in place. Adds no context arguments."""
        self._contracts = []
        try:
            self._reorder(workers)
        except RunnerError as e:
            self._say(f"ranks stay in Ray Train's order: {e}")
        except (AttributeError, TypeError) as e:
            self._say(
                f"ranks stay in Ray Train's order: Ray {ray.__version__} differs from what this runner knows "
                f"({type(e).__name__}: {e}); use a Ray version that the operator supports"
            )
        return {}

    def after_worker_group_start(self, worker_group: Any) -> None:
        """All workers run, torch's process group does not exist yet: set the environment."""
        if len(self._contracts) != len(worker_group):
            return
        ray.get(
            [
                worker_group.execute_single_async(rank, set_env, contract)
                for rank, contract in enumerate(self._contracts)
            ]
        )
        self._say(f"launch environment set on {len(self._contracts)} workers")

    def _reorder(self, workers: list[Any]) -> None:
        if not workers or not workers[0].resources.get("TPU"):
            return
        settings = read_settings({**os.environ, **self._job_env})
        if any(worker.distributed_context.world_size != len(workers) for worker in workers):
            self._say(f"ranks stay in Ray Train's order: only {len(workers)} workers of a group are (re)started")
            return
        answers = ray.get([worker.execute_async(describe_worker) for worker in workers])
        reports = [parse_report(index, answer) for index, answer in enumerate(answers)]
        job = job_of(settings, reports)
        if job is None:
            self._say(
                f"ranks stay in Ray Train's order: {len(workers)} workers with "
                f"{workers[0].resources.get('TPU'):g} TPU each are not whole slices with one worker per TPU device "
                f"({settings.devices_per_slice} per slice here)"
            )
            return
        world = rank_workers(job, reports, coords=self._coords(job, workers, reports))
        ordered = [workers[place.report.index] for place in world.places]
        contexts = [
            dataclasses.replace(
                worker.distributed_context,
                world_rank=place.rank,
                local_rank=place.device,
                local_world_size=job.devices_per_host,
                node_rank=place.slice_index * job.hosts_per_slice + place.host,
            )
            for worker, place in zip(ordered, world.places, strict=True)
        ]
        for worker, context in zip(ordered, contexts, strict=True):
            worker.distributed_context = context
        # The caller's own list: it is what Ray sends the ranks by, and keeps.
        workers[:] = ordered
        session_id = str(time.time_ns())
        self._contracts = [
            {k: v for k, v in rank_env(job, world, p, session_id=session_id).items() if k not in _RAYS_OWN}
            for p in world.places
        ]
        self._tell(job, reports, world)

    def _coords(self, job: Settings, workers: list[Any], reports: Sequence[Report]) -> list[list[Any]]:
        coords: list[list[Any]] = [[None] * job.hosts_per_slice for _ in job.slices]
        asked = hosts_to_ask(job, reports)
        calls = [
            workers[position].execute_async(
                query_coords, coords_hint(job, reports, reports[position].slice_name), COORDS_TIMEOUT_SECONDS
            )
            for position in asked.values()
        ]
        for (slice_index, worker_id), answer in zip(asked, ray.get(calls), strict=True):
            coords[slice_index][worker_id] = answer
        return coords

    def _tell(self, job: Settings, reports: Sequence[Report], world: World) -> None:
        report = order_report(reports, world)
        printer = self._printer()
        printer.message(f"Ray Train's order of ranks, as host:device: {' '.join(report['before'])}")
        printer.message(f"order now ({world.order}, {world.note}): {' '.join(report['after'])}")
        printer.lines([c.ORDER_PREFIX + json.dumps(report), world_line(job, world)])
        printer.message("\n".join(world_table(job, world)))

    def _say(self, text: str) -> None:
        self._printer().message(text)

    @staticmethod
    def _printer() -> Printer:
        # Opened at each use: the callback travels between processes.
        return Printer(container=ContainerLog.open() if "RAY_CLUSTER_NAME" in os.environ else None)
