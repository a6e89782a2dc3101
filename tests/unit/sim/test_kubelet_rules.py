"""Restart back-off, probe counting, admission of chips, files in /etc, the Node object."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sim.images import Image
from sim.kubelet.backoff import BackOff, format_delay
from sim.kubelet.container_config import HostView, admission_error, build_config, build_env
from sim.kubelet.env import ConfigError
from sim.kubelet.node_object import build_capacity, build_lease, build_node
from sim.kubelet.pod_files import build_hosts, build_resolv_conf, pod_hostname
from sim.kubelet.probe_rules import ProbeCounter, ProbeTiming
from sim.kubelet.sandbox import RootKind
from sim.kubelet.sources import FetchedSources
from sim.nodes import NodeSpec, Taint


def test_the_first_restart_is_immediate_then_waits_double_to_the_limit() -> None:
    back_off = BackOff(base=10, limit=300, reset=600)
    assert [back_off.next(ran=1) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_long_run_forgives() -> None:
    back_off = BackOff(base=10, limit=300, reset=600)
    assert [back_off.next(ran=ran) for ran in (1, 1, 1, 600, 1)] == [0, 10, 20, 0, 10]


DELAYS = {"seconds": (10.0, "10s"), "minutes": (80.0, "1m20s"), "the limit": (300.0, "5m0s"), "parts": (0.5, "0.5s")}


@pytest.mark.parametrize(("delay", "want"), DELAYS.values(), ids=DELAYS)
def test_delays_are_written_as_go_writes_them(delay: float, want: str) -> None:
    assert format_delay(delay) == want


VERDICTS: dict[str, tuple[int, int, str, list[bool | None]]] = {
    "one success is enough by default": (1, 3, "+", [True]),
    "three failures in a row": (1, 3, "---", [None, None, False]),
    "a success between starts the count anew": (1, 3, "--+--", [None, None, True, None, None]),
    "two successes needed": (2, 1, "++-+", [None, True, False, None]),
    "a verdict is repeated while it holds": (1, 2, "---", [None, False, False]),
}


@pytest.mark.parametrize(("successes", "failures", "results", "want"), VERDICTS.values(), ids=VERDICTS)
def test_probe_verdicts(successes: int, failures: int, results: str, want: list[bool | None]) -> None:
    counter = ProbeCounter(successes=successes, failures=failures)
    assert [counter.observe(result == "+") for result in results] == want


def test_probe_timing_has_kubernetes_defaults() -> None:
    assert ProbeTiming.of({"exec": {}}) == ProbeTiming(
        initial_delay=0, period=10, timeout=1, successes=1, failures=3, grace=None
    )


def _tpu_pod(*requests: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {
            "containers": [
                {"name": f"c{i}", "resources": {"limits": {"google.com/tpu": str(n)}} if n else {}}
                for i, n in enumerate(requests)
            ]
        },
    }


ADMISSION = {
    "all chips": (_tpu_pod(4), 4, False, True),
    "none": (_tpu_pod(0), 4, False, True),
    "a sidecar without chips beside": (_tpu_pod(4, 0), 4, False, True),
    "some of them": (_tpu_pod(2), 4, False, False),
    "shared out where the generation allows it": (_tpu_pod(2, 2), 4, True, True),
    "more than there are": (_tpu_pod(8), 4, True, False),
}


@pytest.mark.parametrize(("pod", "chips", "partial", "admitted"), ADMISSION.values(), ids=ADMISSION)
def test_admission_of_chips(pod: dict[str, Any], chips: int, partial: bool, admitted: bool) -> None:
    message = admission_error(pod, chips=chips, partial=partial)
    want = (
        "Allocate failed due to rpc error: code = Unknown desc = you must request all"
        f" {chips} chips on this node together, which is unexpected"
    )
    assert message == (None if admitted else want)


IMAGE = Image(reference="i", env={"PATH": "/bin", "A": "image"}, command=["sh"], user=1000, home="/home/u")
HOST = HostView(
    root=RootKind.OVERLAY, allocatable={}, tpu_env={"TPU_TOPOLOGY": "4x4", "A": "plugin", "B": "plugin"}, service_env={}
)


def test_the_device_plugin_sets_only_what_the_pod_does_not_and_only_where_chips_are_asked_for() -> None:
    pod = _tpu_pod(4, 0)
    with_chips, without = pod["spec"]["containers"]
    with_chips["env"] = [{"name": "A", "value": "pod"}, {"name": "C", "value": "$(A)"}]
    common = {"PATH": "/bin", "HOME": "/home/u", "HOSTNAME": "p"}
    envs = [build_env(c, pod=pod, image=IMAGE, sources=FetchedSources(), host=HOST) for c in (with_chips, without)]
    assert envs == [
        {**common, "A": "pod", "B": "plugin", "C": "pod", "TPU_TOPOLOGY": "4x4"},
        {**common, "A": "image"},
    ]


SECURITY: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[int, int, list[int]]]] = {
    "the image's user": ({}, {}, (1000, 1000, [])),
    "the pod's": ({"runAsUser": 7, "fsGroup": 9}, {}, (7, 0, [9])),
    "the container's wins": ({"runAsUser": 7}, {"runAsUser": 8, "runAsGroup": 3}, (8, 3, [])),
    "non-root is fine with such an image": ({"runAsNonRoot": True}, {}, (1000, 1000, [])),
}


@pytest.mark.parametrize(("pod_security", "own", "want"), SECURITY.values(), ids=SECURITY)
def test_users(pod_security: dict[str, Any], own: dict[str, Any], want: tuple[int, int, list[int]]) -> None:
    pod = _tpu_pod(0)
    pod["spec"]["securityContext"] = pod_security
    container = {**pod["spec"]["containers"][0], "securityContext": own}
    sandbox = build_config(container, pod=pod, image=IMAGE, env={}, mounts=[], root=RootKind.OVERLAY).sandbox
    assert (sandbox.user, sandbox.group, list(sandbox.groups)) == want


def test_a_root_image_is_refused_where_non_root_is_demanded() -> None:
    pod = _tpu_pod(0)
    pod["spec"]["securityContext"] = {"runAsNonRoot": True}
    image = Image(reference="root", command=["sh"])
    with pytest.raises(ConfigError, match="runAsNonRoot and image will run as root"):
        build_config(pod["spec"]["containers"][0], pod=pod, image=image, env={}, mounts=[], root=RootKind.OVERLAY)


def test_hosts_resolve_the_pods_own_names() -> None:
    pod = {
        "metadata": {"name": "p-0", "namespace": "ns"},
        "spec": {"hostname": "h", "subdomain": "s", "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["x", "y"]}]},
    }
    assert build_hosts(pod, address="10.244.1.1", cluster_domain="cluster.local").splitlines()[1:] == [
        "127.0.0.1 localhost",
        "::1 localhost ip6-localhost ip6-loopback",
        "10.244.1.1 h.s.ns.svc.cluster.local h",
        "1.2.3.4 x y",
    ]


RESOLVERS: dict[str, tuple[dict[str, Any], str]] = {
    "the cluster's by default": (
        {},
        "search ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
    ),
    "own settings only": (
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b"]}},
        "search a.b\nnameserver 1.1.1.1\n",
    ),
    "own settings beside the cluster's": (
        {"dnsConfig": {"options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]}},
        "search ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:2 edns0\n",
    ),
}


@pytest.mark.parametrize(("spec", "want"), RESOLVERS.values(), ids=RESOLVERS)
def test_resolv_conf(spec: dict[str, Any], want: str) -> None:
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}
    assert build_resolv_conf(pod, server="10.96.0.10", cluster_domain="cluster.local") == want


def test_a_long_pod_name_is_cut_to_a_host_name() -> None:
    pod = {"metadata": {"name": "a" * 62 + ".b"}, "spec": {}}
    assert pod_hostname(pod) == "a" * 62


NODE = NodeSpec(
    name="tpu-0",
    labels={"cloud.google.com/gke-tpu-topology": "4x4", "topology.kubernetes.io/zone": "us-east5-b"},
    taints=[Taint(key="google.com/tpu", value="present", effect="NoSchedule")],
    cpu=180,
    memory_gib=720,
    tpu_chips=4,
)


def test_node_object() -> None:
    assert build_node(NODE) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "tpu-0",
            "labels": {
                "cloud.google.com/gke-tpu-topology": "4x4",
                "topology.kubernetes.io/zone": "us-east5-b",
                "kubernetes.io/hostname": "tpu-0",
            },
            "annotations": {},
        },
        "spec": {
            "providerID": "gce://demo/us-east5-b/tpu-0",
            "taints": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}],
        },
    }


@pytest.mark.parametrize(("published", "chips"), [(False, "0"), (True, "4")])
def test_chips_show_when_the_device_plugin_publishes_them(published: bool, chips: str) -> None:
    capacity = build_capacity(NODE, chips_published=published, max_pods=15)
    assert capacity == {
        "cpu": "180",
        "memory": "720Gi",
        "ephemeral-storage": "100Gi",
        "pods": "15",
        "google.com/tpu": chips,
    }


def test_a_lease_belongs_to_its_node() -> None:
    lease = build_lease("n", node_uid="u", seconds=40, now=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))
    assert (lease["metadata"]["ownerReferences"][0]["uid"], lease["spec"]) == (
        "u",
        {"holderIdentity": "n", "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.000006Z"},
    )
