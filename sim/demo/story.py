"""What the demo has seen so far. A pure fold over snapshots and lines of output: what is deleted stays told."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from sim.demo.output import Output
from sim.demo.snapshot import HEAD, Event, Pod, Snapshot
from torchtpu_operator.api import ConditionType, JobPhase, TorchTPUJob, TPUSlice, is_true

ENDED = (JobPhase.SUCCEEDED, JobPhase.FAILED)


@dataclass(frozen=True, kw_only=True)
class Host:
    """One TPU host and what runs on it."""

    node: str
    pool: str
    ready: bool
    chips: int
    pod: str = ""
    pod_state: str = ""
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Story:
    now: Snapshot
    """The last look."""
    job: TorchTPUJob | None = None
    """The job as it was seen last, also after its deletion."""
    slices: Mapping[str, TPUSlice] = field(default_factory=dict)
    """Every TPUSlice that was seen, by name, as it was last."""
    pools: tuple[str, ...] = ()
    """Every TPU node pool that GKE showed, in order of appearance."""
    pools_gone_at: datetime | None = None
    """When, after the job's end, GKE first showed no TPU pool and the cluster no TPUSlice."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """Every pod that was seen Ready, by name, as it was then first."""
    output: Output = field(default_factory=Output)
    """Of the youngest head."""

    def seen(self, snapshot: Snapshot) -> "Story":
        """The story after one more look."""
        job = snapshot.job or self.job
        pools = tuple(dict.fromkeys((*self.pools, *(snapshot.pools or ()))))
        gone_at = self.pools_gone_at
        if gone_at is None and has_ended(job) and snapshot.pools == {} and not snapshot.slices:
            gone_at = snapshot.at
        return replace(
            self,
            now=snapshot,
            job=job,
            slices={**self.slices, **{each.metadata.name: each for each in snapshot.slices}},
            pools=pools,
            pools_gone_at=gone_at,
            pods={**{pod.name: pod for pod in snapshot.pods if pod.ready}, **self.pods},
        )

    def told(self, output: Output) -> "Story":
        """The story with what the head's log says by now."""
        return replace(self, output=output)

    def is_over(self) -> bool:
        """Whether nothing more will happen: the job has ended and gave everything back."""
        return has_ended(self.job) and self.pools_gone_at is not None

    def ready_times(self) -> tuple[datetime | None, datetime | None]:
        """When the youngest head turned Ready, and the last of the workers that came with it."""
        heads = [pod for pod in self.pods.values() if pod.role == HEAD]
        if not heads:
            return None, None
        head = max(heads, key=lambda pod: pod.created)
        workers = [
            pod.ready_at
            for pod in self.pods.values()
            if pod.role != HEAD and pod.created >= head.created and pod.ready_at is not None
        ]
        return head.ready_at, max(workers, default=None)

    def hosts(self, slice_name: str) -> tuple[Host, ...]:
        """The hosts of a slice that are there now, in rank order once there are ranks, else by name."""
        ranks: dict[str, list[int]] = {}
        for worker in self.output.workers:
            ranks.setdefault(worker.pod, []).append(worker.rank)
        hosts = []
        for node in self.now.nodes:
            if node.pool != slice_name:
                continue
            pods = [pod for pod in self.now.pods if pod.node == node.name]
            pod = next((pod for pod in pods if pod.state != "Terminating"), pods[0] if pods else None)
            host = Host(node=node.name, pool=node.pool, ready=node.ready, chips=node.chips)
            if pod is not None:
                ranked = tuple(ranks.get(pod.name, ()))
                host = replace(host, pod=pod.name, pod_state=_state(pod.state, ready=pod.ready), ranks=ranked)
            hosts.append(host)
        return tuple(sorted(hosts, key=lambda host: (host.ranks[:1] or (1 << 30,), host.node)))

    def news(self, before: "Story | None") -> tuple[Event, ...]:
        """Events that are new since then."""
        known = {event.key for event in before.now.events} if before is not None else set()
        return tuple(event for event in self.now.events if event.key not in known)


def has_ended(job: TorchTPUJob | None) -> bool:
    """Complete or Failed."""
    return job is not None and job.status.phase in ENDED


def is_complete(job: TorchTPUJob | None) -> bool:
    return job is not None and is_true(job.status.conditions, ConditionType.COMPLETE)


def _state(state: str, *, ready: bool) -> str:
    return "Starting" if state == "Running" and not ready else state
