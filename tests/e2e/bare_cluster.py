"""A bench without our operator, as the tests of its kubelet and the reference use it through kubectl."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from sim.bench import Bench

Obj = dict[str, Any]

OPERATOR = "ghcr.io/torchtpu/torchtpu-operator:0.1.0"
RAY = "us-docker.pkg.dev/acme/ml/ray-torchtpu:2.60.0"
WAIT_SECONDS = 90.0

_GKE = """
import grpc, sys, time
from google.cloud import container_v1 as gke
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
channel = grpc.insecure_channel("10.96.0.20:443")
client = gke.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel))
where = "projects/demo/locations/us-east5"
pool = {"name": "v6e", "initial_node_count": 4, "locations": ["us-east5-b"],
        "config": {"machine_type": "ct6e-standard-4t"}, "placement_policy": {"type_": "COMPACT", "tpu_topology": "4x4"}}
once = {"retry": None, "timeout": 30}
if sys.argv[1] == "create":
    operation = client.create_node_pool(parent=f"{where}/clusters/bench", node_pool=gke.NodePool(pool), **once)
else:
    operation = client.delete_node_pool(name=f"{where}/clusters/bench/nodePools/v6e", **once)
while operation.status != gke.Operation.Status.DONE:
    time.sleep(0.3)
    operation = client.get_operation(name=f"{where}/operations/{operation.name}", **once)
"""


class Cluster:
    """The bench through kubectl."""

    def __init__(self, bench: Bench, *, seconds: float = WAIT_SECONDS) -> None:
        self.bench, self._seconds = bench, seconds

    def make_pool(self) -> None:
        """Four hosts of a v6e 4x4 slice, made by hand through the GKE API."""
        self.bench.exec_inside(["python", "-c", _GKE, "create"])

    def delete_pool(self) -> None:
        """Through the GKE API; returns when the operation is done."""
        self.bench.exec_inside(["python", "-c", _GKE, "delete"])

    def apply(self, *objects: Obj) -> None:
        self.bench.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(each) for each in objects))

    def get(self, kind: str, name: str) -> Obj | None:
        text = self.bench.kubectl("get", kind, name, "-o", "json", "--ignore-not-found")
        found: Obj | None = json.loads(text) if text.strip() else None
        return found

    def pod(self, name: str) -> Obj:
        """A pod that is there."""
        found = self.get("pod", name)
        assert found is not None, f"pod {name} is gone"
        return found

    def all(self, kind: str) -> list[Obj]:
        items: list[Obj] = json.loads(self.bench.kubectl("get", kind, "-o", "json"))["items"]
        return items

    def until(self, what: str, look: Callable[[], Any]) -> Any:
        """The first true value; fails with a picture of the cluster."""
        end = time.monotonic() + self._seconds
        while not (value := look()):
            if time.monotonic() > end:
                pytest.fail(f"not within {self._seconds:g} s: {what}\n{self.bench.kubectl('describe', 'pods')[-6000:]}")
            time.sleep(0.2)
        return value

    def until_phase(self, name: str, *phases: str) -> Obj:
        def look() -> Obj | None:
            pod = self.get("pod", name)
            return pod if pod and pod["status"].get("phase") in phases else None

        found: Obj = self.until(f"pod {name} is {phases}", look)
        return found

    def until_ready(self, name: str) -> Obj:
        found: Obj = self.until(f"pod {name} is ready", lambda: self.ready(name))
        return found

    def until_waiting(self, name: str, reason: str) -> Obj:
        """The status of the first container once it waits for that reason."""

        def look() -> Obj | None:
            statuses = ((self.get("pod", name) or {}).get("status") or {}).get("containerStatuses") or [{}]
            status: Obj = statuses[0]
            return status if status.get("state", {}).get("waiting", {}).get("reason") == reason else None

        found: Obj = self.until(f"pod {name} waits: {reason}", look)
        return found

    def until_gone(self, kind: str, name: str) -> None:
        self.until(f"{kind} {name} is gone", lambda: self.get(kind, name) is None)

    def log(self, name: str, *options: str) -> str:
        return self.bench.kubectl("logs", name, *options)

    def exec(self, name: str, *command: str, options: tuple[str, ...] = (), input: str | None = None) -> str:
        return self.bench.kubectl("exec", name, *options, "--", *command, input=input)

    def ready(self, name: str) -> Obj | None:
        """The pod if its Ready condition holds."""
        pod = self.get("pod", name)
        conditions = (pod or {}).get("status", {}).get("conditions") or ()
        return pod if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) else None


def a_pod(
    name: str, script: str, *, image: str = "busybox", policy: str = "Never", spec: Obj | None = None, **container: Any
) -> Obj:
    """One container that runs a shell script; `spec` and `container` add fields."""
    main = {"name": "main", "image": image, "command": ["sh", "-c", script], **container}
    fields = {"restartPolicy": policy, "terminationGracePeriodSeconds": 3, "containers": [main], **(spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": fields}


def a_config_map(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def a_secret(name: str, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
