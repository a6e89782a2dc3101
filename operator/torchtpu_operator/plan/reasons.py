"""From the class of a failed call to the reason and the next action that a person reads."""

from torchtpu_operator.api import Reason
from torchtpu_operator.plan.observed import CallFailed, FailureClass

REASONS: dict[FailureClass, Reason] = {
    FailureClass.BUSY: Reason.CLUSTER_BUSY,
    FailureClass.THROTTLED: Reason.GKE_THROTTLED,
    FailureClass.TRANSIENT: Reason.GKE_UNREACHABLE,
    FailureClass.QUOTA: Reason.QUOTA_EXCEEDED,
    FailureClass.STOCKOUT: Reason.STOCKOUT,
    FailureClass.RESERVATION_FULL: Reason.RESERVATION_FULL,
    FailureClass.RESERVATION_INVALID: Reason.RESERVATION_INVALID,
    FailureClass.WRONG_ZONE: Reason.WRONG_ZONE,
    FailureClass.INVALID: Reason.INVALID_REQUEST,
    FailureClass.PERMISSION: Reason.PERMISSION_DENIED,
    FailureClass.POLICY_NOT_FOUND: Reason.PLACEMENT_POLICY_NOT_FOUND,
    FailureClass.NETWORK: Reason.NETWORK_EXHAUSTED,
    FailureClass.TOO_MANY_POOLS: Reason.TOO_MANY_NODE_POOLS,
    FailureClass.CONFLICT: Reason.NAME_CONFLICT,
    FailureClass.NOT_FOUND: Reason.CLUSTER_NOT_FOUND,
}

NEXT: dict[FailureClass, str] = {
    FailureClass.BUSY: "waiting for GKE's other operation",
    FailureClass.THROTTLED: "asking less often",
    FailureClass.TRANSIENT: "asking again; check the operator's network path to the API if this stays",
    FailureClass.QUOTA: "raise the quota that the message names, or offer another zone or type",
    FailureClass.STOCKOUT: "the next offer is tried",
    FailureClass.RESERVATION_FULL: "the next offer is tried",
    FailureClass.RESERVATION_INVALID: "correct the reservation in the class",
    FailureClass.WRONG_ZONE: "correct the zones of the offer",
    FailureClass.INVALID: "correct the class or the shape; GKE is not asked the same again",
    FailureClass.POLICY_NOT_FOUND: "make the policy, or name another one in the offer's workloadPolicy",
    FailureClass.PERMISSION: "grant the operator's service account the permission that the message names",
    FailureClass.NETWORK: "give the class's networkConfig a larger pod range, or lower maxPodsPerNode",
    FailureClass.TOO_MANY_POOLS: "delete node pools that nobody needs",
    FailureClass.CONFLICT: "rename or delete the node pool of that name, which is not ours",
    FailureClass.NOT_FOUND: "check the operator's settings of project, location and cluster",
}


def reason_of(failed: CallFailed) -> Reason:
    return REASONS[failed.failure]


def explain(failed: CallFailed) -> str:
    """One line: what failed, what the other side said, what happens or is needed next."""
    return f"{failed.call}: {failed.message.strip() or 'no answer'} ({NEXT[failed.failure]})"
