"""The TPUSlice that is made for a job: a snapshot of class and offer, with the claim in it from its creation."""

from typing import Any

from torchtpu_operator.api import ClaimRef, SliceSpec, TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.api.base import ObjectMeta
from torchtpu_operator.api.constants import ANNOTATION_SPEC_HASH, FINALIZER
from torchtpu_operator.api.offer import Offer, OfferType, SliceOffer
from torchtpu_operator.api.slice import ReclaimPolicy, SliceNodePool, SliceReclaim
from torchtpu_operator.plan.names import slice_name
from torchtpu_operator.plan.node_pool import spec_hash


def build_slice(job: TorchTPUJob, class_: TPUSliceClass, *, offer: Offer, zone: str, claim: ClaimRef) -> dict[str, Any]:
    """The object to POST. Its finalizer is on from birth: no moment in which a pool could be made and forgotten."""
    name = slice_name(job.metadata.name, job_uid=job.metadata.uid, index=claim.slice_index, sequence=claim.sequence)
    spec = SliceSpec(
        slice_class_name=class_.metadata.name,
        accelerator=job.spec.accelerator,
        topology=job.spec.topology,
        chips_per_host=job.spec.chips_per_host,
        offer=SliceOffer(
            name=offer.name,
            type=offer.type,
            zone=zone,
            provisioning=offer.provisioning,
            reservation=offer.reservation,
            flex_start=offer.flex_start,
            wait_seconds=offer.wait_seconds,
            price_per_chip_hour=offer.price_per_chip_hour,
            workload_policy=offer.workload_policy,
        ),
        node_pool=SliceNodePool(name=name, managed=True, **class_.spec.node_pool.model_dump()),
        max_lifetime_seconds=None if offer.type is OfferType.RESERVATION else class_.spec.max_lifetime_seconds,
        reclaim=SliceReclaim(
            idle_seconds=class_.spec.reclaim.idle_seconds,
            reuse=class_.spec.reclaim.reuse,
            namespace=job.metadata.namespace,
        ),
        reclaim_policy=ReclaimPolicy.DELETE,
        claim_ref=claim,
    )
    meta = ObjectMeta(name=name, finalizers=(FINALIZER,), annotations={ANNOTATION_SPEC_HASH: spec_hash(spec)})
    document = TPUSlice(metadata=meta, spec=spec).to_object()
    document.pop("status", None)  # a subresource: the apiserver drops it here anyway
    return document
