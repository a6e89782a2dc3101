"""What holds of a slice's plan for every combination of observations, not only for those that somebody thought of."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    NOW,
    SETTINGS,
    SliceBuilder,
    a_job,
    a_pool,
    a_slice,
    an_operation,
    at,
    some_nodes,
)
from tests.unit.plan.strategies import MANY, ages, failures
from tests.unit.plan.views import kstatus_of
from torchtpu_operator.api import Reason, SlicePhase, SliceStatus
from torchtpu_operator.api.slice import ReclaimPolicy
from torchtpu_operator.plan.actions import (
    CreateNodePool,
    DeleteNodePool,
    Plan,
    RemoveFinalizer,
)
from torchtpu_operator.plan.observed import (
    CallFailed,
    DemandSeen,
    FailureClass,
    OperationStarted,
    Ownership,
    Performed,
)
from torchtpu_operator.plan.slice import SliceObserved, plan_slice, slice_needs


@st.composite
def slices(draw: st.DrawFn) -> SliceBuilder:
    """A TPUSlice in any state that the planner writes, and in some that it does not."""
    age = -draw(ages)
    reason = draw(st.sampled_from([Reason.STOCKOUT, Reason.SLICE_LOST]))
    states: list[Callable[[], SliceBuilder]] = [
        a_slice,
        lambda: a_slice().asked(since=age),
        lambda: a_slice().asked("operation-1", since=age),
        lambda: a_slice().asked(accepted=True, since=age),
        lambda: a_slice().ready(since=age),
        lambda: a_slice().degraded(since=age),
        lambda: a_slice().failed(reason, since=age),
        lambda: a_slice().deleting(since=age),
        lambda: a_slice().deleting("operation-9", since=age),
        lambda: a_slice(topology="5x7"),
        lambda: a_slice(node_pool={"name": a_slice().name, "managed": False}),
    ]
    made = draw(st.sampled_from(states))()
    if draw(st.booleans()):
        made = made.available(released=draw(st.sampled_from([None, age])))
    if draw(st.booleans()):
        made = made.deleted(age)
    if draw(st.booleans()):
        made = made.retrying(
            Reason.CLUSTER_BUSY, failures=draw(st.integers(1, 40)), in_seconds=draw(st.sampled_from([-5, 0, 1, 50]))
        )
    if draw(st.integers(0, 9)) == 0:
        made = made.meta(finalizers=())
    if draw(st.integers(0, 5)) == 0:
        made = made.spec(reclaim_policy=ReclaimPolicy.RETAIN)
    return made


@st.composite
def slice_observations(draw: st.DrawFn) -> SliceObserved:
    slice_ = draw(slices()).build()
    needs = slice_needs(slice_, now=NOW)
    pool = draw(
        st.one_of(
            st.none(),
            failures,
            st.builds(
                lambda status, owner, failure: a_pool(status, ownership=owner, failure=failure, message="said GKE"),
                st.sampled_from(
                    [
                        "PROVISIONING",
                        "RUNNING",
                        "RUNNING_WITH_ERROR",
                        "RECONCILING",
                        "STOPPING",
                        "ERROR",
                        "STATUS_UNSPECIFIED",
                    ]
                ),
                st.sampled_from(Ownership),
                st.sampled_from([None, *FailureClass]),
            ),
        )
    )
    operation = draw(
        st.one_of(
            st.none(),
            failures,
            st.builds(
                lambda kind, done, error: an_operation(kind=kind, done=done, error=error if done else None),
                st.sampled_from(["CREATE_NODE_POOL", "DELETE_NODE_POOL", "AUTO_REPAIR_NODES"]),
                st.booleans(),
                st.one_of(st.none(), failures),
            ),
        )
    )
    nodes = draw(st.builds(some_nodes, st.integers(0, 5), ready=st.integers(0, 5), chips=st.sampled_from([0, 4, 8])))
    claimant = draw(
        st.one_of(
            st.none(),
            failures,
            st.builds(
                DemandSeen,
                uid=st.sampled_from([a_job().job.metadata.uid, "another"]),
                slices=st.integers(0, 2),
                sequence=st.sampled_from([(), (0,), (1,)]),
            ),
        )
    )
    outcomes = draw(
        st.one_of(
            st.just(()),
            st.tuples(failures),
            st.tuples(
                st.builds(
                    OperationStarted,
                    name=st.just("operation-1"),
                    kind=st.sampled_from(["CREATE_NODE_POOL", "DELETE_NODE_POOL"]),
                )
            ),
            st.tuples(st.builds(Performed, call=st.just("DeleteNodePool"))),
        )
    )
    return SliceObserved(
        slice=slice_,
        needs=needs,
        pool=pool if needs.pool else None,
        operation=operation if needs.operation or needs.find_operation else None,
        nodes=nodes,
        claimant=claimant if needs.claimant else None,
        outcomes=outcomes,
    )


def written_slice(observed: SliceObserved, plan: Plan[SliceStatus], *, later: float = 0) -> SliceObserved:
    """The same world once the status is written, looked at as the new status asks."""
    slice_ = SliceBuilder(observed.slice).of_status(plan.status).build()
    needs = slice_needs(slice_, now=at(later))
    return replace(
        observed,
        slice=slice_,
        needs=needs,
        pool=observed.pool if needs.pool else None,
        operation=observed.operation if needs.operation or needs.find_operation else None,
        claimant=observed.claimant if needs.claimant else None,
        outcomes=(),
    )


@MANY
@given(slice_observations())
def test_a_slice_is_planned_whatever_is_seen(observed: SliceObserved) -> None:
    plan = plan_slice(observed, now=NOW, settings=SETTINGS)
    kinds = [type(action) for action in plan.actions]
    slice_ = observed.slice
    # a pool is asked for only when GKE has shown that there is none, and the claimant still wants it
    if CreateNodePool in kinds:
        claim = slice_.spec.claim_ref
        assert observed.needs.pool
        assert observed.pool is None
        assert not slice_.metadata.deleting
        assert claim is None or isinstance(observed.claimant, DemandSeen)
        assert plan.status.operation is not None
        assert plan.status.operation.name == ""
    # a pool is deleted only if it is ours and the slice goes; a foreign one never
    if DeleteNodePool in kinds:
        assert slice_.metadata.deleting
        assert not isinstance(observed.pool, CallFailed)
        assert observed.pool is not None
        assert observed.pool.ownership is not Ownership.FOREIGN
        assert slice_.spec.node_pool.managed
    # the slice is let go only once GKE says 404, or the pool is not ours to delete
    if RemoveFinalizer in kinds:
        foreign = (
            not isinstance(observed.pool, CallFailed)
            and observed.pool is not None
            and observed.pool.ownership is Ownership.FOREIGN
        )
        gone = observed.pool is None and observed.needs.pool
        assert slice_.metadata.deleting
        assert foreign or gone or not slice_.spec.node_pool.managed
    # nothing is awaited without anybody looking: GKE sends no events
    ours = bool(slice_.metadata.finalizers)
    if (
        ours
        and plan.status.phase in (SlicePhase.PROVISIONING, SlicePhase.DELETING, SlicePhase.DEGRADED)
        and not plan.actions
    ):
        assert plan.look_again is not None
    assert len(plan.status.message) <= 1024


@MANY
@given(slice_observations())
def test_a_slice_at_rest_is_not_written_again(observed: SliceObserved) -> None:
    """While the world stays as it is, planning comes to rest: no status that goes to and fro, no look in 0 s for ever."""
    plan = plan_slice(observed, now=NOW, settings=SETTINGS)
    seen = observed
    for _ in range(6):
        if plan.actions:
            return  # the world is about to change
        seen = written_slice(seen, plan)
        again = plan_slice(seen, now=NOW, settings=SETTINGS)
        if again.status == plan.status and not again.actions:
            assert again.look_again is None or again.look_again > 0
            assert not again.events
            return
        plan = again
    raise AssertionError(f"no rest after six passes: {plan}")


@MANY
@given(slice_observations())
def test_kstatus_of_a_slice(observed: SliceObserved) -> None:
    plan = plan_slice(observed, now=NOW, settings=SETTINGS)
    if plan.status.phase is None or not plan.status.conditions or observed.slice.metadata.deleting:
        return
    want = {SlicePhase.READY: "Current", SlicePhase.FAILED: "Failed"}.get(plan.status.phase, "InProgress")
    assert kstatus_of(plan.status) == want
