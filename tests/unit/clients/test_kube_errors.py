"""The apiserver's refusals as plans see them."""

import json
from typing import NamedTuple

import pytest

from torchtpu_operator.clients.kube_errors import KubeError, call_failed, refused
from torchtpu_operator.plan.observed import CallFailed
from torchtpu_operator.plan.observed import FailureClass as F


class Case(NamedTuple):
    status: int
    message: str
    want: F


CASES = {
    "somebody was faster": Case(409, "the object has been modified", F.CONFLICT),
    "not there": Case(404, 'namespaces "x" not found', F.NOT_FOUND),
    "wrong request": Case(422, "spec.topology: Invalid value", F.INVALID),
    "unknown field in a strict dry run": Case(400, 'strict decoding error: unknown field "spec.foo"', F.INVALID),
    "too many requests": Case(429, "slow down", F.THROTTLED),
    "no right": Case(403, 'rayclusters.ray.io is forbidden: User "x" cannot create resource', F.PERMISSION),
    "not signed in": Case(401, "Unauthorized", F.PERMISSION),
    "a ResourceQuota": Case(403, 'pods "p" is forbidden: exceeded quota: tpu, requested: google.com/tpu=4', F.QUOTA),
    "PodSecurity": Case(403, 'pods "p" is forbidden: violates PodSecurity "restricted:latest"', F.INVALID),
    "a webhook": Case(403, 'admission webhook "v.x" denied the request: no', F.INVALID),
    "a ValidatingAdmissionPolicy": Case(
        403, "pods is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", F.INVALID
    ),
    "a service account that is not there": Case(
        403, 'pods "p" is forbidden: error looking up service account ml/x: serviceaccount "x" not found', F.INVALID
    ),
    "a PriorityClass that is not there": Case(
        403, 'pods "p" is forbidden: no PriorityClass with name x was found', F.INVALID
    ),
    "a namespace that goes": Case(
        403, "unable to create new content in namespace ml because it is being terminated", F.CONFLICT
    ),
    "a webhook that does not answer": Case(500, "failed calling webhook: connection refused", F.TRANSIENT),
    "no answer": Case(0, "no answer: timed out", F.TRANSIENT),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_class_of_a_refusal(case: Case) -> None:
    error = KubeError(case.message, call="POST /x", status=case.status)
    assert call_failed(error) == CallFailed(call="POST /x", failure=case.want, message=case.message)


def test_the_words_come_from_the_status_object_and_the_wait_from_the_header() -> None:
    body = json.dumps({"kind": "Status", "reason": "TooManyRequests", "message": "storage is (re)initializing"})
    error = refused(call="GET /x", status=429, body=body, headers={"Retry-After": "2"})
    assert (error.message, error.reason, error.retry_after) == ("storage is (re)initializing", "TooManyRequests", 2.0)


def test_a_body_that_is_no_status_object_is_kept_and_cut() -> None:
    error = refused(call="GET /x", status=502, body="<html>" + "x" * 5000, headers={})
    assert (len(error.message), error.message[:6], error.reason) == (1024, "<html>", "")
