"""One look at the cluster, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from torchtpu_operator.api import TorchTPUJob, TPUSlice
from torchtpu_operator.api.constants import LABEL_JOB, NODE_LABEL_POOL, TPU_RESOURCE
from torchtpu_operator.api.timestamps import parse_time

Json = Mapping[str, Any]

HEAD = "head"
_NODE_TYPE = "ray.io/node-type"  # KubeRay's label: head or worker


@dataclass(frozen=True, kw_only=True)
class Node:
    name: str
    pool: str
    ready: bool
    chips: int
    """What the device plugin has published."""


@dataclass(frozen=True, kw_only=True)
class Pod:
    name: str
    uid: str
    node: str
    """Empty until it is bound."""
    role: str
    """`head` or `worker`; anything else of the namespace is left out."""
    state: str
    """A word as kubectl prints it: Pending, Init:0/1, ErrImagePull, Running, Terminating, ..."""
    ready_at: datetime | None
    """Since when it is Ready; None: it is not."""
    created: datetime

    @property
    def ready(self) -> bool:
        return self.ready_at is not None


@dataclass(frozen=True, kw_only=True)
class Event:
    key: str
    """Its uid and count: the same event again is news."""
    at: datetime
    warning: bool
    kind: str
    name: str
    reason: str
    message: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    at: datetime
    job: TorchTPUJob | None = None
    slices: tuple[TPUSlice, ...] = ()
    nodes: tuple[Node, ...] = ()
    """Nodes of TPU pools and others."""
    pods: tuple[Pod, ...] = ()
    """Ray's pods, the head first, then by age."""
    events: tuple[Event, ...] = ()
    """The operator's, oldest first."""
    pools: Mapping[str, str] | None = None
    """TPU node pools as GKE has them: name -> status; None: GKE was not asked or did not answer."""

    def head(self) -> Pod | None:
        """The youngest head that is not on its way out."""
        heads = [pod for pod in self.pods if pod.role == HEAD and pod.state != "Terminating"]
        return heads[-1] if heads else None


def parse_node(obj: Json) -> Node:
    status = obj.get("status", {})
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", []))
    return Node(
        name=obj["metadata"]["name"],
        pool=obj["metadata"].get("labels", {}).get(NODE_LABEL_POOL, ""),
        ready=ready,
        chips=int(status.get("allocatable", {}).get(TPU_RESOURCE, 0)),
    )


def parse_pods(objects: Sequence[Json], *, job: str) -> tuple[Pod, ...]:
    """Ray's pods of that job, the heads first."""
    pods = [_parse_pod(each) for each in objects if each["metadata"].get("labels", {}).get(LABEL_JOB) == job]
    return tuple(sorted((pod for pod in pods if pod.role), key=lambda pod: (pod.role != HEAD, pod.created, pod.name)))


def _parse_pod(obj: Json) -> Pod:
    metadata, status = obj["metadata"], obj.get("status", {})
    conditions = status.get("conditions", [])
    ready = next((each for each in conditions if each["type"] == "Ready" and each["status"] == "True"), None)
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        node=obj["spec"].get("nodeName", ""),
        role=metadata.get("labels", {}).get(_NODE_TYPE, ""),
        state=_pod_state(obj),
        ready_at=parse_time(ready["lastTransitionTime"]) if ready is not None else None,
        created=parse_time(metadata["creationTimestamp"]),
    )


def _pod_state(obj: Json) -> str:
    status = obj.get("status", {})
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    init = status.get("initContainerStatuses", [])
    for each in [*init, *status.get("containerStatuses", [])]:
        reason = each.get("state", {}).get("waiting", {}).get("reason")
        if reason and reason not in ("PodInitializing", "ContainerCreating"):
            return str(reason)
    done = sum(1 for each in init if each.get("state", {}).get("terminated", {}).get("exitCode") == 0)
    if done < len(init):
        return f"Init:{done}/{len(init)}"
    return str(status.get("phase", "Pending"))


def parse_events(objects: Sequence[Json], *, component: str) -> tuple[Event, ...]:
    """Those of one component, oldest first."""
    mine = [each for each in objects if each.get("reportingComponent") == component]
    return tuple(sorted((_parse_event(each) for each in mine), key=lambda event: (event.at, event.key)))


def _parse_event(obj: Json) -> Event:
    about = obj["involvedObject"]
    count = int(obj.get("count") or 1)
    return Event(
        key=f"{obj['metadata']['uid']}/{count}",
        at=parse_time(obj.get("lastTimestamp") or obj["metadata"]["creationTimestamp"]),
        warning=obj.get("type") == "Warning",
        kind=about["kind"],
        name=about["name"],
        reason=obj["reason"],
        message=obj["message"],
        count=count,
    )
