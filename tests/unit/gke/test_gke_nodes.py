"""The nodes that pools become."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sim.nodes import NodeSpec, Taint
from tests.unit.gke.gke_bench import GkeBench, a_pool

GKE = "cloud.google.com/"


async def the_nodes(make_bench: Callable[..., GkeBench], body: dict[str, Any], **settings: Any) -> list[NodeSpec]:
    bench = make_bench(**settings)
    await bench.finished(await bench.create(body))
    return list(bench.host.nodes.values())


@pytest.mark.looptime
async def test_a_node_of_a_spot_slice(make_bench: Callable[..., GkeBench]) -> None:
    body = a_pool(
        config={
            "spot": True,
            "labels": {"torchtpu.dev/slice": "pool-a"},
            "taints": [{"key": "torchtpu.dev/slice", "value": "pool-a", "effect": "NO_SCHEDULE"}],
        },
        maxPodsConstraint={"maxPodsPerNode": "15"},
    )
    [node, *others] = await the_nodes(make_bench, body, tpu_ready_seconds=3.0)
    assert (len(others), node) == (
        3,
        NodeSpec(
            name=node.name,
            labels={
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "ct6e-standard-4t",
                "topology.kubernetes.io/region": "us-east5",
                "topology.kubernetes.io/zone": "us-east5-b",
                "torchtpu.dev/slice": "pool-a",
                GKE + "gke-accelerator-count": "4",
                GKE + "gke-boot-disk": "hyperdisk-balanced",
                GKE + "gke-container-runtime": "containerd",
                GKE + "gke-max-pods-per-node": "15",
                GKE + "gke-nodepool": "pool-a",
                GKE + "gke-os-distribution": "cos",
                GKE + "gke-provisioning": "spot",
                GKE + "gke-spot": "true",
                GKE + "gke-tpu-accelerator": "tpu-v6e-slice",
                GKE + "gke-tpu-topology": "4x4",
                GKE + "machine-family": "ct6e",
            },
            taints=(
                Taint(key="google.com/tpu", value="present", effect="NoSchedule"),
                Taint(key="torchtpu.dev/slice", value="pool-a", effect="NoSchedule"),
            ),
            cpu=180,
            memory_gib=720,
            tpu_chips=4,
            tpu_env={
                "TPU_SKIP_MDS_QUERY": "true",
                "TPU_TOPOLOGY": "4x4",
                "TPU_ACCELERATOR_TYPE": "v6e-16",
                "TPU_RUNTIME_METRICS_PORTS": "8431,8432,8433,8434",
                "VBAR_CONTROL_SERVICE_URL": "unix:///var/run/tpu-plugin/vbar.sock",
                "WORKLOAD_NIC_PREFERRED_NUMA": "0",
                "HOST_BOUNDS": "2,2,1",
                "TPU_HOST_BOUNDS": "2,2,1",
                "CHIPS_PER_HOST_BOUNDS": "2,2,1",
                "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
                "WRAP": "false,false,false",
                "TPU_TOPOLOGY_WRAP": "false,false,false",
                "ALT": "false",
                "TPU_TOPOLOGY_ALT": "false",
            },
            tpu_ready_after_seconds=3.0,
        ),
    )


SINGLE = {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"}
ENVIRONMENTS: dict[str, tuple[str, int, str | None, dict[str, str]]] = {
    "v5e 2x4 on one host knows its worker id": (
        "ct5lp-hightpu-8t",
        1,
        None,
        {"TPU_ACCELERATOR_TYPE": "v5litepod-8", "TPU_HOST_BOUNDS": "1,1,1", "TPU_TOPOLOGY_WRAP": "false,false,false"}
        | SINGLE,
    ),
    "v6e 16x16 wraps around on both sides": (
        "ct6e-standard-4t",
        64,
        "16x16",
        {"TPU_ACCELERATOR_TYPE": "v6e-256", "TPU_HOST_BOUNDS": "8,8,1", "TPU_TOPOLOGY_WRAP": "true,true,false"},
    ),
    "v5p 4x4x4 counts cores, wraps and is resilient": (
        "ct5p-hightpu-4t",
        16,
        "4x4x4",
        {
            "TPU_ACCELERATOR_TYPE": "v5p-128",
            "TPU_HOST_BOUNDS": "2,2,4",
            "TPU_TOPOLOGY_WRAP": "true,true,true",
            "ENABLE_ICI_RESILIENCY": "true",
        },
    ),
    "tpu7x on one host gets no worker id": (
        "tpu7x-standard-4t",
        1,
        None,
        {"TPU_ACCELERATOR_TYPE": "tpu7x-8", "TPU_HOST_BOUNDS": "1,1,1", "TPU_TOPOLOGY_WRAP": "false,false,false"},
    ),
}
SHOWN = (
    "TPU_ACCELERATOR_TYPE",
    "TPU_HOST_BOUNDS",
    "TPU_TOPOLOGY_WRAP",
    "ENABLE_ICI_RESILIENCY",
    "TPU_WORKER_ID",
    "TPU_WORKER_HOSTNAMES",
    "TPU_NAME",
)


@pytest.mark.parametrize(("machine", "count", "topology", "want"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
@pytest.mark.looptime
async def test_the_device_plugin_s_environment(
    machine: str, count: int, topology: str | None, want: dict[str, str], make_bench: Callable[..., GkeBench]
) -> None:
    placement = None if topology is None else {"type": "COMPACT", "tpuTopology": topology}
    body = a_pool(initialNodeCount=count, config={"machineType": machine}, placementPolicy=placement)
    node = (await the_nodes(make_bench, body))[0]
    assert {name: node.tpu_env[name] for name in SHOWN if name in node.tpu_env} == want


@pytest.mark.looptime
async def test_a_flex_start_pool_has_no_node_until_it_is_scaled(make_bench: Callable[..., GkeBench]) -> None:
    bench = make_bench()
    body = a_pool(
        initialNodeCount=None,
        config={
            "flexStart": True,
            "maxRunDuration": "86400s",
            "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        },
        autoscaling={"enabled": True, "maxNodeCount": 4},
        management={"autoRepair": False, "autoUpgrade": True},
    )
    await bench.finished(await bench.create(body))
    before = len(bench.host.nodes)
    await bench.manager.scale("pool-a", 4)
    node = next(iter(bench.host.nodes.values()))
    shown = {name: node.labels.get(GKE + name) for name in ("gke-provisioning", "gke-flex-start")}
    assert (before, shown, node.labels[GKE + "gke-max-run-duration-seconds"], list(node.annotations)) == (
        0,
        {"gke-provisioning": "flex-start", "gke-flex-start": "true"},
        "86400",
        ["node.gke.io/machine-termination-datetime"],
    )


@pytest.mark.parametrize("name", ["pool-a", "train-" + "x" * 33 + "z"])
@pytest.mark.looptime
async def test_names_are_labels_that_differ_and_are_cut(name: str, make_bench: Callable[..., GkeBench]) -> None:
    names = [node.name for node in await the_nodes(make_bench, a_pool(name))]
    form = re.compile(r"gke-bench-[-a-z0-9]{1,22}-[0-9a-f]{8}-[a-z0-9]{4}")
    assert (len(set(names)), all(form.fullmatch(text) and len(text) <= 63 for text in names)) == (4, True)
