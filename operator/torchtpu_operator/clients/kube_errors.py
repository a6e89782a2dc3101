"""The one error of the Kubernetes client, and what it means to a planner."""

import json
from collections.abc import Mapping
from typing import Any

from torchtpu_operator.clients.calls import shortened
from torchtpu_operator.plan.observed import CallFailed, FailureClass

NO_ANSWER = 0
_ADMISSION = (
    "violates PodSecurity",
    "denied the request",  # a webhook
    "denied request",  # a ValidatingAdmissionPolicy
    "error looking up service account",
    "no PriorityClass with name",
)


class KubeError(Exception):
    """The apiserver refused a call, or gave no answer that can be read (`status` 0: it may have taken effect)."""

    def __init__(
        self, message: str, *, call: str, status: int, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(f"{call}: {message}")
        self.message, self.call, self.status, self.reason, self.retry_after = message, call, status, reason, retry_after

    @property
    def is_conflict(self) -> bool:
        """Somebody was faster: read again, decide again. (409 with AlreadyExists too.)"""
        return self.status == 409

    @property
    def is_absent(self) -> bool:
        return self.status == 404


def refused(*, call: str, status: int, body: str, headers: Mapping[str, str]) -> KubeError:
    """A `KubeError` from an error response: the Status object's own words where there is one."""
    reason, message = "", body
    try:
        document: Any = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict):
        reason, message = document.get("reason") or "", document.get("message") or body
    return KubeError(
        shortened(message), call=call, status=status, reason=reason, retry_after=_seconds(headers.get("Retry-After"))
    )


def call_failed(error: KubeError) -> CallFailed:
    return CallFailed(
        call=error.call,
        failure=_failure(error),
        message=shortened(error.message),
        retry_after=error.retry_after,
    )


def _failure(error: KubeError) -> FailureClass:
    match error.status:
        case 409:
            return FailureClass.CONFLICT
        case 404:
            return FailureClass.NOT_FOUND
        case 429:
            return FailureClass.THROTTLED
        case 400 | 405 | 413 | 415 | 422:
            return FailureClass.INVALID
        case 401:
            return FailureClass.PERMISSION
        case 403:
            return _forbidden(error.message)
        case _:
            return FailureClass.TRANSIENT


def _forbidden(message: str) -> FailureClass:
    # 403 is also how quota, admission plugins and webhooks say no; only the words tell them from a missing right.
    if "exceeded quota" in message:
        return FailureClass.QUOTA
    if "is being terminated" in message:
        return FailureClass.CONFLICT
    if any(words in message for words in _ADMISSION) or "limit range" in message.lower():
        return FailureClass.INVALID
    return FailureClass.PERMISSION


def _seconds(header: str | None) -> float | None:
    """Retry-After in seconds; the HTTP-date form, which the apiserver never sends, counts as none."""
    return float(header) if header and header.isdigit() else None
