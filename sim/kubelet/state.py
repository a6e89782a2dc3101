"""What a kubelet knows of its containers, as values: the input of the pod's status."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Running:
    started: datetime


@dataclass(frozen=True, kw_only=True)
class Terminated:
    exit_code: int
    reason: str
    started: datetime | None
    finished: datetime
    message: str = ""
    container_id: str = ""


@dataclass(kw_only=True)
class ContainerState:
    """One container over all its restarts."""

    spec: Json
    image_id: str = ""
    container_id: str = ""
    state: Waiting | Running | Terminated = field(default_factory=Waiting)
    last: Terminated | None = None
    restarts: int = 0
    started: bool = False
    """The startup probe has succeeded (or there is none) since the last start."""
    ready: bool = False

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def is_sidecar(self) -> bool:
        """An init container that goes on beside the others."""
        return self.spec.get("restartPolicy") == "Always"


def timestamp(moment: datetime) -> str:
    """As Kubernetes writes times: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
