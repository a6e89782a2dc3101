"""Our launch environment before the real torch_tpu 0.2.0: it finds nothing to add, and would have derived the same."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract import wheel
from tests.unit.runner.worlds import a_world, some_settings
from torchtpu_operator.runner.contract import apply_env, rank_env
from torchtpu_operator.runner.settings import Settings

SESSION = "1796050891187059123"


@dataclass(frozen=True, kw_only=True)
class Shape:
    name: str
    slices: int
    generation: str


SHAPES = {
    "v6e 4x4": Shape(name="v6e 4x4", slices=1, generation="v6e"),
    "v5p 2x2x2": Shape(name="v5p 2x2x2", slices=1, generation="v5p"),
    "v7x 2x2x1, 8 devices": Shape(name="v7x 2x2x1, one host", slices=1, generation="v7x"),
    "two slices of v6e 2x4 on 4-chip hosts": Shape(name="v6e 2x4 on 4-chip hosts", slices=2, generation="v6e"),
}
DERIVED = (
    "TORCH_TPU_SLICEBUILDER_ADDRESSES",
    "TORCH_TPU_XPROF_SESSION_ID",
    "NNODES",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCH_TPU_TOPOLOGY",
)
"""Every variable that set_tpu_launch_env can write."""


class Judge:
    """The wheel in a process that has imported it once."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(
        self, envs: Sequence[Mapping[str, str]], *, nproc_per_node: int, pci: tuple[int, str] | None = None
    ) -> list[dict[str, Any]]:
        """What the wheel makes of each environment."""
        return [self._one({"env": env, "nproc_per_node": nproc_per_node, "pci": pci}) for env in envs]

    def _one(self, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith("JUDGED "):
                answer: dict[str, Any] = json.loads(line.removeprefix("JUDGED "))
                return answer
        raise AssertionError("the judge ended; its stderr tells why")


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("judge.py"))]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(wheel.unpacked()), "TPU_SKIP_MDS_QUERY": "true"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=None, text=True) as process:
        yield Judge(process)
        process.kill()


def settings_of(shape: Shape) -> Settings:
    return some_settings(shape.name, slices=shape.slices)


def our_envs(settings: Settings) -> list[dict[str, str]]:
    """One environment per rank, over what a pod has."""
    world = a_world(settings, seed=5)
    base = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return [apply_env(base, rank_env(settings, world, place, session_id=SESSION)) for place in world.places]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_wheel_changes_nothing_on_any_rank(judge: Judge, shape: Shape) -> None:
    settings = settings_of(shape)
    envs = our_envs(settings)
    assert judge(envs, nproc_per_node=settings.devices_per_host) == envs


ONE_SLICE = {name: shape for name, shape in SHAPES.items() if shape.slices == 1}


@pytest.mark.parametrize("shape", ONE_SLICE.values(), ids=ONE_SLICE)
def test_what_the_wheel_derives_in_place_of_any_one_variable_is_what_we_had_set(judge: Judge, shape: Shape) -> None:
    """Two of them cannot be derived: the session id is a time, and on several hosts the chips of one host do not tell
    the topology of the slice (facts of torch_tpu: only one given from outside describes it)."""
    settings = settings_of(shape)
    whole = our_envs(settings)
    names = [
        name
        for name in DERIVED
        if name != "TORCH_TPU_XPROF_SESSION_ID" and not (name == "TORCH_TPU_TOPOLOGY" and settings.num_hosts > 1)
    ]
    ours = [whole[0], whole[-1]]
    holes = [{k: v for k, v in env.items() if k != name} for name in names for env in ours]
    derived = judge(
        holes,
        nproc_per_node=settings.devices_per_host,
        pci=(settings.devices_per_host, shape.generation),
    )
    assert derived == [env for _ in names for env in ours]


def test_a_missing_session_id_becomes_a_number_like_ours(judge: Judge) -> None:
    settings = settings_of(SHAPES["v6e 4x4"])
    env = our_envs(settings)[0]
    del env["TORCH_TPU_XPROF_SESSION_ID"]
    derived = judge([env], nproc_per_node=4)[0]
    session = derived.pop("TORCH_TPU_XPROF_SESSION_ID")
    assert (derived, session.isdigit(), len(session)) == (env, True, len(SESSION))


def test_the_wheel_refuses_what_lacks_both_addresses_and_hosts(judge: Judge) -> None:
    """The tests above can fail: without hosts the wheel cannot derive addresses."""
    env = our_envs(settings_of(SHAPES["v6e 4x4"]))[0]
    for name in ("TORCH_TPU_SLICEBUILDER_ADDRESSES", "TPU_WORKER_HOSTNAMES"):
        del env[name]
    assert judge([env], nproc_per_node=4) == [
        {
            "error": "set_tpu_launch_env(): expected environment variable TPU_WORKER_HOSTNAMES to be a comma-separated "
            "list of worker hostnames or IP addresses, got it as unset"
        }
    ]
