"""TorchTPUJobs for tests."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from tests.builders.common import JOB_UID, SESSION, at
from torchtpu_operator.api import (
    JobPhase,
    JobSpec,
    JobStatus,
    ObjectMeta,
    Reason,
    TorchTPUJob,
)
from torchtpu_operator.api.constants import FINALIZER
from torchtpu_operator.api.job_status import (
    Attempt,
    AttemptOutcome,
    AttemptRecord,
    Demand,
    Finishing,
    JobRetry,
    JobSlice,
    ResolvedJob,
)
from torchtpu_operator.plan import names
from torchtpu_operator.plan.ray_cluster import attempt_hash
from torchtpu_operator.tpu import Shape, resolve

if TYPE_CHECKING:  # a slice is made for a job, so its builder imports this one
    from tests.builders.slices import SliceBuilder


@dataclass(frozen=True)
class JobBuilder:
    """A TorchTPUJob: v6e 4x4, one slice, PerDevice, with our finalizer on."""

    job: TorchTPUJob

    def build(self) -> TorchTPUJob:
        return self.job

    def to_object(self) -> dict[str, Any]:
        return self.job.to_object()

    @property
    def shape(self) -> Shape:
        spec = self.job.spec
        return resolve(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)

    def spec(self, **fields: Any) -> Self:
        """Fields of the spec, by their Python names."""
        known = self.job.spec.model_dump(exclude_unset=True)
        return self._with(spec=JobSpec.model_validate(known | fields))

    def meta(self, **fields: Any) -> Self:
        return self._with(metadata=self.job.metadata.model_copy(update=fields))

    def status(self, **fields: Any) -> Self:
        return self._with(status=self.job.status.model_copy(update=fields))

    def of_status(self, status: JobStatus) -> Self:
        """The object as the apiserver gives it back after this status was written."""
        return self._with(status=JobStatus.model_validate(status.model_dump(mode="json", by_alias=True)))

    def deleted(self, seconds: float = 0) -> Self:
        return self.meta(deletion_timestamp=at(seconds))

    def without_finalizer(self) -> Self:
        return self.meta(finalizers=())

    def resolved(self) -> Self:
        """The class is pinned and the shape known."""
        shape, count = self.shape, self.job.spec.num_slices
        return self.status(
            resolved=ResolvedJob(
                slice_class_name=self.job.spec.slice_class_name or "default",
                shape=f"{self.job.spec.accelerator} {self.job.spec.topology}",
                machine_type=shape.machine_type,
                hosts_per_slice=shape.hosts,
                chips_per_host=shape.chips_per_host,
                chips=shape.chips * count,
                workers=shape.workers * count,
            )
        )

    def admitted(self) -> Self:
        """The dry run has passed."""
        return self.resolved().status(admitted_hash=attempt_hash(self.job), observed_generation=1)

    def demanding(self, slices: int | None = None, *, sequence: tuple[int, ...] | None = None) -> Self:
        """Admitted, and asking allocation for its slices."""
        count = self.job.spec.num_slices if slices is None else slices
        numbers = sequence if sequence is not None else (0,) * self.job.spec.num_slices
        return self.admitted().status(phase=JobPhase.PENDING, demand=Demand(slices=count, sequence=numbers))

    def holding(self, *slices: "SliceBuilder") -> Self:
        """With these slices mirrored into its status, as they are now."""
        mirrored = tuple(
            JobSlice(
                index=each.claim.slice_index,
                name=each.name,
                uid=each.slice.metadata.uid,
                sequence=each.claim.sequence,
                billed_from=each.slice.status.first_node_at,
            )
            for each in slices
        )
        return self.status(slices=mirrored)

    def starting(self, attempt: int = 1, *, since: float = -30, cluster_uid: str = "") -> Self:
        """The attempt is recorded; `cluster_uid` once its RayCluster was seen."""
        uid = self.job.metadata.uid
        return self.demanding().status(
            phase=JobPhase.STARTING,
            start_time=at(since),
            attempt=Attempt(
                number=attempt,
                start_reason=Reason.STARTED.value,
                spec_hash=attempt_hash(self.job),
                spec_generation=1,
                ray_cluster=names.ray_cluster_name(self.job.metadata.name, job_uid=uid, attempt=attempt),
                ray_cluster_uid=cluster_uid,
                started_at=at(since),
            ),
        )

    def broken_starts(self, count: int) -> Self:
        """So many attempts before this one ended since a worker did not start."""
        record = AttemptRecord(number=1, outcome=AttemptOutcome.DISRUPTION, reason=Reason.CONTAINER_FAILING.value)
        return self.status(attempts=(record,) * count, disruptions=count)

    def attempt(self, **fields: Any) -> Self:
        """Fields of the attempt."""
        assert self.job.status.attempt is not None
        return self.status(attempt=self.job.status.attempt.model_copy(update=fields))

    def submitting(self, attempt: int = 1, *, since: float = -20) -> Self:
        """The gate was passed and the intent to submit is recorded; nobody knows whether the POST arrived."""
        started = self.starting(attempt, since=since - 30, cluster_uid="rc-uid")
        return started.attempt(
            session_name=SESSION,
            head_pod_uid="head-uid",
            submission_id=names.submission_id(self.job.metadata.uid, attempt=attempt),
            replicas=tuple(f"s{index}-abcde" for index in range(self.job.spec.num_slices)),
            ray_cluster_ready_at=at(since),
            submit_recorded_at=at(since),
        )

    def running(self, attempt: int = 1, *, since: float = -10) -> Self:
        return (
            self.submitting(attempt, since=since - 10)
            .attempt(submitted_at=at(since - 5), running_at=at(since), ray_status="RUNNING")
            .status(phase=JobPhase.RUNNING)
        )

    def ended(self, reason: Reason = Reason.HOST_LOST, *, since: float = -5, message: str = "a host was lost") -> Self:
        """The attempt is over and the next one waits."""
        return self.attempt(ended_at=at(since), reason=reason.value, message=message).status(
            phase=JobPhase.RESTARTING, next_attempt_at=at(since)
        )

    def finishing(self, outcome: str = "Complete", reason: Reason = Reason.SUCCEEDED, *, since: float = -5) -> Self:
        """The end is decided, and what the job holds is being given back."""
        decided = self.status(
            phase=JobPhase.FINISHING,
            finishing=Finishing(outcome=outcome, reason=reason.value, message="attempt 1 succeeded", since=at(since)),
        )
        if decided.job.status.attempt is None:
            return decided
        return decided.attempt(ended_at=at(since), reason=reason.value)

    def retrying(
        self, reason: Reason, *, failures: int = 1, in_seconds: float = 10, message: str = "no answer"
    ) -> Self:
        return self.status(retry=JobRetry(reason=reason.value, message=message, failures=failures, at=at(in_seconds)))

    def _with(self, **fields: Any) -> Self:
        return replace(self, job=self.job.model_copy(update=fields))


def a_job(
    name: str = "llama", *, namespace: str = "ml", uid: str = JOB_UID, age: float = 60, **spec: Any
) -> JobBuilder:
    """`spec` replaces fields of the smallest valid spec."""
    fields: dict[str, Any] = {
        "accelerator": "v6e",
        "topology": "4x4",
        "entrypoint": "python train.py",
        "image": "example.com/ray-torchtpu:2.60.0",
    }
    meta = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid,
        resource_version="10",
        generation=1,
        creation_timestamp=at(-age),
        finalizers=(FINALIZER,),
    )
    return JobBuilder(TorchTPUJob(metadata=meta, spec=JobSpec.model_validate(fields | spec)))
