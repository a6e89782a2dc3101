"""The real runner on real Ray: four simulated hosts of a v6e 4x4 slice, 16 ranks. No Kubernetes, no torch."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.ray.hosts import Host, Hosts, v6e_env
from torchtpu_operator.runner import constants as c
from torchtpu_operator.runner.result import parse_result

pytestmark = pytest.mark.timeout(900)

PHYSICAL = [2, 0, 3, 1]
"""Worker ids in physical order: x fastest."""
COORDS = {"2": [0, 0, 0], "0": [2, 0, 0], "3": [0, 2, 0], "1": [2, 2, 0]}
TORCH_TPU = f"""
import json, os
assert "TPU_VISIBLE_CHIPS" not in os.environ, "asked for one chip only"
assert len(os.environ["TPU_WORKER_HOSTNAMES"].split(",")) == 4
print("TORCH_TPU_LOCAL_DEVICE_COORDS=" + json.dumps({COORDS!r}[os.environ["TPU_WORKER_ID"]]))
"""
"""What the hosts' torch_tpu answers about its chips."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("ray-hosts")
    package = folder / "torch_tpu/_internal/distributed"
    package.mkdir(parents=True)
    for level in (package, package.parent, package.parent.parent):
        (level / "__init__.py").touch()
    (package / "distributed.py").write_text(TORCH_TPU)
    hosts = Hosts(folder)
    try:
        # One CPU for four chips: bundles must not ask for any.
        hosts.add([Host(slice_name="s0", worker_id=worker_id, cpus=1) for worker_id in (3, 1, 0, 2)])
        yield hosts
    finally:
        hosts.shutdown()


def read_until(process: Popen[str], *, lines: int, having: str) -> list[str]:
    """Output until that many lines have it."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line.rstrip("\n"))
        if sum(having in s for s in seen) == lines:
            return seen
    raise AssertionError("\n".join(seen))


def read_rest(process: Popen[str]) -> tuple[list[str], dict[str, Any], int]:
    """Remaining lines, the result, the exit code."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    code = process.wait()
    result = parse_result("\n".join(lines))
    assert result is not None, "\n".join(lines)
    assert lines[-1].startswith(c.RESULT_PREFIX)
    return lines, result, code


TELL = """
exec python - <<'EOF'
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saving", flush=True), sys.exit(0)))
names = sorted(n for n in os.environ if n.startswith(("TPU_", "TORCH_TPU_", "TORCHTPU_", "MASTER_")) or "RANK" in n)
print("ENV " + json.dumps({n: os.environ[n] for n in names}), flush=True)
if os.environ["RANK"] == os.environ.get("FAILING_RANK"):
    print("about to fail", flush=True)
    sys.exit(7)
time.sleep(1000)
EOF
"""


def test_ranks_in_physical_order_and_the_first_failure_ends_all(hosts: Hosts) -> None:
    process = hosts.start_runner(f"export FAILING_RANK=5\n{TELL}", v6e_env())
    lines, result, code = read_rest(process)
    world = json.loads(next(line for line in lines if line.startswith(c.WORLD_PREFIX)).removeprefix(c.WORLD_PREFIX))
    assert (world["order"], [(w["workerId"], w["chip"]) for w in world["workers"]]) == (
        "physical",
        [(worker_id, chip) for worker_id in PHYSICAL for chip in range(4)],
    )
    told = {}
    for line in lines:
        prefix, mark, body = line.partition(" ENV ")
        if mark:
            told[int(prefix.removeprefix("[rank ").removesuffix("]"))] = json.loads(body)
    ips = [world["workers"][4 * host]["nodeIp"] for host in range(4)]
    addresses = ",".join(f"{ip}:{8070 + chip}" for ip in ips for chip in range(4))
    # A rank that starts after the failure is stopped before it can tell.
    assert 5 in told
    for rank, env in told.items():
        expected = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % 4),
            "NODE_RANK": str(rank // 4),
            "TPU_WORKER_ID": str(rank // 4),
            "TPU_VISIBLE_CHIPS": str(rank % 4),
            "TPU_WORKER_HOSTNAMES": ",".join(ips),
            "TORCH_TPU_SLICEBUILDER_ADDRESSES": addresses,
            "TORCH_TPU_TOPOLOGY": "4,4,1",
            "TORCH_TPU_XPROF_SESSION_ID": told[5]["TORCH_TPU_XPROF_SESSION_ID"],
            "MASTER_ADDR": ips[0],
            "MASTER_PORT": "29500",
            "TORCHTPU_SLICE_ID": "0",
            "TORCHTPU_NUM_WORKERS": "16",
        }
        assert {name: env.get(name) for name in expected} == expected
    summary = {name: result[name] for name in ("reason", "exitCode", "rank", "pod")}
    assert (summary, result["lastLines"][-1], code) == (
        {"reason": "EntrypointFailed", "exitCode": 7, "rank": 5, "pod": "s0-0"},
        "about to fail",
        7,
    )


def test_stopping_the_job_lets_every_rank_save(hosts: Hosts) -> None:
    process = hosts.start_runner(TELL, v6e_env(TORCHTPU_STOP_GRACE_SECONDS="120"))
    read_until(process, lines=16, having=" ENV ")
    process.send_signal(signal.SIGTERM)
    lines, result, code = read_rest(process)
    assert (sorted(line for line in lines if line.endswith("saving")), result["reason"], code) == (
        sorted(f"[rank {rank}] saving" for rank in range(16)),
        "Stopped",
        143,
    )


HANG = """
exec python - <<'EOF'
import os, time
def waits_for_a_peer():
    time.sleep(1000)
print("training", flush=True)
for _ in range(4 if os.environ["RANK"] == "3" else 0):  # silent, but alive for a while
    time.sleep(1)
    open(os.environ["TORCHTPU_HEARTBEAT_FILE"], "w").close()
waits_for_a_peer()
EOF
"""


def test_a_hang_ends_with_the_stacks_of_all_ranks(hosts: Hosts) -> None:
    process = hosts.start_runner(HANG, v6e_env(TORCHTPU_NO_PROGRESS_SECONDS="12"))
    lines, result, code = read_rest(process)
    stacks = {line.split("]")[0] for line in lines if line.startswith("[rank") and "in waits_for_a_peer" in line}
    assert (stacks, result["reason"], result["exitCode"], code, result["rank"] != 3) == (
        {f"[rank {rank}" for rank in range(16)},
        "NoProgress",
        124,
        124,
        True,
    )


def test_a_slice_that_is_not_there_ends_in_time_and_says_what_is_missing(hosts: Hosts) -> None:
    process = hosts.start_runner("true", v6e_env(slices=["s7"], TORCHTPU_RESERVE_TIMEOUT_SECONDS="2"))
    _, result, code = read_rest(process)
    assert (result["reason"], result["message"], code) == (
        "PlacementGroupTimeout",
        "the slices are not free after 2 s: slice s7: 0 of 4 hosts, absent: 0, 1, 2, 3; other slices here: s0",
        69,
    )


def test_a_host_that_vanishes_is_named(hosts: Hosts, tmp_path: Path) -> None:
    """Last: the slice is not whole afterwards. PerHost, so that each host has one process."""
    process = hosts.start_runner(
        'echo "up $PET_NODE_RANK $PET_NPROC_PER_NODE ${RANK-none}"; exec sleep 1000', v6e_env(launcher="PerHost")
    )
    lines = read_until(process, lines=4, having=" up ")
    assert sorted(line for line in lines if " up " in line) == [f"[host {i}] up {i} 4 none" for i in range(4)]
    hosts.kill("s0", 3)
    _, result, code = read_rest(process)
    assert (result["reason"], result["rank"], result["pod"], code) == ("HostLost", 2, "s0-3", 75)
