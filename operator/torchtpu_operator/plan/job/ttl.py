"""Deleting a job some time after its end, unless a GitOps tool would make it again and so run it again."""

from typing import Final

from torchtpu_operator.api import ObjectMeta, Reason
from torchtpu_operator.api.constants import MAX_MESSAGE
from torchtpu_operator.plan.actions import DeleteJob
from torchtpu_operator.plan.job.draft import Draft

# Annotations and labels by which a tool recognises what it has applied: Argo CD's own and its two label settings, Flux's two.
TRACKED_BY: Final = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "app.kubernetes.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
_KEPT: Final = "; kept: "


def expire(draft: Draft) -> bool:
    """Whether the ended job is being deleted now; otherwise the next look is at its time."""
    seconds, ended = draft.spec.ttl_seconds_after_finished, draft.status.completion_time
    if seconds is None or ended is None:
        _tell(draft, "")
        return False
    if marker := tracked_by(draft.job.metadata):
        why = (
            f"ttlSecondsAfterFinished is ignored, since {TRACKED_BY[marker]} tracks this object ({marker}) and would "
            "create it again, and so run it again: remove the field, or delete the job at its source"
        )
        _tell(draft, why)
        return False
    _tell(draft, "")
    if not draft.overdue(ended, seconds):
        return False
    text = f"ended {seconds} s ago or more (spec.ttlSecondsAfterFinished): deleted"
    draft.event("Normal", Reason.TTL_EXPIRED, text)
    draft.act(DeleteJob())
    return True


def tracked_by(metadata: ObjectMeta) -> str | None:
    """The annotation or label by which Argo CD or Flux tracks the object."""
    return next((key for key in TRACKED_BY if key in metadata.annotations or key in metadata.labels), None)


def _tell(draft: Draft, why: str) -> None:
    """Say once, in message and event, why the job stays; the message remembers that it has been said."""
    message = draft.status.message.split(_KEPT, 1)[0]
    note = f"{_KEPT}{why}" if why else ""
    wanted = message[: MAX_MESSAGE - len(note)] + note
    if wanted == draft.status.message:
        return
    draft.set(message=wanted)
    if why:
        draft.event("Warning", Reason.TTL_IGNORED, why)
