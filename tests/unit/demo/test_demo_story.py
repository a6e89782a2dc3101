"""What stays told, and when it is over."""

from dataclasses import dataclass

import pytest

from sim.demo.snapshot import Snapshot
from sim.demo.story import Host, Story
from tests.builders import a_slice, at
from tests.unit.demo.demo_scenes import (
    SLICE,
    a_node,
    a_ray_pod,
    an_event,
    complete_job,
    failed_job,
    finished_story,
    running_output,
    running_snapshot,
)
from torchtpu_operator.api import TorchTPUJob


@dataclass(frozen=True)
class Case:
    last: Snapshot
    want: bool


ENDS = {
    "running is not the end": Case(last=running_snapshot(), want=False),
    "complete with a pool in GKE": Case(
        last=Snapshot(at=at(9), job=complete_job(), pools={SLICE: "STOPPING"}), want=False
    ),
    "complete with a TPUSlice": Case(
        last=Snapshot(at=at(9), job=complete_job(), slices=(a_slice().build(),), pools={}), want=False
    ),
    "complete while GKE does not answer: nobody knows of pools": Case(
        last=Snapshot(at=at(9), job=complete_job(), pools=None), want=False
    ),
    "complete and nothing left": Case(last=Snapshot(at=at(9), job=complete_job(), pools={}), want=True),
    "failed and nothing left": Case(last=Snapshot(at=at(9), job=failed_job(), pools={}), want=True),
    "no pool yet, and no end": Case(last=running_snapshot(slices=(), pools={}), want=False),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_is_over(case: Case) -> None:
    first = running_snapshot()
    assert Story(now=first).seen(first).seen(case.last).is_over() is case.want


def test_what_is_gone_stays_told() -> None:
    story = finished_story()
    job = story.job
    assert isinstance(job, TorchTPUJob)
    assert (list(story.slices), story.pools, story.pools_gone_at, story.now.slices, story.output.losses) == (
        [SLICE],
        (SLICE,),
        at(5),
        (),
        ((0, 1.0), (1, 0.25)),
    )


def test_a_deleted_job_is_told_as_it_was_last() -> None:
    story = finished_story().seen(Snapshot(at=at(20), pools={}))
    assert story.job == complete_job()


def test_the_moment_without_pools_is_the_first_one() -> None:
    assert finished_story().seen(Snapshot(at=at(50), job=complete_job(), pools={})).pools_gone_at == at(5)


def test_hosts_are_in_rank_order_once_there_are_ranks() -> None:
    snapshot = running_snapshot(nodes=(a_node(0), a_node(1), a_node(2), a_node(3, ready=False)))
    story = Story(now=snapshot).told(running_output())
    assert story.hosts(SLICE) == tuple(
        Host(
            node=f"node-{3 - host}",
            pool=SLICE,
            ready=host != 0,
            chips=4,
            pod=f"worker-{3 - host}",
            pod_state="Running",
            ranks=tuple(range(host * 4, host * 4 + 4)),
        )
        for host in range(4)
    )


def test_the_new_pod_of_a_host_stands_before_the_one_that_terminates() -> None:
    snapshot = running_snapshot(
        nodes=(a_node(0),),
        pods=(
            a_ray_pod("old", node="node-0", state="Terminating"),
            a_ray_pod("new", node="node-0", ready=None),
        ),
    )
    assert [(host.pod, host.pod_state) for host in Story(now=snapshot).hosts(SLICE)] == [("new", "Starting")]


def test_an_event_that_happens_again_is_news() -> None:
    before = Story(now=running_snapshot(events=(an_event("Stockout"),)))
    again = an_event("Stockout", count=2)
    assert Story(now=running_snapshot(events=(again, an_event("Other")))).news(before) == (again, an_event("Other"))
