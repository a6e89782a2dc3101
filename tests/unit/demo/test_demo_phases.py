"""Where the time went."""

from dataclasses import dataclass

import pytest

from sim.demo.phases import Part, PhaseTime, measure_phases
from sim.demo.snapshot import Snapshot
from sim.demo.story import Story
from tests.builders import a_job, a_slice, at
from tests.unit.demo.demo_scenes import a_ray_pod, finished_story
from torchtpu_operator.api import TorchTPUJob, TPUSlice

CREATED = a_slice().meta(creation_timestamp=at(-95)).build()


def a_story(job: TorchTPUJob, *slices: TPUSlice, seen_at: float = 0) -> Story:
    snapshot = Snapshot(at=at(seen_at), job=job, slices=slices)
    return Story(now=snapshot).seen(snapshot)


@dataclass(frozen=True)
class Case:
    story: Story
    want: tuple[PhaseTime, ...]


CASES = {
    "nothing but the job": Case(
        story=a_story(a_job(age=100).build()), want=(PhaseTime(name="Pending", seconds=100, over=False),)
    ),
    "the node pool is being made": Case(
        story=a_story(a_job(age=100).build(), CREATED),
        want=(
            PhaseTime(name="Pending", seconds=5),
            PhaseTime(name="Provisioning", seconds=95, over=False),
        ),
    ),
    "pods are awaited": Case(
        story=a_story(a_job(age=100).starting(since=-30).build(), CREATED),
        want=(
            PhaseTime(name="Pending", seconds=5),
            PhaseTime(name="Provisioning", seconds=65),
            PhaseTime(name="Starting", seconds=30, over=False),
        ),
    ),
    "a job that never got its slices goes from Pending to its end": Case(
        story=a_story(a_job(age=100).status(completion_time=at(-20)).build(), seen_at=-15),
        want=(PhaseTime(name="Pending", seconds=80), PhaseTime(name="Clean-up", seconds=5, over=False)),
    ),
    "nothing was seen": Case(story=Story(now=Snapshot(at=at(0))), want=()),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_phases(case: Case) -> None:
    assert measure_phases(case.story) == case.want


def test_a_whole_life_adds_up() -> None:
    phases = measure_phases(finished_story())
    assert phases == (
        PhaseTime(name="Pending", seconds=5),
        PhaseTime(
            name="Provisioning",
            seconds=15,
            parts=(
                Part(what="GKE accepts the pool", seconds=5),
                Part(what="first node", seconds=10),
                Part(what="all nodes Ready with chips", seconds=10),
            ),
        ),
        PhaseTime(
            name="Starting",
            seconds=40,
            parts=(
                Part(what="head Ready", seconds=25),
                Part(what="workers Ready", seconds=0),
                Part(what="gate", seconds=5),
                Part(what="submission", seconds=5),
                Part(what="driver starts", seconds=5),
            ),
        ),
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


def test_pods_of_an_attempt_before_do_not_count() -> None:
    first = Snapshot(
        at=at(-50), pods=(a_ray_pod("h1", role="head", ready=-90, created=-99), a_ray_pod("w1", ready=-80))
    )
    again = Snapshot(
        at=at(0), pods=(a_ray_pod("h2", role="head", ready=-20, created=-30), a_ray_pod("w2", ready=-10, created=-29))
    )
    assert Story(now=first).seen(first).seen(again).ready_times() == (at(-20), at(-10))


def test_a_pod_that_is_gone_was_ready_all_the_same() -> None:
    ready = Snapshot(at=at(0), pods=(a_ray_pod("h", role="head", ready=-20), a_ray_pod("w", ready=-10)))
    gone = Snapshot(at=at(9), pods=(a_ray_pod("h", role="head", ready=None),))
    assert Story(now=ready).seen(ready).seen(gone).ready_times() == (at(-20), at(-10))
