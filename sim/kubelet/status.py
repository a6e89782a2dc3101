"""The status of a pod as a patch, computed from what the kubelet knows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sim.kubelet.state import ContainerState, Running, Terminated, Waiting, timestamp

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PodView:
    """Everything that shows in a pod's status."""

    pod: Json
    init: Sequence[ContainerState]
    main: Sequence[ContainerState]
    host_ip: str
    pod_ip: str = ""
    started: datetime
    failed: tuple[str, str] | None = None
    """Reason and message of a pod that the kubelet failed as a whole (admission, node shutdown)."""
    ended: bool = False
    """No container runs and none will again."""


def pod_phase(view: PodView) -> str:
    """Pending, Running, Succeeded or Failed, by the rules of a real kubelet."""
    if view.failed and view.ended:
        return "Failed"
    policy = view.pod["spec"].get("restartPolicy", "Always")
    if not is_initialized(view):
        broken = any(_exit_code(c) not in (None, 0) and not c.is_sidecar for c in view.init)
        return "Failed" if view.ended and broken else "Pending"
    if view.ended and all(isinstance(c.state, Terminated) for c in view.main):
        if policy == "Always" and not view.pod["metadata"].get("deletionTimestamp"):
            return "Running"
        return "Succeeded" if all(_exit_code(c) == 0 for c in view.main) else "Failed"
    if any(isinstance(c.state, Waiting) and c.last is None for c in view.main):
        return "Pending"
    return "Running"


def is_initialized(view: PodView) -> bool:
    """Every init container is done, every sidecar has started; once true, always true."""
    begun = any(not isinstance(c.state, Waiting) or c.last for c in view.main)
    return begun or all(c.started if c.is_sidecar else _exit_code(c) == 0 for c in view.init)


def is_ready(view: PodView) -> bool:
    """The Ready condition: containers, sidecars and readiness gates."""
    return _containers_ready(view) and not _open_gates(view)


def build_status_patch(view: PodView, *, now: datetime) -> Json:
    """A strategic merge patch of the status subresource. Lists of containers are atomic and so replaced whole;
    conditions merge by type, so those that others own stay."""
    phase = pod_phase(view)
    reason, message = view.failed or (None, None)
    status: Json = {
        "phase": phase,
        "reason": reason,
        "message": message,
        "hostIP": view.host_ip,
        "hostIPs": [{"ip": view.host_ip}],
        "startTime": timestamp(view.started),
        "observedGeneration": view.pod["metadata"].get("generation"),
        "conditions": _conditions(view, phase=phase, now=now),
        "containerStatuses": [_container_status(c) for c in view.main],
    }
    if view.pod_ip:
        status |= {"podIP": view.pod_ip, "podIPs": [{"ip": view.pod_ip}]}
    if view.init:
        status["initContainerStatuses"] = [_container_status(c) for c in view.init]
    return {"metadata": {"uid": view.pod["metadata"]["uid"]}, "status": status}


def _conditions(view: PodView, *, phase: str, now: datetime) -> list[Json]:
    unready = [c.name for c in (*(i for i in view.init if i.is_sidecar), *view.main) if not c.ready]
    incomplete = [c.name for c in view.init if not (c.started if c.is_sidecar else _exit_code(c) == 0)]
    ended_reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase)
    not_ready = f"containers with unready status: [{' '.join(unready)}]"
    containers_ready = _containers_ready(view) and ended_reason is None
    why = (ended_reason, None) if ended_reason else ("ContainersNotReady", not_ready)
    gates = _open_gates(view)
    ready_why = why if not containers_ready else ("ReadinessGatesNotReady", "; ".join(gates))
    initialized = is_initialized(view)
    init_why = ("ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]")
    if phase == "Succeeded":
        initialized, init_why = True, ("PodCompleted", "")
    return [
        _condition("PodReadyToStartContainers", bool(view.pod_ip) and ended_reason is None, (None, None), view, now),
        _condition("Initialized", initialized, init_why, view, now),
        _condition("Ready", containers_ready and not gates, ready_why, view, now),
        _condition("ContainersReady", containers_ready, why, view, now),
    ]


def _condition(kind: str, holds: bool, why: tuple[str | None, str | None], view: PodView, now: datetime) -> Json:
    """Reason and message are nulled when the condition holds: a merge would keep the old ones."""
    value = "True" if holds else "False"
    reason, message = (None, None) if holds else why
    known = (view.pod.get("status") or {}).get("conditions") or ()
    before = next((c for c in known if c["type"] == kind), None)
    same = before is not None and before["status"] == value
    since = before["lastTransitionTime"] if before and same and before.get("lastTransitionTime") else timestamp(now)
    return {"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": since}


def _containers_ready(view: PodView) -> bool:
    return all(c.ready for c in view.main) and all(c.ready for c in view.init if c.is_sidecar)


def _open_gates(view: PodView) -> list[str]:
    """Messages of readiness gates whose condition others have not turned True."""
    held = {c["type"] for c in (view.pod.get("status") or {}).get("conditions") or () if c["status"] == "True"}
    wanted = [gate["conditionType"] for gate in view.pod["spec"].get("readinessGates") or ()]
    return [f'the status of pod readiness gate "{gate}" is not "True"' for gate in wanted if gate not in held]


def _exit_code(container: ContainerState) -> int | None:
    return container.state.exit_code if isinstance(container.state, Terminated) else None


def _container_status(container: ContainerState) -> Json:
    status: Json = {
        "name": container.name,
        "image": container.spec["image"],
        "imageID": container.image_id,
        "restartCount": container.restarts,
        "ready": container.ready,
        "started": container.started,
        "state": _state(container.state),
        "lastState": _state(container.last) if container.last else {},
    }
    if container.container_id:
        status["containerID"] = container.container_id
    return status


def _state(state: Waiting | Running | Terminated) -> Json:
    match state:
        case Waiting():
            return {"waiting": _without_empty(reason=state.reason, message=state.message)}
        case Running():
            return {"running": {"startedAt": timestamp(state.started)}}
        case Terminated():
            return {
                "terminated": {
                    "exitCode": state.exit_code,
                    "reason": state.reason,
                    "startedAt": timestamp(state.started) if state.started else None,
                    "finishedAt": timestamp(state.finished),
                    **_without_empty(message=state.message, containerID=state.container_id),
                }
            }


def _without_empty(**values: str) -> Json:
    return {key: value for key, value in values.items() if value}
