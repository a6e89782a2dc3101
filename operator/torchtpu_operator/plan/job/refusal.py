"""The apiserver says no to what a job would create: what that means, in its own words, and what a person can do."""

import dataclasses
from typing import Final

from torchtpu_operator.api import Reason
from torchtpu_operator.plan.job.draft import Draft
from torchtpu_operator.plan.observed import CallFailed, FailureClass

FOR_A_PERSON: Final = {Reason.ADMISSION_DENIED, Reason.PERMISSION_DENIED, Reason.WORKING_DIR_NOT_FOUND}
"""Nobody but a person changes these; they are tried again all the same, since nobody tells us when it is done."""
REASONS: Final = {*FOR_A_PERSON, Reason.QUOTA_EXCEEDED, Reason.PENDING}


def record(draft: Draft, failed: CallFailed, *, otherwise: Reason = Reason.PENDING) -> Reason:
    """Remember the refusal, with back-off and one event; its reason. `otherwise`: of what is no refusal."""
    reason, message = _meaning(failed, otherwise=otherwise)
    if (
        reason is Reason.WORKING_DIR_NOT_FOUND
    ):  # a ConfigMap often comes right after its job: look soon, then less often
        failed = dataclasses.replace(failed, failure=FailureClass.TRANSIENT)
    draft.back_off(failed, reason=reason, message=message)
    return reason


def _meaning(failed: CallFailed, *, otherwise: Reason) -> tuple[Reason, str]:
    said = failed.message
    if failed.failure is FailureClass.NOT_FOUND and failed.call.startswith("GET configmaps/"):
        return Reason.WORKING_DIR_NOT_FOUND, f"spec.workingDir.configMap: {said}; create it, the job goes on by itself"
    if failed.failure is FailureClass.PERMISSION and "cannot " in said:  # the authorizer's words; admission says others
        text = f"the operator may not create what the job needs: {said}; give it the rights of the chart's ClusterRole"
        return Reason.PERMISSION_DENIED, text
    if failed.failure in (FailureClass.INVALID, FailureClass.PERMISSION):
        text = (
            f"the apiserver refuses what the job would create: {said}; correct the spec (while suspended) or what "
            "refuses it, the job goes on by itself"
        )
        return Reason.ADMISSION_DENIED, text
    if failed.failure is FailureClass.QUOTA:
        text = f"a ResourceQuota of the namespace leaves no room for the job's pods: {said}; free or raise it"
        return Reason.QUOTA_EXCEEDED, text
    return otherwise, f"the apiserver did not take what the job would create: {said}; tried again"


def told_by(text: str) -> Reason | None:
    """What somebody else's report of a refused create means: KubeRay's, of its pods."""
    if "exceeded quota" in text:
        return Reason.QUOTA_EXCEEDED
    return Reason.ADMISSION_DENIED if "denied" in text or "is forbidden" in text else None
