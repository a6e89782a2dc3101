"""What the operator keeps of pods, nodes and namespaces: the few facts that plans need, not the bodies."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchtpu_operator.api.constants import (
    LABEL_ATTEMPT,
    LABEL_JOB_UID,
    NODE_LABEL_POOL,
    TPU_RESOURCE,
)
from torchtpu_operator.api.timestamps import parse_time
from torchtpu_operator.clients.calls import shortened
from torchtpu_operator.plan.observed import VERSION_MISMATCH, NodeSeen, PodSeen

Obj = Mapping[str, Any]

_NODE_ENDS = "cloud.google.com/impending-node-termination"
_PROBLEM_LENGTH = 300
# Ray's last words in a worker that it refuses (ray._private.utils.check_version_info).
_MISMATCH = re.compile(
    r"Version mismatch: The cluster was started with:\s+Ray: (\S+)\s+Python: (\S+)\s+"
    r"This process on .*? was started with:\s+Ray: (\S+)\s+Python: (\S+)"
)
# Waiting reasons of a container that is simply on its way.
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})


@dataclass(frozen=True)
class NodeFact:
    pool: str
    seen: NodeSeen


@dataclass(frozen=True)
class PodFact:
    job_uid: str
    seen: PodSeen


@dataclass(frozen=True)
class NamespaceFact:
    name: str
    labels: Mapping[str, str]
    terminating: bool


def read_node(obj: Obj) -> NodeFact:
    meta, status = obj["metadata"], obj.get("status") or {}
    taints = (obj.get("spec") or {}).get("taints") or ()
    return NodeFact(
        pool=(meta.get("labels") or {}).get(NODE_LABEL_POOL, ""),
        seen=NodeSeen(
            name=meta["name"],
            uid=meta["uid"],
            ready=_is_true(status.get("conditions"), "Ready"),
            chips=int((status.get("allocatable") or {}).get(TPU_RESOURCE, 0)),
            created_at=parse_time(meta["creationTimestamp"]),
            terminating=bool(meta.get("deletionTimestamp")) or any(taint["key"] == _NODE_ENDS for taint in taints),
        ),
    )


def read_namespace(obj: Obj) -> NamespaceFact:
    meta = obj["metadata"]
    return NamespaceFact(
        name=meta["name"], labels=meta.get("labels") or {}, terminating=bool(meta.get("deletionTimestamp"))
    )


def read_pod(obj: Obj) -> PodFact:
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    labels = meta.get("labels") or {}
    reason, problem = _problem(status)
    attempt = labels.get(LABEL_ATTEMPT, "")
    return PodFact(
        job_uid=labels.get(LABEL_JOB_UID, ""),
        seen=PodSeen(
            name=meta["name"],
            namespace=meta.get("namespace") or "",
            uid=meta["uid"],
            phase=status.get("phase") or "Pending",
            ready=_is_true(status.get("conditions"), "Ready"),
            node=spec.get("nodeName") or "",
            node_type=labels.get("ray.io/node-type", ""),
            group=labels.get("ray.io/group", ""),
            attempt=int(attempt) if attempt.isdigit() else 0,
            replica=labels.get("ray.io/worker-group-replica-name", ""),
            host_index=labels.get("ray.io/replica-host-index", ""),
            terminating=bool(meta.get("deletionTimestamp")),
            restarts=sum(state.get("restartCount") or 0 for state in status.get("containerStatuses") or ()),
            problem=shortened(problem, _PROBLEM_LENGTH),
            problem_reason=reason,
        ),
    )


def on_lost_node(pod: PodSeen) -> PodSeen:
    return replace(pod, lost_node=True)


def _problem(status: Obj) -> tuple[str, str]:
    """Reason and one line on why a pod does not run; two empty strings where it does or is on its way."""
    if status.get("phase") == "Failed":
        if mismatch := _mismatch(status):
            return VERSION_MISMATCH, mismatch
        ended = next(_ended(status), ("Failed", ""))
        return (status.get("reason") or ended[0]), (status.get("message") or ended[1] or "the pod failed")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            reason = condition.get("reason") or "Unschedulable"
            return reason, f"{reason}: {condition.get('message') or 'no node fits'}"
    states = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for state in states:
        waiting = (state.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason") or ""
        if reason and reason not in _ON_ITS_WAY:
            return reason, _line(state["name"], reason, waiting.get("message"))
    return "", ""


def _ended(status: Obj) -> Iterator[tuple[str, str]]:
    """The containers that ended with an error, as reason and line."""
    for state in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        ended = (state.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            reason = ended.get("reason") or "Error"
            yield reason, _line(state["name"], f"{reason}, exit code {ended['exitCode']}", ended.get("message"))


def _mismatch(status: Obj) -> str | None:
    for state in status.get("containerStatuses") or ():
        message = ((state.get("state") or {}).get("terminated") or {}).get("message") or ""
        if match := _MISMATCH.search(message):
            head_ray, head_python, ray, python = match.groups()
            return f"it has Ray {ray} and Python {python}, the head has Ray {head_ray} and Python {head_python}"
    return None


def _line(container: str, reason: str, message: str | None) -> str:
    return f"container {container}: {reason}" + (f": {message.strip()}" if message else "")


def _is_true(conditions: Iterable[Obj] | None, type_: str) -> bool:
    return any(condition["type"] == type_ and condition["status"] == "True" for condition in conditions or ())
