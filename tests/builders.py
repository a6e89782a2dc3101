"""Objects for tests: valid by default, changed fluently, never in place.

`a_job()`, `a_slice()` and `a_class()` wrap API objects (`.build()` or `.to_object()`); the rest are the plain values that planners
see.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from torchtpu_operator.api import (
    ClaimRef,
    ClassSpec,
    ClassStatus,
    JobPhase,
    JobSpec,
    JobStatus,
    ObjectMeta,
    Reason,
    SlicePhase,
    SliceSpec,
    SliceStatus,
    TorchTPUJob,
    TPUSlice,
    TPUSliceClass,
)
from torchtpu_operator.api.constants import ANNOTATION_DEFAULT_CLASS, ANNOTATION_SPEC_HASH, FINALIZER
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
from torchtpu_operator.api.offer import Offer, SliceOffer
from torchtpu_operator.api.slice import (
    SliceFailure,
    SliceNodePool,
    SliceNodes,
    SliceOperation,
    SliceReclaim,
    SliceRetry,
    SliceUsage,
)
from torchtpu_operator.plan import names
from torchtpu_operator.plan.node_pool import spec_hash
from torchtpu_operator.plan.observed import (
    CallFailed,
    FailureClass,
    NodeSeen,
    OperationSeen,
    Ownership,
    PodSeen,
    PoolSeen,
    RayJobSeen,
    RayNodeSeen,
    RaySeen,
    Settings,
)
from torchtpu_operator.plan.ray_cluster import attempt_hash
from torchtpu_operator.tpu import Shape, resolve

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
SETTINGS = Settings(
    installation="0123456789abcdef",
    namespace="torchtpu-system",
    gke_parent="projects/demo/locations/us-east5/clusters/bench",
)
JOB_UID = "11111111-2222-3333-4444-555555555555"
SESSION = "session_2026-11-30_12-00-00_000000_1"


def at(seconds: float) -> datetime:
    """A moment so many seconds after NOW (before it, if negative)."""
    return NOW + timedelta(seconds=seconds)


# --- jobs


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


# --- slices


@dataclass(frozen=True)
class SliceBuilder:
    """A TPUSlice made for `a_job()`, claimed by it, not yet seen by its reconciler."""

    slice: TPUSlice

    def build(self) -> TPUSlice:
        return self.slice

    def to_object(self) -> dict[str, Any]:
        return self.slice.to_object()

    @property
    def name(self) -> str:
        return self.slice.metadata.name

    @property
    def claim(self) -> ClaimRef:
        assert self.slice.spec.claim_ref is not None
        return self.slice.spec.claim_ref

    @property
    def shape(self) -> Shape:
        spec = self.slice.spec
        return resolve(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)

    def spec(self, **fields: Any) -> Self:
        return self._with(spec=self.slice.spec.model_copy(update=fields))

    def meta(self, **fields: Any) -> Self:
        return self._with(metadata=self.slice.metadata.model_copy(update=fields))

    def status(self, **fields: Any) -> Self:
        return self._with(status=self.slice.status.model_copy(update=fields))

    def of_status(self, status: SliceStatus) -> Self:
        """The object as the apiserver gives it back after this status was written."""
        return self._with(status=SliceStatus.model_validate(status.model_dump(mode="json", by_alias=True)))

    def claimed_by(self, job: JobBuilder, *, index: int = 0, sequence: int = 0, since: float = -300) -> Self:
        claim = ClaimRef(
            namespace=job.job.metadata.namespace or "",
            name=job.job.metadata.name,
            uid=job.job.metadata.uid,
            slice_index=index,
            sequence=sequence,
            claimed_at=at(since),
        )
        return self.spec(claim_ref=claim)

    def available(self, *, released: float | None = -10) -> Self:
        """Nobody holds it; `released` is when the last job let go, None while its reconciler has not noted it."""
        return self.spec(claim_ref=None).status(released_at=None if released is None else at(released))

    def asked(self, operation: str = "", *, since: float = -10, accepted: bool | None = None) -> Self:
        """The intent to create is written; with a name GKE has accepted it."""
        sure = bool(operation) if accepted is None else accepted
        return self.status(
            phase=SlicePhase.PROVISIONING,
            observed_generation=1,
            operation=SliceOperation(
                name=operation,
                type="CREATE_NODE_POOL",
                started_at=at(since),
                status="RUNNING" if operation else "",
                accepted_at=at(since) if sure else None,
            ),
            created_at=at(since) if sure else None,
        )

    def ready(self, *, since: float = -60) -> Self:
        shape = self.shape
        return self.status(
            phase=SlicePhase.READY,
            observed_generation=1,
            operation=None,
            nodes=SliceNodes.counted(ready=shape.hosts, desired=shape.hosts),
            created_at=at(since - 100),
            ready_at=at(since),
            first_node_at=at(since - 10),
            usage=SliceUsage(since=at(since - 10)),
        )

    def degraded(self, *, since: float = -30) -> Self:
        return self.ready(since=since - 60).status(
            phase=SlicePhase.DEGRADED, degraded_at=at(since), message="1 of 4 hosts are gone"
        )

    def failed(self, reason: Reason = Reason.STOCKOUT, *, since: float = 0, message: str = "no capacity") -> Self:
        return self.status(
            phase=SlicePhase.FAILED,
            observed_generation=1,
            message=message,
            failure=SliceFailure(reason=reason.value, message=message, at=at(since)),
        )

    def deleted(self, seconds: float = 0) -> Self:
        return self.meta(deletion_timestamp=at(seconds))

    def deleting(self, operation: str = "", *, since: float = -10) -> Self:
        """Its pool was asked to be deleted."""
        return self.deleted(since).status(
            phase=SlicePhase.DELETING,
            operation=SliceOperation(
                name=operation,
                type="DELETE_NODE_POOL",
                started_at=at(since),
                accepted_at=at(since) if operation else None,
            ),
            created_at=at(since - 300),
        )

    def retrying(self, reason: Reason, *, failures: int = 1, in_seconds: float = 10) -> Self:
        return self.status(retry=SliceRetry(reason=reason.value, failures=failures, at=at(in_seconds)))

    def _with(self, **fields: Any) -> Self:
        return replace(self, slice=self.slice.model_copy(update=fields))


def a_slice(
    name: str = "",
    *,
    job: JobBuilder | None = None,
    index: int = 0,
    sequence: int = 0,
    zone: str = "us-east5-b",
    offer: str = "od",
    offer_type: str = "OnDemand",
    wait_seconds: int | None = None,
    **spec: Any,
) -> SliceBuilder:
    """Made for `job` and claimed by it; named as allocation would name it."""
    owner = job or a_job()
    meta_of, wanted = owner.job.metadata, owner.job.spec
    made = name or names.slice_name(meta_of.name, job_uid=meta_of.uid, index=index, sequence=sequence)
    fields: dict[str, Any] = {
        "slice_class_name": wanted.slice_class_name or "default",
        "accelerator": wanted.accelerator,
        "topology": wanted.topology,
        "chips_per_host": wanted.chips_per_host,
        "offer": SliceOffer.model_validate(
            {"name": offer, "type": offer_type, "zone": zone, "wait_seconds": wait_seconds}
        ),
        "node_pool": SliceNodePool(name=made),
        "reclaim": SliceReclaim(namespace=meta_of.namespace),
        "reclaim_policy": "Delete",
    }
    parsed = SliceSpec.model_validate(fields | spec)
    meta = ObjectMeta(
        name=made,
        uid=f"uid-of-{made}",
        resource_version="20",
        generation=1,
        creation_timestamp=at(-300),
        finalizers=(FINALIZER,),
        annotations={ANNOTATION_SPEC_HASH: spec_hash(parsed)},
    )
    return SliceBuilder(TPUSlice(metadata=meta, spec=parsed)).claimed_by(owner, index=index, sequence=sequence)


# --- classes


@dataclass(frozen=True)
class ClassBuilder:
    """A TPUSliceClass with one OnDemand offer in one zone, the default class."""

    slice_class: TPUSliceClass

    def build(self) -> TPUSliceClass:
        return self.slice_class

    def to_object(self) -> dict[str, Any]:
        return self.slice_class.to_object()

    def spec(self, **fields: Any) -> Self:
        known = self.slice_class.spec.model_dump(exclude_unset=True)
        return self._with(spec=ClassSpec.model_validate(known | fields))

    def offering(self, *offers: Offer) -> Self:
        return self.spec(offers=offers)

    def status(self, **fields: Any) -> Self:
        return self._with(status=self.slice_class.status.model_copy(update=fields))

    def of_status(self, status: dict[str, Any]) -> Self:
        """The object as the apiserver gives it back after this status was written."""
        return self._with(status=ClassStatus.model_validate(status))

    def meta(self, **fields: Any) -> Self:
        return self._with(metadata=self.slice_class.metadata.model_copy(update=fields))

    def no_default(self) -> Self:
        return self.meta(annotations={})

    def _with(self, **fields: Any) -> Self:
        return replace(self, slice_class=self.slice_class.model_copy(update=fields))


def an_offer(
    name: str = "od", *, type: str = "OnDemand", zones: tuple[str, ...] = ("us-east5-b",), **fields: Any
) -> Offer:
    return Offer.model_validate({"name": name, "type": type, "zones": zones} | fields)


def a_class(name: str = "default", **spec: Any) -> ClassBuilder:
    fields: dict[str, Any] = {"offers": (an_offer(),)}
    meta = ObjectMeta(
        name=name,
        uid=f"uid-of-{name}",
        resource_version="5",
        generation=1,
        creation_timestamp=at(-86400),
        annotations={ANNOTATION_DEFAULT_CLASS: "true"},
    )
    return ClassBuilder(TPUSliceClass(metadata=meta, spec=ClassSpec.model_validate(fields | spec)))


# --- what is seen of GKE


def a_pool(status: str = "RUNNING", *, ownership: Ownership = Ownership.OURS, **fields: Any) -> PoolSeen:
    return PoolSeen(name=a_slice().name, status=status, ownership=ownership, **fields)


def an_operation(
    name: str = "operation-1", *, kind: str = "CREATE_NODE_POOL", done: bool = False, error: CallFailed | None = None
) -> OperationSeen:
    return OperationSeen(name=name, kind=kind, done=done, error=error)


def a_failure(
    failure: FailureClass = FailureClass.TRANSIENT, *, call: str = "CreateNodePool", message: str = "", **fields: Any
) -> CallFailed:
    return CallFailed(call=call, failure=failure, message=message or f"{failure.value} said GKE", **fields)


def some_nodes(count: int = 4, *, ready: int | None = None, chips: int = 4, age: float = 30) -> tuple[NodeSeen, ...]:
    """`count` nodes of which `ready` are Ready."""
    good = count if ready is None else ready
    return tuple(
        NodeSeen(
            name=f"node-{index}",
            uid=f"node-uid-{index}",
            ready=index < good,
            chips=chips if index < good else 0,
            created_at=at(-age),
        )
        for index in range(count)
    )


# --- what is seen of an attempt


def a_ray_cluster(
    job: JobBuilder | None = None, *, uid: str = "rc-uid", attempt: int = 1, owner: str | None = None, replicas: int = 1,
    deleting: bool = False, suspend: bool = False, conditions: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:  # fmt: skip
    of = (job or a_job()).job
    meta: dict[str, Any] = {
        "name": names.ray_cluster_name(of.metadata.name, job_uid=of.metadata.uid, attempt=attempt),
        "namespace": of.metadata.namespace,
        "uid": uid,
        "resourceVersion": "30",
        "ownerReferences": [{"uid": of.metadata.uid if owner is None else owner, "kind": "TorchTPUJob"}],
    }
    if deleting:
        meta["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    groups = [
        {"groupName": f"s{index}", "replicas": replicas, "minReplicas": replicas, "numOfHosts": 4}
        for index in range(of.spec.num_slices)
    ]
    spec: dict[str, Any] = {"workerGroupSpecs": groups}
    if suspend:
        spec["suspend"] = True
    status = {"head": {"serviceName": f"{meta['name']}-head-svc"}, "conditions": list(conditions)}
    return {"metadata": meta, "spec": spec, "status": status}


def a_pod(name: str = "", *, node_type: str = "worker", host: int = 0, group: int = 0, **fields: Any) -> PodSeen:
    """A Ready worker of the first attempt."""
    head = node_type == "head"
    values: dict[str, Any] = {
        "name": name or ("head" if head else f"s{group}-{host}"),
        "namespace": "ml",
        "uid": "head-uid" if head else f"pod-uid-{group}-{host}",
        "phase": "Running",
        "ready": True,
        "node": "cpu-0" if head else f"node-{host}",
        "node_type": node_type,
        "group": "" if head else f"s{group}",
        "attempt": 1,
        "replica": "" if head else f"s{group}-abcde",
        "host_index": "" if head else str(host),
    }
    return PodSeen(**(values | fields))


def some_pods(hosts: int = 4, *, groups: int = 1, attempt: int = 1) -> tuple[PodSeen, ...]:
    """Head and workers of a whole attempt, all Ready."""
    workers = [a_pod(host=host, group=group, attempt=attempt) for group in range(groups) for host in range(hosts)]
    return (a_pod(node_type="head", attempt=attempt), *workers)


def some_ray_nodes(
    job: JobBuilder | None = None, *, attempt: int = 1, hosts: int | None = None
) -> tuple[RayNodeSeen, ...]:
    """Ray's own list with every host of every slice."""
    of = job or a_job()
    shape = of.shape
    cluster = names.ray_cluster_name(of.job.metadata.name, job_uid=of.job.metadata.uid, attempt=attempt)
    return tuple(
        RayNodeSeen(
            node_id=f"{index}-{host}",
            alive=True,
            ip=f"10.0.{index}.{host}",
            tpus=float(shape.devices_per_host),
            slice_name=names.tpu_name(cluster, slice_index=index),
            worker_id=str(host),
            pod_type=shape.ray_pod_type,
        )
        for index in range(of.job.spec.num_slices)
        for host in range(shape.hosts if hosts is None else hosts)
    )


def a_ray(
    job: RayJobSeen | None = None,
    *,
    nodes: tuple[RayNodeSeen, ...] = (),
    session: str = SESSION,
    version: str = "2.60.0",
) -> RaySeen:
    return RaySeen(version=version, session_name=session, nodes=nodes, job=job)


def a_ray_job(status: str = "RUNNING", *, attempt: int = 1, **fields: Any) -> RayJobSeen:
    return RayJobSeen(submission_id=names.submission_id(JOB_UID, attempt=attempt), status=status, **fields)
