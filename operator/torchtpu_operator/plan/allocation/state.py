"""The observed state, sorted for the questions that allocation asks."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from torchtpu_operator.api import SlicePhase, TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.api.slice import ReclaimPolicy
from torchtpu_operator.plan.allocation.observed import AllocationObserved
from torchtpu_operator.plan.observed import Settings
from torchtpu_operator.tpu import Shape, ShapeError, resolve

EPOCH = datetime.fromtimestamp(0, UTC)
DEFAULT_WAIT_SECONDS = {"Create": 2700, "ScaleUp": 1800}


def shape_of_job(job: TorchTPUJob) -> Shape:
    """Raises ShapeError; a job with demand has passed that check."""
    return resolve(job.spec.accelerator, job.spec.topology, chips_per_host=job.spec.chips_per_host)


def shape_of_slice(slice_: TPUSlice) -> Shape:
    spec = slice_.spec
    return resolve(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)


def _is_a_shape(slice_: TPUSlice) -> bool:
    """One that was made by hand with a shape that does not exist must not stop allocation for everybody."""
    try:
        shape_of_slice(slice_)
    except ShapeError:
        return False
    return True


def policy_of(slice_: TPUSlice) -> ReclaimPolicy:
    """Made for a job: Delete; made by hand: Retain. The reclaim namespace tells them apart after the release."""
    spec = slice_.spec
    made_for_job = spec.claim_ref is not None or spec.reclaim.namespace is not None
    return spec.reclaim_policy or (ReclaimPolicy.DELETE if made_for_job else ReclaimPolicy.RETAIN)


def sequence_of(job: TorchTPUJob, index: int) -> int:
    """How often the job gave slice `index` up."""
    sequence = job.status.demand.sequence if job.status.demand is not None else ()
    return sequence[index] if index < len(sequence) else 0


def wanted(job: TorchTPUJob) -> int:
    """Slices that the job asks for."""
    return job.status.demand.slices if job.status.demand is not None else 0


class State:
    """Indexes over one observation."""

    def __init__(self, observed: AllocationObserved, *, now: datetime, settings: Settings) -> None:
        self.observed, self.now, self.settings = observed, now, settings
        self.classes: Mapping[str, TPUSliceClass] = {
            each.metadata.name: each
            for each in observed.classes
            if each.spec.controller_name == settings.controller_name
        }
        others = {each.metadata.name for each in observed.classes} - self.classes.keys()
        self.jobs: Mapping[str, TorchTPUJob] = {job.metadata.uid: job for job in observed.jobs}
        # A slice outlives its class; only one whose class another installation serves is not ours.
        self.slices: tuple[TPUSlice, ...] = tuple(
            slice_ for slice_ in observed.slices if slice_.spec.slice_class_name not in others and _is_a_shape(slice_)
        )

        self.names = frozenset(slice_.metadata.name for slice_ in observed.slices)
        self.granted: list[TPUSlice] = []
        """New slices that this plan gives to jobs: they count for the jobs after them."""

    def class_of(self, job: TorchTPUJob) -> TPUSliceClass | None:
        """The class that the job reconciler has pinned in status."""
        resolved = job.status.resolved
        return self.classes.get(resolved.slice_class_name) if resolved is not None else None

    def holds(self, slice_: TPUSlice) -> bool:
        """Whether the claim on this slice still stands."""
        claim = slice_.spec.claim_ref
        if claim is None:
            return False
        job = self.jobs.get(claim.uid)
        return (
            job is not None
            and claim.slice_index < wanted(job)
            and claim.sequence >= sequence_of(job, claim.slice_index)
        )

    def held_by(self, job: TorchTPUJob) -> dict[int, TPUSlice]:
        """The job's slices by index; those that it gave up or that are being deleted are not among them."""
        mine: dict[int, TPUSlice] = {}
        for slice_ in self.slices:
            claim = slice_.spec.claim_ref
            if (
                claim is not None
                and claim.uid == job.metadata.uid
                and not slice_.metadata.deleting
                and self.holds(slice_)
            ):
                mine[claim.slice_index] = slice_
        return mine

    def queue(self) -> list[TorchTPUJob]:
        """Jobs that lack slices, in the order in which they are served: by priority, then by age."""
        lacking = [
            job
            for job in self.observed.jobs
            if wanted(job) > 0 and not job.metadata.deleting and len(self.held_by(job)) < wanted(job)
        ]
        return sorted(lacking, key=self._order)

    def _order(self, job: TorchTPUJob) -> tuple[bool, int, datetime, str]:
        waiting_with_slices = bool(self.held_by(job))  # holders first: chips that already cost money come to use
        priority = self.observed.priorities.get(job.spec.priority_class_name or "", 0)
        return (not waiting_with_slices, -priority, job.metadata.creation_timestamp or EPOCH, job.metadata.uid)

    def chips(self, slices: Iterable[TPUSlice]) -> int:
        return sum(shape_of_slice(slice_).chips for slice_ in slices)

    def living(self, *, without: frozenset[str] = frozenset()) -> list[TPUSlice]:
        """Slices that cost or will cost: also those being deleted, until their pool is gone; `without` these names."""
        return [
            slice_
            for slice_ in (*self.slices, *self.granted)
            if slice_.metadata.name not in without
            and (slice_.status.phase is not SlicePhase.FAILED or slice_.metadata.deleting)
        ]
