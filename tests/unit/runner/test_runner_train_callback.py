"""Ray Train's workers put in order: against the shapes of Ray's own objects, without a cluster."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import ray
from ray.train.v2._internal.execution.callback import WorkerGroupCallback
from ray.train.v2._internal.execution.context import DistributedContext

from tests.unit.runner.worlds import an_env, reports_of, some_settings
from torchtpu_operator.runner import train_callback
from torchtpu_operator.runner.train_callback import SliceOrderCallback
from torchtpu_operator.runner.worker import query_coords
from torchtpu_operator.runner.world import Report


@dataclass(eq=False)
class Worker:
    """As much of ray.train's Worker as the callback touches."""

    report: Report
    distributed_context: DistributedContext
    resources: dict[str, float]
    env: dict[str, str | None] = field(default_factory=dict)

    def execute_async(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if function is train_callback.set_env:
            self.env = dict(arguments[0])
            return None
        if function is query_coords:
            return None
        r = self.report
        return {
            "slice_name": r.slice_name,
            "worker_id": str(r.worker_id),
            "devices": list(r.devices),
            "node_ip": r.node_ip,
            "node_id": r.node_id,
            "pod": r.pod,
            "node": r.node,
        }


@dataclass
class WorkerGroup:
    workers: list[Worker]

    def __len__(self) -> int:
        return len(self.workers)

    def execute_single_async(self, rank: int, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.workers[rank].execute_async(function, *arguments)


def workers_of(reports: list[Report], *, tpus: float = 1) -> list[Worker]:
    """Ranks in the given order, as Ray Train has assigned them."""
    return [
        Worker(
            report=report,
            distributed_context=DistributedContext(
                world_rank=rank, world_size=len(reports), node_rank=9, local_rank=9, local_world_size=9
            ),
            resources={"TPU": tpus, "CPU": 1},
        )
        for rank, report in enumerate(reports)
    ]


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "get", lambda calls: calls)
    for name, value in an_env("v6e 4x4", slices=2, launcher="Driver").items():
        monkeypatch.setenv(name, value)


def run(workers: list[Worker]) -> list[Worker]:
    """Both hooks as Ray calls them; the list as it is then."""
    callback = SliceOrderCallback()
    assert callback.before_init_train_context(workers) == {}
    callback.after_worker_group_start(WorkerGroup(workers))
    return workers


def test_it_is_a_callback_that_ray_accepts() -> None:
    assert issubclass(SliceOrderCallback, WorkerGroupCallback)


def test_two_slices_in_any_order_come_out_slice_major_with_the_whole_contract() -> None:
    settings = some_settings("v6e 4x4", slices=2)
    workers = run(workers_of(reports_of(settings, seed=3)))
    assert [(w.report.slice_name, w.report.worker_id, w.report.devices) for w in workers] == [
        (f"s{s}", host, (chip,)) for s in range(2) for host in range(4) for chip in range(4)
    ]
    assert [w.distributed_context for w in workers] == [
        DistributedContext(world_rank=rank, world_size=32, node_rank=rank // 4, local_rank=rank % 4, local_world_size=4)
        for rank in range(32)
    ]
    assert [(w.env["RANK"], w.env["TPU_WORKER_ID"], w.env["MEGASCALE_SLICE_ID"]) for w in workers] == [
        (str(rank), str(rank // 4 % 4), str(rank // 16)) for rank in range(32)
    ]
    assert {"MASTER_ADDR", "MASTER_PORT", "PET_NNODES"} & set(workers[0].env) == set()


def test_a_trainer_on_one_of_two_slices_is_a_world_of_its_own() -> None:
    settings = some_settings("v6e 4x4", slices=2)
    mine = [r for r in reports_of(settings, seed=4) if r.slice_name == "s1"]
    workers = run(workers_of(mine))
    last = workers[-1]
    assert (last.report.worker_id, last.distributed_context.node_rank, last.env["WORLD_SIZE"]) == (3, 3, "16")
    assert (last.env["TORCHTPU_NUM_SLICES"], last.env["MEGASCALE_NUM_SLICES"]) == ("1", None)


def untouched(workers: list[Worker]) -> list[tuple[int, int, dict[str, Any]]]:
    return [(i, w.distributed_context.world_rank, w.env) for i, w in enumerate(workers)]


def odd_worlds() -> dict[str, list[Worker]]:
    settings = some_settings("v6e 4x4", slices=2)
    reports = reports_of(settings, seed=5)
    random.Random(1).shuffle(reports)
    restarted = workers_of(reports[:1])
    restarted[0].distributed_context = DistributedContext(
        world_rank=0, world_size=32, node_rank=0, local_rank=0, local_world_size=4
    )
    return {
        "no TPU at all": workers_of(reports, tpus=0),
        "fewer workers than a slice has devices": workers_of(reports[:8]),
        "one worker of a group restarted": restarted,
        "hosts that are not of this job": workers_of(reports_of(some_settings("v6e 4x4", slices=3))[32:]),
        "no workers": [],
    }


@pytest.mark.parametrize("name", odd_worlds())
def test_what_is_not_whole_slices_is_left_alone(name: str) -> None:
    workers = odd_worlds()[name]
    assert untouched(run(list(workers))) == [(i, w.distributed_context.world_rank, {}) for i, w in enumerate(workers)]


def test_a_job_without_our_variables_is_left_alone_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TORCHTPU_SLICES")
    run(workers_of(reports_of(some_settings("v6e 4x4"), seed=1)))
    assert "ranks stay in Ray Train's order: TORCHTPU_SLICES is not set" in capsys.readouterr().out


def test_a_ray_that_has_changed_is_told_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    class Changed:
        resources = {"TPU": 1}  # noqa: RUF012

    assert SliceOrderCallback().before_init_train_context([Changed()]) == {}
    assert "differs from what this runner knows" in capsys.readouterr().out


def test_the_report_tells_the_order_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    settings = some_settings("v6e 4x4", slices=2)
    reports = [r for r in reports_of(settings) if r.slice_name == "s0"]
    run(workers_of(reports[4:] + reports[:4]))
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [
        "[torchtpu] Ray Train's order of ranks, as host:device: "
        "1:0 1:1 1:2 1:3 2:0 2:1 2:2 2:3 3:0 3:1 3:2 3:3 0:0 0:1 0:2 0:3",
        "[torchtpu] order now (workerId, the chips did not tell their coordinates): "
        "0:0 0:1 0:2 0:3 1:0 1:1 1:2 1:3 2:0 2:1 2:2 2:3 3:0 3:1 3:2 3:3",
    ]
