"""Which of all the things that went wrong is the cause, and what keeps a reservation waiting."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.runner.worlds import a_world, some_settings
from torchtpu_operator.runner import constants as c
from torchtpu_operator.runner.ranks import End, Tally, Verdict, judge
from torchtpu_operator.runner.reserve import build_selectors, bundle_resources, explain_missing

SETTINGS = replace(some_settings("v6e 4x4"), no_progress_seconds=600.0)
WORLD = a_world(SETTINGS)
PER_HOST = some_settings("v6e 4x4", launcher=c.LAUNCHER_PER_HOST)
PER_HOST_WORLD = a_world(PER_HOST)


def tally(*ends: End, lost: dict[int, str] | None = None, hung: int | None = None) -> Tally:
    return Tally(ends={end.rank: end for end in ends}, lost=lost or {}, hung=hung)


VERDICTS = {
    "all well": (tally(*[End(rank=r, exit_code=0, at=1.0) for r in range(16)]), None),
    "the earliest failure is the cause, whoever was heard first": (
        tally(
            End(rank=2, exit_code=1, at=10.2, tail=["connection reset by peer"]),
            End(rank=6, exit_code=7, at=10.1, tail=["boom"]),
            End(rank=0, exit_code=0, at=9.0),
        ),
        Verdict(
            reason=c.REASON_ENTRYPOINT_FAILED,
            exit_code=7,
            message="rank 6 on slice 0 host 1 (pod pod-0-1, 10.244.0.11) ended with exit code 7",
            rank=6,
            tail=["boom"],
        ),
    ),
    "a signal is named": (
        tally(End(rank=1, exit_code=139, at=1.0)),
        Verdict(
            reason=c.REASON_ENTRYPOINT_FAILED,
            exit_code=139,
            message="rank 1 on slice 0 host 0 (pod pod-0-0, 10.244.0.10) ended with exit code 139 (signal 11)",
            rank=1,
        ),
    ),
    "an entrypoint that could not start is not its own fault": (
        tally(End(rank=1, exit_code=70, at=0.0, error="cannot start 'bash' in /opt/x: No such file")),
        Verdict(
            reason=c.REASON_RUNNER_ERROR,
            exit_code=70,
            message="rank 1 on slice 0 host 0 (pod pod-0-0, 10.244.0.10): cannot start 'bash' in /opt/x: No such file",
            rank=1,
        ),
    ),
    "a hang outweighs the exit codes and the silence that its end brings": (
        tally(End(rank=5, exit_code=134, at=10.0, tail=["in all_reduce"]), lost={6: "no answer"}, hung=5),
        Verdict(
            reason=c.REASON_NO_PROGRESS,
            exit_code=124,
            message="no rank printed a line or touched its heartbeat file for 600 s (failurePolicy.noProgressSeconds); "
            "silent for longest: rank 5 on slice 0 host 1 (pod pod-0-1, 10.244.0.11); the stacks of all ranks are in "
            "the log",
            rank=5,
            tail=["in all_reduce"],
        ),
    ),
    "a host that is lost outweighs the failures of the others that follow": (
        tally(End(rank=2, exit_code=1, at=10.2), lost=dict.fromkeys([4, 5, 6, 7], "its node has died")),
        Verdict(
            reason=c.REASON_HOST_LOST,
            exit_code=75,
            message="host lost: slice 0 host 1 (pod pod-0-1, 10.244.0.11), ranks 4-7: its node has died",
            rank=4,
        ),
    ),
    "one worker of a host that is still there": (
        tally(lost={5: "killed: out of memory"}),
        Verdict(
            reason=c.REASON_WORKER_DIED,
            exit_code=75,
            message="Ray lost the worker of rank 5 on slice 0 host 1 (pod pod-0-1, 10.244.0.11): killed: out of memory",
            rank=5,
        ),
    ),
}


@pytest.mark.parametrize(("given", "want"), VERDICTS.values(), ids=VERDICTS)
def test_verdict(given: Tally, want: Verdict | None) -> None:
    assert judge(SETTINGS, WORLD, given, dead_nodes=frozenset()) == want


@pytest.mark.parametrize(
    ("dead", "reason"), [(frozenset(), c.REASON_WORKER_DIED), (frozenset({"node-0-2"}), c.REASON_HOST_LOST)]
)
def test_with_one_worker_per_host_rays_node_list_decides(dead: frozenset[str], reason: str) -> None:
    verdict = judge(PER_HOST, PER_HOST_WORLD, tally(lost={2: "gone"}), dead_nodes=dead)
    assert (verdict and verdict.reason) == reason


def a_node(slice_name: str | None, worker_id: int, **changes: Any) -> dict[str, Any]:
    labels = {"ray.io/tpu-slice-name": slice_name, "ray.io/tpu-worker-id": str(worker_id)} if slice_name else {}
    accelerator = changes.pop("accelerator", "TPU-V6E")
    resources = {"TPU": changes.pop("tpus", 4), "CPU": 1}
    return {
        "Alive": True,
        "Labels": {**labels, "ray.io/accelerator-type": accelerator},
        "Resources": resources,
    } | changes


HOSTS = [a_node("s0", i) for i in range(4)]
MISSING = {
    "a host that is not there": (
        [HOSTS[0], HOSTS[1], HOSTS[3]],
        12,
        "slice s0: 3 of 4 hosts, absent: 2; 12 of 16 TPU resources free",
    ),
    "a host that died": (
        [*HOSTS[:3], a_node("s0", 3, Alive=False)],
        12,
        "slice s0: 3 of 4 hosts, absent: 3; 12 of 16 TPU resources free",
    ),
    "somebody holds chips": (HOSTS, 15, "15 of 16 TPU resources free, 1 other placement groups exist"),
    "pods without TPU_NAME": (
        [a_node(None, i) for i in range(4)],
        16,
        "slice s0: 0 of 4 hosts, absent: 0, 1, 2, 3; 4 TPU hosts without a slice name (TPU_NAME or TPU_WORKER_ID not "
        "set in their pods)",
    ),
    "another slice than the one meant": (
        [a_node("s9", i) for i in range(4)],
        16,
        "slice s0: 0 of 4 hosts, absent: 0, 1, 2, 3; other slices here: s9",
    ),
    "hosts of another generation": (
        [a_node("s0", i, accelerator="TPU-V5LITEPOD") for i in range(4)],
        16,
        "slice s0: accelerator type TPU-V5LITEPOD instead of TPU-V6E",
    ),
    "a host that shows too few chips": (
        [*HOSTS[:3], a_node("s0", 3, tpus=2)],
        14,
        "slice s0: hosts with fewer than 4 TPU: {'3': 2}; 14 of 16 TPU resources free, 1 other placement groups exist",
    ),
    "nothing to see": (HOSTS, 16, "every host is there and free; see Ray's dashboard, Placement Groups"),
}


@pytest.mark.parametrize(("nodes", "free", "want"), MISSING.values(), ids=MISSING)
def test_what_a_reservation_waits_for(nodes: list[dict[str, Any]], free: float, want: str) -> None:
    groups = 2 if "other placement" in want else 1
    assert explain_missing(SETTINGS, nodes, free_tpus=free, groups=groups) == want


def test_bundles_are_pinned_to_their_host_one_by_one_and_ask_for_no_cpu() -> None:
    settings = some_settings("v6e 2x4 on 4-chip hosts", slices=2)
    assert bundle_resources(settings) == {"TPU": 1, "CPU": 0}
    assert build_selectors(settings) == [
        {
            "ray.io/tpu-slice-name": f"s{s}",
            "ray.io/tpu-worker-id": str(host),
            "ray.io/accelerator-type": "TPU-V6E",
        }
        for s in range(2)
        for host in range(2)
        for _ in range(4)
    ]


def test_a_v7x_host_is_eight_devices() -> None:
    assert bundle_resources(some_settings("v7x 2x2x4", launcher=c.LAUNCHER_PER_HOST)) == {"TPU": 8, "CPU": 0}
