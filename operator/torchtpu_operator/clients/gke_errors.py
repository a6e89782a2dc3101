"""GKE's refusals by kind: first by what the text says, then by the status code.

GKE puts most causes into prose only; the patterns come from cluster-autoscaler, xpk, Terraform's provider and Google's
troubleshooting pages. What no row knows is transient where it may pass and invalid where the code says so.
"""

import re
from dataclasses import dataclass

from torchtpu_operator.clients.calls import shortened
from torchtpu_operator.plan.observed import CallFailed, FailureClass


@dataclass(frozen=True)
class Row:
    failure: FailureClass
    pattern: re.Pattern[str]


def _row(failure: FailureClass, *patterns: str) -> Row:
    return Row(failure, re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL))


# The order decides where two rows could match: "too many operations" is also worded as a quota, a reservation without
# room as a lack of resources.
ROWS = (
    _row(
        FailureClass.BUSY,
        r"incompatible operation",
        r"is currently .*please wait and try again once it is done",
        r"(master|cluster|node ?pool) is (currently )?being (updated|upgraded|repaired|created|deleted)",
        r"not ready for operation",
        r"locked as part of another operation",
        r"another operation is already in progress",
        r"too many operations: .*concurrent operations quota",
        r"concurrent operations quota",
    ),
    _row(FailureClass.TOO_MANY_POOLS, r"cluster byte size limit reached"),
    _row(FailureClass.RESERVATION_FULL, r"reservation .*does not have sufficient capacity"),
    _row(
        FailureClass.RESERVATION_INVALID,
        r"could not find the given reservation",
        r"reservation must exist in the same project",
        r"reservation .*READY state",
        r"target a reservation with workload_type",
        r"reservation .*is incorrect for the requested resources",
        r"incompatible aggregatereservation vmfamily",
        r"must use reservationaffinity of",
    ),
    _row(
        FailureClass.STOCKOUT,
        r"GCE_STOCKOUT",
        r"(ZONE_)?RESOURCE_POOL_EXHAUSTED",
        r"does not have enough resources available",
        r"not all instances running in IGM after",
        r"requested resource is exhausted",
        r"lack of capacity",
        r"does not currently have sufficient capacity",
    ),
    _row(FailureClass.THROTTLED, r"rate ?limit ?exceeded", r"quota exceeded for quota metric .*(requests|per minute)"),
    _row(
        FailureClass.QUOTA,
        r"insufficient (regional |project )?quota to satisfy",
        r"quota '[^']*' exceeded",
        r"GCE_QUOTA_EXCEEDED",
        r"\bQUOTA_EXCEEDED",
    ),
    _row(
        FailureClass.NETWORK,
        r"cannot find pod range with enough available IPs",
        r"does not have available private IP space",
        r"IP_SPACE_EXHAUSTED",
    ),
    _row(FailureClass.WRONG_ZONE, r"machine type with name .*does not exist in zone"),
    _row(FailureClass.POLICY_NOT_FOUND, r"(resource|workload|placement) ?policy .*(not found|does not exist)"),
    _row(
        FailureClass.INVALID,
        r"gang mode of size",
        r"not a valid size of TPU pod slice",
        r"placement policy is not supported",
        r"flex[- ]start node pools don't support",
        r"invalid value for field",
        r"tpu ?topology",
    ),
    _row(
        FailureClass.PERMISSION,
        r"required .*permission",
        r"missing required permissions?",
        r"NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS",
        r"GKE_SERVICE_ACCOUNT_DELETED",
        r"CLOUD_KMS_KEY_",
        r"service account .*does not exist",
        r"permission[_ ]?denied",
    ),
)

# google.rpc.Code by number: operations and pool conditions carry the number, calls the name.
CODES = {
    1: "CANCELLED",
    2: "UNKNOWN",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    11: "OUT_OF_RANGE",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    15: "DATA_LOSS",
    16: "UNAUTHENTICATED",
}

_BY_CODE = {
    "INVALID_ARGUMENT": FailureClass.INVALID,
    "OUT_OF_RANGE": FailureClass.INVALID,
    "UNIMPLEMENTED": FailureClass.INVALID,
    "NOT_FOUND": FailureClass.NOT_FOUND,
    "ALREADY_EXISTS": FailureClass.CONFLICT,
    "PERMISSION_DENIED": FailureClass.PERMISSION,
    "UNAUTHENTICATED": FailureClass.PERMISSION,
    "RESOURCE_EXHAUSTED": FailureClass.THROTTLED,
}

# A code that by itself settles the matter, whatever the text happens to mention.
_CODE_FIRST = {"ALREADY_EXISTS", "UNAVAILABLE", "DEADLINE_EXCEEDED"}


def classify(*, code: str, message: str, asynchronous: bool = False) -> FailureClass:
    """The class of a refusal. `code` is google.rpc.Code's name, "" if unknown.

    `asynchronous`: the error of an operation or a pool condition, where an exhausted resource is never our call rate.
    """
    if code not in _CODE_FIRST or asynchronous:
        for row in ROWS:
            if row.pattern.search(message):
                return row.failure
    failure = _BY_CODE.get(code, FailureClass.TRANSIENT)
    if asynchronous and failure in (FailureClass.THROTTLED, FailureClass.CONFLICT):
        return FailureClass.TRANSIENT
    return failure


def failed(
    *, call: str, code: str, message: str, asynchronous: bool = False, retry_after: float | None = None
) -> CallFailed:
    """A `CallFailed` with GKE's own words."""
    return CallFailed(
        call=call,
        failure=classify(code=code, message=message, asynchronous=asynchronous),
        message=shortened(message or code or "no reason given"),
        retry_after=retry_after,
    )
