"""A job before its first attempt: what must hold, the dry run, the wait for slices."""

import pytest

from tests.builders import (
    NOW,
    a_class,
    a_failure,
    a_job,
    a_slice,
    at,
)
from tests.unit.plan.job_cases import READY, Case, check, stalled
from tests.unit.plan.views import Seen
from torchtpu_operator.api import JobPhase, Reason
from torchtpu_operator.api.job_status import Demand
from torchtpu_operator.plan.allocation import Wait
from torchtpu_operator.plan.observed import FailureClass, Performed

CASES = {
    # --- hands off
    "another controller's job is not touched": Case(
        given=a_job(managed_by="kueue.x-k8s.io/multikueue").without_finalizer(), want=Seen()
    ),
    "nothing is done before our finalizer is on": Case(
        given=a_job().without_finalizer(), want=Seen(do=("AddFinalizer",), look=0.0)
    ),
    # --- admission: what a person must mend
    "no default class": Case(given=a_job(), slice_class=None, default_classes=0, want=stalled("NoDefaultClass")),
    "two default classes": Case(
        given=a_job(), slice_class=None, default_classes=2, want=stalled("SeveralDefaultClasses")
    ),
    "the named class does not exist": Case(
        given=a_job(slice_class_name="gold"), slice_class=None, want=stalled("ClassNotFound")
    ),
    "the class is served by another installation": Case(
        given=a_job(), slice_class=a_class(controller_name="other/op").build(), want=stalled("ClassNotFound")
    ),
    "the class is for some namespaces, and the labels of this one are not known yet": Case(
        given=a_job(),
        slice_class=a_class(allowed_namespaces={"selector": {}}).build(),
        want=Seen(phase="Pending", reason="Pending", look=2.0),
    ),
    "the class does not allow the namespace": Case(
        given=a_job(),
        slice_class=a_class(allowed_namespaces={"selector": {"match_labels": {"tpu": "yes"}}}).build(),
        namespace_labels={"tpu": "no"},
        want=stalled("NamespaceNotAllowed"),
    ),
    "no image anywhere": Case(given=a_job(image=None), want=stalled("ImageMissing")),
    "the image comes from the class": Case(
        given=a_job(image=None),
        slice_class=a_class(job_defaults={"image": "example.com/ray:1"}).build(),
        want=Seen(phase="Pending", reason="Pending", do=("DryRun",)),
    ),
    "an offer that the class does not have": Case(given=a_job(offers=("spot",)), want=stalled("NoMatchingOffer")),
    "an unknown topology that got past the apiserver": Case(given=a_job(topology="4x5"), want=stalled("InvalidSpec")),
    "numSlices 17": Case(given=a_job(num_slices=17), want=stalled("InvalidSpec")),
    "torchrun under PerDevice": Case(given=a_job(entrypoint="torchrun train.py"), want=stalled("InvalidSpec")),
    "a Kueue queue label: nothing is spent, and it is said why": Case(
        given=a_job().meta(labels={"kueue.x-k8s.io/queue-name": "q"}), want=stalled("QueueingUnsupported")
    ),
    "KubeRay is not installed: nothing is spent, and it is said why": Case(
        given=a_job(), kuberay=False, want=stalled("KubeRayMissing")
    ),
    "the same complaint a second time is no second event": Case(
        given=a_job().status(
            phase=JobPhase.PENDING,
            message="no TPUSliceClass is marked as default: mark one with torchtpu.dev/is-default-class=true, or set spec.sliceClassName",
        ),
        slice_class=None,
        default_classes=0,
        want=Seen(phase="Pending", reason="NoDefaultClass"),
    ),
    # --- the dry run
    "a sound job: what it would create is tried first": Case(
        given=a_job(),
        want=Seen(phase="Pending", reason="Pending", do=("DryRun",)),
        status={
            "resolved.machine_type": "ct6e-standard-4t",
            "resolved.chips": 16,
            "resolved.workers": 16,
            "demand": None,
        },
    ),
    "the dry run passed: the job asks for slices": Case(
        given=a_job().resolved(),
        outcomes=(Performed(call="DryRun"),),
        want=Seen(phase="Pending", reason="WaitingForSlices"),
        status={"demand.slices": 1, "demand.sequence": (0,)},
    ),
    "the apiserver refuses the pods: said, tried again later": Case(
        given=a_job().resolved(),
        outcomes=(a_failure(FailureClass.INVALID, call="POST pods", message="violates PodSecurity"),),
        want=Seen(phase="Pending", reason="AdmissionDenied", tell=("AdmissionDenied",), look=67.0),
    ),
    "the dry run got no answer: said, tried again soon": Case(
        given=a_job().resolved(),
        outcomes=(a_failure(FailureClass.TRANSIENT, call="POST pods", message="webhook down"),),
        want=Seen(phase="Pending", reason="Pending", tell=("Pending",), look=2.0),
        status={
            "message": "the apiserver did not take what the job would create: webhook down; tried again",
            "demand": None,
        },
    ),
    # --- waiting for slices
    "allocation says why it gives nothing, and the job repeats it": Case(
        given=a_job().demanding(),
        wait=Wait(reason=Reason.CLASS_PAUSED, message="class default is paused"),
        want=Seen(phase="Pending", reason="ClassPaused"),
        status={"message": "class default is paused", "queued_at": NOW},
    ),
    "the slice that is on its way speaks for the job": Case(
        given=a_job().demanding(),
        slices=(a_slice().asked("op-1"),),
        want=Seen(phase="Provisioning", reason="WaitingForSlices", look=14400.0),
        status={"demand.first_request_at": NOW, "slices_ready": "0/1"},
    ),
    "a failed slice is given up: the next number asks for another one": Case(
        given=a_job().demanding().holding(a_slice()),
        slices=(a_slice().failed(),),
        want=Seen(phase="Pending", reason="WaitingForSlices", tell=("SliceLost",), look=None),
        status={"demand.sequence": (1,)},
    ),
    "a slice that is being deleted is given up": Case(
        given=a_job().demanding(),
        slices=(READY.deleted(),),
        want=Seen(phase="Pending", reason="WaitingForSlices", tell=("SliceLost",), look=14400.0),
        status={"demand.sequence": (1,)},
    ),
    "one that was given up before is not given up twice": Case(
        given=a_job().demanding(sequence=(1,)),
        slices=(a_slice().failed(),),
        want=Seen(phase="Pending", reason="WaitingForSlices"),
        status={"demand.sequence": (1,), "slices": ()},
    ),
    "no capacity for four hours": Case(
        given=a_job().demanding().status(demand=Demand(slices=1, sequence=(0,), first_request_at=at(-14400))),
        slices=(a_slice().asked("op-1"),),
        want=Seen(phase="Finishing", reason="CapacityDeadlineExceeded", look=0.0),
        status={"demand.slices": 0, "demand.sequence": (1,)},
    ),
    "the queue deadline is over": Case(
        given=a_job(queue_deadline_seconds=60).demanding().status(queued_at=at(-60)),
        wait=Wait(reason=Reason.WAITING_FOR_LIMITS, message="full"),
        want=Seen(phase="Finishing", reason="QueueDeadlineExceeded", look=0.0),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_plan_job(case: Case) -> None:
    check(case)
