"""`RayJobs` in memory, for virtual time: the heads of `ray_head` without a server."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.doubles.ray_head import Head
from torchtpu_operator.clients.ray_jobs import RayHead, RayJob, RayVersion
from torchtpu_operator.plan.observed import CallFailed, FailureClass, RayJobSeen, RayNodeSeen


@dataclass
class MemoryRay:
    heads: dict[str, Head] = field(default_factory=dict)
    """By head service."""

    async def version(self, head: RayHead) -> RayVersion | CallFailed:
        there = self._head(head, "GET /api/version")
        if isinstance(there, CallFailed):
            return there
        return RayVersion(ray=there.version, session_name=there.session_name)

    async def nodes(self, head: RayHead) -> tuple[RayNodeSeen, ...] | CallFailed:
        there = self._head(head, "GET /api/v0/nodes")
        if isinstance(there, CallFailed):
            return there
        return tuple(
            RayNodeSeen(
                node_id=node["node_id"],
                alive=node["state"] == "ALIVE",
                ip=node["node_ip"],
                tpus=node["resources_total"].get("TPU", 0.0),
                slice_name=node["labels"].get("ray.io/tpu-slice-name", ""),
                worker_id=node["labels"].get("ray.io/tpu-worker-id", ""),
                pod_type=node["labels"].get("ray.io/tpu-pod-type", ""),
                topology=node["labels"].get("ray.io/tpu-topology", ""),
            )
            for node in there.nodes
        )

    async def job(self, head: RayHead, submission_id: str) -> RayJob | CallFailed | None:
        there = self._head(head, f"GET /api/jobs/{submission_id}")
        if isinstance(there, CallFailed):
            return there
        if (job := there.jobs.get(submission_id)) is None:
            return None
        seen = RayJobSeen(
            submission_id=submission_id,
            status=job["status"],
            message=job.get("message", ""),
            exit_code=job.get("driver_exit_code"),
        )
        return RayJob(seen=seen, metadata=job["metadata"])

    async def submit(
        self,
        head: RayHead,
        *,
        submission_id: str,
        entrypoint: str,
        metadata: Mapping[str, str],
        runtime_env: Mapping[str, Any],
    ) -> CallFailed | None:
        there = self._head(head, "POST /api/jobs/")
        if isinstance(there, CallFailed):
            return there
        if submission_id not in there.jobs:
            there.submissions.append({"submission_id": submission_id, "entrypoint": entrypoint})
            there.jobs[submission_id] = {"status": there.first_status, "metadata": dict(metadata)}
        return None

    async def stop(self, head: RayHead, submission_id: str) -> CallFailed | None:
        there = self._head(head, "stop")
        if isinstance(there, CallFailed):
            return there
        there.stopped.append(submission_id)
        if there.jobs.get(submission_id, {}).get("status") in ("PENDING", "RUNNING"):
            there.finish(submission_id, "STOPPED")
        return None

    async def log_tail(self, head: RayHead, submission_id: str, *, lines: int = 500) -> str | CallFailed:
        there = self._head(head, "log")
        return there if isinstance(there, CallFailed) else there.logs.get(submission_id, "")

    def _head(self, head: RayHead, call: str) -> Head | CallFailed:
        there = self.heads.get(head.service)
        failed = CallFailed(call=call, failure=FailureClass.TRANSIENT, message="no answer")
        if there is None:
            return failed
        if there.token is not None and head.token != there.token:
            return replace(failed, failure=FailureClass.PERMISSION, message="HTTP 403")
        return there
