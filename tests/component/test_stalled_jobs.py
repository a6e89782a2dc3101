# ruff: noqa: ASYNC110 - a real server is polled
"""The operator process on a real apiserver: what it cannot serve is told at once, once, and GKE is never asked."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sim.control_plane import ApiServer
from tests.component.test_operator_process import CLASS, a_job, an_operator
from tests.doubles.cluster_rig import Rig, cluster_rig
from tests.doubles.webhook import a_webhook
from torchtpu_operator.clients.kinds import CLASSES, EVENTS, JOBS, PODS, RAY_CLUSTERS
from torchtpu_operator.clients.kube_errors import KubeError, call_failed
from torchtpu_operator.plan.observed import FailureClass

pytestmark = pytest.mark.timeout(400)

Json = dict[str, Any]
TEXT = "numOfHosts of group s0 must be 4"
VERBATIM = f'admission webhook "tpu.acme.dev" denied the request: {TEXT}'

NARROW: Json = {
    **CLASS,
    "metadata": {"name": "narrow"},
    "spec": {
        "offers": [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"], "accelerators": ["v6e"]}],
        "limits": {"chipsPerJob": 16},
    },
}
PRIVATE: Json = {
    **CLASS,
    "metadata": {"name": "private"},
    "spec": {**CLASS["spec"], "allowedNamespaces": {"selector": {"matchLabels": {"tpu": "yes"}}}},
}

# name -> (changes of the spec, reason, a part of the message)
STALLED: dict[str, tuple[Json, str, str]] = {
    "no-class": ({"sliceClassName": "gold"}, "ClassNotFound", "TPUSliceClass gold does not exist: create it"),
    "not-allowed": (
        {"sliceClassName": "private"},
        "NamespaceNotAllowed",
        "does not allow namespace stalled: ask an admin",
    ),
    "no-image": ({"image": None}, "ImageMissing", "jobDefaults.image of class default: set one of them"),
    "no-offer": ({"offers": ["spot"]}, "NoMatchingOffer", "class default has no offer spot; it has od"),
    "no-such-chips": (
        {"sliceClassName": "narrow", "accelerator": "v5p", "topology": "2x2x2"},
        "NoMatchingOffer",
        "serves v5p for this job: change spec.offers",
    ),
    "too-many-chips": (
        {"sliceClassName": "narrow", "topology": "4x8"},
        "LimitsTooSmall",
        "the job needs 32 chips, class narrow allows 16 to one job: use fewer",
    ),
    "too-large": (
        {"worker": {"template": {"spec": {"containers": [{"name": "ray", "resources": {"requests": {"cpu": 500}}}]}}}},
        "InvalidSpec",
        "asks for 500 CPUs, a host (ct6e-standard-4t) has 180: lower the requests",
    ),
    "no-code": (
        {"workingDir": {"configMap": {"name": "code"}}},
        "WorkingDirNotFound",
        "ConfigMap stalled/code does not exist; create it",
    ),
    "no-account": (
        {"template": {"spec": {"serviceAccountName": "nobody"}}},
        "AdmissionDenied",
        'serviceaccount "nobody" not found; correct the spec',
    ),
    "no-priority": (
        {"priorityClassName": "nothing"},
        "AdmissionDenied",
        "no PriorityClass with name nothing was found; correct the spec",
    ),
    "misspelt": (
        {"template": {"spec": {"hostNetwrok": True}}},
        "AdmissionDenied",
        'unknown field "spec.headGroupSpec.template.spec.hostNetwrok"',
    ),
}


@pytest.fixture
async def rig(api_server: ApiServer) -> AsyncIterator[Rig]:
    async with cluster_rig(api_server, namespace="stalled") as rig:
        yield rig
    api_server.kubectl("delete", "namespace", "stalled", "--wait=true")


def condition(job: Json, type_: str) -> Json:
    found = [each for each in (job.get("status") or {}).get("conditions") or () if each["type"] == type_]
    return dict(found[0]) if found else {}


async def until(rig: Rig, name: str, type_: str, status: str, *, seconds: float = 60) -> Json:
    job: Json = {}
    async with asyncio.timeout(seconds):
        while condition(job, type_).get("status") != status:
            job = await rig.job(name)
            await asyncio.sleep(0.02)
    return job


async def events(rig: Rig, name: str, reason: str) -> list[tuple[str, int]]:
    """Type and count of each, once there is one: they are written in the background."""
    found: list[Json] = []
    async with asyncio.timeout(30):
        while not found:
            await asyncio.sleep(0.02)
            told = [each for each in await rig.api.list(EVENTS, namespace=rig.namespace) if each["reason"] == reason]
            found = [each for each in told if each["involvedObject"]["name"] == name]
    return [(each["type"], each["count"]) for each in found]


async def test_what_cel_cannot_say_is_told_promptly_with_the_way_out_and_gke_is_not_asked(rig: Rig) -> None:
    for each in (CLASS, NARROW, PRIVATE):
        await rig.api.create(CLASSES, each)
    async with an_operator(rig.environment(POD_NAME="one"), rig.kubeconfig) as operator:
        await operator.until_says("this replica holds the lease")
        got, took = {}, {}
        for name, (changes, _, part) in STALLED.items():
            manifest = a_job(name, namespace=rig.namespace)
            manifest["spec"] = {
                key: value for key, value in {**manifest["spec"], **changes}.items() if value is not None
            }
            began = time.monotonic()
            await rig.api.create(JOBS, manifest)
            job = await until(rig, name, "Stalled", "True")
            took[name] = round(time.monotonic() - began, 2)
            stalled = condition(job, "Stalled")
            got[name] = (stalled["reason"], part if part in stalled["message"] else stalled["message"])
        told = {name: await events(rig, name, reason) for name, (_, reason, _) in STALLED.items()}
    print("seconds from the POST to Stalled:", took)
    assert got == {name: (reason, part) for name, (_, reason, part) in STALLED.items()}
    assert told == {name: [("Warning", 1)] for name in STALLED}
    assert rig.gke.manager.calls.mutating == []


async def test_a_denying_webhook_is_quoted_once_before_and_after_the_slices(rig: Rig, tmp_path: Path) -> None:
    await rig.api.create(CLASSES, CLASS)
    async with (
        a_webhook(rig.server, tmp_path, group="ray.io", resource="rayclusters") as webhook,
        an_operator(rig.environment(POD_NAME="one"), rig.kubeconfig) as operator,
    ):
        webhook.text, webhook.denies = TEXT, lambda _: True
        await operator.until_says("this replica holds the lease")
        await rig.api.create(JOBS, a_job("denied", namespace=rig.namespace))
        denied = await until(rig, "denied", "Stalled", "True")
        spent = list(rig.gke.manager.calls.mutating)
        webhook.denies = lambda request: not request["dryRun"]
        await rig.api.create(JOBS, a_job("later", namespace=rig.namespace))
        async with asyncio.timeout(60):
            while TEXT not in (later := await rig.job("later")).get("status", {}).get("message", ""):
                await asyncio.sleep(0.05)
        told = [await events(rig, name, "AdmissionDenied") for name in ("denied", "later")]
        retries = [job["status"]["retry"]["failures"] for job in (denied, later)]
    ready = [condition(job, "RayClusterReady") for job in (denied, later)]
    assert [(each["status"], each["reason"], VERBATIM in each["message"]) for each in ready] == [
        ("False", "AdmissionDenied", True)
    ] * 2
    got = (spent, later["status"]["phase"], len(later["status"]["slices"]), told, retries)
    assert got == ([], "Starting", 1, [[("Warning", 1)]] * 2, [1, 1])
    assert [request["dryRun"] for request in webhook.denied] == [True, False]
    assert await rig.api.list(RAY_CLUSTERS) == []


async def test_what_admission_says_is_no_missing_right(rig: Rig) -> None:
    """403 is also how policies, PodSecurity and admission plugins say no: the words of the real ones."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-trouble"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "validations": [{"expression": "object.metadata.name != 'by-policy'", "message": "not this one"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-trouble"},
        "spec": {"policyName": "no-trouble", "validationActions": ["Deny"]},
    }
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [policy, binding]})
    rig.server.kubectl("create", "-f", "-", input=items)
    rig.server.kubectl("label", "namespace", rig.namespace, "pod-security.kubernetes.io/enforce=baseline")
    try:
        async with asyncio.timeout(60):
            while (refused := await refusal(rig, "by-policy")) is None:
                await asyncio.sleep(0.1)
        got = {
            "a policy": refused,
            "PodSecurity": await refusal(rig, "p", hostNetwork=True),
            "a ServiceAccount": await refusal(rig, "p", serviceAccountName="nobody"),
            "a PriorityClass": await refusal(rig, "p", priorityClassName="nothing"),
        }
    finally:
        rig.server.kubectl("delete", "-f", "-", input=items)
    assert got == dict.fromkeys(got, FailureClass.INVALID)


async def refusal(rig: Rig, name: str, **spec: Any) -> FailureClass | None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": rig.namespace},
        "spec": {"containers": [{"name": "a", "image": "a"}], **spec},
    }
    try:
        await rig.api.create(PODS, pod, dry_run=True)
    except KubeError as error:
        return call_failed(error).failure
    return None
