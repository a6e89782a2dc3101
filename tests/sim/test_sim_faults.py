"""What goes wrong around a job, in virtual time: capacity, GKE, hosts, heads, images, people."""

from collections.abc import Callable
from typing import Any

from sim.gke.errors import Code
from sim.gke.faults import HungDeletion, LostAnswer, OperationFault, Refusal, Silence, SlowCreate, Stockout
from tests.sim.rig import NAMESPACE, Outside, a_cluster, in_virtual_time, now
from torchtpu_operator.clients.kinds import NODES, PODS, RAY_CLUSTERS, SLICES
from torchtpu_operator.clients.kube_errors import KubeError

TWO_ZONES = [{"name": "od", "type": "OnDemand", "zones": ["us-east5-a", "us-east5-b"]}]


def gone(outside: Outside) -> bool:
    return not any(outside.left().values())


def status(outside: Outside, name: str = "llama") -> dict[str, Any]:
    return (outside.job(name) or {}).get("status") or {}


async def to_its_end(outside: Outside, name: str = "llama", *, seconds: float = 3600) -> None:
    await outside.until(lambda: outside.phase(name) in ("Succeeded", "Failed") and gone(outside), seconds=seconds)


def attempts(outside: Outside) -> list[tuple[str, str]]:
    return [(each["outcome"], each["reason"]) for each in status(outside)["attempts"]]


# --- capacity


def test_a_zone_without_capacity_is_left_for_the_next_one() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.gke.faults.add(Stockout(zone="us-east5-a"))
            await outside.prepare(offers=TWO_ZONES)
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Running", seconds=60)
            zone, soon = status(outside)["slices"][0]["zone"], now() < 40
            await to_its_end(outside)
            return outside.phase(), zone, soon, len(outside.creations()), outside.overlaps

    assert in_virtual_time(live()) == ("Succeeded", "us-east5-b", True, 2, [])


def test_two_slices_move_to_the_next_zone_when_the_first_has_only_one() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.gke.faults.add(Stockout(zone="us-east5-a", times=1))
            await outside.prepare(offers=TWO_ZONES)
            await outside.apply(numSlices=2)
            await outside.until(lambda: outside.phase() == "Running", seconds=300)
            zones = {each["zone"] for each in status(outside)["slices"]}
            await to_its_end(outside)
            return outside.phase(), zones, outside.overlaps

    assert in_virtual_time(live()) == ("Succeeded", {"us-east5-b"}, [])


def test_no_capacity_anywhere_until_it_heals() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            fault = outside.gke.faults.add(Stockout())
            await outside.prepare(offers=TWO_ZONES)
            await outside.apply()
            await outside.until(lambda: "Stockout" in outside.said(), seconds=60)
            said = outside.said()
            waiting = status(outside)["conditions"]
            asked = len(outside.creations())
            await outside.until(lambda: len(outside.creations()) > asked, seconds=120)
            outside.gke.faults.remove(fault)
            await to_its_end(outside)
            reasons = {each["type"]: each["reason"] for each in waiting}
            return (
                outside.phase(),
                reasons["SlicesReady"],
                "us-east5-a" in said and "us-east5-b" in said,
                outside.overlaps,
            )

    assert in_virtual_time(live()) == ("Succeeded", "OffersExhausted", True, [])


def test_no_capacity_for_hours_asks_ever_less_often_and_ends_at_the_deadline() -> None:
    async def live() -> tuple[str, int, float]:
        async with a_cluster() as outside:
            outside.gke.faults.add(Stockout())
            await outside.prepare()
            await outside.apply(capacityDeadlineSeconds=14400)
            await outside.until(lambda: outside.phase() == "Failed" and gone(outside), seconds=20000, step=10)
            reason = next(each["reason"] for each in status(outside)["conditions"] if each["type"] == "Failed")
            return reason, len(outside.creations()), round(now() / 3600, 1)

    reason, asked, hours = in_virtual_time(live())
    assert (reason, 5 <= asked <= 12, hours) == ("CapacityDeadlineExceeded", True, 4.0)


def test_a_slow_create_is_not_a_failed_one() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.gke.faults.add(SlowCreate(seconds=1800))
            await outside.prepare()
            await outside.apply()
            await to_its_end(outside)
            return outside.phase(), len(outside.creations())

    assert in_virtual_time(live()) == ("Succeeded", 1)


def test_a_create_that_takes_longer_than_its_offer_allows_is_given_up_whole() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.gke.faults.add(SlowCreate(times=1, seconds=1e4))
            await outside.prepare(offers=[{**TWO_ZONES[0], "waitSeconds": 300}])
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Running", seconds=400)
            zone = status(outside)["slices"][0]["zone"]
            await to_its_end(outside, seconds=30000)
            return outside.phase(), zone, len(outside.creations()), outside.overlaps

    assert in_virtual_time(live()) == ("Succeeded", "us-east5-b", 2, [])


# --- GKE itself


def test_gke_that_is_unreachable_is_named_soon_and_asked_without_a_storm() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            fault = outside.gke.faults.add(Refusal())
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: "failed to connect" in outside.said(), seconds=30)
            await outside.until(lambda: now() >= 630, seconds=700)
            calls = sum(outside.gke.calls.counts.values())
            writes = len(outside.calls.made)
            outside.gke.faults.remove(fault)
            await to_its_end(outside)
            return outside.phase(), calls < 30, writes < 80, len(outside.ray.submissions)

    assert in_virtual_time(live()) == ("Succeeded", True, True, 1)


def test_gke_that_swallows_calls_for_minutes_in_every_state() -> None:
    async def live(from_phase: str) -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() == from_phase, step=0.05)
            fault = outside.gke.faults.add(Silence())
            await outside.after(200)
            outside.gke.faults.remove(fault)
            await to_its_end(outside)
            return outside.phase(), len(outside.ray.submissions), len(outside.creations()), outside.overlaps

    found = {phase: in_virtual_time(live(phase)) for phase in ("Pending", "Provisioning", "Running", "Finishing")}
    assert found == dict.fromkeys(found, ("Succeeded", 1, 1, []))


def test_permission_denied_is_named_and_healed_without_anybody_touching_the_job() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            denied = 'Required "container.nodePools.create" permission(s) for "projects/demo"'
            fault = outside.gke.faults.add(
                Refusal(method="CreateNodePool", code=Code.PERMISSION_DENIED, message=denied)
            )
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: "container.nodePools.create" in outside.said(), seconds=30)
            await outside.until(lambda: now() >= 1200, seconds=1300)
            asked = outside.gke.calls.counts["CreateNodePool"]
            outside.gke.faults.remove(fault)
            await to_its_end(outside)
            return outside.phase(), 4 <= asked <= 10

    assert in_virtual_time(live()) == ("Succeeded", True)


def test_a_lost_answer_to_create_or_delete_makes_no_second_pool() -> None:
    async def live(method: str, silent: bool) -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.gke.faults.add(LostAnswer(times=1, method=method, silent=silent))
            await outside.prepare()
            await outside.apply()
            await to_its_end(outside)
            return outside.phase(), len(outside.creations()), outside.overlaps

    found = {
        (method, silent): in_virtual_time(live(method, silent))
        for method in ("CreateNodePool", "DeleteNodePool")
        for silent in (False, True)
    }
    assert found == dict.fromkeys(found, ("Succeeded", 1, []))


def test_a_deletion_that_fails_or_hangs_is_followed_until_the_pool_is_gone() -> None:
    async def live(fail: bool) -> tuple[object, ...]:
        async with a_cluster() as outside:
            from sim.gke.creation_failures import Failure

            if fail:
                failure = Failure(code=Code.INTERNAL, message="Internal error")
                fault: Any = OperationFault(times=2, operation="DELETE_NODE_POOL", failure=failure)
            else:
                fault = HungDeletion()
            outside.gke.faults.add(fault)
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Succeeded")
            await outside.until(lambda: now() >= 1000, seconds=1100)
            held = not fail and bool(outside.kube.all(SLICES))
            outside.gke.faults.remove(fault)
            await outside.until(lambda: gone(outside))
            return outside.phase(), held

    assert (in_virtual_time(live(True)), in_virtual_time(live(False))) == (("Succeeded", False), ("Succeeded", True))


def test_somebody_deletes_the_pool_while_the_job_runs() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Running")
            (pool,) = outside.gke.pools
            await outside.gke.delete_by_another(outside.gke.settings.pool_path(pool))
            await to_its_end(outside)
            return outside.phase(), attempts(outside)[0][0], status(outside)["disruptions"], status(outside)["restarts"]

    assert in_virtual_time(live()) == ("Succeeded", "Disruption", 1, 0)


# --- hosts, heads, RayClusters


def disturbed(what: Callable[[Outside], Any], *, seconds: float = 3600, **spec: Any) -> dict[str, Any]:
    """A job that runs, then `what` happens; how it ends."""

    async def live() -> dict[str, Any]:
        async with a_cluster(run_seconds=60.0) as outside:
            await outside.prepare()
            await outside.apply(**spec)
            await outside.until(lambda: outside.phase() == "Running")
            await outside.after(3)
            answer = what(outside)
            if hasattr(answer, "__await__"):
                await answer
            await to_its_end(outside, seconds=seconds)
            return {
                "phase": outside.phase(),
                "attempts": attempts(outside),
                "restarts": status(outside)["restarts"],
                "disruptions": status(outside)["disruptions"],
                "submissions": len(outside.ray.submissions),
                "pools": len(outside.creations()),
                "broken promises": outside.overlaps,
            }

    return in_virtual_time(live())


def after_one_disruption(reason: str, *, pools: int) -> dict[str, Any]:
    return {
        "phase": "Succeeded",
        "attempts": [("Disruption", reason), ("Succeeded", "Succeeded")],
        "restarts": 0,
        "disruptions": 1,
        "submissions": 2,
        "pools": pools,
        "broken promises": [],
    }


async def lose_a_node(outside: Outside, *, keep_object: bool = True) -> None:
    node = outside.kube.all(NODES)[0]["metadata"]["name"]
    await outside.gke.lose_node(node, keep_object=keep_object)


def test_a_host_that_dies_is_a_disruption_and_the_repaired_slice_is_used_again() -> None:
    assert disturbed(lose_a_node) == after_one_disruption("SliceLost", pools=1)


def test_a_host_whose_node_vanishes_is_a_disruption() -> None:
    assert disturbed(lambda outside: lose_a_node(outside, keep_object=False))["disruptions"] == 1


def test_a_host_that_nobody_repairs_is_replaced_with_its_whole_slice() -> None:
    async def lose_for_good(outside: Outside) -> None:
        outside.gke.settings = outside.gke.settings.__class__(repair_seconds=None)
        await lose_a_node(outside)

    assert disturbed(lose_for_good) == after_one_disruption("SliceLost", pools=2)


def test_a_disruption_too_many_ends_the_job() -> None:
    found = disturbed(lose_a_node, failurePolicy={"maxDisruptions": 0})
    assert (found["phase"], found["disruptions"], found["submissions"]) == ("Failed", 0, 1)


async def delete_pod(outside: Outside, node_type: str) -> None:
    pod = next(each for each in outside.kube.all(PODS) if each["metadata"]["labels"]["ray.io/node-type"] == node_type)
    await outside.kube.delete(PODS, pod["metadata"]["name"], uid=pod["metadata"]["uid"], namespace=NAMESPACE)


def test_a_head_that_is_evicted_is_a_disruption_on_the_same_slice() -> None:
    assert disturbed(lambda outside: delete_pod(outside, "head")) == after_one_disruption("HeadLost", pools=1)


def test_a_worker_that_is_evicted_is_a_disruption_on_the_same_slice() -> None:
    assert disturbed(lambda outside: delete_pod(outside, "worker")) == after_one_disruption("HostLost", pools=1)


def test_a_ray_cluster_that_somebody_deletes_is_a_disruption_on_the_same_slice() -> None:
    async def delete(outside: Outside) -> None:
        cluster = outside.kube.all(RAY_CLUSTERS)[0]["metadata"]
        await outside.kube.delete(RAY_CLUSTERS, cluster["name"], uid=cluster["uid"], namespace=NAMESPACE)

    assert disturbed(delete) == after_one_disruption("RayClusterLost", pools=1)


def test_a_slice_that_an_admin_deletes_is_a_disruption_on_another_one() -> None:
    async def delete(outside: Outside) -> None:
        slice_ = outside.kube.all(SLICES)[0]["metadata"]
        await outside.kube.delete(SLICES, slice_["name"], uid=slice_["uid"])

    assert disturbed(delete) == after_one_disruption("SliceLost", pools=2)


def test_a_dashboard_that_is_silent_for_a_while_decides_nothing() -> None:
    async def silence(outside: Outside) -> None:
        outside.ray.silent = True
        await outside.after(120)
        outside.ray.silent = False

    found = disturbed(silence)
    assert (found["phase"], found["disruptions"], found["submissions"]) == ("Succeeded", 0, 1)


def test_a_dashboard_that_is_silent_for_good_is_a_lost_head() -> None:
    async def silence(outside: Outside) -> None:
        outside.ray.silent = True
        await outside.until(lambda: outside.phase() == "Restarting", seconds=400)
        outside.ray.silent = False

    assert disturbed(silence) == after_one_disruption("HeadLost", pools=1)


# --- the program


def test_a_program_that_fails_once_is_restarted_on_the_same_slice() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster(outcomes=["FAILED"]) as outside:
            await outside.prepare()
            await outside.apply(failurePolicy={"maxRestarts": 1})
            await to_its_end(outside)
            return outside.phase(), attempts(outside), status(outside)["restarts"], len(outside.creations())

    assert in_virtual_time(live()) == (
        "Succeeded",
        [("Failure", "EntrypointFailed"), ("Succeeded", "Succeeded")],
        1,
        1,
    )


def test_a_program_that_fails_ends_the_job_and_keeps_the_head_for_its_logs() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster(outcomes=["FAILED"]) as outside:
            await outside.prepare()
            await outside.apply(logRetentionSeconds=600)
            await outside.until(lambda: outside.phase() == "Failed")
            await outside.until(lambda: not outside.left()["pools"])
            began, kept = now(), outside.left()
            await outside.until(lambda: gone(outside), seconds=700)
            return len(kept["rayClusters"]), len(kept["pods"]), 500 < now() - began < 620

    assert in_virtual_time(live()) == (1, 1, True)


def test_an_image_that_cannot_be_pulled_is_named_within_seconds_and_ends_at_the_deadline() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.kuberay.broken_images.add("example.com/nothing:1")
            await outside.prepare()
            await outside.apply(image="example.com/nothing:1", startDeadlineSeconds=300)
            await outside.until(lambda: "ImagePullBackOff" in outside.said(), seconds=30)
            await outside.until(lambda: outside.phase() == "Failed" and gone(outside), seconds=400)
            return len(outside.ray.submissions), len(outside.creations())

    assert in_virtual_time(live()) == (0, 1)


# --- people and other controllers


def test_suspend_gives_all_back_and_resume_runs_it_again() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: outside.phase() == "Running")
            await outside.change(suspend=True)
            await outside.until(lambda: outside.phase() == "Suspended")
            await outside.change(suspend=False)  # at once: the old pool is still being deleted
            await to_its_end(outside)
            return outside.phase(), len(outside.creations()), len(set(outside.creations())), outside.overlaps

    assert in_virtual_time(live()) == ("Succeeded", 2, 2, [])


def test_kuberay_that_is_installed_later_is_found_and_nothing_is_spent_before() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            outside.kube.kuberay = False
            await outside.prepare()
            await outside.apply()
            await outside.until(lambda: "KubeRay is not installed" in outside.said(), seconds=30)
            spent = len(outside.creations())
            outside.kube.kuberay = True
            await to_its_end(outside)
            return outside.phase(), spent

    assert in_virtual_time(live()) == ("Succeeded", 0)


def test_an_apiserver_that_refuses_one_kind_of_write_for_a_while_holds_nothing_up_for_ever() -> None:
    async def live(word: str) -> tuple[object, ...]:
        async with a_cluster() as outside:

            def refuse(name: str, args: tuple[Any, ...]) -> Exception | None:
                del args
                if word in name and now() < 60:
                    return KubeError("etcdserver: request timed out", call=name, status=500)
                return None

            outside.calls.refuse = refuse
            await outside.prepare()
            await outside.apply()
            await to_its_end(outside)
            return outside.phase(), len(outside.ray.submissions), outside.overlaps

    words = (
        "torchtpujobs kube.apply",
        "tpuslices kube.create",
        "rayclusters kube",
        "secrets kube",
        "tpuslices kube.apply",
    )
    found = {word: in_virtual_time(live(word)) for word in words}
    assert found == dict.fromkeys(words, ("Succeeded", 1, []))


def test_two_jobs_share_a_class_with_room_for_one() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare(limits={"chips": 8})
            await outside.apply("first")
            await outside.apply("second")
            await outside.until(lambda: outside.phase("first") == "Running")
            waits = "8 of 8 chips in use" in outside.said("second")
            await outside.until(lambda: outside.phase("second") == "Succeeded" and gone(outside))
            # the second takes the first one's slice over: it is Ready and fits
            return outside.phase("first"), waits, len(outside.creations()), outside.overlaps

    assert in_virtual_time(live()) == ("Succeeded", True, 1, [])


def test_four_slices_of_one_job() -> None:
    async def live() -> tuple[object, ...]:
        async with a_cluster() as outside:
            await outside.prepare()
            await outside.apply(numSlices=4)
            await to_its_end(outside)
            return outside.phase(), len(outside.creations()), len(outside.ray.submissions), outside.overlaps

    assert in_virtual_time(live()) == ("Succeeded", 4, 1, [])
