"""A slice's node pool is asked for, once, and what is ours is adopted."""

import pytest

from tests.builders import (
    NOW,
    a_failure,
    a_pool,
    a_slice,
    an_operation,
    some_nodes,
)
from tests.unit.plan.slice_cases import CREATED, POOL, WANTED, Case, after, check
from tests.unit.plan.views import Seen
from torchtpu_operator.api import Reason
from torchtpu_operator.plan.observed import (
    DemandSeen,
    FailureClass,
    Ownership,
)

CASES = {
    # --- asking
    "a slice without our finalizer gets it before anything is asked of GKE": Case(
        given=a_slice().meta(finalizers=()),
        want=Seen(do=("AddFinalizer",), look=0.0),
    ),
    "a slice of somebody else's finalizer that is deleted before ours was on is none of our business": Case(
        given=a_slice().meta(finalizers=("other/one",)).deleted(),
        want=Seen(),
    ),
    "a new slice whose job wants it: the intent is written, then the pool is asked for": Case(
        given=a_slice(),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", do=(f"CreateNodePool {POOL}",), look=1.0),
        status={"operation.name": "", "operation.type": "CREATE_NODE_POOL", "operation.accepted_at": None},
    ),
    "its job is gone: nothing is asked": Case(
        given=a_slice(), claimant=None, want=Seen(phase="Pending", reason="WaitingForRelease")
    ),
    "its job was made anew under the same name: nothing is asked": Case(
        given=a_slice(),
        claimant=DemandSeen(uid="another", slices=1, sequence=(0,)),
        want=Seen(phase="Pending", reason="WaitingForRelease"),
    ),
    "its job wants no slices any more: nothing is asked": Case(
        given=a_slice(),
        claimant=DemandSeen(uid=WANTED.uid, slices=0, sequence=(0,)),
        want=Seen(phase="Pending", reason="WaitingForRelease"),
    ),
    "its job gave this slice up meanwhile: nothing is asked": Case(
        given=a_slice(),
        claimant=DemandSeen(uid=WANTED.uid, slices=1, sequence=(1,)),
        want=Seen(phase="Pending", reason="WaitingForRelease"),
    ),
    "the job cannot be read: unknown is not wanted, ask again": Case(
        given=a_slice(),
        claimant=a_failure(call="GET job"),
        want=Seen(
            phase="Pending", reason="GKEUnreachable", tell=("GKEUnreachable",), look=after(FailureClass.TRANSIENT)
        ),
    ),
    "a slice that nobody claims (made by an admin) is made without asking any job": Case(
        given=a_slice().available(released=None),
        claimant=None,
        want=Seen(phase="Provisioning", reason="NodePoolCreating", do=(f"CreateNodePool {POOL}",), look=1.0),
    ),
    # --- a pool of that name is there before we asked
    "a pool of ours is there already (restored from a backup): adopted, not asked for again": Case(
        given=a_slice(),
        pool=a_pool("RUNNING"),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=0.0),
        status={"created_at": NOW, "operation.accepted_at": NOW},
    ),
    "a foreign pool of that name: refused, left alone": Case(
        given=a_slice(),
        pool=a_pool("RUNNING", ownership=Ownership.FOREIGN),
        want=Seen(phase="Failed", reason="NameConflict", tell=("NameConflict",)),
    ),
    "a pool of ours from another spec: refused, left alone": Case(
        given=a_slice(),
        pool=a_pool("RUNNING", ownership=Ownership.OTHER_SPEC),
        want=Seen(phase="Failed", reason="NameConflict", tell=("NameConflict",)),
    ),
    "an earlier pool of ours that is still being deleted does not exist for us: wait": Case(
        given=a_slice(),
        pool=a_pool("STOPPING"),
        want=Seen(phase="Pending", reason="NodePoolDeleting", look=10.0),
    ),
    # --- the answer to the create
    "GKE accepted: its operation is kept": Case(
        given=a_slice().asked(),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        outcomes=(CREATED,),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", tell=("NodePoolRequested",), look=1.0),
        status={"operation.name": "operation-1", "operation.accepted_at": NOW, "created_at": NOW},
    ),
    "the answer was lost and the pool is there: its operation is found by the pool": Case(
        given=a_slice().asked(),
        pool=a_pool("PROVISIONING"),
        operation=an_operation("operation-7"),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=1.0),
        status={"operation.name": "operation-7", "operation.accepted_at": NOW},
    ),
    "the answer was lost and the operation is forgotten, but the pool is there: its wait has begun": Case(
        given=a_slice().asked(),
        pool=a_pool("RUNNING"),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=1.0),
        status={"operation.accepted_at": NOW},
    ),
    "the answer was lost and no pool is there: asked again": Case(
        given=a_slice().asked(),
        want=Seen(phase="Pending", reason="Pending", look=0.0),
        status={"created_at": None},
    ),
    "409 on create: nothing is decided before the pool itself was looked at": Case(
        given=a_slice().asked(),
        pool=a_pool("PROVISIONING"),
        outcomes=(a_failure(FailureClass.CONFLICT),),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=0.0),
    ),
    "409 on create, and the pool is foreign: refused": Case(
        given=a_slice().asked(),
        pool=a_pool("RUNNING", ownership=Ownership.FOREIGN),
        outcomes=(a_failure(FailureClass.CONFLICT),),
        want=Seen(phase="Failed", reason="NameConflict", tell=("NameConflict",), look=0.0),
    ),
    "no answer to the create: the intent stays, asked again later": Case(
        given=a_slice().asked(),
        outcomes=(a_failure(FailureClass.TRANSIENT),),
        want=Seen(
            phase="Provisioning", reason="GKEUnreachable", tell=("GKEUnreachable",), look=after(FailureClass.TRANSIENT)
        ),
        status={"operation.name": "", "retry.failures": 1},
    ),
    "the cluster is busy: a wait, not a failure": Case(
        given=a_slice().asked(),
        outcomes=(a_failure(FailureClass.BUSY),),
        want=Seen(phase="Pending", reason="ClusterBusy", tell=("ClusterBusy",), look=after(FailureClass.BUSY)),
        status={"operation": None, "retry.failures": 1},
    ),
    "busy for the third time: no second event, a longer wait": Case(
        given=a_slice().asked().retrying(Reason.CLUSTER_BUSY, failures=2, in_seconds=0),
        outcomes=(a_failure(FailureClass.BUSY),),
        want=Seen(phase="Pending", reason="ClusterBusy", look=after(FailureClass.BUSY, count=3)),
        status={"retry.failures": 3},
    ),
    "GKE says how long to wait: so long at least": Case(
        given=a_slice().asked(),
        outcomes=(a_failure(FailureClass.THROTTLED, retry_after=90.0),),
        want=Seen(phase="Pending", reason="GKEThrottled", tell=("GKEThrottled",), look=90.0),
    ),
    "permission denied: said, and asked again, since nobody tells us when it is granted": Case(
        given=a_slice().asked(),
        outcomes=(a_failure(FailureClass.PERMISSION),),
        want=Seen(
            phase="Pending", reason="PermissionDenied", tell=("PermissionDenied",), look=after(FailureClass.PERMISSION)
        ),
    ),
    "stock-out at once: this slice will not come": Case(
        given=a_slice().asked(),
        outcomes=(a_failure(FailureClass.STOCKOUT),),
        want=Seen(phase="Failed", reason="Stockout", tell=("Stockout",)),
        status={"operation": None, "failure.reason": "Stockout"},
    ),
    "quota: this slice will not come": Case(
        given=a_slice().asked(),
        outcomes=(a_failure(FailureClass.QUOTA),),
        want=Seen(phase="Failed", reason="QuotaExceeded", tell=("QuotaExceeded",)),
    ),
    "while the back-off runs nothing is asked": Case(
        given=a_slice().retrying(Reason.PERMISSION_DENIED, in_seconds=100),
        want=Seen(look=100.0),
    ),
    "a back-off that ends between the look and the plan: not asked is not absent": Case(
        given=a_slice().asked("operation-1").retrying(Reason.GKE_UNREACHABLE, in_seconds=1),
        late=2,
        want=Seen(phase="Provisioning", look=0.0),
        status={"failure": None},
    ),
    "a shape that does not exist (made by hand): said, nothing is asked": Case(
        given=a_slice(topology="3x5"),
        want=Seen(phase="Failed", reason="InvalidSpec", tell=("InvalidSpec",)),
    ),
    "an adopted pool is not asked for: its nodes are awaited": Case(
        given=a_slice(node_pool={"name": POOL, "managed": False}),
        nodes=some_nodes(3),
        want=Seen(phase="Provisioning", reason="WaitingForNodes", look=1.0),
    ),
    "an adopted pool with all its nodes is a slice": Case(
        given=a_slice(node_pool={"name": POOL, "managed": False}),
        nodes=some_nodes(4),
        want=Seen(phase="Ready", reason="NodesReady", tell=("NodesReady",)),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_slice(case: Case) -> None:
    check(case)
