"""What must hold before anything is spent: class, image, rules, KubeRay, and a server-side dry run of the manifests."""

from torchtpu_operator.api import ConditionType, JobPhase, Reason, TorchTPUJob
from torchtpu_operator.api.job_status import ResolvedJob
from torchtpu_operator.api.rules import violations
from torchtpu_operator.plan.actions import DryRun
from torchtpu_operator.plan.allocation.grant import selects
from torchtpu_operator.plan.job import refusal
from torchtpu_operator.plan.job.capacity import queued_too_long
from torchtpu_operator.plan.job.class_fit import limits_fit, offers_fit, ray_fits
from torchtpu_operator.plan.job.draft import Draft
from torchtpu_operator.plan.job.host_fit import too_large
from torchtpu_operator.plan.job.manifests import Manifests
from torchtpu_operator.plan.observed import CallFailed, Performed
from torchtpu_operator.tpu import resolve

KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def admitted(draft: Draft) -> bool:
    """Whether the job may ask for capacity. If not, the draft says why, and asks for what is still to be tried."""
    problem = _problem(draft)
    if problem is not None:
        reason, message = problem
        _stall(draft, reason, message)
        queued_too_long(draft, message, queued=reason is Reason.QUEUEING_UNSUPPORTED)
        return False
    if _namespace_unknown(draft):
        text = f"waiting to see the labels of namespace {draft.job.metadata.namespace}, which its class asks for"
        draft.phase(JobPhase.PENDING, Reason.PENDING, text)
        draft.look_in(2.0)
        return False
    if not draft.observed.kuberay:
        text = "KubeRay is not installed (no rayclusters.ray.io): install it; the job goes on by itself, nothing is spent meanwhile"
        _stall(draft, Reason.KUBERAY_MISSING, text)
        return False
    manifests = Manifests.of(draft)
    if draft.status.admitted_hash == manifests.spec_hash:
        return True
    cluster = manifests.ray_cluster()
    if large := too_large(cluster["spec"]["workerGroupSpecs"][0]["template"], shape=manifests.shape):
        _stall(draft, Reason.INVALID_SPEC, large)
        return False
    for outcome in draft.observed.outcomes:
        if isinstance(outcome, Performed) and outcome.call == "DryRun":
            draft.set(admitted_hash=manifests.spec_hash, retry=None, queued_at=None)
            return True
        if isinstance(outcome, CallFailed):
            refusal.record(draft, outcome)
    _say(draft)
    retry = draft.status.retry
    quota = retry is not None and retry.reason == Reason.QUOTA_EXCEEDED
    if queued_too_long(draft, retry.message if retry is not None else "", queued=quota):
        return False
    if not draft.backing_off():
        draft.act(DryRun(manifests=manifests.dry_run(), config_maps=manifests.config_maps()))
    return False


def _say(draft: Draft) -> None:
    """What the last try came to; its event was sent with the first one."""
    retry = draft.status.retry
    if retry is None or retry.reason not in refusal.REASONS:
        draft.phase(JobPhase.PENDING, Reason.PENDING, "checking what the job would create")
        return
    reason = Reason(retry.reason)
    if reason in refusal.FOR_A_PERSON:
        _stall(draft, reason, retry.message, tell=False)
        draft.condition(ConditionType.RAY_CLUSTER_READY, False, reason, retry.message)
    else:
        draft.phase(JobPhase.PENDING, reason, retry.message)


def queueing(job: TorchTPUJob) -> str | None:
    """Why a job that is to be queued elsewhere does not start, or None."""
    if KUEUE_QUEUE_LABEL not in job.metadata.labels:
        return None
    return f"label {KUEUE_QUEUE_LABEL} is set, and Kueue is not integrated yet: remove it"


def _namespace_unknown(draft: Draft) -> bool:
    """A class that is for some namespaces is for none that we have not seen."""
    class_ = draft.observed.slice_class
    restricted = class_ is not None and class_.spec.allowed_namespaces is not None
    return restricted and draft.observed.namespace_labels is None


def _stall(draft: Draft, reason: Reason, message: str, *, tell: bool = True) -> None:
    if tell and draft.status.message != message:
        draft.event("Warning", reason, message)
    draft.condition(ConditionType.SLICES_READY, False, reason, message)
    draft.phase(JobPhase.PENDING, reason, message, stalled=True)


def _problem(draft: Draft) -> tuple[Reason, str] | None:
    """The first thing that a person must mend; also pins class and shape in status once they are sound."""
    job, spec, class_ = draft.job, draft.spec, draft.observed.slice_class
    if found := violations(job):
        return Reason.INVALID_SPEC, "; ".join(str(violation) for violation in found)
    if queue := queueing(job):
        return Reason.QUEUEING_UNSUPPORTED, queue
    if class_ is None:
        return _no_class(draft)
    name = class_.metadata.name
    if class_.spec.controller_name != draft.settings.controller_name:
        return Reason.CLASS_NOT_FOUND, f"class {name} is served by {class_.spec.controller_name}, not by this operator"
    allowed, labels = class_.spec.allowed_namespaces, draft.observed.namespace_labels
    if allowed is not None and labels is not None and not selects(allowed.selector, labels):
        text = f"class {name} does not allow namespace {job.metadata.namespace}: ask an admin, or name another class in spec.sliceClassName"
        return Reason.NAMESPACE_NOT_ALLOWED, text
    if spec.image is None and class_.spec.job_defaults.image is None:
        return (
            Reason.IMAGE_MISSING,
            f"spec.image: no image is given, neither here nor in jobDefaults.image of class {name}: set one of them",
        )
    shape = resolve(spec.accelerator, spec.topology, chips_per_host=spec.chips_per_host)
    held = bool(draft.held)  # what was granted under limits of before is not taken back
    if not held and (
        problem := ray_fits(job, class_)
        or offers_fit(job, class_, shape=shape)
        or limits_fit(job, class_, shape=shape, labels=labels)
    ):
        return problem
    count = f"{spec.num_slices} x " if spec.num_slices > 1 else ""
    resolved = ResolvedJob(
        slice_class_name=name,
        shape=f"{count}{spec.accelerator} {spec.topology}",
        machine_type=shape.machine_type,
        hosts_per_slice=shape.hosts,
        chips_per_host=shape.chips_per_host,
        chips=shape.chips * spec.num_slices,
        workers=shape.workers * spec.num_slices,
    )
    draft.set(resolved=resolved)
    return None


def _no_class(draft: Draft) -> tuple[Reason, str]:
    pinned = draft.status.resolved.slice_class_name if draft.status.resolved is not None else None
    if name := pinned or draft.spec.slice_class_name:
        return (
            Reason.CLASS_NOT_FOUND,
            f"TPUSliceClass {name} does not exist: create it, or name another one in spec.sliceClassName",
        )
    if draft.observed.default_classes > 1:
        text = f"{draft.observed.default_classes} classes are marked as default: leave the mark on one, or set spec.sliceClassName"
        return Reason.SEVERAL_DEFAULT_CLASSES, text
    text = "no TPUSliceClass is marked as default: mark one with torchtpu.dev/is-default-class=true, or set spec.sliceClassName"
    return Reason.NO_DEFAULT_CLASS, text
