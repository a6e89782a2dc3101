"""Native PyTorch on Cloud TPU slices: the Python side of TorchTPUJob, for users.

    from torchtpu_operator import TorchTPUJob

    job = TorchTPUJob.new("hello", accelerator="v6e", topology="4x4", entrypoint="python train.py")
    print(job.validate().shape)
    print(job.to_yaml())

Names are imported when they are used: the operator's own modules lie in this package too, and need none of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtpu_operator.api.failure_policy import Backoff as Backoff
    from torchtpu_operator.api.failure_policy import ExitCodeOperator as ExitCodeOperator
    from torchtpu_operator.api.failure_policy import FailureAction as FailureAction
    from torchtpu_operator.api.failure_policy import FailurePolicy as FailurePolicy
    from torchtpu_operator.api.failure_policy import FailureRule as FailureRule
    from torchtpu_operator.api.failure_policy import OnExitCodes as OnExitCodes
    from torchtpu_operator.api.job import Launcher as Launcher
    from torchtpu_operator.api.job import WorkingDir as WorkingDir
    from torchtpu_operator.api.offer import Offer as Offer
    from torchtpu_operator.api.offer import OfferType as OfferType
    from torchtpu_operator.api.pod import EnvVar as EnvVar
    from torchtpu_operator.api.pod import PodTemplate as PodTemplate
    from torchtpu_operator.api.validate import InvalidObjectError as InvalidObjectError
    from torchtpu_operator.sdk.capacity import TPUSlice as TPUSlice
    from torchtpu_operator.sdk.capacity import TPUSliceClass as TPUSliceClass
    from torchtpu_operator.sdk.job import JobShape as JobShape
    from torchtpu_operator.sdk.job import TorchTPUJob as TorchTPUJob
    from torchtpu_operator.sdk.job import secret_key as secret_key

_HOMES = {
    "Backoff": "api.failure_policy",
    "EnvVar": "api.pod",
    "ExitCodeOperator": "api.failure_policy",
    "FailureAction": "api.failure_policy",
    "FailurePolicy": "api.failure_policy",
    "FailureRule": "api.failure_policy",
    "InvalidObjectError": "api.validate",
    "JobShape": "sdk.job",
    "Launcher": "api.job",
    "Offer": "api.offer",
    "OfferType": "api.offer",
    "OnExitCodes": "api.failure_policy",
    "PodTemplate": "api.pod",
    "TPUSlice": "sdk.capacity",
    "TPUSliceClass": "sdk.capacity",
    "TorchTPUJob": "sdk.job",
    "WorkingDir": "api.job",
    "secret_key": "sdk.job",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
