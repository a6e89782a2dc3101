"""API calls of one job, from the operator's metrics."""

from dataclasses import replace

from sim.demo.writes import Calls, parse_calls

METRICS = """\
# HELP torchtpu_api_calls_total Calls to kubernetes, gke and ray, by verb and the target's status code.
# TYPE torchtpu_api_calls_total counter
torchtpu_api_calls_total{code="200",target="kubernetes",verb="apply-status"} 6.0
torchtpu_api_calls_total{code="409",target="kubernetes",verb="apply-status"} 1.0
torchtpu_api_calls_total{code="200",target="kubernetes",verb="replace"} 12.0
torchtpu_api_calls_total{code="201",target="kubernetes",verb="dry-run"} 3.0
torchtpu_api_calls_total{code="200",target="kubernetes",verb="get"} 9.0
torchtpu_api_calls_total{code="OK",target="gke",verb="CreateNodePool"} 1.0
# HELP torchtpu_events_total Kubernetes events, by result (written, dropped, failed).
# TYPE torchtpu_events_total counter
torchtpu_events_total{result="written"} 4.0
torchtpu_events_total{result="dropped"} 2.0
"""


def test_counters_are_added_over_status_codes() -> None:
    assert parse_calls(METRICS, process="pod 0") == Calls(
        by_verb={
            ("kubernetes", "apply-status"): 7,
            ("kubernetes", "replace"): 12,
            ("kubernetes", "dry-run"): 3,
            ("kubernetes", "get"): 9,
            ("gke", "CreateNodePool"): 1,
        },
        events=4,
        process="pod 0",
    )


def test_lease_renewals_and_dry_runs_are_neither_writes_nor_reads_of_a_job() -> None:
    calls = parse_calls(METRICS, process="pod 0")
    assert {target: (calls.writes(target), calls.reads(target)) for target in ("kubernetes", "gke", "ray")} == {
        "kubernetes": ({"apply-status": 7}, 9),
        "gke": ({"CreateNodePool": 1}, 0),
        "ray": ({}, 0),
    }


def test_what_was_before_the_job_is_not_counted() -> None:
    before = Calls(by_verb={("kubernetes", "create"): 5}, events=1)
    after = Calls(by_verb={("kubernetes", "create"): 9, ("ray", "submit"): 1}, events=4)
    assert after.since(before) == Calls(by_verb={("kubernetes", "create"): 4, ("ray", "submit"): 1}, events=3)


def test_the_counters_of_a_restarted_operator_are_all_new_however_large() -> None:
    before = Calls(by_verb={("kubernetes", "create"): 5}, events=3, process="pod 0")
    after = Calls(by_verb={("kubernetes", "create"): 9}, events=4, process="pod 1")
    assert after.since(before) == replace(after, restarted=True)
