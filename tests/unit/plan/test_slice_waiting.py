"""From the accepted request to hosts that are Ready, or to a failure with a name."""

import pytest

from tests.builders import (
    NOW,
    a_failure,
    a_pool,
    a_slice,
    an_operation,
    some_nodes,
)
from tests.unit.plan.slice_cases import Case, after, check
from tests.unit.plan.views import Seen
from torchtpu_operator.api import Reason
from torchtpu_operator.plan.observed import (
    FailureClass,
)

CASES = {
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
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_slice(case: Case) -> None:
    check(case)
