"""Every shape that GKE sells, and the words for those that it does not."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtpu_operator.tpu import CATALOGUE, Placement, Shape, ShapeError, resolve

TABLE = json.loads((Path(__file__).parents[2] / "data" / "tpu-shapes.json").read_text())
ROWS: dict[str, dict[str, Any]] = {
    f"{row['accelerator']} {row['topology']} of {row['chipsPerHost']} chips": row for row in TABLE["shapes"]
}
PLACEMENT = {
    None: Placement.NONE,
    "COMPACT": Placement.COMPACT,
    "policy": Placement.WORKLOAD_POLICY,
}
ALL_TOPOLOGIES = [
    (name, topology) for name, generation in CATALOGUE.items() for topology in (*generation.shapes, *generation.cubes())
]


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_row_of_the_shape_table(row: dict[str, Any]) -> None:
    shape = resolve(row["accelerator"], row["topology"], chips_per_host=row["chipsPerHost"])
    assert {
        "accelerator": shape.accelerator,
        "topology": shape.topology,
        "chipsPerHost": shape.chips_per_host,
        "default": resolve(row["accelerator"], row["topology"]) == shape,
        "machineType": shape.machine_type,
        "gkeAccelerator": shape.gke_accelerator,
        "hosts": shape.hosts,
        "chips": shape.chips,
        "multiHost": shape.multi_host,
        "tpuAcceleratorType": shape.tpu_accelerator_type_env,
        "placement": shape.placement,
        "bootDiskTypes": sorted(shape.boot_disk_types),
        "flexStart": shape.flex_start,
        "hbmGiBPerChip": shape.hbm_gib_per_chip,
        "memoryGB": shape.memory_gb,
        "vcpu": shape.vcpu,
    } == {
        **row,
        "placement": PLACEMENT[row["placement"]],
        # Compute Engine lists 360 where GKE's autoscaler counts 180 (no hyper-threads): a request must fit either
        "vcpu": 180 if row["machineType"] == "ct6e-standard-8t" else row["vcpu"],
    }


@pytest.mark.parametrize("accelerator", TABLE["cubes"])
def test_every_slice_of_several_cubes_and_no_other(accelerator: str) -> None:
    assert {"4x4x4", *CATALOGUE[accelerator].cubes()} == set(TABLE["cubes"][accelerator])


NAMES = {
    "v4 2x2x2": ("TPU-V4", "v4-16", "v4", "2,2,2", 8),
    "v5e 4x4": ("TPU-V5LITEPOD", "v5litepod-16", "v5litepod", "4,4,1", 16),
    "v5p 2x2x2": ("TPU-V5P", "v5p-16", "v5p", "2,2,2", 8),
    "v6e 4x4": ("TPU-V6E", "v6e-16", "v6e", "4,4,1", 16),
    "v6e 1x1": ("TPU-V6E", "v6e-1", "v6e", "1,1,1", 1),
    "v7x 2x2x1": ("TPU-V7X", "v7x-8", "v7x", "2,2,1,2", 8),
    "v7x 2x2x2": ("TPU-V7X", "v7x-16", "v7x", "2,2,2,2", 16),
}


@pytest.mark.parametrize("key", NAMES)
def test_names_of_ray_and_torch(key: str) -> None:
    shape = resolve(*key.split())
    assert (
        shape.ray_accelerator_type,
        shape.ray_pod_type,
        shape.ray_version_name,
        shape.torch_tpu_topology,
        shape.workers,
    ) == NAMES[key]


@given(st.sampled_from(ALL_TOPOLOGIES))
def test_hosts_and_chips_multiply_out(which: tuple[str, str]) -> None:
    shape: Shape = resolve(*which)
    assert (shape.chips, shape.workers, shape.multi_host) == (
        shape.hosts * shape.chips_per_host,
        math.prod(shape.dims) * shape.devices_per_chip,
        shape.placement is not Placement.NONE,
    )


@given(st.text(max_size=12), st.text(max_size=12), st.none() | st.integers())
def test_anything_else_is_a_shape_error_that_names_the_field(
    accelerator: str, topology: str, chips_per_host: int | None
) -> None:
    with pytest.raises(ShapeError) as raised:
        resolve(accelerator, topology, chips_per_host=chips_per_host)
    assert raised.value.field == "accelerator"
    with pytest.raises(ShapeError) as raised:
        resolve("v6e", topology.replace("x", "y"), chips_per_host=chips_per_host)
    assert raised.value.field == "topology"


def test_chips_per_host_that_nobody_sells() -> None:
    with pytest.raises(ShapeError) as raised:
        resolve("v5e", "2x4", chips_per_host=1)
    assert (raised.value.field, raised.value.message) == (
        "chipsPerHost",
        "v5e 2x4 has a choice of chips per host: 8 (1 host) or 4 (2 hosts)",
    )
