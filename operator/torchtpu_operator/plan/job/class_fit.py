"""What the class of a job can never give it, as far as class and job alone tell: said before anything is asked for."""

from collections.abc import Mapping

from torchtpu_operator.api import Reason, TorchTPUJob, TPUSliceClass
from torchtpu_operator.api.offer import Offer
from torchtpu_operator.api.version_rules import old_ray
from torchtpu_operator.plan.allocation.grant import is_usable, selects
from torchtpu_operator.tpu import Shape

Problem = tuple[Reason, str]


def offers_fit(job: TorchTPUJob, class_: TPUSliceClass, *, shape: Shape) -> Problem | None:
    """No offer that the job names is there, serves its accelerator, or is large enough for one slice."""
    name, known = class_.metadata.name, {offer.name for offer in class_.spec.offers}
    if unknown := [offer for offer in job.spec.offers or () if offer not in known]:
        text = f"spec.offers: class {name} has no offer {unknown[0]}; it has {', '.join(sorted(known))}"
        return Reason.NO_MATCHING_OFFER, text
    usable = [offer for offer in class_.spec.offers if is_usable(job, offer)]
    if not usable:
        named = ", ".join(job.spec.offers or sorted(known))
        text = (
            f"no offer of class {name} ({named}) serves {job.spec.accelerator} for this job: change spec.offers, name "
            "another class in spec.sliceClassName, or ask an admin for such an offer"
        )
        return Reason.NO_MATCHING_OFFER, text
    bounds = {offer.name: bound for offer in usable if (bound := _bound(offer)) is not None}
    if len(bounds) == len(usable) and all(bound < shape.chips for bound in bounds.values()):
        told = ", ".join(f"{offer}: {bound}" for offer, bound in bounds.items())
        text = f"a slice needs {shape.chips} chips, the offers of class {name} have fewer ({told}): use a smaller topology or ask an admin"
        return Reason.LIMITS_TOO_SMALL, text
    return None


def ray_fits(job: TorchTPUJob, class_: TPUSliceClass) -> Problem | None:
    """The class's Ray, which the job takes over, is too old for it. What the job says itself, its own rules judge."""
    version = class_.spec.job_defaults.ray_version
    if job.spec.ray_version is not None or version is None:
        return None
    if old := old_ray(version, num_slices=job.spec.num_slices):
        text = f"jobDefaults.rayVersion of class {class_.metadata.name}: {old}: set spec.image and spec.rayVersion, or ask an admin"
        return Reason.RAY_VERSION_UNSUPPORTED, text
    return None


def _bound(offer: Offer) -> int | None:
    reserved = offer.reservation.chips if offer.reservation is not None else None
    return min((bound for bound in (offer.max_chips, reserved) if bound is not None), default=None)


def limits_fit(
    job: TorchTPUJob, class_: TPUSliceClass, *, shape: Shape, labels: Mapping[str, str] | None
) -> Problem | None:
    """The whole job is larger than a limit of the class: waiting cannot help."""
    name, limits, need = class_.metadata.name, class_.spec.limits, shape.chips * job.spec.num_slices
    bounds = [
        (limits.chips_per_job, "to one job"),
        (limits.chips, "in all"),
        *(
            (limit.chips, f"to namespace {job.metadata.namespace}")
            for limit in limits.namespaces
            if labels is not None and selects(limit.selector, labels)
        ),
    ]
    for bound, whom in bounds:
        if bound is not None and need > bound:
            text = f"the job needs {need} chips, class {name} allows {bound} {whom}: use fewer, or ask an admin"
            return Reason.LIMITS_TOO_SMALL, text
    return None
