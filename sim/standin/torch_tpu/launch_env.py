"""Refuses a launch environment that the real torch_tpu could not start with.

The real one says at once which variables are missing; with wrong values it hangs in the slice builder's handshake
until its time-out. Here every such case is an error that names the variable.
"""

import errno
import json
import math
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

REQUIRED = ("TORCH_TPU_SLICEBUILDER_ADDRESSES", "TORCH_TPU_TOPOLOGY")
SAME_IN_SLICE = (*REQUIRED, "TPU_WORKER_HOSTNAMES")
SAME_EVERYWHERE = ("TORCH_TPU_TOPOLOGY", "TORCH_TPU_XPROF_SESSION_ID", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
STORE_PREFIX = "torch_tpu_standin/"
STORE_TIMEOUT = timedelta(seconds=60)
"""As the real handshake's (TORCH_TPU_INTERNAL_HANDSHAKE_TIMEOUT_S)."""

_listener: list[socket.socket] = []
_world: list[tuple[Any, int, int]] = []
"""Store, rank and size of the process group that is the world, once checked."""


class LaunchEnvError(RuntimeError):
    """The launch environment is wrong; the message names the variable and the rank."""


def split_address(address: str) -> tuple[str, int]:
    """`host:port` or `[host]:port`."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise LaunchEnvError(f"TORCH_TPU_SLICEBUILDER_ADDRESSES: {address!r} is not host:port")
    return host.strip("[]"), int(port)


def check_values(env: Mapping[str, str], *, rank: int, size: int) -> tuple[str, int]:
    """What one process can tell alone; returns its own (host, port). `rank` of `size` as torch.distributed has them."""
    missing = [name for name in REQUIRED if not env.get(name)]
    if missing:
        raise LaunchEnvError(
            "create_process_group(): missing required environment variables for distributed training: "
            + ", ".join(missing)
        )
    parts = re.split("[,xX]", env["TORCH_TPU_TOPOLOGY"])
    if not all(part.isdigit() and int(part) for part in parts) or len(parts) not in (3, 4):
        raise LaunchEnvError(f"TORCH_TPU_TOPOLOGY {env['TORCH_TPU_TOPOLOGY']!r} is not three or four numbers")
    addresses = env["TORCH_TPU_SLICEBUILDER_ADDRESSES"].split(",")
    slices = int(env.get("MEGASCALE_NUM_SLICES") or 1)
    if len(addresses) != math.prod(map(int, parts)):
        raise LaunchEnvError(
            f"TORCH_TPU_SLICEBUILDER_ADDRESSES has {len(addresses)} entries, the topology {env['TORCH_TPU_TOPOLOGY']} "
            f"{math.prod(map(int, parts))} devices"
        )
    if len(addresses) * slices != size:
        raise LaunchEnvError(f"{slices} slice(s) with {len(addresses)} addresses each make no world of {size} ranks")
    if len(set(addresses)) != len(addresses):
        raise LaunchEnvError("TORCH_TPU_SLICEBUILDER_ADDRESSES names an address twice")
    for name, want in (("RANK", rank), ("WORLD_SIZE", size)):
        if env.get(name) != str(want):
            raise LaunchEnvError(f"{name} is {env.get(name)!r}, torch.distributed has {want}")
    if slices > 1 and env.get("MEGASCALE_SLICE_ID") != str(rank // len(addresses)):
        raise LaunchEnvError(
            f"rank {rank}: MEGASCALE_SLICE_ID is {env.get('MEGASCALE_SLICE_ID')!r}, ranks are slice-major: "
            f"{rank // len(addresses)}"
        )
    host, port = split_address(addresses[rank % len(addresses)])
    _check_host(env, rank=rank, host=host, addresses=addresses)
    return host, port


def _check_host(env: Mapping[str, str], *, rank: int, host: str, addresses: Sequence[str]) -> None:
    hosts = [name for name in env.get("TPU_WORKER_HOSTNAMES", "").split(",") if name]
    worker_id = env.get("TPU_WORKER_ID", "")
    if hosts and (not worker_id.isdigit() or int(worker_id) >= len(hosts) or hosts[int(worker_id)] != host):
        raise LaunchEnvError(
            f"rank {rank} runs on TPU worker {worker_id} of {hosts}, but its entry in "
            f"TORCH_TPU_SLICEBUILDER_ADDRESSES is on {host}: ranks and addresses are not in the same order"
        )
    mine = [index for index, address in enumerate(addresses) if split_address(address)[0] == host]
    local_rank = rank % len(addresses) - mine[0]
    if env.get("LOCAL_RANK") != str(local_rank) or mine != list(range(mine[0], mine[0] + len(mine))):
        raise LaunchEnvError(
            f"rank {rank}: LOCAL_RANK is {env.get('LOCAL_RANK')!r}, but it is number {local_rank} of {len(mine)} "
            f"addresses on {host}"
        )
    chips = env.get("TPU_VISIBLE_CHIPS", "")
    cores = int([*re.split("[,xX]", env["TORCH_TPU_TOPOLOGY"]), "1"][3])
    if chips.isdigit() and int(chips) != local_rank // cores:
        raise LaunchEnvError(
            f"rank {rank} with LOCAL_RANK {local_rank} sees chip {chips} instead of {local_rank // cores}"
        )


def listen(host: str, port: int, *, rank: int) -> socket.socket:
    """Take the rank's own address, as the slice builder does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as e:
        listener.close()
        why = "is not an address of its host" if e.errno == errno.EADDRNOTAVAIL else f"cannot be bound: {e.strerror}"
        raise LaunchEnvError(f"rank {rank}: {host}:{port} from TORCH_TPU_SLICEBUILDER_ADDRESSES {why}") from e
    listener.listen()
    return listener


def check_agreement(env: Mapping[str, str], store: Any, *, rank: int, size: int) -> None:
    """All ranks must have been given the same values; compared through torch's store."""
    slice_size = len(env["TORCH_TPU_SLICEBUILDER_ADDRESSES"].split(","))
    mine = {name: env.get(name) for name in (*SAME_IN_SLICE, *SAME_EVERYWHERE)}
    store.set(f"{STORE_PREFIX}{rank}", json.dumps(mine))
    for names, other in ((SAME_IN_SLICE, rank - rank % slice_size), (SAME_EVERYWHERE, 0)):
        key = f"{STORE_PREFIX}{other}"
        store.wait([key], STORE_TIMEOUT)
        theirs = json.loads(store.get(key))
        different = [name for name in names if theirs[name] != mine[name]]
        if different:
            raise LaunchEnvError(
                f"ranks {other} and {rank} of {size} were given different values of "
                + ", ".join(f"{name} ({theirs[name]!r}, {mine[name]!r})" for name in different)
            )


def check_once(store: Any, *, rank: int, size: int) -> None:
    """At the first process group, which is the world; later ones are parts of it. Raises LaunchEnvError."""
    if _listener:
        return
    host, port = check_values(os.environ, rank=rank, size=size)
    _listener.append(listen(host, port, rank=rank))
    check_agreement(os.environ, store, rank=rank, size=size)
    _world.append((store, rank, size))


def leave_together() -> None:
    """Before the world's process group goes: all ranks are through with it, and rank 0, whose store it is, leaves last.

    The TPU runtime has such a barrier. Without one, a rank that lags behind can be left waiting for peers that are gone.
    """
    if not _world:
        return
    store, rank, size = _world.pop()
    try:
        if store.add(f"{STORE_PREFIX}leaving", 1) == size:
            store.set(f"{STORE_PREFIX}all", "")
        store.wait([f"{STORE_PREFIX}all"], STORE_TIMEOUT)
        if store.add(f"{STORE_PREFIX}gone", 1) == size:
            store.set(f"{STORE_PREFIX}empty", "")
        if rank == 0:
            store.wait([f"{STORE_PREFIX}empty"], STORE_TIMEOUT)
    except RuntimeError as e:
        print(f"torch_tpu stand-in: rank {rank} leaves alone: {e}", file=sys.stderr)
