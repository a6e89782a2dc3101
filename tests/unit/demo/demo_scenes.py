"""Moments of one job's life as the demo sees them."""

from collections.abc import Mapping
from typing import Any

from sim.demo.output import Output, Worker
from sim.demo.snapshot import Event, Node, Pod, Snapshot
from sim.demo.story import Story
from tests.builders import a_job, a_slice, at
from torchtpu_operator.api import ConditionType, JobPhase, Reason, TorchTPUJob, TPUSlice, set_condition
from torchtpu_operator.api.job_status import JobUsage

SLICE = a_slice().name


def a_node(number: int, *, ready: bool = True, chips: int = 4) -> Node:
    return Node(name=f"node-{number}", pool=SLICE, ready=ready, chips=chips)


def a_ray_pod(
    name: str,
    *,
    node: str = "",
    role: str = "worker",
    state: str = "Running",
    ready: float | None = -55,
    created: float = -60,
) -> Pod:
    """`ready` and `created` in seconds from now."""
    ready_at = at(ready) if ready is not None else None
    return Pod(name=name, uid=f"uid-{name}", node=node, role=role, state=state, ready_at=ready_at, created=at(created))


def an_event(reason: str = "JobRunning", *, warning: bool = False, count: int = 1, name: str = "llama") -> Event:
    return Event(
        key=f"uid-{reason}/{count}",
        at=at(0),
        warning=warning,
        kind="TorchTPUJob",
        name=name,
        reason=reason,
        message=f"{reason} happened",
        count=count,
    )


def workers(hosts: int = 4) -> tuple[Worker, ...]:
    """Four ranks per host; host h is node 3 - h, as if worker ids were given out backwards."""
    return tuple(
        Worker(
            rank=host * 4 + chip,
            slice_index=0,
            host=host,
            chip=chip,
            address=f"10.244.0.{host}",
            pod=f"worker-{hosts - 1 - host}",
            node=f"node-{hosts - 1 - host}",
        )
        for host in range(hosts)
        for chip in range(4)
    )


def running_snapshot(**fields: Any) -> Snapshot:
    """Everything is there, the job runs."""
    job = a_job(age=100).running(since=-10).holding(a_slice().ready()).status(message="running on 16 TPU devices")
    parts: Mapping[str, Any] = {
        "at": at(0),
        "job": job.build(),
        "slices": (a_slice().ready().build(),),
        "nodes": (*(a_node(number) for number in range(4)), Node(name="cpu-0", pool="cpu-pool", ready=True, chips=0)),
        "pods": (
            a_ray_pod("head", node="cpu-0", role="head"),
            *(a_ray_pod(f"worker-{number}", node=f"node-{number}") for number in range(4)),
        ),
        "events": (an_event("AttemptStarted"), an_event("JobRunning")),
        "pools": {SLICE: "RUNNING"},
        **fields,
    }
    return Snapshot(**parts)


def running_output() -> Output:
    return Output(
        workers=workers(),
        order="physical",
        losses=((0, 1.0), (1, 0.25)),
        tail=("[torchtpu] 16 workers ready", "[rank 0] epoch 1  loss 0.2500", "[rank 5] hello"),
        count=3,
        result={"reason": "Succeeded", "phases": {"reserve": 0.52, "workers": 4.0, "run": 3.25, "stop": 0.1}},
    )


def complete_job() -> TorchTPUJob:
    """Succeeded, everything given back."""
    job = a_job(age=100).running(since=-40).attempt(ended_at=at(-20)).build()
    conditions = set_condition(
        (), type=ConditionType.COMPLETE, status=True, reason=Reason.SUCCEEDED, observed_generation=1, now=at(-10)
    )
    status = job.status.model_copy(
        update={
            "phase": JobPhase.SUCCEEDED,
            "message": "attempt 1 succeeded; 640 chip-seconds used",
            "completion_time": at(-10),
            "conditions": conditions,
            "usage": JobUsage(chip_seconds=640),
        }
    )
    return job.model_copy(update={"status": status})


def failed_job() -> TorchTPUJob:
    return a_job().status(phase=JobPhase.FAILED, message="rank 3 ended with exit code 1").build()


def a_slice_seen() -> TPUSlice:
    """Ready, with a creation time."""
    times = {"created_at": at(-90), "first_node_at": at(-80), "ready_at": at(-70)}
    return a_slice().ready().status(**times).meta(creation_timestamp=at(-95)).build()


def finished_story() -> Story:
    """From running to the last pool's end."""
    running = running_snapshot(slices=(a_slice_seen(),))
    story = Story(now=running).seen(running).told(running_output())
    return story.seen(Snapshot(at=at(5), job=complete_job(), pools={}))
