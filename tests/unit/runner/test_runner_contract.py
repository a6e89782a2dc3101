"""The environment of a rank."""

import pytest

from tests.unit.runner.worlds import SHAPES, a_world, node_ip, some_settings
from torchtpu_operator.runner import constants as c
from torchtpu_operator.runner.contract import apply_env, join_host_port, ports_of, rank_env, slicebuilder_addresses

UNSET_WITH_ONE_SLICE = dict.fromkeys(
    ["MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID", "MEGASCALE_PORT"]
)
UNSET_PER_DEVICE = dict.fromkeys(
    ["PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT"]
)
UNSET_PER_HOST = dict.fromkeys(["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"])


def test_everything_that_rank_6_of_a_v6e_4x4_gets() -> None:
    settings = some_settings("v6e 4x4")
    world = a_world(settings, seed=1)
    assert rank_env(settings, world, world.places[6], session_id="17") == {
        "RANK": "6",
        "LOCAL_RANK": "2",
        "WORLD_SIZE": "16",
        "LOCAL_WORLD_SIZE": "4",
        "NNODES": "4",
        "NODE_RANK": "1",
        "MASTER_ADDR": "10.244.0.10",
        "MASTER_PORT": "29500",
        "TORCH_TPU_TOPOLOGY": "4,4,1",
        "TORCH_TPU_SLICEBUILDER_ADDRESSES": ",".join(
            f"10.244.0.{host}:{port}" for host in (10, 11, 12, 13) for port in (8070, 8071, 8072, 8073)
        ),
        "TORCH_TPU_XPROF_SESSION_ID": "17",
        "TPU_WORKER_HOSTNAMES": "10.244.0.10,10.244.0.11,10.244.0.12,10.244.0.13",
        "TPU_WORKER_ID": "1",
        "JOB_COMPLETION_INDEX": "1",
        "TORCHTPU_SLICE_ID": "0",
        "TORCHTPU_NUM_SLICES": "1",
        "TORCHTPU_NUM_WORKERS": "16",
        "TORCHTPU_TOPOLOGY": "4x4",
        "TORCHTPU_ACCELERATOR_TYPE": "TPU-V6E",
        "TORCHTPU_HEARTBEAT_FILE": "/tmp/torchtpu-heartbeat-17-6",
        **UNSET_WITH_ONE_SLICE,
        **UNSET_PER_DEVICE,
    }


def test_everything_that_the_fourth_host_of_two_v7x_slices_gets_for_torchrun() -> None:
    settings = some_settings("v7x 2x2x4", slices=2, launcher=c.LAUNCHER_PER_HOST)
    world = a_world(settings, seed=1)
    assert rank_env(settings, world, world.places[5], session_id="17") == {
        "PET_NNODES": "8",
        "PET_NODE_RANK": "5",
        "PET_NPROC_PER_NODE": "8",
        "PET_MASTER_ADDR": "10.244.0.10",
        "PET_MASTER_PORT": "29500",
        "NNODES": "8",
        "NODE_RANK": "5",
        "MASTER_ADDR": "10.244.0.10",
        "MASTER_PORT": "29500",
        "TORCH_TPU_TOPOLOGY": "2,2,4,2",
        "TORCH_TPU_SLICEBUILDER_ADDRESSES": ",".join(
            f"10.244.1.{10 + host}:{8070 + device}" for host in range(4) for device in range(8)
        ),
        "TORCH_TPU_XPROF_SESSION_ID": "17",
        "TPU_WORKER_HOSTNAMES": "10.244.1.10,10.244.1.11,10.244.1.12,10.244.1.13",
        "TPU_WORKER_ID": "1",
        "JOB_COMPLETION_INDEX": "1",
        "MEGASCALE_COORDINATOR_ADDRESS": "10.244.0.10:8081",
        "MEGASCALE_NUM_SLICES": "2",
        "MEGASCALE_SLICE_ID": "1",
        "MEGASCALE_PORT": "8081",
        "TORCHTPU_SLICE_ID": "1",
        "TORCHTPU_NUM_SLICES": "2",
        "TORCHTPU_NUM_WORKERS": "64",
        "TORCHTPU_TOPOLOGY": "2x2x4",
        "TORCHTPU_ACCELERATOR_TYPE": "TPU-V7X",
        "TORCHTPU_HEARTBEAT_FILE": "/tmp/torchtpu-heartbeat-17-5",
        **UNSET_PER_HOST,
    }


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_entry_of_every_rank_is_on_its_own_host_and_port(shape: str, slices: int) -> None:
    settings = some_settings(shape, slices=slices)
    world = a_world(settings, seed=3)
    entries = [
        slicebuilder_addresses(settings, world, p.slice_index).split(",")[p.rank % settings.devices_per_slice]
        for p in world.places
    ]
    assert entries == [
        f"{node_ip(s, host)}:{8070 + device}"
        for s in range(slices)
        for host in range(settings.hosts_per_slice)
        for device in range(settings.devices_per_host)
    ]


@pytest.mark.parametrize("launcher", [c.LAUNCHER_PER_DEVICE, c.LAUNCHER_PER_HOST])
@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_of_a_slice_agree_on_what_must_be_equal_and_set_only_reserved_names(
    shape: str, slices: int, launcher: str
) -> None:
    settings = some_settings(shape, slices=slices, launcher=launcher)
    world = a_world(settings)
    envs = [rank_env(settings, world, p, session_id="1") for p in world.places]
    equal_in_slice = {
        (p.slice_index, env["TORCH_TPU_SLICEBUILDER_ADDRESSES"], env["TPU_WORKER_HOSTNAMES"])
        for p, env in zip(world.places, envs, strict=True)
    }
    equal_everywhere = {
        tuple(env[name] for name in ("TORCH_TPU_TOPOLOGY", "MASTER_ADDR", "MASTER_PORT", "NNODES")) for env in envs
    }
    beyond = {name for env in envs for name in env} - c.RESERVED_ENV
    assert (len(equal_in_slice), len(equal_everywhere), beyond) == (slices, 1, set())


def test_host_addresses_agree_between_per_device_and_per_host() -> None:
    per_device, per_host = (some_settings("v6e 4x4", launcher=launcher) for launcher in ("PerDevice", "PerHost"))
    assert slicebuilder_addresses(per_device, a_world(per_device), 0) == slicebuilder_addresses(
        per_host, a_world(per_host), 0
    )


def test_ports_of_a_world_do_not_meet_on_a_host_and_stay_in_the_published_ranges() -> None:
    settings = some_settings("v7x 2x2x4", slices=2)
    world = a_world(settings)
    ports: dict[str, list[int]] = {}
    for place in world.places:
        ports.setdefault(place.report.node_ip, []).extend(ports_of(settings, place))
    published = {port for first, last in c.PORTS.values() for port in range(first, last + 1)}
    assert {ip: (len(p) == len(set(p)), set(p) <= published) for ip, p in ports.items()} == dict.fromkeys(
        ports, (True, True)
    )
    assert c.MASTER_PORT in ports["10.244.0.10"]


def test_variables_are_laid_over_and_taken_away() -> None:
    assert apply_env({"RANK": "1", "HOME": "/root", "PET_NNODES": "2"}, {"RANK": "3", "PET_NNODES": None}) == {
        "RANK": "3",
        "HOME": "/root",
    }


def test_ipv6_addresses_are_bracketed() -> None:
    assert (join_host_port("fd00::7", 8070), join_host_port("10.0.0.7", 8070)) == ("[fd00::7]:8070", "10.0.0.7:8070")
