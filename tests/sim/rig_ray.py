"""Ray heads in virtual time: they live in the head pods, know the Ready workers, and run jobs for a while."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.sim.rig_kube import SimKube
from torchtpu_operator.clients.kinds import NODES, PODS, RAY_CLUSTERS
from torchtpu_operator.clients.ray_jobs import RayHead, RayJob, RayVersion
from torchtpu_operator.plan import names
from torchtpu_operator.plan.observed import CallFailed, FailureClass, RayJobSeen, RayNodeSeen
from torchtpu_operator.tpu import resolve

DRIVER_START = 1.0
LOSS_NOTICED = 5.0


@dataclass
class SimJob:
    submission_id: str
    metadata: Mapping[str, str]
    session: str
    at: float
    ends: str = "SUCCEEDED"
    lost_at: float | None = None
    stopped_at: float | None = None


@dataclass
class SimRay:
    """Implements `RayJobs`."""

    kube: SimKube
    dead: set[str] = field(default_factory=set)
    """Names of nodes whose host is dead."""
    run_seconds: float = 20.0
    outcomes: list[str] = field(default_factory=list)
    """How the next jobs end, in order of submission; SUCCEEDED once the list is empty."""
    ray_version: str = "2.60.0"
    silent: bool = False
    """Heads do not answer."""
    submissions: list[tuple[str, str]] = field(default_factory=list)
    """(submission id, session) of every accepted POST."""
    jobs: dict[str, SimJob] = field(default_factory=dict)

    async def version(self, head: RayHead) -> RayVersion | CallFailed:
        pod = self._head(head)
        if pod is None:
            return _no_answer("GET /api/version")
        return RayVersion(ray=self.ray_version, session_name=f"session_{pod['metadata']['uid']}")

    async def nodes(self, head: RayHead) -> tuple[RayNodeSeen, ...] | CallFailed:
        if self._head(head) is None:
            return _no_answer("GET /api/v0/nodes")
        cluster = head.service.removesuffix("-head-svc")
        return tuple(self._node(cluster, pod) for pod in self._workers(head))

    async def job(self, head: RayHead, submission_id: str) -> RayJob | CallFailed | None:
        pod = self._head(head)
        if pod is None:
            return _no_answer("GET /api/jobs/")
        job = self.jobs.get(submission_id)
        if job is None or job.session != f"session_{pod['metadata']['uid']}":
            return None
        return RayJob(seen=self._seen(head, job), metadata=job.metadata)

    async def submit(
        self,
        head: RayHead,
        *,
        submission_id: str,
        entrypoint: str,
        metadata: Mapping[str, str],
        runtime_env: Mapping[str, Any],
    ) -> CallFailed | None:
        del entrypoint, runtime_env
        pod = self._head(head)
        if pod is None:
            return _no_answer("POST /api/jobs/")
        session = f"session_{pod['metadata']['uid']}"
        known = self.jobs.get(submission_id)
        if known is not None and known.session == session:
            return None
        ends = self.outcomes.pop(0) if self.outcomes else "SUCCEEDED"
        now = asyncio.get_running_loop().time()
        self.jobs[submission_id] = SimJob(submission_id, metadata, session, now, ends)
        self.submissions.append((submission_id, session))
        return None

    async def stop(self, head: RayHead, submission_id: str) -> CallFailed | None:
        if self._head(head) is None:
            return _no_answer("POST stop")
        if (job := self.jobs.get(submission_id)) is not None and job.stopped_at is None:
            job.stopped_at = asyncio.get_running_loop().time()
        return None

    async def log_tail(self, head: RayHead, submission_id: str, *, lines: int = 500) -> str | CallFailed:
        del submission_id, lines
        return "" if self._head(head) is not None else _no_answer("GET log")

    def _seen(self, head: RayHead, job: SimJob) -> RayJobSeen:
        now = asyncio.get_running_loop().time()
        whole = self._whole(head)
        if not whole and job.lost_at is None and now < job.at + self.run_seconds:
            job.lost_at = now
        if job.stopped_at is not None and now >= job.stopped_at + 1:
            return RayJobSeen(submission_id=job.submission_id, status="STOPPED", message="stopped")
        if job.lost_at is not None:
            if now >= job.lost_at + LOSS_NOTICED:
                return RayJobSeen(submission_id=job.submission_id, status="FAILED", message="an actor died")
            return RayJobSeen(submission_id=job.submission_id, status="RUNNING")
        if now < job.at + DRIVER_START:
            return RayJobSeen(submission_id=job.submission_id, status="PENDING")
        if now < job.at + self.run_seconds:
            return RayJobSeen(submission_id=job.submission_id, status="RUNNING")
        code = 0 if job.ends == "SUCCEEDED" else 1
        return RayJobSeen(submission_id=job.submission_id, status=job.ends, exit_code=code, message=job.ends)

    def _head(self, head: RayHead) -> dict[str, Any] | None:
        name = head.service.removesuffix("-head-svc") + "-head"
        pod = self.kube.peek(PODS, name, namespace=head.namespace)
        return None if self.silent or pod is None or not _ready(pod) else pod

    def _workers(self, head: RayHead) -> list[dict[str, Any]]:
        cluster = head.service.removesuffix("-head-svc")
        nodes = {node["metadata"]["name"]: node for node in self.kube.view(NODES)}
        return [
            pod
            for pod in self.kube.view(PODS)
            if pod["metadata"]["ownerReferences"][0]["name"] == cluster
            and pod["metadata"]["labels"]["ray.io/node-type"] == "worker"
            and _ready(pod)
            and _ready(nodes.get(pod["spec"].get("nodeName", "")) or {})
            and pod["spec"]["nodeName"] not in self.dead
        ]

    def _whole(self, head: RayHead) -> bool:
        cluster = self.kube.peek(RAY_CLUSTERS, head.service.removesuffix("-head-svc"), namespace=head.namespace)
        groups = cluster["spec"]["workerGroupSpecs"] if cluster else []
        return len(self._workers(head)) == sum(int(group["numOfHosts"]) for group in groups)

    def _node(self, cluster: str, pod: dict[str, Any]) -> RayNodeSeen:
        labels = pod["metadata"]["labels"]
        node = self.kube.peek(NODES, pod["spec"]["nodeName"])
        assert node is not None
        chips = int(node["status"]["allocatable"]["google.com/tpu"])
        topology = node["metadata"]["labels"]["cloud.google.com/gke-tpu-topology"]
        shape = resolve("v6e", topology, chips_per_host=chips)
        index = int(labels["ray.io/group"].removeprefix("s"))
        return RayNodeSeen(
            node_id=pod["metadata"]["uid"],
            alive=True,
            ip="10.0.0.1",
            tpus=float(shape.devices_per_host),
            slice_name=names.tpu_name(cluster, slice_index=index),
            worker_id=labels["ray.io/replica-host-index"],
            pod_type=shape.ray_pod_type,
            topology=topology,
        )


def _no_answer(call: str) -> CallFailed:
    return CallFailed(call=call, failure=FailureClass.TRANSIENT, message="no answer: connection refused")


def _ready(obj: Mapping[str, Any]) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
