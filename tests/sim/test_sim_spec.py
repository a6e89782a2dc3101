"""What a spec or a class asks for and nobody can give, in virtual time: said, bounded, and paid for by nobody."""

from typing import Any

import pytest

from sim.gke import Settings
from sim.gke.errors import Code
from sim.gke.faults import Refusal
from tests.sim.rig import Outside, a_cluster, in_virtual_time, now
from torchtpu_operator.clients.kinds import CLASSES, RAY_CLUSTERS
from torchtpu_operator.clients.kube_errors import KubeError

WEBHOOK = 'admission webhook "tpu.acme.dev" denied the request: numOfHosts must be 4'
TEXT = "Invalid value for field 'resource.serviceAccount': 'sa@x'. No such account."


def gone(outside: Outside) -> bool:
    return not any(outside.left().values())


def status(outside: Outside) -> dict[str, Any]:
    return (outside.job() or {}).get("status") or {}


def condition(outside: Outside, type_: str) -> tuple[str, str]:
    found = [each for each in status(outside).get("conditions") or () if each["type"] == type_]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


def asked(outside: Outside) -> list[str]:
    """Outcomes of every CreateNodePool."""
    return [call.outcome for call in outside.gke.calls.mutating if call.method == "CreateNodePool"]


def told(outside: Outside, reason: str) -> int:
    return sum(1 for _, seen, _ in outside.recorder.events if seen == reason)


# --- 2x4: two machines


SHAPES = {
    "nothing said": ({}, ("ct6e-standard-8t", 1, 8, None, 1, "8")),
    "8 chips per host": ({"chipsPerHost": 8}, ("ct6e-standard-8t", 1, 8, None, 1, "8")),
    "4 chips per host": (
        {"chipsPerHost": 4},
        ("ct6e-standard-4t", 2, 4, {"type": "COMPACT", "tpuTopology": "2x4"}, 2, "4"),
    ),
}


def test_2x4_is_one_host_of_8_chips_or_two_of_4_in_status_pool_and_ray_cluster_alike() -> None:
    async def live(spec: dict[str, Any]) -> tuple[object, ...]:
        async with a_cluster() as outside:
            before_the_call: list[dict[str, Any]] = []

            def look(name: str, args: tuple[Any, ...]) -> None:
                del args
                if name.endswith("create_node_pool"):
                    before_the_call.append(status(outside)["resolved"])

            outside.calls.refuse = look
            await outside.prepare()
            await outside.apply(**{"chipsPerHost": None, **spec})
            await outside.until(lambda: outside.phase() == "Running")
            (pool,) = [c.body["nodePool"] for c in outside.gke.calls.mutating if c.method == "CreateNodePool"]
            (cluster,) = outside.kube.view(RAY_CLUSTERS)
            (group,) = cluster["spec"]["workerGroupSpecs"]
            limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
            resolved = before_the_call[0]
            assert (
                resolved["machineType"],
                resolved["hostsPerSlice"],
                resolved["chipsPerHost"],
                resolved["chips"],
            ) == (
                pool["config"]["machineType"],
                pool["initialNodeCount"],
                int(limits["google.com/tpu"]),
                8,
            )
            return (
                pool["config"]["machineType"],
                pool["initialNodeCount"],
                resolved["chipsPerHost"],
                pool.get("placementPolicy"),
                group["numOfHosts"],
                limits["google.com/tpu"],
            )

    assert {name: in_virtual_time(live(spec)) for name, (spec, _) in SHAPES.items()} == {
        name: want for name, (_, want) in SHAPES.items()
    }


# --- GKE says 400


def test_what_gke_calls_invalid_is_asked_once_and_again_when_the_class_is_changed() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            fault = outside.gke.faults.add(Refusal(method="CreateNodePool", code=Code.INVALID_ARGUMENT, message=TEXT))
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: condition(outside, "Stalled")[0] == "True", seconds=60)
            soon = now() < 10
            stalled, message = condition(outside, "Stalled"), outside.said()
            await outside.after(3600)
            calls, left = asked(outside), outside.left()["pools"]
            outside.gke.faults.remove(fault)
            changed = {
                "offers": [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"]}],
                "nodePool": {"diskSizeGb": 200},
            }
            await outside.kube.merge(CLASSES, "default", {"spec": changed, "metadata": {"generation": 2}})
            await outside.until(lambda: outside.phase() == "Succeeded" and gone(outside))
            return soon, stalled, TEXT in message, "when the class is changed" in message, calls, left

    assert in_virtual_time(live()) == (True, ("True", "InvalidRequest"), True, True, ["INVALID_ARGUMENT"], [])


def test_what_gke_calls_invalid_from_one_offer_is_asked_of_the_next() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.gke.faults.add(Refusal(method="CreateNodePool", code=Code.INVALID_ARGUMENT, message=TEXT, times=1))
            await outside.prepare(
                offers=[
                    {"name": "spot", "type": "Spot", "zones": ["us-east5-b"]},
                    {"name": "od", "type": "OnDemand", "zones": ["us-east5-b"]},
                ]
            )
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Succeeded" and gone(outside))
            return asked(outside), told(outside, "InvalidRequest")

    assert in_virtual_time(live()) == (["INVALID_ARGUMENT", "OK"], 1)


# --- v7x and its workload policy


def v7x(**offer: Any) -> list[dict[str, Any]]:
    return [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"], **offer}]


def test_a_workload_policy_that_is_not_there_is_named_with_project_and_region_and_awaited() -> None:
    async def live() -> tuple[object, ...]:
        policies: dict[str, str] = {}
        async with a_cluster(gke=Settings(workload_policies=policies)) as outside:
            await outside.prepare(offers=v7x())
            await outside.apply(accelerator="v7x", topology="2x2x2", chipsPerHost=None)
            await outside.until(lambda: "PlacementPolicyNotFound" in outside.said(), seconds=60)
            message, stalled = outside.said(), condition(outside, "Stalled")[0]
            policies["torchtpu-tpu7x-2x2x2"] = "2x2x2"
            await outside.until(lambda: status(outside).get("slicesReady") == "1/1", seconds=300)
            return (
                [
                    word
                    for word in ("torchtpu-tpu7x-2x2x2", "project demo", "us-east5", "workloadPolicy")
                    if word not in message
                ],
                stalled,
                outside.overlaps,
            )

    assert in_virtual_time(live()) == ([], "False", [])


def test_a_workload_policy_of_another_topology_is_gke_s_no_in_gke_s_words() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster(gke=Settings(workload_policies={"wp": "2x2x4"})) as outside:
            await outside.prepare(offers=v7x(workloadPolicy="wp"))
            await outside.apply(accelerator="v7x", topology="2x2x2", chipsPerHost=None)
            await outside.until(lambda: condition(outside, "Stalled")[0] == "True", seconds=60)
            return (
                condition(outside, "Stalled"),
                "differs from '2x2x4' of resource policy 'wp'" in outside.said(),
                len(asked(outside)),
            )

    assert in_virtual_time(live()) == (("True", "InvalidRequest"), True, 1)


def test_one_host_of_v7x_needs_no_policy() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare(offers=v7x())
            await outside.apply(accelerator="v7x", topology="2x2x1", chipsPerHost=None)
            await outside.until(lambda: status(outside).get("slicesReady") == "1/1", seconds=60)
            (call,) = [c for c in outside.gke.calls.mutating if c.method == "CreateNodePool"]
            return call.outcome, call.body["nodePool"].get("placementPolicy")

    assert in_virtual_time(live()) == ("OK", None)


# --- the apiserver says no


def refusing(outside: Outside, *, dry_runs: bool) -> None:
    """A webhook that denies RayClusters: the dry runs already, or only the real ones."""

    def before(verb: str, kind: Any, name: str) -> None:
        if kind == RAY_CLUSTERS and verb in ({"create", "dry-run"} if dry_runs else {"create"}):
            raise KubeError(WEBHOOK, call=f"POST rayclusters/{name}", status=403, reason="Forbidden")

    outside.kube.before = before


def test_a_webhook_that_denies_is_told_once_tried_ever_less_often_and_costs_nothing() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            refusing(outside, dry_runs=True)
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: condition(outside, "Stalled")[0] == "True", seconds=5)
            conditions = condition(outside, "Stalled"), condition(outside, "RayClusterReady")
            await outside.after(3600)
            tries = sum(1 for call in outside.kube.calls if call[:2] == ("dry-run", "rayclusters"))
            verbatim, spent, events = WEBHOOK in outside.said(), asked(outside), told(outside, "AdmissionDenied")
            outside.kube.before = None
            await outside.until(lambda: outside.phase() == "Succeeded" and gone(outside))
            return conditions, 10 <= tries <= 18, verbatim, spent, events

    denied = ("True", "AdmissionDenied"), ("False", "AdmissionDenied")
    assert in_virtual_time(live()) == (denied, True, True, [], 1)


def test_a_webhook_that_begins_to_deny_later_keeps_the_slices_until_the_start_deadline() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            refusing(outside, dry_runs=False)
            await outside.prepare()
            await outside.apply(startDeadlineSeconds=900)
            await outside.until(lambda: WEBHOOK in outside.said(), seconds=60)
            seen = outside.phase(), condition(outside, "RayClusterReady"), len(outside.left()["pools"])
            await outside.until(lambda: outside.phase() == "Failed" and gone(outside), seconds=1200)
            posts = sum(1 for call in outside.kube.calls if call[:2] == ("create", "rayclusters"))
            return (
                *seen,
                condition(outside, "Failed"),
                posts <= 7,
                WEBHOOK in outside.said(),
                told(outside, "AdmissionDenied"),
            )

    want = ("Starting", ("False", "AdmissionDenied"), 1, ("True", "StartDeadlineExceeded"), True, True, 1)
    assert in_virtual_time(live()) == want


def test_a_webhook_that_denies_for_a_while_is_waited_out_on_the_same_slices() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            refusing(outside, dry_runs=False)
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: WEBHOOK in outside.said(), seconds=60)
            outside.kube.before = None
            await outside.until(lambda: outside.phase() == "Succeeded" and gone(outside))
            return len(outside.creations()), len(outside.ray.submissions)

    assert in_virtual_time(live()) == (1, 1)


# --- versions of Ray


def test_a_head_that_is_too_old_ends_the_job_within_seconds_of_its_start() -> None:
    async def live(version: str, **spec: Any) -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.ray.ray_version = version
            await outside.prepare()
            await outside.apply(failurePolicy={"maxRestarts": 5}, **spec)
            await outside.until(lambda: outside.phase() == "Failed" and gone(outside), seconds=120)
            return condition(outside, "Failed"), len(outside.ray.submissions), outside.said()

    ended = ("True", "RayVersionUnsupported")
    assert [
        in_virtual_time(live("2.57.0")),
        in_virtual_time(live("2.59.0", numSlices=2)),
        in_virtual_time(live("2.61.0", rayVersion="2.60.0")),
    ] == [
        (
            ended,
            0,
            "the image runs Ray 2.57.0: Ray 2.57.0 is too old: 2.58.0 or later is needed to place workers on a slice",
        ),
        (ended, 0, "the image runs Ray 2.59.0: Ray 2.59.0 is too old for several slices: 2.60.0 or later is needed"),
        (ended, 0, "spec.rayVersion says 2.60.0, the image runs Ray 2.61.0: correct one of them"),
    ]


def test_workers_of_another_ray_end_the_job_within_seconds_of_their_start() -> None:
    """The words are those of a real `ray start` (tests/ray)."""
    message = (
        "RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
        "This process on node 10.244.0.9 was started with:\n    Ray: 2.59.0\n    Python: 3.11.7\n"
    )
    terminated = {"exitCode": 1, "reason": "Error", "message": message}
    ended = {"phase": "Failed", "containerStatuses": [{"name": "ray", "state": {"terminated": terminated}}]}
    worker = {"template": {"spec": {"containers": [{"name": "ray", "image": "example.com/old:1"}]}}}

    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.kuberay.ended["example.com/old:1"] = ended
            await outside.prepare()
            await outside.apply(worker=worker, failurePolicy={"maxRestarts": 5})
            await outside.until(lambda: outside.phase() == "Failed" and gone(outside), seconds=120)
            told_versions = "Ray 2.59.0 and Python 3.11.7, the head has Ray 2.60.0 and Python 3.11.7" in outside.said()
            return condition(outside, "Failed"), told_versions, len(outside.creations()), len(outside.ray.submissions)

    assert in_virtual_time(live()) == (("True", "WorkerVersionMismatch"), True, 1, 0)


# --- what CEL cannot say

STALLED: dict[str, tuple[dict[str, Any], str]] = {
    "a class that is not there": ({"sliceClassName": "gold"}, "ClassNotFound"),
    "no image": ({"image": None}, "ImageMissing"),
    "an offer that the class lacks": ({"offers": ["spot"]}, "NoMatchingOffer"),
    "more chips than the class gives to one job": ({"numSlices": 8}, "LimitsTooSmall"),
    "the class's Ray, too old for two slices": ({"numSlices": 2}, "RayVersionUnsupported"),
    "more than a host has": (
        {"worker": {"template": {"spec": {"containers": [{"name": "ray", "resources": {"requests": {"cpu": 500}}}]}}}},
        "InvalidSpec",
    ),
    "code that is not there": ({"workingDir": {"configMap": {"name": "code"}}}, "WorkingDirNotFound"),
}


@pytest.mark.parametrize(("spec", "reason"), STALLED.values(), ids=STALLED)
def test_what_cel_cannot_say_is_told_within_a_second_and_costs_nothing(spec: dict[str, Any], reason: str) -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            defaults = {"rayVersion": "2.59.0"} if reason == "RayVersionUnsupported" else {}
            await outside.prepare(limits={"chipsPerJob": 32}, jobDefaults=defaults)
            await outside.apply(**spec)
            await outside.until(lambda: condition(outside, "Stalled")[0] == "True", seconds=1, step=0.1)
            first = condition(outside, "Stalled")
            await outside.after(600)
            return first, condition(outside, "Stalled"), asked(outside), told(outside, reason)

    assert in_virtual_time(live()) == (("True", reason), ("True", reason), [], 1)
