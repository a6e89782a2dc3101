"""The environment that every rank gets before anything imports torch_tpu: pure functions."""

from collections.abc import Mapping

from . import constants as c
from .settings import Settings
from .world import Place, World


def join_host_port(host: str, port: int) -> str:
    """`host:port`, IPv6 addresses in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def slicebuilder_addresses(settings: Settings, world: World, slice_index: int) -> str:
    """TORCH_TPU_SLICEBUILDER_ADDRESSES of one slice: entry i is where its in-slice rank i listens."""
    devices = range(settings.devices_per_host)
    return ",".join(
        join_host_port(place.report.node_ip, c.SLICEBUILDER_BASE_PORT + device)
        for place in world.places
        if place.slice_index == slice_index
        for device in (devices if settings.per_host else (place.device,))
    )


def rank_env(settings: Settings, world: World, place: Place, *, session_id: str) -> dict[str, str | None]:
    """Variables of one rank (one host under PerHost); None means: remove what the image or Ray set.

    `session_id` is any string, the same for all ranks.
    """
    node_rank = place.slice_index * settings.hosts_per_slice + place.host
    master = world.host_ips(0)[0]
    env: dict[str, str | None] = {
        c.ENV_TORCH_TPU_TOPOLOGY: settings.torch_topology,
        c.ENV_TORCH_TPU_SLICEBUILDER_ADDRESSES: slicebuilder_addresses(settings, world, place.slice_index),
        c.ENV_TORCH_TPU_XPROF_SESSION_ID: session_id,
        c.ENV_HEARTBEAT_FILE: f"/tmp/torchtpu-heartbeat-{session_id}-{place.rank}",
        c.ENV_TPU_WORKER_HOSTNAMES: ",".join(world.host_ips(place.slice_index)),
        c.ENV_TPU_WORKER_ID: str(place.host),
        c.ENV_JOB_COMPLETION_INDEX: str(place.host),
        c.ENV_NNODES: str(settings.num_hosts),
        c.ENV_NODE_RANK: str(node_rank),
        c.ENV_MASTER_ADDR: master,
        c.ENV_MASTER_PORT: str(c.MASTER_PORT),
        c.ENV_SLICE_ID: str(place.slice_index),
        c.ENV_NUM_SLICES: str(len(settings.slices)),
        c.ENV_NUM_WORKERS: str(settings.num_devices),
        c.ENV_TOPOLOGY: settings.topology,
        c.ENV_ACCELERATOR_TYPE: settings.accelerator_type,
    }
    env |= _rank_variables(settings, place, node_rank=node_rank, master=master)
    env |= _megascale_variables(settings, place, master=master)
    return env


def _rank_variables(settings: Settings, place: Place, *, node_rank: int, master: str) -> Mapping[str, str | None]:
    if settings.per_host:
        return {
            c.ENV_PET_NNODES: str(settings.num_hosts),
            c.ENV_PET_NODE_RANK: str(node_rank),
            c.ENV_PET_NPROC_PER_NODE: str(settings.devices_per_host),
            c.ENV_PET_MASTER_ADDR: master,
            c.ENV_PET_MASTER_PORT: str(c.MASTER_PORT),
            c.ENV_RANK: None,
            c.ENV_LOCAL_RANK: None,
            c.ENV_WORLD_SIZE: None,
            c.ENV_LOCAL_WORLD_SIZE: None,
        }
    return {
        c.ENV_RANK: str(place.rank),
        c.ENV_LOCAL_RANK: str(place.device),
        c.ENV_WORLD_SIZE: str(settings.num_devices),
        c.ENV_LOCAL_WORLD_SIZE: str(settings.devices_per_host),
        c.ENV_PET_NNODES: None,
        c.ENV_PET_NODE_RANK: None,
        c.ENV_PET_NPROC_PER_NODE: None,
        c.ENV_PET_MASTER_ADDR: None,
        c.ENV_PET_MASTER_PORT: None,
    }


def _megascale_variables(settings: Settings, place: Place, *, master: str) -> Mapping[str, str | None]:
    if len(settings.slices) == 1:
        # Left over from an image they make a single slice wait for others.
        return {
            c.ENV_MEGASCALE_COORDINATOR_ADDRESS: None,
            c.ENV_MEGASCALE_NUM_SLICES: None,
            c.ENV_MEGASCALE_SLICE_ID: None,
            c.ENV_MEGASCALE_PORT: None,
        }
    return {
        c.ENV_MEGASCALE_COORDINATOR_ADDRESS: join_host_port(master, c.MEGASCALE_BASE_PORT),
        c.ENV_MEGASCALE_NUM_SLICES: str(len(settings.slices)),
        c.ENV_MEGASCALE_SLICE_ID: str(place.slice_index),
        c.ENV_MEGASCALE_PORT: str(c.MEGASCALE_BASE_PORT + place.device),
    }


def ports_of(settings: Settings, place: Place) -> tuple[int, ...]:
    """Ports that this worker's processes will listen on, on its host."""
    devices = range(settings.devices_per_host) if settings.per_host else (place.device,)
    ports = [c.SLICEBUILDER_BASE_PORT + device for device in devices]
    if len(settings.slices) > 1:
        ports += [c.MEGASCALE_BASE_PORT + device for device in devices]
    if place.rank == 0:
        ports.append(c.MASTER_PORT)
    return tuple(ports)


def apply_env(base: Mapping[str, str], contract: Mapping[str, str | None]) -> dict[str, str]:
    """`base` with the contract laid over it."""
    env = {name: value for name, value in base.items() if name not in contract}
    env |= {name: value for name, value in contract.items() if value is not None}
    return env
