"""Simulated TPU hosts on one machine: real Ray, real placement groups, no Kubernetes and no chips.

Every host is a raylet with the environment that a TPU pod has, under a loopback address of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

REPOSITORY = Path(__file__).parents[2]
OBJECT_STORE_BYTES = 80_000_000


@dataclass(frozen=True, kw_only=True)
class Host:
    slice_name: str
    worker_id: int
    tpus: int = 4
    accelerator_type: str = "v6e-16"
    topology: str = "4x4"
    cpus: int = 8
    extra_env: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _environ(values: Mapping[str, str]) -> Iterator[None]:
    """Ray computes a node's labels in the process that adds it, from that process' own environment."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Hosts:
    """A Ray head and its TPU hosts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "torchtpu_runner").symlink_to(REPOSITORY / "operator/torchtpu_operator/runner")
        self._env = {
            # The runner's mount and the stand-in for torch_tpu; `python` is the one that the image would have.
            "PYTHONPATH": f"{folder}{os.pathsep}{REPOSITORY / 'sim/standin'}",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "object_store_memory": OBJECT_STORE_BYTES,
                "include_dashboard": False,
                "env_vars": self._env,
            },
        )
        self._nodes: dict[tuple[str, int], Any] = {}

    @property
    def address(self) -> str:
        """Of the head's GCS."""
        return str(self._cluster.address)

    @property
    def version(self) -> str:
        return str(ray.__version__)

    def add(self, hosts: Sequence[Host]) -> None:
        """Add hosts in that order and wait until Ray knows them."""
        for host in hosts:
            env = {
                "TPU_NAME": host.slice_name,
                "TPU_WORKER_ID": str(host.worker_id),
                "TPU_ACCELERATOR_TYPE": host.accelerator_type,
                "TPU_TOPOLOGY": host.topology,
                "RAY_CLOUD_INSTANCE_ID": f"{host.slice_name}-{host.worker_id}",
                **self._env,
                **host.extra_env,
            }
            with _environ(env):
                self._nodes[host.slice_name, host.worker_id] = self._cluster.add_node(
                    wait=False,
                    num_cpus=host.cpus,
                    resources={"TPU": host.tpus},
                    object_store_memory=OBJECT_STORE_BYTES,
                    node_ip_address=f"127.0.{1 + len(self._nodes) // 200}.{10 + len(self._nodes) % 200}",
                    env_vars=env,
                )
        self._cluster.wait_for_nodes()

    def kill(self, slice_name: str, worker_id: int) -> None:
        """The host is gone at once, its processes without a word."""
        self._cluster.remove_node(self._nodes.pop((slice_name, worker_id)), allow_graceful=False)

    def start(
        self, command: Sequence[str], env: Mapping[str, str], *, cwd: Path | None = None
    ) -> subprocess.Popen[str]:
        """A Ray driver as the job would start it on the head: output as one text."""
        return subprocess.Popen(
            [*command],
            env={**os.environ, **self._env, "RAY_ADDRESS": self._cluster.address, **env},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def start_runner(self, entrypoint: str, env: Mapping[str, str]) -> subprocess.Popen[str]:
        with tempfile.NamedTemporaryFile("w", dir=self._folder, delete=False) as file:
            file.write(entrypoint)
        return self.start([sys.executable, "-m", "torchtpu_runner"], {**env, "TORCHTPU_ENTRYPOINT_FILE": file.name})

    def shutdown(self) -> None:
        self._cluster.shutdown()


def v6e_env(*, launcher: str = "PerDevice", slices: Sequence[str] = ("s0",), **changes: str) -> dict[str, str]:
    """What the operator sets for slices of v6e 4x4."""
    env = {
        "TORCHTPU_LAUNCHER": launcher,
        "TORCHTPU_SLICES": json.dumps([{"name": name, "hosts": 4} for name in slices]),
        "TORCHTPU_TOPOLOGY": "4x4",
        "TORCHTPU_ACCELERATOR_TYPE": "TPU-V6E",
        "TORCHTPU_CHIPS_PER_HOST": "4",
        "TORCHTPU_DEVICES_PER_CHIP": "1",
        "TORCHTPU_TORCH_TOPOLOGY": "4,4,1",
        "TORCHTPU_STOP_GRACE_SECONDS": "5",
        "TORCHTPU_NUM_SLICES": str(len(slices)),
        "TORCHTPU_NUM_WORKERS": str(16 * len(slices)),
        "TORCHTPU_ATTEMPT": "1",
        "TORCHTPU_RESTARTS": "0",
        "OMP_NUM_THREADS": "1",
    }
    return env | changes
