"""The three kinds as models, their conditions and reasons, the rule table, and the CRDs made from them."""

from torchtpu_operator.api.base import ObjectMeta, to_dict
from torchtpu_operator.api.conditions import (
    Condition,
    ConditionType,
    Readiness,
    find_condition,
    is_true,
    remove_condition,
    set_condition,
    set_readiness,
)
from torchtpu_operator.api.job import JobSpec, Launcher, TorchTPUJob
from torchtpu_operator.api.job_status import JobPhase, JobStatus
from torchtpu_operator.api.reasons import Reason
from torchtpu_operator.api.slice import ClaimRef, SlicePhase, SliceSpec, SliceStatus, TPUSlice
from torchtpu_operator.api.slice_class import ClassSpec, ClassStatus, TPUSliceClass

__all__ = [
    "ClaimRef",
    "ClassSpec",
    "ClassStatus",
    "Condition",
    "ConditionType",
    "JobPhase",
    "JobSpec",
    "JobStatus",
    "Launcher",
    "ObjectMeta",
    "Readiness",
    "Reason",
    "SlicePhase",
    "SliceSpec",
    "SliceStatus",
    "TPUSlice",
    "TPUSliceClass",
    "TorchTPUJob",
    "find_condition",
    "is_true",
    "remove_condition",
    "set_condition",
    "set_readiness",
    "to_dict",
]
