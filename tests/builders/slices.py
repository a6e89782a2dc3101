"""TPUSlices for tests."""

from dataclasses import dataclass, replace
from typing import Any, Self

from tests.builders.common import at
from tests.builders.jobs import JobBuilder, a_job
from torchtpu_operator.api import (
    ClaimRef,
    ObjectMeta,
    Reason,
    SlicePhase,
    SliceSpec,
    SliceStatus,
    TPUSlice,
)
from torchtpu_operator.api.constants import ANNOTATION_SPEC_HASH, FINALIZER
from torchtpu_operator.api.offer import SliceOffer
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
from torchtpu_operator.tpu import Shape, resolve


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
