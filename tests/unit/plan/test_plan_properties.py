"""What holds of the planners for every combination of observations, not only for those that somebody thought of."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import (
    NOW,
    SETTINGS,
    ClassBuilder,
    JobBuilder,
    SliceBuilder,
    a_class,
    a_failure,
    a_job,
    a_pod,
    a_pool,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    an_offer,
    an_operation,
    at,
    some_nodes,
    some_pods,
    some_ray_nodes,
)
from tests.unit.plan.views import kstatus_of
from torchtpu_operator.api import JobPhase, JobStatus, Reason, SlicePhase, SliceStatus
from torchtpu_operator.api.slice import ReclaimPolicy
from torchtpu_operator.api.slice_class import OfferState, OfferStatus
from torchtpu_operator.plan.actions import (
    CreateNodePool,
    CreateSlice,
    DeleteNodePool,
    DeleteRayCluster,
    DeleteSlice,
    Plan,
    RemoveFinalizer,
    ScaleWorkersToZero,
    SubmitRayJob,
    WriteClassStatus,
)
from torchtpu_operator.plan.allocation import AllocationObserved, Wait, plan_allocation
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job
from torchtpu_operator.plan.job.capacity import usable
from torchtpu_operator.plan.observed import (
    CallFailed,
    DemandSeen,
    FailureClass,
    OperationStarted,
    Ownership,
    Performed,
)
from torchtpu_operator.plan.slice import SliceObserved, plan_slice, slice_needs

MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

failures = st.builds(
    lambda failure, wait: a_failure(failure, retry_after=wait),
    st.sampled_from(FailureClass),
    st.sampled_from([None, 7.0]),
)
ages = st.sampled_from([0, 1, 30, 61, 100, 601, 2701, 20000])


# --- slices


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


# --- jobs


@st.composite
def jobs(draw: st.DrawFn) -> JobBuilder:
    """A job in any state that the planner writes."""
    age = -draw(ages)
    spec: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "suspend": st.just(True),
                "num_slices": st.just(2),
                "launcher": st.just("Driver"),
                "image": st.none(),
                "log_retention_seconds": st.just(0),
                "active_deadline_seconds": st.just(100),
                "queue_deadline_seconds": st.just(100),
                "topology": st.just("9x9"),
                "ttl_seconds_after_finished": st.sampled_from([0, 1000]),
                "budget": st.sampled_from([{"chipHours": "0.1"}, {"chipHours": 100}]),
                "failure_policy": st.sampled_from([{"max_restarts": 2}, {"max_disruptions": 0}]),
            },
        )
    )
    job = a_job(**spec)
    states: list[Callable[[], JobBuilder]] = [lambda: job]
    if spec.get("topology") != "9x9":
        states += [
            job.resolved,
            job.demanding,
            lambda: job.demanding(0),
            lambda: job.demanding(sequence=(2, 1)),
            lambda: job.starting(since=age),
            lambda: job.starting(since=age, cluster_uid="rc-uid"),
            lambda: job.submitting(since=age),
            lambda: job.running(since=age),
            lambda: job.running(since=age).attempt(failed_seen_at=at(age)),
            lambda: job.running(since=age).ended(since=age),
            lambda: job.running(since=age).attempt(stop_requested_at=at(age)),
        ]
    made = draw(st.sampled_from(states))()
    if draw(st.integers(0, 3)) == 0:
        outcome = draw(st.sampled_from(["Complete", "Failed", "Suspended"]))
        made = made.finishing(outcome, Reason.SUSPENDED if outcome == "Suspended" else Reason.SUCCEEDED, since=age)
    elif draw(st.integers(0, 5)) == 0:
        made = made.status(phase=JobPhase.SUSPENDED)
    if draw(st.integers(0, 3)) == 0:
        made = made.deleted(age)
    if draw(st.integers(0, 3)) == 0:
        reason = draw(
            st.sampled_from([Reason.SUBMITTING, Reason.ADMISSION_DENIED, Reason.PENDING, Reason.RAY_CLUSTER_STARTING])
        )
        made = made.retrying(reason, in_seconds=draw(st.sampled_from([-5, 0, 50])))
    return made


def _some_slices(job: JobBuilder, kind: str, index: int) -> SliceBuilder:
    return _in_state(a_slice(job=job, index=index), kind)


def _in_state(made: SliceBuilder, kind: str) -> SliceBuilder:
    match kind:
        case "asked":
            return made.asked("operation-1")
        case "ready":
            return made.ready()
        case "degraded":
            return made.degraded()
        case "failed":
            return made.failed()
        case "going":
            return made.ready().deleted()
    return made


@st.composite
def job_observations(draw: st.DrawFn) -> JobObserved:
    builder = draw(jobs())
    job = builder.build()
    needs = job_needs(job, now=NOW)
    kinds = st.sampled_from(["new", "asked", "ready", "ready", "ready", "degraded", "failed", "going", None])
    try:
        held = [(index, draw(kinds)) for index in range(job.spec.num_slices)]
        slices_ = tuple(_some_slices(builder, kind, index).build() for index, kind in held if kind)
        nodes = some_ray_nodes(builder)
    except ValueError:  # a shape that does not exist
        slices_, nodes = (), ()
    cluster = draw(
        st.one_of(
            st.none(),
            failures,
            st.builds(
                lambda uid, owner, replicas, deleting, suspend: a_ray_cluster(
                    builder, uid=uid, owner=owner, replicas=replicas, deleting=deleting, suspend=suspend
                ),
                st.sampled_from(["rc-uid", "rc-uid", "other"]),
                st.sampled_from([None, None, "somebody"]),
                st.sampled_from([0, 1, 1]),
                st.booleans(),
                st.booleans(),
            ),
        )
    )
    pods = draw(
        st.sampled_from(
            [
                (),
                some_pods(4, groups=job.spec.num_slices),
                some_pods(4, groups=job.spec.num_slices),
                some_pods(3, groups=job.spec.num_slices),
                (
                    *some_pods(3),
                    a_pod(host=3, ready=False, phase="Failed", problem_reason="Error", problem="exit code 1"),
                ),
                (*some_pods(3), a_pod(host=3, terminating=True, lost_node=True)),
                (a_pod(node_type="head", uid="head-2"),),
            ]
        )
    )
    ray = draw(
        st.one_of(
            st.none(),
            failures,
            st.builds(
                lambda job_, session, nodes_, version: a_ray(job_, session=session, nodes=nodes_, version=version),
                st.one_of(
                    st.none(),
                    st.builds(
                        lambda status, error: a_ray_job(status, error_type=error, message="Traceback\nboom"),
                        st.sampled_from(["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]),
                        st.sampled_from(["", "JOB_SUPERVISOR_ACTOR_DIED", "RUNTIME_ENV_SETUP_FAILURE"]),
                    ),
                ),
                st.sampled_from([a_ray().session_name, a_ray().session_name, "session_2"]),
                st.sampled_from([(), nodes, nodes]),
                st.sampled_from(["2.60.0", "2.9.0", "nonsense"]),
            ),
        )
    )
    return JobObserved(
        job=job,
        needs=needs,
        slice_class=draw(
            st.sampled_from([None, a_class().build(), a_class().build(), a_class(controller_name="o/o").build()])
        ),
        default_classes=draw(st.integers(0, 2)),
        slices=slices_,
        ray_cluster=cluster if needs.ray_cluster else None,
        pods=pods,
        ray=ray if needs.ray else None,
        kuberay=draw(st.sampled_from([True, True, False])),
        wait=draw(
            st.sampled_from(
                [
                    None,
                    Wait(reason=Reason.WAITING_FOR_LIMITS, message="full"),
                    Wait(reason=Reason.OFFERS_EXHAUSTED, message="another zone", give_back=True),
                ]
            )
        ),
        outcomes=draw(
            st.one_of(st.just(()), st.tuples(failures), st.tuples(st.builds(Performed, call=st.just("DryRun"))))
        ),
    )


def written_job(observed: JobObserved, plan: Plan[JobStatus]) -> JobObserved:
    """The same world once the status is written, looked at as the new status asks."""
    job = JobBuilder(observed.job).of_status(plan.status).build()
    needs = job_needs(job, now=NOW)
    return replace(
        observed,
        job=job,
        needs=needs,
        ray_cluster=observed.ray_cluster if needs.ray_cluster else None,
        ray=observed.ray if needs.ray else None,
        outcomes=(),
    )


@MANY
@given(job_observations())
def test_a_job_is_planned_whatever_is_seen(observed: JobObserved) -> None:
    plan = plan_job(observed, now=NOW, settings=SETTINGS)
    before, after, job = observed.job.status, plan.status, observed.job
    cluster = observed.ray_cluster
    for action in plan.actions:
        # a RayCluster that is not ours is never touched
        if isinstance(action, DeleteRayCluster | ScaleWorkersToZero):
            assert not isinstance(cluster, CallFailed)
            assert cluster is not None
            recorded = before.attempt.ray_cluster_uid if before.attempt else ""
            owners = [owner["uid"] for owner in cluster["metadata"]["ownerReferences"]]
            assert action.uid == cluster["metadata"]["uid"]
            assert action.uid == recorded if recorded else job.metadata.uid in owners
        # a submission is recorded with its session before it is sent, and sent into that session alone
        if isinstance(action, SubmitRayJob):
            assert after.attempt is not None
            assert after.attempt.submit_recorded_at is not None
            assert after.attempt.submitted_at is None
            assert action.session_name == after.attempt.session_name
            assert not isinstance(observed.ray, CallFailed)
            assert observed.ray is not None
            assert observed.ray.session_name == action.session_name
            assert action.submission_id == f"{job.metadata.uid}-{after.attempt.number}"
    # an attempt begins only when nothing of the one before can run, and on whole slices alone
    number = before.attempt.number if before.attempt else 0
    if after.attempt is not None and after.attempt.number != number:
        assert after.attempt.number == number + 1
        assert before.attempt is None or before.attempt.ended_at is not None or not observed.pods
        assert not (before.attempt and observed.pods)
        assert all(slice_.status.phase is SlicePhase.READY for slice_ in observed.slices)
        assert len(observed.slices) == job.spec.num_slices
    # what is counted: a failure or a disruption, never both
    assert after.restarts - before.restarts + after.disruptions - before.disruptions in (0, 1)
    # demand goes to 0 only when no worker of ours can be on a slice
    if before.demand is not None and before.demand.slices and after.demand is not None and not after.demand.slices:
        assert not isinstance(cluster, CallFailed)
        if cluster is not None and cluster["metadata"]["uid"] == (
            before.attempt.ray_cluster_uid if before.attempt else ""
        ):
            assert not any(group["replicas"] for group in cluster["spec"]["workerGroupSpecs"])
    # a whole slice is given up by one number only when no pod of ours can be on it
    if before.demand is not None and after.demand is not None and after.demand.slices:
        whole = {s.spec.claim_ref.slice_index for s in observed.slices if s.spec.claim_ref and usable(s)}
        pairs = zip(before.demand.sequence, after.demand.sequence, strict=False)
        raised = {index for index, (old, new) in enumerate(pairs) if new > old}
        assert not (whole & raised and observed.pods)
    # the end is said only when no claim is left, by a live list
    ended = {each.type for each in after.conditions if each.status == "True"} & {"Complete", "Failed", "Suspended"}
    had = {each.type for each in before.conditions if each.status == "True"}
    if (ended - had) or any(isinstance(action, RemoveFinalizer) for action in plan.actions):
        assert observed.needs.slices_live
        assert not observed.slices
    assert len(after.message) <= 1024
    JobStatus.model_validate(after.model_dump(mode="json", by_alias=True))


@MANY
@given(job_observations())
def test_a_job_at_rest_is_not_written_again(observed: JobObserved) -> None:
    plan = plan_job(observed, now=NOW, settings=SETTINGS)
    seen = observed
    for _ in range(8):
        if plan.actions:
            return
        seen = written_job(seen, plan)
        again = plan_job(seen, now=NOW, settings=SETTINGS)
        if again.status == plan.status and not again.actions:
            assert again.look_again is None or again.look_again > 0
            assert not again.events
            return
        plan = again
    raise AssertionError(f"no rest after eight passes: {plan}")


@MANY
@given(job_observations())
def test_kstatus_of_a_job(observed: JobObserved) -> None:
    plan = plan_job(observed, now=NOW, settings=SETTINGS)
    phase = plan.status.phase
    if (
        phase is None
        or not plan.status.conditions
        or plan.status.observed_generation != 1
        or observed.job.metadata.deleting
    ):
        return
    found = kstatus_of(plan.status)
    if phase in (JobPhase.RUNNING, JobPhase.SUSPENDED, JobPhase.SUCCEEDED):
        assert found in ("Current", "InProgress")  # InProgress until this pass has read what runs
    elif phase is JobPhase.FAILED:
        assert found in ("Failed", "InProgress")
    elif phase is JobPhase.PENDING:
        assert found in ("InProgress", "Failed")  # Failed: a person is needed
    else:
        assert found == "InProgress"


@MANY
@given(job_observations())
def test_a_job_that_waits_for_something_without_events_is_looked_at_again(observed: JobObserved) -> None:
    """Ray and RayCluster pods behind a dashboard send no events, deadlines neither."""
    plan = plan_job(observed, now=NOW, settings=SETTINGS)
    if plan.actions:
        return
    polled = plan.status.phase in (JobPhase.RUNNING, JobPhase.FINISHING)
    finishing_early = plan.status.finishing is not None
    if polled or finishing_early:
        assert plan.look_again is not None


# --- allocation


@st.composite
def allocation_worlds(draw: st.DrawFn) -> AllocationObserved:
    zones = draw(st.sampled_from([("us-east5-b",), ("us-east5-a", "us-east5-b")]))
    offers = (
        an_offer("od", zones=zones, max_chips=draw(st.sampled_from([None, 16, 40]))),
        an_offer("spot", type="Spot", zones=("us-east5-b",)),
    )
    outages = draw(
        st.lists(
            st.builds(
                OfferStatus,
                name=st.sampled_from(["od", "spot"]),
                zone=st.sampled_from(["us-east5-a", "us-east5-b"]),
                machine_type=st.just("ct6e-standard-4t"),
                hosts=st.sampled_from([2, 4]),
                state=st.just(OfferState.UNAVAILABLE),
                reason=st.just("Stockout"),
                retry_after=st.sampled_from([at(-30), at(30), at(-30000)]),
                failures=st.integers(1, 5),
            ),
            max_size=3,
            unique_by=lambda each: (each.name, each.zone, each.hosts),
        )
    )
    limits: dict[str, Any] = draw(
        st.fixed_dictionaries({}, optional={"chips": st.sampled_from([16, 32, 48]), "chips_per_job": st.just(16)})
    )
    class_ = a_class(offers=offers, limits=limits, paused=draw(st.integers(0, 6)) == 0).status(offers=tuple(outages))
    jobs_, slices_ = [], []
    for number in range(draw(st.integers(0, 4))):
        count = draw(st.sampled_from([1, 1, 2]))
        plain = a_job(f"job-{number}", uid=f"uid-{number}", num_slices=count, age=number)
        wanted = draw(st.sampled_from([0, count, count, count]))
        sequence = draw(st.sampled_from([(0,) * count, (1,) * count]))
        job = plain.demanding(wanted, sequence=sequence)
        if draw(st.integers(0, 4)) == 0:
            job = job.deleted()
        if draw(st.integers(0, 9)):
            jobs_.append(job)
        for index in range(count):
            kind = draw(st.sampled_from([None, None, "new", "asked", "ready", "failed", "going", "degraded"]))
            if kind is None:
                continue
            at_sequence = draw(st.sampled_from([0, 1]))
            made = a_slice(job=plain, index=index, sequence=at_sequence, zone=draw(st.sampled_from(zones)))
            made = made.asked("op", since=-draw(ages)) if kind == "asked" else _in_state(made, kind)
            if draw(st.integers(0, 3)) == 0:
                made = made.available(released=draw(st.sampled_from([None, -5])))
            slices_.append(made)
    return AllocationObserved(
        classes=(class_.build(),),
        slices=tuple(each.build() for each in slices_),
        jobs=tuple(each.build() for each in jobs_),
    )


@MANY
@given(allocation_worlds())
def test_allocation_keeps_its_promises(observed: AllocationObserved) -> None:
    plan = plan_allocation(observed, now=NOW, settings=SETTINGS)
    by_uid = {job.metadata.uid: job for job in observed.jobs}
    names = {slice_.metadata.name for slice_ in observed.slices}
    created = [action for action in plan.actions if isinstance(action, CreateSlice)]
    made: list[str] = [action.manifest["metadata"]["name"] for action in created]
    # no name twice, none that is taken
    assert len(made) == len(set(made))
    assert not names & set(made)
    # never more slices than the job asks for, each under the number that the job now has
    for uid, job in by_uid.items():
        held = [
            slice_
            for slice_ in observed.slices
            if slice_.spec.claim_ref and slice_.spec.claim_ref.uid == uid and not slice_.metadata.deleting
            and slice_.spec.claim_ref.sequence >= job.status.demand.sequence[slice_.spec.claim_ref.slice_index]  # type: ignore[union-attr]
            and slice_.spec.claim_ref.slice_index < job.status.demand.slices  # type: ignore[union-attr]
        ]  # fmt: skip
        mine = [action for action in created if action.claimant.uid == uid]
        wanted = job.status.demand.slices if job.status.demand else 0
        assert len(held) + len(mine) <= wanted or not mine
        # wholly or not at all
        assert (
            not mine
            or len(held) + len(mine) + sum(1 for each in plan.actions if type(each).__name__ == "ClaimSlice") >= wanted
        )
        zones = {action.manifest["spec"]["offer"]["zone"] for action in mine} | {
            each.spec.offer.zone for each in held if mine
        }
        assert len(zones) <= 1 or len({each.spec.offer.zone for each in held}) > 1
    # a sound slice that somebody holds is never deleted
    for action in plan.actions:
        if isinstance(action, DeleteSlice):
            slice_ = next(each for each in observed.slices if each.metadata.name == action.name)
            claim = slice_.spec.claim_ref
            assert claim is None or slice_.status.phase in (SlicePhase.FAILED, SlicePhase.PROVISIONING)
            assert action.resource_version == slice_.metadata.resource_version
    # limits
    limit = observed.classes[0].spec.limits.chips
    living = [each for each in observed.slices if each.status.phase is not SlicePhase.FAILED or each.metadata.deleting]
    if limit is not None and created:
        assert (len(living) + len(created)) * 16 <= limit
    # nobody waits without a reason
    assert set(plan.waits) <= by_uid.keys()


@MANY
@given(allocation_worlds())
def test_class_status_comes_to_rest(observed: AllocationObserved) -> None:
    for _ in range(3):
        plan = plan_allocation(observed, now=NOW, settings=SETTINGS)
        writes = [action for action in plan.actions if isinstance(action, WriteClassStatus)]
        if not writes:
            return
        (write,) = writes
        written = ClassBuilder(observed.classes[0]).of_status(dict(write.status)).build()
        observed = replace(observed, classes=(written,))
    raise AssertionError("the status of the class never comes to rest")
