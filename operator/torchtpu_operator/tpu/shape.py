"""From accelerator and topology to all that follows from them: machine, hosts, chips, workers, names, placement."""

import math
from dataclasses import dataclass

from torchtpu_operator.tpu import messages
from torchtpu_operator.tpu.catalogue import CATALOGUE, Generation, Placement


class ShapeError(ValueError):
    """A shape that does not exist. `field` is the spec field at fault; the text names the fix."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One slice. Counts are per slice, `vcpu` and `memory_gb` per host; a worker is one TPU device."""

    accelerator: str
    topology: str
    dims: tuple[int, ...]
    machine_type: str
    hosts: int
    chips_per_host: int
    chips: int
    devices_per_chip: int
    workers: int
    multi_host: bool
    gke_accelerator: str
    tpu_accelerator_type_env: str
    ray_accelerator_type: str
    ray_pod_type: str
    ray_version_name: str
    torch_tpu_topology: str
    placement: Placement
    boot_disk_types: tuple[str, ...]
    vcpu: int
    memory_gb: int
    hbm_gib_per_chip: int
    flex_start: bool

    @property
    def devices_per_host(self) -> int:
        """Workers on one host."""
        return self.chips_per_host * self.devices_per_chip


def resolve(accelerator: str, topology: str, *, chips_per_host: int | None = None) -> Shape:
    """The shape that GKE makes of these fields.

    `chips_per_host` decides where a topology is sold on two machines (v5e and v6e 2x4); unset takes the default, which
    is the single host. Raises ShapeError for what does not exist.
    """
    generation = CATALOGUE.get(accelerator)
    if generation is None:
        raise ShapeError(messages.unknown_accelerator(accelerator), field="accelerator")
    choices = generation.chips_per_host_choices(topology)
    if not choices:
        raise ShapeError(messages.unknown_topology(generation, topology), field="topology")
    if chips_per_host is None:
        chips_per_host = choices[0]
    elif chips_per_host not in choices:
        raise ShapeError(
            messages.wrong_chips_per_host(generation, topology, choices=choices),
            field="chipsPerHost",
        )
    return _shape(generation, topology, chips_per_host)


def _shape(generation: Generation, topology: str, chips_per_host: int) -> Shape:
    dims = tuple(int(edge) for edge in topology.split("x"))
    chips = math.prod(dims)
    hosts, rest = divmod(chips, chips_per_host)
    if rest:
        raise AssertionError(
            f"catalogue: {generation.name} {topology} does not divide into hosts of {chips_per_host} chips"
        )
    machine = generation.machines[chips_per_host]
    size = chips * generation.cores_per_chip
    mesh = (*dims, *(1,) * (3 - len(dims)))  # torch_tpu wants three numbers, a fourth where a chip has several devices
    if generation.devices_per_chip > 1:
        mesh = (*mesh, generation.devices_per_chip)
    return Shape(
        accelerator=generation.name,
        topology=topology,
        dims=dims,
        machine_type=machine.machine_type,
        hosts=hosts,
        chips_per_host=chips_per_host,
        chips=chips,
        devices_per_chip=generation.devices_per_chip,
        workers=chips * generation.devices_per_chip,
        multi_host=hosts > 1,
        gke_accelerator=generation.gke_accelerator,
        tpu_accelerator_type_env=f"{generation.accelerator_type_prefix}-{size}",
        ray_accelerator_type=f"TPU-{generation.ray_generation.upper()}",
        ray_pod_type=f"{generation.ray_generation}-{size}",
        ray_version_name=generation.ray_generation,
        torch_tpu_topology=",".join(str(edge) for edge in mesh),
        placement=generation.multi_host_placement if hosts > 1 else Placement.NONE,
        boot_disk_types=generation.boot_disk_types,
        vcpu=machine.vcpu,
        memory_gb=machine.memory_gb,
        hbm_gib_per_chip=generation.hbm_gib,
        flex_start=generation.flex_start,
    )
