"""TPU generations and their machines, read once from `catalogue.json`.

Sources: GKE's own autoscaler (machine types, labels, boot disks), the GKE and Compute Engine TPU pages (memory, HBM,
shapes), Ray 2.60 (`ray/_private/accelerators/tpu.py`: names), torch_tpu 0.2.0 (devices per chip). Where GKE's
autoscaler and Compute Engine's page differ, the smaller number of vCPUs stands, so that a request made from it fits
the node either way.
"""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import combinations_with_replacement
from types import MappingProxyType
from typing import Any

_CUBE_EDGE = 4  # above one 4x4x4 cube a slice is made of whole cubes


class Placement(enum.StrEnum):
    """How GKE is told to put the hosts of one slice together."""

    NONE = "None"  # a single host: a placement policy is refused
    COMPACT = "Compact"  # placementPolicy {type: COMPACT, tpuTopology}
    WORKLOAD_POLICY = "WorkloadPolicy"  # placementPolicy {policyName} of a Compute workload policy with the topology


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine type: `chips` is what the node offers as google.com/tpu."""

    machine_type: str
    chips: int
    vcpu: int
    memory_gb: int


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One TPU generation under the name that the API uses (`v7x` is `tpu7x` for GKE and `TPU-V7X` for Ray)."""

    name: str
    gke_accelerator: str
    accelerator_type_prefix: str
    cores_per_chip: int
    devices_per_chip: int
    ray_generation: str
    hbm_gib: int
    boot_disk_types: tuple[str, ...]  # the first one is what we ask for
    multi_host_placement: Placement
    flex_start: bool
    machines: Mapping[int, Machine]  # chips per host -> machine
    shapes: Mapping[str, tuple[int, ...]]  # topology -> chips per host that it is sold with, the default first
    cube_max_chips: int | None  # largest slice made of 4x4x4 cubes, None where there are none
    misspellings: tuple[str, ...]

    @property
    def dimensions(self) -> int:
        return next(iter(self.shapes)).count("x") + 1

    def chips_per_host_choices(self, topology: str) -> tuple[int, ...]:
        """Chips per host that this topology can be had with, the default first; empty if there is no such topology."""
        if choices := self.shapes.get(topology):
            return choices
        return (4,) if topology in self.cubes() else ()

    def cubes(self) -> tuple[str, ...]:
        """Every topology above one cube, by size: A <= B <= C, multiples of 4, at most `cube_max_chips` chips."""
        return () if self.cube_max_chips is None else _cubes(self.cube_max_chips)


@cache
def _cubes(max_chips: int) -> tuple[str, ...]:
    edges = range(_CUBE_EDGE, max_chips // _CUBE_EDGE**2 + 1, _CUBE_EDGE)
    found = sorted(
        (a * b * c, a, b, c)
        for a, b in combinations_with_replacement(edges, 2)
        if a * b * b <= max_chips
        for c in range(b, max_chips // (a * b) + 1, _CUBE_EDGE)
        if a * b * c > _CUBE_EDGE**3
    )
    return tuple(f"{a}x{b}x{c}" for _, a, b, c in found)


def _generation(name: str, entry: Mapping[str, Any]) -> Generation:
    return Generation(
        name=name,
        gke_accelerator=entry["gkeAccelerator"],
        accelerator_type_prefix=entry["acceleratorTypePrefix"],
        cores_per_chip=entry["coresPerChip"],
        devices_per_chip=entry["devicesPerChip"],
        ray_generation=entry["rayGeneration"],
        hbm_gib=entry["hbmGiB"],
        boot_disk_types=tuple(entry["bootDiskTypes"]),
        multi_host_placement=Placement(entry["multiHostPlacement"]),
        flex_start=entry["flexStart"],
        machines=MappingProxyType(
            {
                int(chips): Machine(
                    machine_type=m["machineType"], chips=int(chips), vcpu=m["vcpu"], memory_gb=m["memoryGB"]
                )
                for chips, m in entry["machines"].items()
            }
        ),
        shapes=MappingProxyType({topology: tuple(chips) for topology, chips in entry["shapes"].items()}),
        cube_max_chips=entry.get("cubeMaxChips"),
        misspellings=tuple(entry["misspellings"]),
    )


def _load() -> Mapping[str, Generation]:
    document = json.loads(resources.files(__package__).joinpath("catalogue.json").read_text("utf-8"))
    return MappingProxyType({name: _generation(name, entry) for name, entry in document.items()})


CATALOGUE: Mapping[str, Generation] = _load()
