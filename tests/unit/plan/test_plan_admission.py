"""What a person must mend is said before anything is asked for, with the field and the way out."""

import dataclasses
from typing import Any

import pytest

from tests.builders import NOW, a_class, a_failure, a_job, a_slice, an_offer, at
from tests.unit.plan.job_cases import Case, planned
from tests.unit.plan.views import Seen, seen
from torchtpu_operator.api import ConditionType, JobPhase
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.plan.actions import DryRun, Plan
from torchtpu_operator.plan.observed import FailureClass, Performed

NOTHING = Seen()


def condition(plan: Plan[Any], type_: ConditionType) -> tuple[str, str, str]:
    found = next((each for each in plan.status.conditions if each.type == type_), None)
    return (found.status, found.reason, found.message) if found else ("", "", "")


def large(**resources: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": [{"name": "ray", "resources": resources}]}}}


# sentence -> (case, reason, message)
STALLED: dict[str, tuple[Case, str, str]] = {
    "the spec is one that the apiserver of today would refuse": (
        Case(given=a_job(num_slices=17), want=NOTHING),
        "InvalidSpec",
        "spec.numSlices: numSlices is 17: a job takes 1 to 16 slices",
    ),
    "its class does not exist": (
        Case(given=a_job(slice_class_name="gold"), slice_class=None, want=NOTHING),
        "ClassNotFound",
        "TPUSliceClass gold does not exist: create it, or name another one in spec.sliceClassName",
    ),
    "its class is served by another installation": (
        Case(given=a_job(), slice_class=a_class(controller_name="acme.dev/other").build(), want=NOTHING),
        "ClassNotFound",
        "class default is served by acme.dev/other, not by this operator",
    ),
    "no class is the default": (
        Case(given=a_job(), slice_class=None, default_classes=0, want=NOTHING),
        "NoDefaultClass",
        "no TPUSliceClass is marked as default: mark one with torchtpu.dev/is-default-class=true, or set "
        "spec.sliceClassName",
    ),
    "two classes are the default": (
        Case(given=a_job(), slice_class=None, default_classes=2, want=NOTHING),
        "SeveralDefaultClasses",
        "2 classes are marked as default: leave the mark on one, or set spec.sliceClassName",
    ),
    "its namespace may not use the class": (
        Case(
            given=a_job(),
            slice_class=a_class(allowed_namespaces={"selector": {"match_labels": {"tpu": "yes"}}}).build(),
            namespace_labels={},
            want=NOTHING,
        ),
        "NamespaceNotAllowed",
        "class default does not allow namespace ml: ask an admin, or name another class in spec.sliceClassName",
    ),
    "there is no image": (
        Case(given=a_job(image=None), want=NOTHING),
        "ImageMissing",
        "spec.image: no image is given, neither here nor in jobDefaults.image of class default: set one of them",
    ),
    "the class's Ray is too old for several slices": (
        Case(
            given=a_job(num_slices=2),
            slice_class=a_class(job_defaults=JobDefaults(image="a", ray_version="2.59.0")).build(),
            want=NOTHING,
        ),
        "RayVersionUnsupported",
        "jobDefaults.rayVersion of class default: Ray 2.59.0 is too old for several slices: 2.60.0 or later is needed: "
        "set spec.image and spec.rayVersion, or ask an admin",
    ),
    "it names an offer that the class lacks": (
        Case(given=a_job(offers=("spot",)), want=NOTHING),
        "NoMatchingOffer",
        "spec.offers: class default has no offer spot; it has od",
    ),
    "no offer serves its generation": (
        Case(given=a_job(), slice_class=a_class(offers=(an_offer(accelerators=("v5p",)),)).build(), want=NOTHING),
        "NoMatchingOffer",
        "no offer of class default (od) serves v6e for this job: change spec.offers, name another class in "
        "spec.sliceClassName, or ask an admin for such an offer",
    ),
    "one slice is larger than every offer": (
        Case(given=a_job(), slice_class=a_class(offers=(an_offer(max_chips=8),)).build(), want=NOTHING),
        "LimitsTooSmall",
        "a slice needs 16 chips, the offers of class default have fewer (od: 8): use a smaller topology or ask an admin",
    ),
    "one job may not have so many chips": (
        Case(given=a_job(num_slices=2), slice_class=a_class(limits={"chips_per_job": 16}).build(), want=NOTHING),
        "LimitsTooSmall",
        "the job needs 32 chips, class default allows 16 to one job: use fewer, or ask an admin",
    ),
    "the whole class has fewer chips": (
        Case(given=a_job(), slice_class=a_class(limits={"chips": 8}).build(), want=NOTHING),
        "LimitsTooSmall",
        "the job needs 16 chips, class default allows 8 in all: use fewer, or ask an admin",
    ),
    "its namespace may not have so many chips": (
        Case(
            given=a_job(),
            slice_class=a_class(
                limits={"namespaces": ({"selector": {"match_labels": {"team": "small"}}, "chips": 8},)}
            ).build(),
            namespace_labels={"team": "small"},
            want=NOTHING,
        ),
        "LimitsTooSmall",
        "the job needs 16 chips, class default allows 8 to namespace ml: use fewer, or ask an admin",
    ),
    "its workers want more CPUs than a host has": (
        Case(given=a_job(worker=large(requests={"cpu": 181})), want=NOTHING),
        "InvalidSpec",
        "the worker pod asks for 181 CPUs, a host (ct6e-standard-4t) has 180: lower the requests of its containers in "
        "spec.template, spec.worker.template or jobDefaults.template of the class",
    ),
    "its workers and their sidecars want more memory than a host has": (
        Case(
            given=a_job(
                template={
                    "spec": {
                        "containers": [
                            {"name": "ray", "resources": {"limits": {"memory": "500Gi"}}},
                            {"name": "cache", "image": "a", "resources": {"requests": {"memory": "200Gi"}}},
                        ]
                    }
                }
            ),
            want=NOTHING,
        ),
        "InvalidSpec",
        "the worker pod asks for 700 GiB of memory, a host (ct6e-standard-4t) has 671 GiB: lower the requests of its "
        "containers in spec.template, spec.worker.template or jobDefaults.template of the class",
    ),
    "an overlay of the class is too large": (
        Case(
            given=a_job(),
            slice_class=a_class(job_defaults=JobDefaults.model_validate(large(requests={"cpu": "1000"}))).build(),
            want=NOTHING,
        ),
        "InvalidSpec",
        "the worker pod asks for 1000 CPUs, a host (ct6e-standard-4t) has 180: lower the requests of its containers in "
        "spec.template, spec.worker.template or jobDefaults.template of the class",
    ),
    "it waits for a queue that nobody runs": (
        Case(given=a_job().meta(labels={"kueue.x-k8s.io/queue-name": "q"}), want=NOTHING),
        "QueueingUnsupported",
        "label kueue.x-k8s.io/queue-name is set, and Kueue is not integrated yet: remove it",
    ),
    "KubeRay is not there": (
        Case(given=a_job(), kuberay=False, want=NOTHING),
        "KubeRayMissing",
        "KubeRay is not installed (no rayclusters.ray.io): install it; the job goes on by itself, nothing is spent "
        "meanwhile",
    ),
}


@pytest.mark.parametrize(("case", "reason", "message"), STALLED.values(), ids=STALLED)
def test_it_stalls_says_why_once_and_asks_for_nothing(case: Case, reason: str, message: str) -> None:
    plan = planned(case)
    again = planned(dataclasses.replace(case, given=case.given.of_status(plan.status)))
    got = (
        seen(plan),
        condition(plan, ConditionType.STALLED),
        condition(plan, ConditionType.SLICES_READY),
        plan.status.message,
        plan.status.demand,
        seen(again).tell,
    )
    assert got == (
        Seen(phase="Pending", reason=reason, tell=(reason,)),
        ("True", reason, message),
        ("False", reason, message),
        message,
        None,
        (),
    )


FITS = {
    "requests of the whole machine": large(requests={"cpu": 180, "memory": "670Gi"}),
    "an init container that is over before the workers begin": {
        "template": {
            "spec": {
                "initContainers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": 170}}}],
            }
        }
    },
    "what is no quantity, for the apiserver to judge": large(requests={"cpu": "many"}),
}


@pytest.mark.parametrize("worker", FITS.values(), ids=FITS)
def test_what_fits_is_tried(worker: dict[str, Any]) -> None:
    assert seen(planned(Case(given=a_job(worker=worker), want=NOTHING))).do == ("DryRun",)


def test_what_was_granted_under_larger_limits_is_kept() -> None:
    case = Case(
        given=a_job().demanding().holding(a_slice().ready()),
        slices=(a_slice().ready(),),
        slice_class=a_class(limits={"chips": 8}).build(),
        want=NOTHING,
    )
    assert seen(planned(case)).reason == "RayClusterStarting"


WEBHOOK = 'admission webhook "tpu.acme.dev" denied the request: numOfHosts must be 4'
REFUSED: dict[str, tuple[FailureClass, str, str, tuple[str, str, str]]] = {
    "a webhook": (
        FailureClass.INVALID,
        "POST rayclusters",
        WEBHOOK,
        (
            "Stalled",
            "AdmissionDenied",
            f"the apiserver refuses what the job would create: {WEBHOOK}; correct the spec (while suspended) or what "
            "refuses it, the job goes on by itself",
        ),
    ),
    "a right that the operator lacks": (
        FailureClass.PERMISSION,
        "POST rayclusters",
        'rayclusters.ray.io is forbidden: User "x" cannot create resource "rayclusters"',
        (
            "Stalled",
            "PermissionDenied",
            'the operator may not create what the job needs: rayclusters.ray.io is forbidden: User "x" cannot create '
            'resource "rayclusters"; give it the rights of the chart\'s ClusterRole',
        ),
    ),
    "a quota, which others may free": (
        FailureClass.QUOTA,
        "POST pods",
        "exceeded quota: small, requested: cpu=144",
        (
            "Reconciling",
            "QuotaExceeded",
            "a ResourceQuota of the namespace leaves no room for the job's pods: exceeded quota: small, requested: "
            "cpu=144; free or raise it",
        ),
    ),
    "a ConfigMap that is not there": (
        FailureClass.NOT_FOUND,
        "GET configmaps/code",
        "ConfigMap ml/code does not exist",
        (
            "Stalled",
            "WorkingDirNotFound",
            "spec.workingDir.configMap: ConfigMap ml/code does not exist; create it, the job goes on by itself",
        ),
    ),
    "no answer": (
        FailureClass.TRANSIENT,
        "POST pods",
        "no answer: timed out",
        (
            "Reconciling",
            "Pending",
            "the apiserver did not take what the job would create: no answer: timed out; tried again",
        ),
    ),
}


@pytest.mark.parametrize(("failure", "call", "said", "want"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_told_in_its_own_words_once_and_tried_ever_less_often(
    failure: FailureClass, call: str, said: str, want: tuple[str, str, str]
) -> None:
    refusal = a_failure(failure, call=call, message=said)
    given, told, waits = a_job().resolved(), 0, []
    for _ in range(4):
        plan = planned(Case(given=given, outcomes=(refusal,), want=NOTHING))
        waits.append(plan.look_again or 0.0)
        told += len(plan.events)
        given = given.of_status(
            plan.status.model_copy(update={"retry": plan.status.retry.model_copy(update={"at": NOW})})
        )
    kind, reason, message = want
    got = condition(plan, ConditionType(kind))
    stalled = kind == "Stalled"
    assert (got, plan.actions, plan.status.demand, told) == (("True", reason, message), (), None, 1)
    assert condition(plan, ConditionType.RAY_CLUSTER_READY) == (("False", reason, message) if stalled else ("", "", ""))
    assert waits[0] < waits[1] < waits[2]


QUOTA = a_failure(FailureClass.QUOTA, call="POST pods", message="exceeded quota: small")
# sentence -> the case; each waits for something that somebody else gives
QUEUED = {
    "a quota of the namespace": Case(given=a_job(queue_deadline_seconds=60), outcomes=(QUOTA,), want=NOTHING),
    "Kueue": Case(
        given=a_job(queue_deadline_seconds=60).meta(labels={"kueue.x-k8s.io/queue-name": "team"}), want=NOTHING
    ),
}


@pytest.mark.parametrize("case", QUEUED.values(), ids=QUEUED)
def test_the_clock_of_the_queue_runs_before_the_job_is_admitted(case: Case) -> None:
    began = planned(case)
    status = began.status.model_copy(update={"queued_at": at(-60)})
    ended = planned(dataclasses.replace(case, given=case.given.of_status(status)))
    assert (began.status.queued_at, seen(began).phase, began.look_again is not None) == (NOW, "Pending", True)
    assert (began.look_again or 0) <= 60
    assert (seen(ended).reason, ended.actions) == ("QueueDeadlineExceeded", ())


def test_a_quota_that_is_freed_stops_the_clock() -> None:
    given = a_job(queue_deadline_seconds=60).resolved().status(queued_at=at(-30))
    plan = planned(Case(given=given, outcomes=(Performed(call="DryRun"),), want=NOTHING))
    assert (plan.status.queued_at, plan.status.demand.slices) == (None, 1)


def test_after_the_back_off_it_is_tried_again_and_success_clears_the_stall() -> None:
    refusal = a_failure(FailureClass.INVALID, call="POST rayclusters", message=WEBHOOK)
    plan = planned(Case(given=a_job().resolved(), outcomes=(refusal,), want=NOTHING))
    later = (
        a_job()
        .resolved()
        .of_status(plan.status.model_copy(update={"retry": plan.status.retry.model_copy(update={"at": at(-1)})}))
    )
    tried = planned(Case(given=later, want=NOTHING))
    passed = planned(Case(given=later, outcomes=(Performed(call="DryRun"),), want=NOTHING))
    assert (seen(tried).do, seen(passed).reason, passed.status.demand.slices) == (("DryRun",), "WaitingForSlices", 1)


def test_the_working_dir_is_looked_for_before_anything_is_asked_for() -> None:
    given = a_job(working_dir={"config_map": {"name": "code"}})
    (action,) = planned(Case(given=given, want=NOTHING)).actions
    assert isinstance(action, DryRun)
    assert action.config_maps == (("ml", "code"),)


def test_a_refusal_that_comes_after_the_slices_is_told_and_tried_until_the_start_deadline() -> None:
    """A policy may begin to refuse between the dry run and the attempt: the slices are kept meanwhile."""
    ready = a_slice().ready(since=-100)
    refusal = a_failure(FailureClass.INVALID, call="POST rayclusters", message=WEBHOOK)
    given = a_job().starting()
    plan = planned(Case(given=given, slices=(ready,), outcomes=(refusal,), want=NOTHING))
    again = planned(Case(given=given.of_status(plan.status), slices=(ready,), outcomes=(refusal,), want=NOTHING))
    message = condition(plan, ConditionType.RAY_CLUSTER_READY)[2]
    assert (seen(plan), seen(again).tell, plan.status.phase) == (
        Seen(phase="Starting", reason="AdmissionDenied", tell=("AdmissionDenied",), look=67.0),
        (),
        JobPhase.STARTING,
    )
    assert condition(plan, ConditionType.RAY_CLUSTER_READY)[:2] == ("False", "AdmissionDenied")
    assert WEBHOOK in message
