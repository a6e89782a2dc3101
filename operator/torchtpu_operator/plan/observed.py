"""What a reconcile sees before it decides: plain values, filled by the controller, judged by the planner.

A value that could not be read is a `CallFailed`, never a guess: absent (None) and unknown are different things.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]


class FailureClass(StrEnum):
    """What kind of "no" a call got; each class has its own retry rule (plan/retry.py). Source: facts on GKE's errors."""

    BUSY = "Busy"
    """The cluster or the pool runs another operation, or too many run: wait, it is not a failure."""
    THROTTLED = "Throttled"
    TRANSIENT = "Transient"
    """No answer, or an answer that says nothing of the request: it may have taken effect."""
    QUOTA = "QuotaExceeded"
    STOCKOUT = "StockOut"
    RESERVATION_FULL = "ReservationFull"
    RESERVATION_INVALID = "ReservationInvalid"
    WRONG_ZONE = "WrongZone"
    INVALID = "InvalidRequest"
    """The request itself is wrong: repeating it cannot help."""
    PERMISSION = "PermissionDenied"
    NETWORK = "NetworkExhausted"
    TOO_MANY_POOLS = "TooManyPools"
    POLICY_NOT_FOUND = "PlacementPolicyNotFound"
    """The workload policy that the request names is not in the region."""
    CONFLICT = "Conflict"
    """An object of that name exists and is not ours, or somebody was faster."""
    NOT_FOUND = "NotFound"
    """On create: what the request refers to (cluster, policy) does not exist. On delete it is success and never seen here."""


@dataclass(frozen=True, kw_only=True)
class CallFailed:
    """A call to the outside world that did not give what was asked."""

    call: str
    """The method in the target's own words, e.g. `CreateNodePool`, `POST /api/jobs/`."""
    failure: FailureClass
    message: str
    """The target's text, cut to 1,024 characters, without secrets."""
    retry_after: float | None = None
    """Seconds that the target asked to wait."""


# --- slices ------------------------------------------------------------------------------------------------------


class Ownership(StrEnum):
    OURS = "Ours"
    """Carries our installation and this TPUSlice's name and spec hash."""
    OTHER_SPEC = "OtherSpec"
    """Carries our installation and this TPUSlice's name, but was made from another spec."""
    FOREIGN = "Foreign"


@dataclass(frozen=True, kw_only=True)
class PoolSeen:
    """A GKE node pool as GetNodePool shows it."""

    name: str
    status: str
    """PROVISIONING, RUNNING, RUNNING_WITH_ERROR, RECONCILING, STOPPING or ERROR."""
    ownership: Ownership
    message: str = ""
    """statusMessage or the conditions' messages."""
    failure: FailureClass | None = None
    """The class of the pool's conditions, where they name a cause."""


@dataclass(frozen=True, kw_only=True)
class OperationSeen:
    """A GKE operation. DONE with an error is a failure; `error` is None only where the message has no error field."""

    name: str
    kind: str
    """CREATE_NODE_POOL, DELETE_NODE_POOL, ..."""
    done: bool
    error: CallFailed | None = None


@dataclass(frozen=True, kw_only=True)
class NodeSeen:
    """One Node of the slice's pool."""

    name: str
    uid: str
    ready: bool
    chips: int
    """allocatable["google.com/tpu"]; 0 until the device plugin has published it."""
    created_at: datetime
    terminating: bool = False
    """Being deleted, or tainted with cloud.google.com/impending-node-termination."""


@dataclass(frozen=True, kw_only=True)
class OperationStarted:
    """The answer to an accepted CreateNodePool or DeleteNodePool."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Performed:
    """An action that has no answer worth keeping."""

    call: str


Outcome = OperationStarted | Performed | CallFailed


VERSION_MISMATCH = "RayVersionMismatch"
"""`PodSeen.problem_reason` of a worker that Ray refused: it has another Ray or Python than the head."""

# --- jobs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DemandSeen:
    """The claimant of a slice, by a live GET."""

    uid: str
    slices: int
    """status.demand.slices; 0 where the job says nothing."""
    sequence: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PodSeen:
    name: str
    namespace: str
    uid: str
    phase: str
    ready: bool
    node: str
    """Node name, "" while unbound."""
    node_type: str
    """KubeRay's `ray.io/node-type`: head or worker."""
    group: str
    attempt: int
    replica: str = ""
    """KubeRay's `ray.io/worker-group-replica-name`: one value per incarnation of a slice's hosts."""
    host_index: str = ""
    terminating: bool = False
    restarts: int = 0
    problem: str = ""
    """Why it does not run: the waiting container's reason and message, or the Unschedulable message."""
    problem_reason: str = ""
    """ImagePullBackOff, CrashLoopBackOff, CreateContainerConfigError, Unschedulable, Failed, ..."""
    lost_node: bool = False
    """Bound to a node that is gone or NotReady."""


@dataclass(frozen=True, kw_only=True)
class RayNodeSeen:
    node_id: str
    alive: bool
    ip: str
    tpus: float
    slice_name: str = ""
    worker_id: str = ""
    pod_type: str = ""
    topology: str = ""


@dataclass(frozen=True, kw_only=True)
class RayJobSeen:
    submission_id: str
    status: str
    """PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED."""
    message: str = ""
    error_type: str = ""
    exit_code: int | None = None
    result: Json | None = None
    """The runner's result line (failing rank, exit code, last lines), read from the job's log once it is terminal."""
    last_lines: tuple[str, ...] = ()
    """What the failing rank, or under launcher Driver the program, printed last; without colours."""


@dataclass(frozen=True, kw_only=True)
class RaySeen:
    """One look at a Ray head through its dashboard."""

    version: str
    session_name: str
    nodes: tuple[RayNodeSeen, ...] = ()
    """Filled only while the gate is open (asked for by `plan_job`'s needs)."""
    job: RayJobSeen | None = None
    """None: the head does not know the submission id."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is the same for every plan of this installation."""

    installation: str
    """Hash of kube-system's uid and the operator's namespace; on every pool of ours."""
    namespace: str
    """The operator's own namespace."""
    gke_parent: str
    """projects/P/locations/L/clusters/C; pools and operations live below it."""
    controller_name: str = "torchtpu.dev/operator"
    runner_files: Mapping[str, str] = field(default_factory=dict)
    """Modules of the runner package: file name -> text, mounted into every Ray pod."""
