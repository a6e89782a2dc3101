"""Bodies that GKE takes: those of Google's tools and documents, and what becomes of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import container_v1 as gke

from sim.gke import Reservation
from sim.gke.calls import to_json
from sim.gke.machines import catalogue
from tests.unit.gke.gke_bench import GkeBench, a_pool

DATA = Path(__file__).parents[2] / "data"
BODIES = json.loads((DATA / "nodepool-bodies.json").read_text())
GCLOUD = [json.loads(line) for line in (DATA / "gcloud-node-pool-create.jsonl").read_text().splitlines()]
SHAPES = json.loads((DATA / "gke-shapes.json").read_text())
RESERVATIONS = {
    "my-v6e-res": Reservation(machine_type="ct6e-standard-4t", zone="us-east5-a", hosts=4),
    "my-tpu7x-res": Reservation(machine_type="tpu7x-standard-4t", zone="us-central1-c", hosts=2),
    "res-1": Reservation(machine_type="ct6e-standard-4t", zone="us-east5-b", hosts=4),
}
POLICIES = {"ttj-tpu7x-2x2x2": "2x2x2", "wp-2x2x2": "2x2x2"}
ALL = BODIES | {case["case"]: case["body"]["nodePool"] for case in GCLOUD}


@pytest.mark.parametrize("body", ALL.values(), ids=ALL)
@pytest.mark.looptime
async def test_a_good_body_ends_running_with_all_its_nodes(
    body: dict[str, Any], make_bench: Callable[..., GkeBench]
) -> None:
    region = body["locations"][0].rsplit("-", 1)[0]
    bench = make_bench(location=region, reservations=RESERVATIONS, workload_policies=POLICIES)
    operation = await bench.finished(await bench.create(body))
    pool = await bench.pool(body["name"])
    assert ("error" in operation, pool.status, len(bench.host.nodes)) == (
        False,
        gke.NodePool.Status.RUNNING,
        body["initialNodeCount"],
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['machineType']} {shape['topology']}")
def test_the_machine_table_agrees_with_what_google_publishes(shape: dict[str, Any]) -> None:
    machine = catalogue().machines[shape["machineType"]]
    topology = catalogue().slice_topology(machine, shape["topology"])
    assert topology is not None
    assert machine.generation is not None
    assert {
        "machineType": machine.name,
        "topology": str(topology),
        "nodes": topology.chips // machine.chips,
        "chipsPerNode": machine.chips,
        "acceleratorLabel": machine.generation.accelerator_label,
        "acceleratorType": machine.generation.accelerator_type(topology.chips),
    } == shape


NOT_SHAPES = {
    "a side that is no multiple of 4 beyond one cube": ("ct5p-hightpu-4t", "4x6x8"),
    "sides out of order": ("ct5p-hightpu-4t", "4x8x4"),
    "more than the largest v5p slice": ("ct5p-hightpu-4t", "16x20x28"),
    "a 2D topology on eight chips per host beyond 2x4": ("ct6e-standard-8t", "4x4"),
    "not a topology": ("ct6e-standard-4t", "4by4"),
    "a leading zero": ("ct6e-standard-4t", "04x4"),
    "a sign": ("ct6e-standard-4t", "+4x4"),
}


@pytest.mark.parametrize(("machine", "topology"), NOT_SHAPES.values(), ids=NOT_SHAPES)
def test_no_such_topology(machine: str, topology: str) -> None:
    assert catalogue().slice_topology(catalogue().machines[machine], topology) is None


@pytest.mark.looptime
async def test_a_multi_host_machine_without_placement_is_many_single_hosts(make_bench: Callable[..., GkeBench]) -> None:
    bench = make_bench()
    await bench.finished(await bench.create(a_pool(placementPolicy=None)))
    topologies = {node.labels["cloud.google.com/gke-tpu-topology"] for node in bench.host.nodes.values()}
    assert (len(bench.host.nodes), topologies) == (4, {"2x2"})


@pytest.mark.looptime
async def test_a_single_host_pool_without_a_zone_is_multiplied_by_the_zones(
    make_bench: Callable[..., GkeBench],
) -> None:
    bench = make_bench()
    body = a_pool(initialNodeCount=1, placementPolicy=None, locations=None)
    await bench.finished(await bench.create(body))
    zones = sorted(node.labels["topology.kubernetes.io/zone"] for node in bench.host.nodes.values())
    assert zones == ["us-east5-a", "us-east5-b", "us-east5-c"]


@pytest.mark.looptime
async def test_what_is_read_back_has_what_was_asked_for_and_more(make_bench: Callable[..., GkeBench]) -> None:
    bench = make_bench()
    await bench.finished(await bench.create(a_pool()))
    pool = to_json(await bench.pool("pool-a"))
    assert pool == {
        "name": "pool-a",
        "initialNodeCount": 4,
        "locations": ["us-east5-b"],
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
        "status": "RUNNING",
        "selfLink": "https://container.googleapis.com/v1/projects/123456789012/locations/us-east5/clusters/bench/"
        "nodePools/pool-a",
        "version": "1.36.3-gke.1000000",
        "etag": pool["etag"],
        "podIpv4CidrSize": 24,
        "management": {"autoRepair": True, "autoUpgrade": True},
        "maxPodsConstraint": {"maxPodsPerNode": "110"},
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1},
        "config": {
            "machineType": "ct6e-standard-4t",
            "imageType": "COS_CONTAINERD",
            "serviceAccount": "default",
            "oauthScopes": pool["config"]["oauthScopes"],
            "diskType": "hyperdisk-balanced",
            "diskSizeGb": 100,
            "bootDisk": {"diskType": "hyperdisk-balanced", "sizeGb": "100"},
            "metadata": {"disable-legacy-endpoints": "true"},
        },
    }
