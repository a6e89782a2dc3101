"""The slice planner, step by step: given what is seen, what is decided."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import (
    NOW,
    SETTINGS,
    SliceBuilder,
    a_failure,
    a_job,
    a_pool,
    a_slice,
    an_operation,
    at,
    some_nodes,
)
from tests.unit.plan.views import Seen, kstatus_of, seen
from torchtpu_operator.api import Reason, SlicePhase
from torchtpu_operator.plan import retry
from torchtpu_operator.plan.actions import Plan
from torchtpu_operator.plan.observed import (
    CallFailed,
    DemandSeen,
    FailureClass,
    NodeSeen,
    OperationSeen,
    OperationStarted,
    Outcome,
    Ownership,
    Performed,
    PoolSeen,
)
from torchtpu_operator.plan.slice import SliceNeeds, SliceObserved, plan_slice, slice_needs

POOL = a_slice().name
UID = a_slice().slice.metadata.uid
WANTED = DemandSeen(uid=a_job().job.metadata.uid, slices=1, sequence=(0,))
CREATED = OperationStarted(name="operation-1", kind="CREATE_NODE_POOL")


def after(failure: FailureClass, *, count: int = 1) -> float:
    """Seconds until the next try, in whole seconds as a status keeps them."""
    return float(int(max(1.0, retry.delay(a_failure(failure), count=count, uid=UID))))


@dataclass(frozen=True, kw_only=True)
class Case:
    given: SliceBuilder
    pool: PoolSeen | CallFailed | None = None
    operation: OperationSeen | CallFailed | None = None
    nodes: tuple[NodeSeen, ...] = ()
    claimant: DemandSeen | CallFailed | None = WANTED
    outcomes: tuple[Outcome, ...] = ()
    want: Seen
    late: float = 0.0
    """Seconds between the looks and the plan."""
    status: dict[str, Any] | None = None
    """Fields of the status that matter beside phase and reason, by dotted path."""


def planned(case: Case) -> Plan[Any]:
    slice_ = case.given.build()
    needs = slice_needs(slice_, now=NOW)
    observed = SliceObserved(
        slice=slice_,
        needs=needs,
        pool=case.pool if needs.pool else None,
        operation=case.operation if needs.operation or needs.find_operation else None,
        nodes=case.nodes,
        claimant=case.claimant if needs.claimant else None,
        outcomes=case.outcomes,
    )
    return plan_slice(observed, now=at(case.late), settings=SETTINGS)


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
    # --- waiting for nodes
    "the operation runs: its hosts are counted": Case(
        given=a_slice().asked("operation-1", since=-50),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        nodes=some_nodes(2),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=5.0),
        status={"nodes.summary": "2/4"},
    ),
    "a create that takes 40 minutes is slow, not failed": Case(
        given=a_slice().asked("operation-1", since=-2400),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=15.0),
    ),
    "the operation is done and no node is there: done is not ready": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("RUNNING"),
        operation=an_operation(done=True),
        want=Seen(phase="Provisioning", reason="WaitingForNodes", look=1.0),
        status={"operation.status": "DONE"},
    ),
    "all nodes are Ready but show no chips yet": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("RUNNING"),
        operation=an_operation(done=True),
        nodes=some_nodes(4, chips=0),
        want=Seen(phase="Provisioning", reason="WaitingForNodes", look=1.0),
        status={"nodes.summary": "0/4"},
    ),
    "nodes with chips of another machine do not count": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("RUNNING"),
        operation=an_operation(done=True),
        nodes=some_nodes(4, chips=8),
        want=Seen(phase="Provisioning", reason="WaitingForNodes", look=1.0),
    ),
    "five nodes instead of four are not the slice": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("RUNNING"),
        operation=an_operation(done=True),
        nodes=some_nodes(5, ready=4),
        want=Seen(phase="Provisioning", reason="WaitingForNodes", look=1.0),
    ),
    "all nodes Ready with all chips while the operation still runs: the nodes decide": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        nodes=some_nodes(4),
        want=Seen(phase="Ready", reason="NodesReady", tell=("NodesReady",)),
        status={"operation": None, "ready_at": NOW, "nodes.summary": "4/4"},
    ),
    "a look at GKE failed meanwhile: said, and repeated": Case(
        given=a_slice().asked("operation-1"),
        pool=a_failure(call="GetNodePool"),
        operation=an_operation(),
        want=Seen(
            phase="Provisioning", reason="GKEUnreachable", tell=("GKEUnreachable",), look=after(FailureClass.TRANSIENT)
        ),
        status={"operation.name": "operation-1"},
    ),
    "GKE answers again after a back-off: the back-off is over and forgotten": Case(
        given=a_slice().asked("operation-1").retrying(Reason.GKE_UNREACHABLE, in_seconds=-1),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=1.0),
        status={"retry": None},
    ),
    # --- how a create fails
    "done with an error: the operation's words end it": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("ERROR"),
        operation=an_operation(done=True, error=a_failure(FailureClass.STOCKOUT, call="CREATE_NODE_POOL")),
        want=Seen(phase="Failed", reason="Stockout", tell=("Stockout",)),
    ),
    "an ERROR pool whose operation is forgotten: the pool's own condition ends it": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("ERROR", failure=FailureClass.QUOTA, message="Quota 'TPUS' exceeded"),
        want=Seen(phase="Failed", reason="QuotaExceeded", tell=("QuotaExceeded",)),
    ),
    "an ERROR pool without a cause is broken": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("ERROR", message="internal"),
        want=Seen(phase="Failed", reason="NodePoolBroken", tell=("NodePoolBroken",)),
    ),
    "an ERROR pool whose operation still runs is not judged yet": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("ERROR"),
        operation=an_operation(),
        want=Seen(phase="Provisioning", reason="NodePoolCreating", look=1.0),
    ),
    "two of four nodes exist (RUNNING_WITH_ERROR): a slice is whole or nothing": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("RUNNING_WITH_ERROR", failure=FailureClass.STOCKOUT, message="no capacity"),
        operation=an_operation(done=True),
        nodes=some_nodes(2),
        want=Seen(phase="Failed", reason="Stockout", tell=("Stockout",)),
    ),
    "the pool is deleted by somebody while its nodes are awaited": Case(
        given=a_slice().asked("operation-1"),
        operation=an_operation(done=True),
        want=Seen(phase="Failed", reason="SliceLost", tell=("SliceLost",)),
    ),
    "the pool is being deleted by somebody while its nodes are awaited": Case(
        given=a_slice().asked("operation-1"),
        pool=a_pool("STOPPING"),
        operation=an_operation(done=True),
        want=Seen(phase="Failed", reason="NodePoolBroken", tell=("NodePoolBroken",)),
    ),
    "a delete of an earlier pool of that name says nothing of ours": Case(
        given=a_slice().asked(),
        operation=an_operation("operation-0", kind="DELETE_NODE_POOL", done=True),
        want=Seen(phase="Pending", reason="Pending", look=0.0),
        status={"operation.accepted_at": None},
    ),
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
    # --- deletion
    "deleted before anything was asked: let go": Case(
        given=a_slice().available().deleted(-1),
        want=Seen(phase="Deleting", reason="NodePoolDeleted", do=("RemoveFinalizer",)),
    ),
    "deleted while its job still holds it: the job is given time": Case(
        given=a_slice().ready().deleted(-20),
        pool=a_pool(),
        nodes=some_nodes(4),
        want=Seen(phase="Ready", reason="WaitingForRelease", look=100.0),
    ),
    "the job did not let go in time: the pool goes": Case(
        given=a_slice().ready().deleted(-120),
        pool=a_pool(),
        nodes=some_nodes(4),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", do=(f"DeleteNodePool {POOL}",), look=1.0),
        status={"operation.type": "DELETE_NODE_POOL", "operation.name": ""},
    ),
    "failed and deleted: nobody can use it, no time is lost": Case(
        given=a_slice().failed().deleted(-1),
        pool=a_pool("ERROR"),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", do=(f"DeleteNodePool {POOL}",), look=1.0),
    ),
    "deleted and free: the intent is written, then the pool is asked to go": Case(
        given=a_slice().ready().available().deleted(-1),
        pool=a_pool(),
        nodes=some_nodes(4),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", do=(f"DeleteNodePool {POOL}",), look=1.0),
    ),
    "GKE accepted the deletion": Case(
        given=a_slice().available().deleting(),
        pool=a_pool("STOPPING"),
        outcomes=(OperationStarted(name="operation-9", kind="DELETE_NODE_POOL"),),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", look=1.0),
        status={"operation.name": "operation-9"},
    ),
    "the deletion runs": Case(
        given=a_slice().available().deleting("operation-9", since=-40),
        pool=a_pool("STOPPING"),
        operation=an_operation("operation-9", kind="DELETE_NODE_POOL"),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", look=4.0),
    ),
    "done, but the pool is still shown: 404 decides": Case(
        given=a_slice().available().deleting("operation-9", since=-40),
        pool=a_pool("STOPPING"),
        operation=an_operation("operation-9", kind="DELETE_NODE_POOL", done=True),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", look=4.0),
    ),
    "404: let go": Case(
        given=a_slice().available().deleting("operation-9", since=-40),
        operation=an_operation("operation-9", kind="DELETE_NODE_POOL", done=True),
        want=Seen(phase="Deleting", reason="NodePoolDeleted", do=("RemoveFinalizer",), tell=("NodePoolDeleted",)),
    ),
    "the deletion failed: asked again later": Case(
        given=a_slice().available().deleting("operation-9", since=-40),
        pool=a_pool("ERROR"),
        operation=an_operation(
            "operation-9", kind="DELETE_NODE_POOL", done=True, error=a_failure(call="DELETE_NODE_POOL")
        ),
        want=Seen(
            phase="Deleting", reason="GKEUnreachable", tell=("GKEUnreachable",), look=after(FailureClass.TRANSIENT)
        ),
        status={"operation": None},
    ),
    "the answer to the delete was lost and the pool is going: followed without a name": Case(
        given=a_slice().available().deleting(),
        pool=a_pool("STOPPING"),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", look=1.0),
    ),
    "the delete never arrived: asked again": Case(
        given=a_slice().available().deleting(),
        pool=a_pool("RUNNING"),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", do=(f"DeleteNodePool {POOL}",), look=1.0),
    ),
    "GKE refuses to delete while the create runs: a wait": Case(
        given=a_slice().available().deleting(),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        outcomes=(a_failure(FailureClass.BUSY, call="DeleteNodePool"),),
        want=Seen(phase="Deleting", reason="ClusterBusy", tell=("ClusterBusy",), look=after(FailureClass.BUSY)),
        status={"operation.type": "DELETE_NODE_POOL"},
    ),
    "after that wait the pool is asked to go again, though the create still runs": Case(
        given=a_slice().available().deleting().retrying(Reason.CLUSTER_BUSY, in_seconds=0),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", do=(f"DeleteNodePool {POOL}",), look=1.0),
    ),
    "deleted during the create: the pool is asked to go": Case(
        given=a_slice().available().asked("operation-1").deleted(-1),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", do=(f"DeleteNodePool {POOL}",), look=1.0),
    ),
    "deleted with a create that nobody answered: it may still arrive, so its pool is watched for": Case(
        given=a_slice().available().asked(since=-10).deleted(-1),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", look=10.0),
    ),
    "the unanswered create did not arrive in time: let go": Case(
        given=a_slice().available().asked(since=-75).deleted(-1),
        want=Seen(phase="Deleting", reason="NodePoolDeleted", do=("RemoveFinalizer",)),
    ),
    "the unanswered create did arrive: its pool goes": Case(
        given=a_slice().available().asked(since=-30).deleted(-20),
        pool=a_pool("PROVISIONING"),
        operation=an_operation(),
        want=Seen(phase="Deleting", reason="NodePoolDeleting", do=(f"DeleteNodePool {POOL}",), look=1.0),
    ),
    "a foreign pool of that name stays, the slice goes": Case(
        given=a_slice().failed(Reason.NAME_CONFLICT).deleted(-1),
        pool=a_pool(ownership=Ownership.FOREIGN),
        want=Seen(phase="Deleting", reason="NameConflict", do=("RemoveFinalizer",)),
    ),
    "an adopted pool stays, the slice goes": Case(
        given=a_slice(node_pool={"name": POOL, "managed": False}).ready().available().deleted(-1),
        pool=a_pool(),
        want=Seen(phase="Ready", do=("RemoveFinalizer",)),
    ),
    "GKE does not answer: unknown is not gone": Case(
        given=a_slice().available().deleting("operation-9"),
        pool=a_failure(call="GetNodePool"),
        want=Seen(
            phase="Deleting", reason="GKEUnreachable", tell=("GKEUnreachable",), look=after(FailureClass.TRANSIENT)
        ),
    ),
    "the finalizer could not be removed since somebody wrote the object: looked at again at once": Case(
        given=a_slice().available().deleting("operation-9"),
        outcomes=(a_failure(FailureClass.CONFLICT, call="PATCH"),),
        want=Seen(
            phase="Deleting", reason="NodePoolDeleted", do=("RemoveFinalizer",), tell=("NodePoolDeleted",), look=0.0
        ),
    ),
    "gone on delete is success": Case(
        given=a_slice().available().deleting(),
        outcomes=(Performed(call="DeleteNodePool"),),
        want=Seen(phase="Deleting", reason="NodePoolDeleted", do=("RemoveFinalizer",), tell=("NodePoolDeleted",)),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_slice(case: Case) -> None:
    plan = planned(case)
    status = {path: _at(plan.status, path) for path in case.status or {}}
    assert (seen(plan), status) == (case.want, case.status or {})


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
    found = {
        phase.value: kstatus_of(planned(case).status)
        for case, phase in (
            (
                CASES["a new slice whose job wants it: the intent is written, then the pool is asked for"],
                SlicePhase.PROVISIONING,
            ),
            (CASES["its job is gone: nothing is asked"], SlicePhase.PENDING),
            (CASES["ready and whole: nothing to do, nothing to watch"], SlicePhase.READY),
            (CASES["a host is gone"], SlicePhase.DEGRADED),
            (CASES["quota: this slice will not come"], SlicePhase.FAILED),
        )
    }
    assert found == {
        "Provisioning": "InProgress",
        "Pending": "InProgress",
        "Ready": "Current",
        "Degraded": "InProgress",
        "Failed": "Failed",
    }


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value
