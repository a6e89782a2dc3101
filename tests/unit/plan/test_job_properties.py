"""What holds of a job's plan for every combination of observations, not only for those that somebody thought of."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    NOW,
    SETTINGS,
    JobBuilder,
    SliceBuilder,
    a_class,
    a_job,
    a_pod,
    a_ray,
    a_ray_cluster,
    a_ray_job,
    a_slice,
    at,
    some_pods,
    some_ray_nodes,
)
from tests.unit.plan.strategies import MANY, ages, failures, in_state
from tests.unit.plan.views import kstatus_of
from torchtpu_operator.api import JobPhase, JobStatus, Reason, SlicePhase
from torchtpu_operator.plan.actions import (
    DeleteRayCluster,
    Plan,
    RemoveFinalizer,
    ScaleWorkersToZero,
    SubmitRayJob,
)
from torchtpu_operator.plan.allocation import Wait
from torchtpu_operator.plan.job import JobObserved, job_needs, plan_job
from torchtpu_operator.plan.job.capacity import usable
from torchtpu_operator.plan.observed import (
    CallFailed,
    Performed,
)


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
    return in_state(a_slice(job=job, index=index), kind)


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
