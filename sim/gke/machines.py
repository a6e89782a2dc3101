"""The machines that the simulated GKE sells, and which TPU topologies they form.

The table is the bench's own: the operator's catalogue is judged by it, so the two must not share a file.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import prod

_DIMENSION = re.compile(r"[1-9][0-9]{0,3}")
CHIP_GRID = {1: (1, 1, 1), 2: (1, 2, 1), 4: (2, 2, 1), 8: (2, 4, 1)}
"""How the chips of one host lie in the mesh, by their number."""


@dataclass(frozen=True, kw_only=True)
class Generation:
    name: str
    accelerator_label: str
    accelerator_type_prefix: str
    cores_per_chip: int
    dimensions: int
    max_chips: int
    boot_disk_types: tuple[str, ...]
    flex_start: bool
    compact_placement: bool
    """Multi-host slices are placed by `type: COMPACT` and `tpuTopology`; false: by a workload policy alone."""
    workload_policy: bool
    """Multi-host slices may be placed by a workload policy."""

    def accelerator_type(self, chips: int) -> str:
        """The device plugin's TPU_ACCELERATOR_TYPE of a slice."""
        return f"{self.accelerator_type_prefix}-{chips * self.cores_per_chip}"


@dataclass(frozen=True, kw_only=True)
class Machine:
    name: str
    vcpu: int
    memory_gb: int
    chips: int = 0
    single_host_topology: str = ""
    generation: Generation | None = None


@dataclass(frozen=True)
class Topology:
    """A slice's chip mesh such as 4x4 or 2x2x2."""

    dims: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "Topology | None":
        parts = text.split("x")
        if len(parts) not in (2, 3) or not all(_DIMENSION.fullmatch(part) for part in parts):
            return None
        return cls(tuple(int(part) for part in parts))

    @property
    def chips(self) -> int:
        return prod(self.dims)

    @property
    def dims3(self) -> tuple[int, int, int]:
        first, second, *rest = self.dims
        return first, second, rest[0] if rest else 1

    @property
    def is_cube_or_larger(self) -> bool:
        return all(dim >= 4 for dim in self.dims3)

    def __str__(self) -> str:
        return "x".join(map(str, self.dims))


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    machines: dict[str, Machine]
    topologies_2d: dict[int, frozenset[str]]
    topologies_3d: frozenset[str]

    def slice_topology(self, machine: Machine, text: str) -> Topology | None:
        """The topology if this machine forms it, else None."""
        topology, generation = Topology.parse(text), machine.generation
        if topology is None or generation is None or len(topology.dims) != generation.dimensions:
            return None
        if topology.chips % machine.chips or topology.chips > generation.max_chips:
            return None
        if generation.dimensions == 2:
            return topology if text in self.topologies_2d[machine.chips] else None
        if topology.chips <= 64:
            return topology if text in self.topologies_3d else None
        in_order = all(a <= b for a, b in zip(topology.dims, topology.dims[1:], strict=False))
        return topology if in_order and all(dim % 4 == 0 for dim in topology.dims) else None


@cache
def catalogue() -> Catalogue:
    table = json.loads(files(__package__).joinpath("machines.json").read_text(encoding="utf-8"))
    generations = {
        name: Generation(
            name=name,
            accelerator_label=row["acceleratorLabel"],
            accelerator_type_prefix=row["acceleratorTypePrefix"],
            cores_per_chip=row["coresPerChip"],
            dimensions=row["dimensions"],
            max_chips=row["maxChips"],
            boot_disk_types=tuple(row["bootDiskTypes"]),
            flex_start=row["flexStart"],
            compact_placement=row["compactPlacement"],
            workload_policy=row["workloadPolicy"],
        )
        for name, row in table["generations"].items()
    }
    machines = {
        name: Machine(
            name=name,
            vcpu=row["vcpu"],
            memory_gb=row["memoryGb"],
            chips=row["chips"],
            single_host_topology=row["singleHostTopology"],
            generation=generations[row["generation"]],
        )
        for name, row in table["tpuMachines"].items()
    }
    machines |= {
        name: Machine(name=name, vcpu=row["vcpu"], memory_gb=row["memoryGb"])
        for name, row in table["cpuMachines"].items()
    }
    return Catalogue(
        machines=machines,
        topologies_2d={int(chips): frozenset(allowed) for chips, allowed in table["topologies2d"].items()},
        topologies_3d=frozenset(table["topologies3dUpTo64Chips"]),
    )
