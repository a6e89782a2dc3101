"""Back-off computed from status and the clock: a restart of the operator neither resets it nor hurries it."""

import hashlib
from dataclasses import dataclass

from torchtpu_operator.plan.observed import CallFailed, FailureClass


@dataclass(frozen=True, kw_only=True)
class Rule:
    first: float
    """Seconds before the second try."""
    cap: float
    """Longest wait, seconds."""


# One row a class. Cloud calls are slow to heal, so nothing is asked more often than about once in two seconds; a refusal
# that only a person can lift (permission, quota) is asked again every five minutes, since nobody tells us when it is lifted.
RULES: dict[FailureClass, Rule] = {
    FailureClass.BUSY: Rule(first=5, cap=60),
    FailureClass.THROTTLED: Rule(first=10, cap=120),
    FailureClass.TRANSIENT: Rule(first=2, cap=60),
    FailureClass.QUOTA: Rule(first=30, cap=300),
    FailureClass.STOCKOUT: Rule(first=30, cap=300),
    FailureClass.RESERVATION_FULL: Rule(first=30, cap=300),
    FailureClass.RESERVATION_INVALID: Rule(first=60, cap=300),
    FailureClass.WRONG_ZONE: Rule(first=60, cap=300),
    FailureClass.INVALID: Rule(first=60, cap=300),
    FailureClass.POLICY_NOT_FOUND: Rule(first=30, cap=300),
    FailureClass.PERMISSION: Rule(first=15, cap=300),
    FailureClass.NETWORK: Rule(first=60, cap=300),
    FailureClass.TOO_MANY_POOLS: Rule(first=60, cap=300),
    FailureClass.CONFLICT: Rule(first=1, cap=60),
    FailureClass.NOT_FOUND: Rule(first=15, cap=300),
}


def delay(failed: CallFailed, *, count: int, uid: str) -> float:
    """Seconds until the next try after the `count`-th failure in a row (1 = first), spread by a hash of the uid.

    The spread is a function of (uid, count), so a plan stays pure and a fleet does not knock in step.
    """
    rule = RULES[failed.failure]
    base = min(rule.cap, rule.first * 2.0 ** min(count - 1, 16))
    spread = int.from_bytes(hashlib.sha256(f"{uid}/{count}".encode()).digest()[:4], "big") / 2**32
    return max(base * (0.8 + 0.4 * spread), failed.retry_after or 0.0)
