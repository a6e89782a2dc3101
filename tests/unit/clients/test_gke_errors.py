"""GKE's refusals by kind, each with a text as GKE or its users have it."""

from typing import NamedTuple

import pytest

from torchtpu_operator.clients.gke_errors import classify
from torchtpu_operator.plan.observed import FailureClass as F


class Case(NamedTuple):
    code: str
    message: str
    want: F
    asynchronous: bool = False


CASES = {
    "the name is taken": Case(
        "ALREADY_EXISTS", "Already exists: projects/p/zones/z/clusters/c/nodePools/n.", F.CONFLICT
    ),
    "another operation runs": Case(
        "FAILED_PRECONDITION", "Cluster is running incompatible operation operation-1700000000000-abc.", F.BUSY
    ),
    "this pool is being changed": Case(
        "FAILED_PRECONDITION",
        "Operation operation-17 is currently creating node pool n in cluster c. Please wait and try again once it is done.",
        F.BUSY,
    ),
    "the master is upgraded": Case("FAILED_PRECONDITION", "Master is being upgraded.", F.BUSY),
    "the cluster is aborted into waiting": Case("ABORTED", "Another operation is already in progress.", F.BUSY),
    "too many operations at once": Case(
        "RESOURCE_EXHAUSTED",
        "Too many operations: cluster c hits the concurrent operations quota 5, please try again later.",
        F.BUSY,
    ),
    "asked too often": Case("RESOURCE_EXHAUSTED", "rateLimitExceeded", F.THROTTLED),
    "asked too often, as quota metric": Case(
        "RESOURCE_EXHAUSTED",
        "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service 'container'",
        F.THROTTLED,
    ),
    "exhausted without a word": Case("RESOURCE_EXHAUSTED", "", F.THROTTLED),
    "quota of chips, at the call": Case(
        "RESOURCE_EXHAUSTED", "Insufficient quota to satisfy the request: TPUS_PER_TPU_FAMILY", F.QUOTA
    ),
    "quota of chips, by name": Case(
        "PERMISSION_DENIED", "Quota 'PREEMPTIBLE-TPU-V6E-per-project-region' exceeded. Limit: 0.0", F.QUOTA
    ),
    "quota of chips, in a condition": Case("", "GCE_QUOTA_EXCEEDED: ", F.QUOTA, True),
    "no capacity, code in the text": Case("INTERNAL", "[GCE_STOCKOUT] ...", F.STOCKOUT, True),
    "no capacity, Compute's words": Case(
        "RESOURCE_EXHAUSTED",
        "The zone 'us-east5-b' does not have enough resources available to fulfill the request.",
        F.STOCKOUT,
        True,
    ),
    "no capacity, after 35 minutes": Case(
        "", "Not all instances running in IGM after 35m9s. Expected 4, running 0.", F.STOCKOUT, True
    ),
    "no capacity, exhausted pool": Case("", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", F.STOCKOUT, True),
    "reservation without room": Case(
        "RESOURCE_EXHAUSTED",
        "Reservation v6e-res does not have sufficient capacity for requested resources",
        F.RESERVATION_FULL,
        True,
    ),
    "reservation that is not there": Case(
        "INVALID_ARGUMENT",
        "Could not find the given reservation with the following name: x",
        F.RESERVATION_INVALID,
        True,
    ),
    "reservation of another machine": Case(
        "INVALID_ARGUMENT", "Reservation r is incorrect for the requested resources.", F.RESERVATION_INVALID, True
    ),
    "wrong size": Case("INVALID_ARGUMENT", "4x4 is not a valid size of TPU pod slice for ct6e-standard-8t", F.INVALID),
    "placement policy on v7x": Case(
        "INVALID_ARGUMENT", "Placement policy is not supported. Use workload policy.", F.INVALID
    ),
    "policy that is not there": Case(
        "INVALID_ARGUMENT", "Resource policy 'torchtpu-x' was not found in region us-east5.", F.POLICY_NOT_FOUND
    ),
    "pod range too small": Case(
        "FAILED_PRECONDITION", "Cannot find pod range with enough available IPs in network n", F.NETWORK, True
    ),
    "too many pools": Case("", "Cluster byte size limit reached", F.TOO_MANY_POOLS),
    "right is missing": Case(
        "PERMISSION_DENIED", 'Required "container.clusters.update" permission(s) for "projects/p".', F.PERMISSION
    ),
    "not signed in": Case("UNAUTHENTICATED", "Request had invalid authentication credentials.", F.PERMISSION),
    "node account is broken": Case("", "NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS: ", F.PERMISSION, True),
    "cluster is not there": Case("NOT_FOUND", "Not found: projects/p/locations/l/clusters/c.", F.NOT_FOUND),
    "zone has no such machine": Case(
        "INVALID_ARGUMENT",
        "Machine type with name 'ct6e-standard-4t' does not exist in zone 'us-east5-c'.",
        F.WRONG_ZONE,
        True,
    ),
    "no answer": Case("UNAVAILABLE", "failed to connect to all addresses", F.TRANSIENT),
    "no answer, whatever it mentions": Case("UNAVAILABLE", "upstream: quota 'x' exceeded", F.TRANSIENT),
    "time over": Case("DEADLINE_EXCEEDED", "Deadline Exceeded", F.TRANSIENT),
    "GKE's own fault": Case("INTERNAL", "Internal error.", F.TRANSIENT),
    "a precondition that nobody knows": Case("FAILED_PRECONDITION", "The moon is wrong.", F.TRANSIENT),
    "nothing at all": Case("", "", F.TRANSIENT),
    "an operation's exhaustion is not our rate": Case(
        "RESOURCE_EXHAUSTED", "Something is exhausted", F.TRANSIENT, True
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_classify(case: Case) -> None:
    got = classify(code=case.code, message=case.message, asynchronous=case.asynchronous)
    assert got is case.want
