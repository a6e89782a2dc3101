"""What goes wrong around a job is said in its message within 30 s, costs nothing, and heals by itself where it can."""

from collections.abc import Iterator

import pytest

from tests.e2e.operated import Operated, a_job


@pytest.fixture(scope="module")
def troubled(operated: Operated) -> Iterator[str]:
    """Two jobs that end badly, and mostly by waiting, so at the same time: `no-image` and `fails`."""
    name = operated.namespace("trouble")
    entrypoint = 'if [ "$RANK" = 2 ]; then echo "bad shard" >&2; exit 17; fi; sleep 600'
    operated.apply(
        a_job("no-image", namespace=name, image="example.com/no/such:image", startDeadlineSeconds=45),
        a_job("fails", namespace=name, entrypoint=entrypoint),
    )
    yield name
    operated.bench.kubectl("delete", "torchtpujobs", "--all", "-n", name, "--wait=false")
    operated.until("the jobs are gone", lambda: not operated.items("torchtpujobs", namespace=name))


def test_an_image_that_cannot_be_pulled_is_said(operated: Operated, troubled: str) -> None:
    operated.until(
        "the message names the image",
        lambda: "example.com/no/such:image" in _why(operated, troubled, "no-image"),
        seconds=60,
    )
    job = operated.until_phase(troubled, "no-image", "Failed", seconds=120)
    assert "startDeadlineSeconds" in job["status"]["message"]


def test_a_failing_rank_is_named_and_its_last_lines_are_kept(operated: Operated, troubled: str) -> None:
    job = operated.until_phase(troubled, "fails", "Failed", seconds=240)
    attempt = job["status"]["attempt"]
    assert (attempt["failingRank"], attempt["exitCode"]) == (2, 17)
    assert "rank 2" in job["status"]["message"]
    kept = operated.get("configmap", f"{attempt['rayCluster']}-failure", namespace=troubled)
    assert kept is not None
    assert (kept["data"]["rank"], kept["data"]["lastLines"]) == ("2", "bad shard\n")


def test_capacity_goes_though_the_failed_jobs_stay(operated: Operated, troubled: str) -> None:
    for name in ("no-image", "fails"):
        operated.until_phase(troubled, name, "Failed", seconds=240)
    operated.until_clean(seconds=60)


def test_gke_unreachable_is_said_and_heals(operated: Operated, namespace: str) -> None:
    before = operated.bench.gke_calls()["counts"]
    operated.bench.fault("gke-unreachable")
    try:
        operated.apply(a_job("waits", namespace=namespace))
        operated.until(
            "the message names GKE",
            lambda: "GKE" in _why(operated, namespace, "waits") and "again at" in _why(operated, namespace, "waits"),
            seconds=30,
        )
        after = operated.bench.gke_calls()["counts"]
    finally:
        operated.bench.fault("gke-clear")
    operated.until_phase(namespace, "waits", "Succeeded", seconds=240)
    assert sum(after.values()) - sum(before.values()) <= 15, "no storm of requests"


def test_permission_denied_names_the_permission(operated: Operated, namespace: str) -> None:
    operated.bench.fault("gke-permission-denied", method="CreateNodePool")
    try:
        operated.apply(a_job("forbidden", namespace=namespace))
        operated.until(
            "the message names the permission",
            lambda: "container.clusters.update" in _why(operated, namespace, "forbidden"),
            seconds=30,
        )
    finally:
        operated.bench.fault("gke-clear")
    assert operated.pools() == []


def test_a_stock_out_is_said_and_the_pool_goes(operated: Operated, namespace: str) -> None:
    operated.bench.fault("gke-stockout", zone="us-east5-b")
    try:
        operated.apply(a_job("starved", namespace=namespace))
        operated.until(
            "the message names the stock-out and when it is tried again",
            lambda: (
                "Stockout" in _why(operated, namespace, "starved")
                and "asked again at" in _why(operated, namespace, "starved")
            ),
            seconds=60,
        )
        operated.until_clean(seconds=60)
    finally:
        operated.bench.fault("gke-clear")
        # the outage is remembered for a minute, and would make the next test wait
        forget = ["--subresource=status", "--type=merge", "-p", '{"status": {"offers": null}}']
        operated.bench.kubectl("patch", "tpusliceclass", "default", *forget)


def _why(operated: Operated, namespace: str, name: str) -> str:
    message: str = operated.job(namespace, name).get("status", {}).get("message", "")
    return message
