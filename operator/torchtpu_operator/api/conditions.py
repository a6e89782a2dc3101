"""Conditions as batch/v1 and kstatus read them."""

import enum
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from torchtpu_operator.api.base import ApiEnum, StatusModel
from torchtpu_operator.api.timestamps import Timestamp, to_second

MAX_CONDITION_MESSAGE = 1024  # bytes; the API allows 32,768, but a status must stay small, and people read one line


class ConditionType(ApiEnum):
    """Every condition type that we write, and what True means."""

    SLICES_READY = "SlicesReady", "every slice of the job is Ready: all hosts, with all chips"
    RAY_CLUSTER_READY = "RayClusterReady", "every host of every slice is in Ray, and only those"
    SUSPENDED = "Suspended", "`spec.suspend` is true, nothing is held"
    COMPLETE = (
        "Complete",
        "the program ended well; set once all slices are given back, so that nothing is spent after it",
    )
    FAILED = "Failed", "the job is over without success; set once all slices are given back"
    READY = "Ready", "as asked for: a job that is running, suspended or succeeded, a slice with all its hosts"
    RECONCILING = "Reconciling", "on its way without anybody's help: waiting, starting, restarting"
    STALLED = "Stalled", "failed, or a person must act: the message says what"
    SWEEP_HALTED = "SweepHalted", "on a class; not written yet"


class Condition(StatusModel):
    """metav1.Condition."""

    type: str = Field(description="Kind of condition. Example: Ready.", max_length=316)
    status: Literal["True", "False", "Unknown"] = Field(
        description="Whether the condition holds: True, False or Unknown."
    )
    reason: str = Field(description="Why it is so, in one word for programs. Example: Stockout.", max_length=1024)
    message: str = Field(
        default="", description="What is the case and what happens or is needed next, for people.", max_length=32768
    )
    last_transition_time: Timestamp = Field(description="When the status of the condition last changed.")
    observed_generation: int = Field(default=0, description="metadata.generation that the condition was judged from.")


def set_condition(
    conditions: Iterable[Condition],
    *,
    type: str,
    status: bool | None,
    reason: str,
    message: str = "",
    observed_generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions with this one set, in the order they were; lastTransitionTime moves only when the status changes.

    `status` None means Unknown. The message is cut in the middle when it is too long.
    """
    known = tuple(conditions)
    old = find_condition(known, type)
    text: Literal["True", "False", "Unknown"] = "Unknown" if status is None else "True" if status else "False"
    new = Condition(
        type=str(type),
        status=text,
        reason=str(reason),
        message=shorten(message, MAX_CONDITION_MESSAGE),
        last_transition_time=old.last_transition_time if old and old.status == text else to_second(now),
        observed_generation=observed_generation,
    )
    if old is None:
        return (*known, new)
    return tuple(new if condition.type == type else condition for condition in known)


def remove_condition(conditions: Iterable[Condition], type: str) -> tuple[Condition, ...]:
    """The conditions without this one."""
    return tuple(condition for condition in conditions if condition.type != type)


def find_condition(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of that type."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether the condition is there and True."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "True"


class Readiness(enum.Enum):
    """What kstatus, and so Argo CD, Flux and `kubectl wait`, shall see."""

    CURRENT = "Current"  # as asked for, or on its way without anybody's help: running, suspended, succeeded
    IN_PROGRESS = "InProgress"  # waiting, starting, restarting
    FAILED = "Failed"  # failed, or a human is needed; never while we retry


def set_readiness(
    conditions: Iterable[Condition],
    readiness: Readiness,
    *,
    reason: str,
    message: str = "",
    observed_generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """Set Ready, Reconciling and Stalled so that exactly one of them is True."""
    result = tuple(conditions)
    for type_, holds in (
        (ConditionType.READY, Readiness.CURRENT),
        (ConditionType.RECONCILING, Readiness.IN_PROGRESS),
        (ConditionType.STALLED, Readiness.FAILED),
    ):
        result = set_condition(
            result,
            type=type_,
            status=readiness is holds,
            reason=reason,
            message=message,
            observed_generation=observed_generation,
            now=now,
        )
    return result


def kstatus(obj: Mapping[str, Any]) -> str:
    """`Current`, `InProgress`, `Failed` or `Terminating`, by the rules of kstatus (cli-utils 0.37) for custom
    resources."""
    metadata = obj.get("metadata", {})
    status = obj.get("status", {})
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata.get("generation", 0):
        return "InProgress"
    states = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    if states.get("Stalled") == "True":
        return "Failed"
    if states.get("Reconciling") == "True":
        return "InProgress"
    if states.get("Ready", "True") != "True":
        return "InProgress"
    return "Current"


def shorten(text: str, limit: int) -> str:
    """The text in at most `limit` bytes of UTF-8, cut in the middle: the start says what, the end says why."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    mark = " ... "
    head = (limit - len(mark)) * 2 // 3
    tail = len(raw) - (limit - len(mark) - head)
    return raw[:head].decode(errors="ignore") + mark + raw[tail:].decode(errors="ignore")
