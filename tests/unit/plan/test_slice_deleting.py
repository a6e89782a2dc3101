"""A slice's pool is deleted until GKE says that it is gone, and nobody else's ever."""

import pytest

from tests.builders import (
    a_failure,
    a_pool,
    a_slice,
    an_operation,
    some_nodes,
)
from tests.unit.plan.slice_cases import POOL, Case, after, check
from tests.unit.plan.views import Seen
from torchtpu_operator.api import Reason
from torchtpu_operator.plan.observed import (
    FailureClass,
    OperationStarted,
    Ownership,
    Performed,
)

CASES = {
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
    check(case)
