"""The stand-in for torch_tpu takes our launch environment and refuses one that the real one could not start with."""

import importlib.util
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner.worlds import SHAPES, a_world, some_settings
from torchtpu_operator.runner.contract import apply_env, rank_env

_FILE = Path(__file__).parents[3] / "sim/standin/torch_tpu/launch_env.py"
_SPEC = importlib.util.spec_from_file_location("standin_launch_env", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
launch_env: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(launch_env)


def our_envs(shape: str, *, slices: int = 1) -> list[dict[str, str]]:
    settings = some_settings(shape, slices=slices)
    world = a_world(settings, seed=2)
    return [
        apply_env(
            {"TPU_VISIBLE_CHIPS": str(place.report.devices[0] // settings.devices_per_chip)},
            rank_env(settings, world, place, session_id="1"),
        )
        for place in world.places
    ]


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_rank_of_ours_is_accepted_at_its_own_address(shape: str, slices: int) -> None:
    envs = our_envs(shape, slices=slices)
    accepted = [launch_env.check_values(env, rank=rank, size=len(envs)) for rank, env in enumerate(envs)]
    assert len(set(accepted)) == len(envs)


def changed(**changes: str | None) -> dict[str, str]:
    return apply_env(our_envs("v6e 4x4")[6], changes)


ADDRESSES = our_envs("v6e 4x4")[6]["TORCH_TPU_SLICEBUILDER_ADDRESSES"]
HOSTS = our_envs("v6e 4x4")[6]["TPU_WORKER_HOSTNAMES"]
REFUSED = {
    "no addresses and no topology": (
        changed(TORCH_TPU_SLICEBUILDER_ADDRESSES=None, TORCH_TPU_TOPOLOGY=None),
        "create_process_group(): missing required environment variables for distributed training: "
        "TORCH_TPU_SLICEBUILDER_ADDRESSES, TORCH_TPU_TOPOLOGY",
    ),
    "too few addresses": (
        changed(TORCH_TPU_SLICEBUILDER_ADDRESSES=ADDRESSES.rpartition(",")[0]),
        "TORCH_TPU_SLICEBUILDER_ADDRESSES has 15 entries, the topology 4,4,1 16 devices",
    ),
    "an address twice": (
        changed(TORCH_TPU_SLICEBUILDER_ADDRESSES=ADDRESSES.replace(":8073", ":8072")),
        "TORCH_TPU_SLICEBUILDER_ADDRESSES names an address twice",
    ),
    "a topology in Ray's spelling": (
        changed(TORCH_TPU_TOPOLOGY="4x4"),
        "TORCH_TPU_TOPOLOGY '4x4' is not three or four numbers",
    ),
    "the addresses of another world": (
        changed(MEGASCALE_NUM_SLICES="2", MEGASCALE_SLICE_ID="0"),
        "2 slice(s) with 16 addresses each make no world of 16 ranks",
    ),
    "hosts in another order than the addresses": (
        changed(TPU_WORKER_HOSTNAMES=",".join(reversed(HOSTS.split(",")))),
        "rank 6 runs on TPU worker 1 of ['10.244.0.13', '10.244.0.12', '10.244.0.11', '10.244.0.10'], but its entry in "
        "TORCH_TPU_SLICEBUILDER_ADDRESSES is on 10.244.0.11: ranks and addresses are not in the same order",
    ),
    "another rank than torch has": (changed(RANK="5"), "RANK is '5', torch.distributed has 6"),
    "another local rank": (
        changed(LOCAL_RANK="1"),
        "rank 6: LOCAL_RANK is '1', but it is number 2 of 4 addresses on 10.244.0.11",
    ),
    "a chip that is not its own": (
        changed(TPU_VISIBLE_CHIPS="3"),
        "rank 6 with LOCAL_RANK 2 sees chip 3 instead of 2",
    ),
}


@pytest.mark.parametrize(("env", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(env: dict[str, str], message: str) -> None:
    with pytest.raises(launch_env.LaunchEnvError) as e:
        launch_env.check_values(env, rank=6, size=16)
    assert str(e.value) == message


class Store(dict[str, bytes]):
    """torch's store, in so far as the check uses it."""

    def set(self, key: str, value: str) -> None:
        self[key] = value.encode()

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        assert all(key in self for key in keys), f"would wait {timeout}"


def test_ranks_that_were_told_different_things_are_named() -> None:
    first, second = our_envs("v6e 4x4")[:2]
    store = Store()
    launch_env.check_agreement(first, store, rank=0, size=16)
    launch_env.check_agreement(second, store, rank=1, size=16)
    with pytest.raises(launch_env.LaunchEnvError) as e:
        launch_env.check_agreement(second | {"TORCH_TPU_XPROF_SESSION_ID": "2"}, store, rank=1, size=16)
    assert str(e.value) == ("ranks 0 and 1 of 16 were given different values of TORCH_TPU_XPROF_SESSION_ID ('1', '2')")


def test_an_address_that_is_not_the_hosts_own_or_taken_is_named() -> None:
    with pytest.raises(launch_env.LaunchEnvError) as foreign:
        launch_env.listen("203.0.113.9", 8070, rank=3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(launch_env.LaunchEnvError) as taken:
            launch_env.listen("127.0.0.1", port, rank=3)
    assert [str(e.value) for e in (foreign, taken)] == [
        "rank 3: 203.0.113.9:8070 from TORCH_TPU_SLICEBUILDER_ADDRESSES is not an address of its host",
        f"rank 3: 127.0.0.1:{port} from TORCH_TPU_SLICEBUILDER_ADDRESSES cannot be bound: Address already in use",
    ]
