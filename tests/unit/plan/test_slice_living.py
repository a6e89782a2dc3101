"""A slice that is Ready, its losses, what it looks at and what it says of itself."""

import pytest

from tests.builders import (
    NOW,
    SliceBuilder,
    a_failure,
    a_pool,
    a_slice,
    an_operation,
    some_nodes,
)
from tests.unit.plan.slice_cases import POOL, Case, check, planned
from tests.unit.plan.views import Seen, kstatus_of
from torchtpu_operator.api import Reason
from torchtpu_operator.plan.observed import (
    FailureClass,
    NodeSeen,
)
from torchtpu_operator.plan.slice import SliceNeeds, slice_needs

CASES = {
    # --- ready, and losses
    "ready and whole: nothing to do, nothing to watch": Case(
        given=a_slice().ready(),
        nodes=some_nodes(4),
        want=Seen(phase="Ready", reason="NodesReady"),
    ),
    "a host is gone": Case(
        given=a_slice().ready(),
        nodes=some_nodes(3),
        want=Seen(phase="Degraded", reason="SliceDegraded", tell=("SliceDegraded",), look=0.0),
        status={"degraded_at": NOW, "message": "1 of 4 hosts are gone"},
    ),
    "a host is not Ready": Case(
        given=a_slice().ready(),
        nodes=some_nodes(4, ready=3),
        want=Seen(phase="Degraded", reason="SliceDegraded", tell=("SliceDegraded",), look=0.0),
        status={"message": "1 of 4 hosts are not Ready"},
    ),
    "GKE announces the end of a host": Case(
        given=a_slice().ready(),
        nodes=(*some_nodes(3), NodeSeen(name="node-3", uid="u", ready=True, chips=4, created_at=NOW, terminating=True)),
        want=Seen(phase="Degraded", reason="SliceDegraded", tell=("SliceDegraded",), look=0.0),
        status={"message": "host node-3 is being terminated by GKE"},
    ),
    "degraded and claimed: GKE may repair it": Case(
        given=a_slice().degraded(since=-30),
        pool=a_pool("RECONCILING"),
        nodes=some_nodes(4, ready=3),
        want=Seen(phase="Degraded", reason="SliceDegraded", look=30.0),
    ),
    "repaired: Ready again": Case(
        given=a_slice().degraded(since=-300),
        pool=a_pool("RUNNING"),
        nodes=some_nodes(4),
        want=Seen(phase="Ready", reason="NodesReady"),
        status={"degraded_at": None},
    ),
    "not repaired within ten minutes: lost": Case(
        given=a_slice().degraded(since=-600),
        pool=a_pool("RUNNING"),
        nodes=some_nodes(4, ready=3),
        want=Seen(phase="Failed", reason="SliceLost", tell=("SliceLost",)),
    ),
    "degraded and nobody holds it: lost at once": Case(
        given=a_slice().degraded().available(),
        pool=a_pool("RUNNING"),
        nodes=some_nodes(3),
        want=Seen(phase="Failed", reason="SliceLost", tell=("SliceLost",)),
    ),
    "the pool of a degraded slice is gone: lost at once": Case(
        given=a_slice().degraded(),
        want=Seen(phase="Failed", reason="SliceLost", tell=("SliceLost",)),
    ),
    "GKE does not answer while a slice is degraded: unknown is not gone": Case(
        given=a_slice().degraded(since=-30),
        pool=a_failure(call="GetNodePool"),
        nodes=some_nodes(4, ready=3),
        want=Seen(phase="Degraded", reason="SliceDegraded", look=30.0),
    ),
    "released: the idle time counts from here": Case(
        given=a_slice().ready().available(released=None),
        nodes=some_nodes(4),
        want=Seen(phase="Ready", reason="NodesReady"),
        status={"released_at": NOW},
    ),
    "taken over by the next job: no idle time runs": Case(
        given=a_slice().ready().status(released_at=NOW),
        nodes=some_nodes(4),
        want=Seen(phase="Ready", reason="NodesReady"),
        status={"released_at": None},
    ),
    "failed: it waits for allocation to take it away": Case(
        given=a_slice().failed(),
        want=Seen(phase="Failed"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_slice(case: Case) -> None:
    check(case)


NEEDS = {
    "a new slice: the pool, and the job that claims it": (a_slice(), SliceNeeds(pool=True, claimant=True)),
    "asked without an answer: the pool, its operation by the pool, and the job once more": (
        a_slice().asked(),
        SliceNeeds(pool=True, find_operation=True, claimant=True),
    ),
    "accepted: pool and operation": (
        a_slice().asked("operation-1"),
        SliceNeeds(pool=True, operation="operation-1"),
    ),
    "ready: the watch of nodes is enough": (a_slice().ready(), SliceNeeds()),
    "degraded: is the pool still there?": (a_slice().degraded(), SliceNeeds(pool=True)),
    "failed: nothing": (a_slice().failed(), SliceNeeds()),
    "being deleted: the pool until it is gone": (
        a_slice().deleting("operation-9"),
        SliceNeeds(pool=True, operation="operation-9"),
    ),
    "in a back-off: nothing": (a_slice().retrying(Reason.CLUSTER_BUSY), SliceNeeds()),
    "an adopted pool: GKE is not asked": (a_slice(node_pool={"name": POOL, "managed": False}), SliceNeeds()),
}


@pytest.mark.parametrize(("given", "want"), NEEDS.values(), ids=NEEDS)
def test_needs_of_a_slice(given: SliceBuilder, want: SliceNeeds) -> None:
    assert slice_needs(given.build(), now=NOW) == want


def test_billing_of_a_slice_counts_from_the_first_node_to_the_last() -> None:
    first = planned(
        Case(
            given=a_slice().asked("operation-1"),
            pool=a_pool("PROVISIONING"),
            operation=an_operation(),
            nodes=some_nodes(1, age=100),
            want=Seen(),
        )
    )
    gone = planned(Case(given=a_slice().deleting("operation-9").of_status(first.status).deleted(-1), want=Seen()))
    assert (gone.status.usage.chip_seconds, gone.status.usage.since) == (100 * 16, None)


def test_kstatus_of_every_phase() -> None:
    cases = {
        "Pending": Case(given=a_slice(), claimant=None, want=Seen()),
        "Provisioning": Case(given=a_slice(), want=Seen()),
        "Ready": CASES["ready and whole: nothing to do, nothing to watch"],
        "Degraded": CASES["a host is gone"],
        "Failed": Case(given=a_slice().asked(), outcomes=(a_failure(FailureClass.QUOTA),), want=Seen()),
    }
    plans = {phase: planned(case) for phase, case in cases.items()}
    assert {phase: plan.status.phase for phase, plan in plans.items()} == {phase: phase for phase in cases}
    assert {phase: kstatus_of(plan.status) for phase, plan in plans.items()} == {
        "Provisioning": "InProgress",
        "Pending": "InProgress",
        "Ready": "Current",
        "Degraded": "InProgress",
        "Failed": "Failed",
    }
