"""Where the demo reads: logs of pods, the head's output, its own steps, and the runner's real lines."""

import threading
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import cast

import pytest

from sim.bench import Bench
from sim.demo.cluster import ClusterError, ClusterReader
from sim.demo.head_log import HeadLog
from sim.demo.output import Output, Worker, read_line
from sim.demo.pod_logs import PodLogs
from sim.demo.snapshot import Snapshot
from sim.demo.steps import Step, Steps
from tests.builders import at
from tests.unit.demo.demo_scenes import a_ray_pod, running_snapshot
from torchtpu_operator.runner.result import Result, result_line, world_line, world_table
from torchtpu_operator.runner.settings import Settings, Slice
from torchtpu_operator.runner.world import Place, Report, World

SETTINGS = Settings(
    launcher="PerDevice",
    slices=(Slice(name="llama-a1-s0", hosts=2),),
    topology="2x4",
    accelerator_type="TPU-V6E",
    chips_per_host=4,
    devices_per_chip=1,
    torch_topology="2,4,1",
    stop_grace_seconds=60,
    reserve_timeout_seconds=120,
    start_timeout_seconds=300,
)


def a_world() -> World:
    def place(rank: int) -> Place:
        host, chip = divmod(rank, 4)
        report = Report(
            index=rank,
            slice_name="llama-a1-s0",
            worker_id=1 - host,
            devices=(chip,),
            node_ip=f"10.244.1.{host}",
            node_id=f"ray-{host}",
            pod=f"pod-{host}",
            node=f"node-{host}",
        )
        return Place(rank=rank, slice_index=0, host=host, device=chip, report=report)

    return World(places=tuple(place(rank) for rank in range(8)), order="physical", note="")


def test_what_the_runner_prints_is_understood() -> None:
    result = Result(reason="Succeeded", exit_code=0, message="all ended", phases={"run": 1.5})
    lines = [
        world_line(SETTINGS, a_world()),
        *(f"[torchtpu] {line}" for line in world_table(SETTINGS, a_world())),
        result_line(result),
    ]
    output = reduce(read_line, lines, Output())
    assert (output.workers, output.order, output.count, output.result) == (
        tuple(
            Worker(
                rank=rank,
                slice_index=0,
                host=rank // 4,
                chip=rank % 4,
                address=f"10.244.1.{rank // 4}",
                pod=f"pod-{rank // 4}",
                node=f"node-{rank // 4}",
            )
            for rank in range(8)
        ),
        "physical",
        3,
        {"reason": "Succeeded", "exitCode": 0, "message": "all ended", "phases": {"run": 1.5}},
    )


def test_logs_outlive_their_pods(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench")
    log = bench.folder / "pods" / "uid-w" / "logs" / "ray" / "0.log"
    log.parent.mkdir(parents=True)
    bench.logs.mkdir()
    log.write_text("starting\n")
    logs = PodLogs(bench)
    snapshot = Snapshot(at=at(0), pods=(a_ray_pod("w"), a_ray_pod("not-started")))
    logs.keep(snapshot)
    with log.open("a") as file:
        file.write("failed\n")
    logs.keep(snapshot)
    log.unlink()
    logs.keep(snapshot)
    kept = {path.name: path.read_text() for path in (bench.logs / "pods").iterdir()}
    assert kept == {"w.ray.0.log": "starting\nfailed\n"}


class Reader:
    """A head's log that breaks off once, after `first`."""

    def __init__(self, lines: list[str], *, first: int) -> None:
        self._lines, self._first, self.read = lines, first, threading.Event()

    def follow_log(self, pod: str, *, container: str) -> Iterator[str]:
        assert (pod, container) == ("head", "ray")
        if self._first:
            lines, self._first = self._lines[: self._first], 0
            yield from lines
            raise ClusterError("the connection broke")
        yield from self._lines
        self.read.set()
        threading.Event().wait(10)


def test_a_log_that_breaks_off_is_read_again_without_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.demo.head_log._AGAIN_SECONDS", 0.0)
    reader = Reader(["[rank 0] one", "[rank 0] two", "[rank 0] three"], first=2)
    log = HeadLog(Bench(tmp_path), cast(ClusterReader, reader), namespace="ml")
    snapshot = running_snapshot()
    log.look(snapshot)
    assert reader.read.wait(10)
    output = log.look(snapshot)
    log.stop()
    assert (output.tail, output.count) == (("[rank 0] one", "[rank 0] two", "[rank 0] three"), 3)


def test_a_step_is_told_when_it_begins_waits_and_ends() -> None:
    times = iter([1.0, 4.5])
    steps = Steps(clock=lambda: next(times))
    told: list[tuple[str, float | None]] = []
    steps.changed = lambda step: told.append((step.detail, step.seconds))
    with steps.step("bench up") as tell:
        tell("kube-apiserver")
        tell("kube-apiserver")
    assert (steps.all, told) == (
        [Step(name="bench up", began=1.0, seconds=3.5, detail="kube-apiserver")],
        [("", None), ("kube-apiserver", None), ("kube-apiserver", 3.5)],
    )


def test_a_step_that_fails_says_so() -> None:
    steps = Steps(clock=lambda: 0.0)
    with pytest.raises(KeyboardInterrupt), steps.step("job"):
        raise KeyboardInterrupt
    assert steps.all == [Step(name="job", began=0.0, seconds=0.0, failed=True)]
