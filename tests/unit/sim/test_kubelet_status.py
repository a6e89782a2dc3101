"""The status of a pod as the kubelet writes it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from sim.kubelet.state import ContainerState, Running, Terminated, Waiting
from sim.kubelet.status import PodView, build_status_patch, pod_phase

THEN = datetime(2026, 1, 1, 10, 0, 0, tzinfo=UTC)
NOW = datetime(2026, 1, 1, 10, 0, 30, tzinfo=UTC)

RUNNING = Running(started=THEN)


def _ended(code: int, reason: str = "") -> Terminated:
    return Terminated(
        exit_code=code, reason=reason or ("Completed" if code == 0 else "Error"), started=THEN, finished=NOW
    )


def _container(name: str = "c", **values: Any) -> ContainerState:
    spec = {"name": name, "image": "busybox", **({"restartPolicy": "Always"} if values.pop("sidecar", False) else {})}
    return ContainerState(spec=spec, **values)


def _pod(policy: str = "Always", *, deleted: bool = False, **status: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "generation": 1}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T10:00:20Z"
    return {"metadata": metadata, "spec": {"restartPolicy": policy}, "status": status}


@dataclass(frozen=True, kw_only=True)
class Case:
    main: list[ContainerState]
    init: list[ContainerState] = field(default_factory=list)
    policy: str = "Always"
    ended: bool = False
    failed: tuple[str, str] | None = None
    deleted: bool = False
    want: str


PHASES = {
    "nothing has started": Case(main=[_container()], want="Pending"),
    "init runs": Case(init=[_container(state=RUNNING)], main=[_container()], want="Pending"),
    "init crashed and is tried again": Case(
        init=[_container(state=Waiting(reason="CrashLoopBackOff"), last=_ended(1))], main=[_container()], want="Pending"
    ),
    "init failed for good": Case(
        init=[_container(state=_ended(1))], main=[_container()], policy="Never", ended=True, want="Failed"
    ),
    "a sidecar is still starting": Case(
        init=[_container(state=RUNNING, sidecar=True)], main=[_container()], want="Pending"
    ),
    "one of two containers runs": Case(main=[_container(state=RUNNING), _container("d")], want="Pending"),
    "all run": Case(main=[_container(state=RUNNING)], want="Running"),
    "a container waits for its restart": Case(
        main=[_container(state=Waiting(reason="CrashLoopBackOff"), last=_ended(1), restarts=2)], want="Running"
    ),
    "an image is missing": Case(main=[_container(state=Waiting(reason="ImagePullBackOff"))], want="Pending"),
    "all ended well": Case(main=[_container(state=_ended(0))], policy="Never", ended=True, want="Succeeded"),
    "one ended badly": Case(
        main=[_container(state=_ended(0)), _container("d", state=_ended(1))], policy="Never", ended=True, want="Failed"
    ),
    "ended, but a sidecar still runs": Case(
        init=[_container(state=RUNNING, started=True, sidecar=True)],
        main=[_container(state=_ended(0))],
        policy="Never",
        want="Running",
    ),
    "ended, and the sidecar after it": Case(
        init=[_container(state=_ended(0), sidecar=True)],
        main=[_container(state=_ended(0))],
        policy="Never",
        ended=True,
        want="Succeeded",
    ),
    "between two starts": Case(main=[_container(state=_ended(1))], want="Running"),
    "deleted and ended by a signal": Case(
        main=[_container(state=_ended(137))], ended=True, deleted=True, want="Failed"
    ),
    "refused at admission": Case(
        main=[_container()], ended=True, failed=("UnexpectedAdmissionError", "no"), want="Failed"
    ),
}


@pytest.mark.parametrize("case", PHASES.values(), ids=PHASES)
def test_phase(case: Case) -> None:
    view = PodView(
        pod=_pod(case.policy, deleted=case.deleted),
        init=case.init,
        main=case.main,
        host_ip="10.245.0.1",
        started=THEN,
        failed=case.failed,
        ended=case.ended,
    )
    assert pod_phase(view) == case.want


def _conditions(patch: dict[str, Any]) -> dict[str, tuple[str, str | None, str]]:
    return {
        c["type"]: (c["status"], c["reason"], c["lastTransitionTime"][11:19]) for c in patch["status"]["conditions"]
    }


def test_a_ready_pod() -> None:
    known = [{"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T09:00:00Z"}]
    state = _container(state=RUNNING, ready=True, started=True, image_id="busybox@sha256:1", container_id="bwrap://x")
    view = PodView(
        pod=_pod(conditions=known), init=[], main=[state], host_ip="10.245.0.1", pod_ip="10.244.1.1", started=THEN
    )
    patch = build_status_patch(view, now=NOW)
    assert _conditions(patch) == {
        "PodReadyToStartContainers": ("True", None, "10:00:30"),
        "Initialized": ("True", None, "09:00:00"),
        "Ready": ("True", None, "10:00:30"),
        "ContainersReady": ("True", None, "10:00:30"),
    }
    del patch["status"]["conditions"]
    assert patch == {
        "metadata": {"uid": "u"},
        "status": {
            "phase": "Running",
            "reason": None,
            "message": None,
            "hostIP": "10.245.0.1",
            "hostIPs": [{"ip": "10.245.0.1"}],
            "podIP": "10.244.1.1",
            "podIPs": [{"ip": "10.244.1.1"}],
            "startTime": "2026-01-01T10:00:00Z",
            "observedGeneration": 1,
            "containerStatuses": [
                {
                    "name": "c",
                    "image": "busybox",
                    "imageID": "busybox@sha256:1",
                    "containerID": "bwrap://x",
                    "restartCount": 0,
                    "ready": True,
                    "started": True,
                    "state": {"running": {"startedAt": "2026-01-01T10:00:00Z"}},
                    "lastState": {},
                }
            ],
        },
    }


def test_a_running_pod_that_is_not_ready_says_so_in_the_same_patch() -> None:
    view = PodView(
        pod=_pod(), init=[], main=[_container(state=RUNNING)], host_ip="h", pod_ip="10.244.1.1", started=THEN
    )
    patch = build_status_patch(view, now=NOW)
    ready = next(c for c in patch["status"]["conditions"] if c["type"] == "Ready")
    assert (patch["status"]["phase"], ready) == (
        "Running",
        {
            "type": "Ready",
            "status": "False",
            "reason": "ContainersNotReady",
            "message": "containers with unready status: [c]",
            "lastTransitionTime": "2026-01-01T10:00:30Z",
        },
    )


READY: dict[str, tuple[PodView, tuple[str, str | None]]] = {
    "a readiness gate holds it back": (
        PodView(
            pod={**_pod(), "spec": {"readinessGates": [{"conditionType": "example.com/up"}]}},
            init=[],
            main=[_container(state=RUNNING, ready=True)],
            host_ip="h",
            started=THEN,
        ),
        ("False", "ReadinessGatesNotReady"),
    ),
    "an unready sidecar holds it back": (
        PodView(
            pod=_pod(),
            init=[_container("s", state=RUNNING, started=True, sidecar=True)],
            main=[_container(state=RUNNING, ready=True)],
            host_ip="h",
            started=THEN,
        ),
        ("False", "ContainersNotReady"),
    ),
    "a finished pod is not ready": (
        PodView(pod=_pod("Never"), init=[], main=[_container(state=_ended(0))], host_ip="h", started=THEN, ended=True),
        ("False", "PodCompleted"),
    ),
}


@pytest.mark.parametrize(("view", "want"), READY.values(), ids=READY)
def test_ready_condition(view: PodView, want: tuple[str, str | None]) -> None:
    patch = build_status_patch(view, now=NOW)
    assert _conditions(patch)["Ready"][:2] == want


def test_a_crash_loop_shows_the_last_end() -> None:
    state = _container(
        state=Waiting(reason="CrashLoopBackOff", message="back-off 10s"), last=_ended(137, "OOMKilled"), restarts=1
    )
    view = PodView(pod=_pod(), init=[], main=[state], host_ip="h", started=THEN)
    (status,) = build_status_patch(view, now=NOW)["status"]["containerStatuses"]
    assert {key: status[key] for key in ("restartCount", "ready", "state", "lastState")} == {
        "restartCount": 1,
        "ready": False,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
        "lastState": {
            "terminated": {
                "exitCode": 137,
                "reason": "OOMKilled",
                "startedAt": "2026-01-01T10:00:00Z",
                "finishedAt": "2026-01-01T10:00:30Z",
            }
        },
    }
