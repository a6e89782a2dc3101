"""Whole entrypoints through the real runner on real Ray, the two machines of a v6e 2x4, and a host of another Ray.

What a single command line does is in tests/unit/runner/test_runner_entrypoints.py, by the same code without Ray.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.entrypoints import ENTRYPOINTS, HEREDOC, QUOTED
from tests.ray.hosts import Host, Hosts, v6e_env
from torchtpu_operator.controller.facts import read_pod
from torchtpu_operator.plan.observed import VERSION_MISMATCH
from torchtpu_operator.runner import constants as c
from torchtpu_operator.runner.result import parse_result

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """A 2x4 on one host of eight chips and a 2x4 on two hosts of four."""
    a_host = partial(Host, accelerator_type="v6e-8", topology="2x4")
    hosts = Hosts(tmp_path_factory.mktemp("ray-entrypoints"))
    try:
        hosts.add(
            [
                a_host(slice_name="whole", worker_id=0, tpus=8),
                a_host(slice_name="halves", worker_id=1, tpus=4),
                a_host(slice_name="halves", worker_id=0, tpus=4),
            ]
        )
        yield hosts
    finally:
        hosts.shutdown()


def env_of(name: str, *, hosts: int, **changes: str) -> dict[str, str]:
    return v6e_env(
        launcher="PerHost",
        TORCHTPU_SLICES=json.dumps([{"name": name, "hosts": hosts}]),
        TORCHTPU_TOPOLOGY="2x4",
        TORCHTPU_CHIPS_PER_HOST=str(8 // hosts),
        TORCHTPU_TORCH_TOPOLOGY="2,4,1",
        TORCHTPU_NUM_WORKERS="8",
        **changes,
    )


def run(hosts: Hosts, entrypoint: str, env: dict[str, str]) -> tuple[int, list[str]]:
    """Exit code of the Ray job's driver, and what the workers printed."""
    process = hosts.start_runner(entrypoint, env)
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    code = process.wait()
    result = parse_result("\n".join(lines))
    assert result is not None, "\n".join(lines)
    assert result["exitCode"] == code, result
    return code, [line for line in lines if line.startswith("[host ") and c.RESULT_PREFIX not in line]


WHOLE = "\n".join(
    [
        "export RANK=0 GREETING=hello",
        *(f"(\n{text}\n)" for text, code, _ in ENTRYPOINTS.values() if code == 0 and len(text) < 60_000),
        "echo last; exit 42",
    ]
)
"""Everything that ends well in one text of about 51 kB, and an exit code of its own at the end."""


def test_a_long_entrypoint_of_everything_arrives_as_it_is_written(hosts: Hosts, tmp_path: Path) -> None:
    wanted = [line for text, code, lines in ENTRYPOINTS.values() if code == 0 and len(text) < 60_000 for line in lines]
    assert (len(WHOLE) > 50_000, HEREDOC in WHOLE, QUOTED in WHOLE) == (True, True, True)
    got = run(hosts, WHOLE, env_of("whole", hosts=1, FOLDER=str(tmp_path)))
    assert got == (42, [f"[host 0] {line}" for line in [*wanted, "last"]])


TELL = 'echo "node $PET_NODE_RANK of $PET_NNODES has $PET_NPROC_PER_NODE"'
SHAPES = {
    "one host of eight chips": ("whole", 1, ["[host 0] node 0 of 1 has 8"]),
    "two hosts of four chips": ("halves", 2, ["[host 0] node 0 of 2 has 4", "[host 1] node 1 of 2 has 4"]),
}


@pytest.mark.parametrize(("name", "count", "lines"), SHAPES.values(), ids=SHAPES)
def test_2x4_is_reserved_as_it_was_resolved(hosts: Hosts, name: str, count: int, lines: list[str]) -> None:
    code, got = run(hosts, TELL, env_of(name, hosts=count))
    assert (code, sorted(got)) == (0, lines)


def test_2x4_of_the_other_machine_is_not_there_and_that_is_said(hosts: Hosts) -> None:
    """Ray alone would spread eight one-chip bundles over hosts of both slices."""
    env = env_of("whole", hosts=2, TORCHTPU_RESERVE_TIMEOUT_SECONDS="2")
    process = hosts.start_runner(TELL, env)
    output, _ = process.communicate()
    result = parse_result(output)
    assert result is not None, output
    assert (result["reason"], process.returncode) == ("PlacementGroupTimeout", 69)
    assert "whole" in result["message"]


def test_a_host_of_another_ray_is_refused_in_the_words_that_the_operator_knows(hosts: Hosts) -> None:
    start = (
        "import sys, ray; ray.__version__ = '2.59.0'; from ray.scripts.scripts import main; "
        f"sys.argv = ['ray', 'start', '--address={hosts.address}', '--block', '--num-cpus=1']; main()"
    )
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=False)
    # what the kubelet keeps of a container's last words under FallbackToLogsOnError
    last = (done.stdout + done.stderr)[-2048:]
    status = {
        "phase": "Failed",
        "containerStatuses": [{"name": "ray", "state": {"terminated": {"exitCode": done.returncode, "message": last}}}],
    }
    seen = read_pod({"metadata": {"name": "p", "uid": "u"}, "status": status}).seen
    python = ".".join(map(str, sys.version_info[:3]))
    assert (done.returncode, seen.problem_reason, seen.problem) == (
        1,
        VERSION_MISMATCH,
        f"it has Ray 2.59.0 and Python {python}, the head has Ray {hosts.version} and Python {python}",
    )
