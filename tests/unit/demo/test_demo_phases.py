"""Where the time went."""

from dataclasses import dataclass
from datetime import datetime

import pytest

from sim.demo.phases import Part, PhaseTime, measure_phases
from tests.builders import a_job, a_slice, at
from tests.unit.demo.demo_scenes import a_slice_seen, complete_job, running_output
from torchtpu_operator.api import TorchTPUJob, TPUSlice


@dataclass(frozen=True)
class Case:
    job: TorchTPUJob
    slices: tuple[TPUSlice, ...]
    want: tuple[PhaseTime, ...]
    gone: datetime | None = None


CREATED = a_slice().meta(creation_timestamp=at(-95)).build()
STARTING = (
    Part(what="RayCluster until the gate opens", seconds=30),
    Part(what="submission", seconds=5),
    Part(what="driver starts", seconds=5),
)

CASES = {
    "nothing but the job": Case(
        job=a_job(age=100).build(), slices=(), want=(PhaseTime(name="Pending", seconds=100, over=False),)
    ),
    "the node pool is being made": Case(
        job=a_job(age=100).build(),
        slices=(CREATED,),
        want=(
            PhaseTime(name="Pending", seconds=5),
            PhaseTime(name="Provisioning", seconds=95, over=False),
        ),
    ),
    "pods are awaited": Case(
        job=a_job(age=100).starting(since=-30).build(),
        slices=(CREATED,),
        want=(
            PhaseTime(name="Pending", seconds=5),
            PhaseTime(name="Provisioning", seconds=65),
            PhaseTime(name="Starting", seconds=30, over=False),
        ),
    ),
    "a job that never got its slices goes from Pending to its end": Case(
        job=a_job(age=100).status(completion_time=at(-20)).build(),
        slices=(),
        gone=at(-20),
        want=(PhaseTime(name="Pending", seconds=80), PhaseTime(name="Clean-up", seconds=0)),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_phases(case: Case) -> None:
    assert measure_phases(case.job, case.slices, now=at(0), pools_gone_at=case.gone) == case.want


def test_a_whole_life_adds_up() -> None:
    phases = measure_phases(
        complete_job(), [a_slice_seen()], now=at(60), pools_gone_at=at(5), result=running_output().result
    )
    assert phases == (
        PhaseTime(name="Pending", seconds=5),
        PhaseTime(
            name="Provisioning",
            seconds=15,
            parts=(
                Part(what="GKE accepts the pool", seconds=-75),
                Part(what="first node", seconds=90),
                Part(what="all nodes Ready with chips", seconds=10),
            ),
        ),
        PhaseTime(name="Starting", seconds=40, parts=STARTING),
        PhaseTime(
            name="Running",
            seconds=20,
            parts=(
                Part(what="placement group", seconds=0.52),
                Part(what="workers start", seconds=4.0),
                Part(what="entrypoint", seconds=3.25),
            ),
        ),
        PhaseTime(name="Finishing", seconds=10),
        PhaseTime(name="Clean-up", seconds=15),
    )
    assert sum(phase.seconds for phase in phases) == 105
