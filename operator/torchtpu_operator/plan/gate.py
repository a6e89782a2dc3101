"""The gate before a submission: Ray's own node list must show every host of every slice, once and complete.

KubeRay's state is no gate: it stays `ready` after a loss, counts pods that terminate, and says ready with the head alone.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torchtpu_operator.plan.observed import PodSeen, RayNodeSeen
from torchtpu_operator.tpu import Shape

MISSING_NAMED = 4  # worker ids named in a message; the rest are counted


@dataclass(frozen=True, kw_only=True)
class WorkerGroup:
    """One slice as Ray sees it."""

    name: str
    """KubeRay's group name: s0, s1, ..."""
    tpu_name: str
    """TPU_NAME of its hosts = Ray's label `ray.io/tpu-slice-name`."""


def pods_missing(groups: Sequence[WorkerGroup], pods: Sequence[PodSeen], *, shape: Shape) -> str | None:
    """What the pods of the attempt still lack, for a person to read; None when head and all hosts are ready.

    `pods` are the attempt's pods alone. One incarnation per group: a replica that is rebuilt beside its terminating
    predecessor would give double worker ids.
    """
    head = [pod for pod in pods if pod.node_type == "head"]
    if not head:
        return "the Ray head pod is not there yet"
    if not head[0].ready or head[0].terminating:
        return f"the Ray head pod {head[0].name} is not Ready" + _because(head[0])
    for group in groups:
        mine = [pod for pod in pods if pod.group == group.name]
        leaving = [pod for pod in mine if pod.terminating]
        if leaving:
            return f"{len(leaving)} old worker pods of group {group.name} still terminate"
        waiting = [pod for pod in mine if not pod.ready]
        ready = len(mine) - len(waiting)
        if ready < shape.hosts or waiting:
            why = next((_because(pod) for pod in waiting if pod.problem), "")
            return f"{ready} of {shape.hosts} worker pods of group {group.name} are Ready{why}"
        if len(mine) > shape.hosts:
            return f"group {group.name} has {len(mine)} worker pods instead of {shape.hosts}"
        if len({pod.replica for pod in mine}) > 1:
            return f"the worker pods of group {group.name} belong to different replicas"
    return None


def ray_missing(groups: Sequence[WorkerGroup], nodes: Sequence[RayNodeSeen], *, shape: Shape) -> str | None:
    """What Ray's node list still lacks; None when the gate is open."""
    alive = [node for node in nodes if node.alive]
    for group in groups:
        mine = [node for node in alive if node.slice_name == group.tpu_name]
        want = {str(index) for index in range(shape.hosts)}
        ids = Counter(node.worker_id for node in mine)
        if doubled := sorted(worker for worker, count in ids.items() if count > 1):
            return f"Ray shows worker id {', '.join(doubled)} of slice {group.tpu_name} more than once (a lost host not yet forgotten)"
        if missing := sorted(want - ids.keys(), key=int):
            return f"Ray shows {len(mine)} of {shape.hosts} hosts of slice {group.tpu_name}; missing worker id {_some(missing)}"
        if surplus := sorted(ids.keys() - want):
            return f"Ray shows unexpected worker id {_some(surplus)} in slice {group.tpu_name}"
        for node in mine:
            if node.tpus != shape.devices_per_host:
                return (
                    f"host {node.worker_id} of slice {group.tpu_name} offers {node.tpus:g} TPU to Ray instead of "
                    f"{shape.devices_per_host}"
                )
            if node.pod_type and node.pod_type != shape.ray_pod_type:
                return f"host {node.worker_id} of slice {group.tpu_name} calls itself {node.pod_type} instead of {shape.ray_pod_type}"
    return None


def _because(pod: PodSeen) -> str:
    return f": {pod.problem}" if pod.problem else ""


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MISSING_NAMED])
    return f"{shown} and {len(names) - MISSING_NAMED} more" if len(names) > MISSING_NAMED else shown
