"""A bench with the operator on it, as an end-to-end test uses it: apply, look, wait, break."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from sim.bench import Bench, BenchError

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts" / "torchtpu-operator"
EXAMPLES = REPOSITORY / "examples"
NAMESPACE = "torchtpu-system"
RELEASE = "torchtpu"

Obj = dict[str, Any]


class WaitTimeoutError(AssertionError):
    """A wait that ended without what it waited for; the text has the last state."""


class Operated:
    """`bench` with the chart installed."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    # --- the operator

    def install(self, **values: str) -> None:
        """As its user does; the values are those of the bench's GKE."""
        settings = {
            "gke.project": "demo",
            "gke.location": "us-east5",
            "gke.cluster": "bench",
            "gke.endpoint": "10.96.0.20:443",
            "gke.insecure": "true",
            "defaultClass.zones": "{us-east5-b}",
            **values,
        }
        flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
        wait = ["--wait", "--timeout", "120s"]
        self.bench.helm("install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--create-namespace", *wait, *flags)

    def operator_pod(self) -> Obj:
        """The running one."""
        pods = self.items("pods", namespace=NAMESPACE)
        return next(pod for pod in pods if not pod["metadata"].get("deletionTimestamp"))

    def kill_operator(self) -> None:
        """SIGKILL to its process as soon as it runs; the kubelet starts the container again, with back-off."""

        def killed() -> bool:
            pod = self.operator_pod()
            running = [each for each in pod["status"].get("containerStatuses", []) if "running" in each["state"]]
            if not running:
                return False
            try:
                self.bench.fault("pod-kill", namespace=NAMESPACE, pod=pod["metadata"]["name"])
            except BenchError:  # it died between the look and the kill
                return False
            return True

        self.until("the operator runs and is killed", killed, seconds=60)

    def operator_log(self) -> str:
        return self.bench.kubectl("logs", "-n", NAMESPACE, self.operator_pod()["metadata"]["name"], "--tail=200")

    # --- objects

    def apply(self, *objects: Obj) -> None:
        self.bench.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(each) for each in objects))

    def refused(self, *objects: Obj) -> str:
        """What the apiserver says to objects that it must refuse."""
        try:
            self.apply(*objects)
        except subprocess.CalledProcessError as error:
            return str(error.stderr)
        raise AssertionError("the apiserver accepted what it must refuse")

    def namespace(self, name: str) -> str:
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    def get(self, kind: str, name: str, *, namespace: str = "") -> Obj | None:
        scope = ["-n", namespace] if namespace else []
        out = self.bench.kubectl("get", kind, name, *scope, "-o", "json", "--ignore-not-found", "--show-managed-fields")
        found: Obj | None = json.loads(out) if out.strip() else None
        return found

    def items(self, kind: str, *, namespace: str = "", selector: str = "") -> list[Obj]:
        scope = ["-n", namespace] if namespace else []
        labels = ["-l", selector] if selector else []
        items: list[Obj] = json.loads(self.bench.kubectl("get", kind, *scope, *labels, "-o", "json"))["items"]
        return items

    def job(self, namespace: str, name: str) -> Obj:
        found = self.get("torchtpujob", name, namespace=namespace)
        assert found is not None, f"TorchTPUJob {namespace}/{name} is gone"
        return found

    def delete_job(self, namespace: str, name: str) -> None:
        """`kubectl delete` without waiting."""
        self.bench.kubectl("delete", "torchtpujob", name, "-n", namespace, "--wait=false", "--ignore-not-found")

    def events(self, namespace: str, name: str) -> list[Obj]:
        """Events about one job, oldest first."""
        mine = [each for each in self.items("events", namespace=namespace) if each["involvedObject"]["name"] == name]
        return sorted(mine, key=lambda each: each["metadata"]["creationTimestamp"])

    def pools(self) -> list[str]:
        """TPU node pools that the simulated GKE has, of whatever owner."""
        return [pool["name"] for pool in self.bench.status()["pools"] if pool["name"] != "cpu-pool"]

    # --- waiting

    def until(self, what: str, look: Callable[[], Any], *, seconds: float = 120.0, every: float = 0.5) -> Any:
        """The first true value of `look`; raises WaitTimeoutError with the operator's log in it."""
        end = time.monotonic() + seconds
        while True:
            if value := look():
                return value
            if time.monotonic() >= end:
                raise WaitTimeoutError(f"not within {seconds:.0f} s: {what}\n{self.picture()}")
            time.sleep(every)

    def until_phase(self, namespace: str, name: str, *phases: str, seconds: float = 120.0) -> Obj:
        """The job once it is in one of these phases; a final phase that is not among them ends the wait at once."""

        def look() -> Obj | None:
            job = self.job(namespace, name)
            phase = job.get("status", {}).get("phase")
            if phase not in phases and phase in ("Succeeded", "Failed"):
                raise AssertionError(
                    f"the job is {phase} instead of {phases}: {job['status']['message']}\n{self.picture()}"
                )
            return job if phase in phases else None

        found: Obj = self.until(f"{namespace}/{name} is {' or '.join(phases)}", look, seconds=seconds)
        return found

    def until_clean(self, *, seconds: float = 60.0) -> None:
        """No TPUSlice, no pool, no TPU node."""
        self.until(
            "no TPUSlice and no node pool is left",
            lambda: not self.items("tpuslices") and not self.pools(),
            seconds=seconds,
        )

    def picture(self) -> str:
        """What a person would look at when a test has failed."""
        parts = [
            self.bench.kubectl("get", "torchtpujobs,tpuslices,rayclusters,pods", "-A", "-o", "wide"),
            self.bench.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp")[-4000:],
            f"pools: {self.pools()}",
        ]
        try:
            parts.append(self.operator_log()[-6000:])
        except (StopIteration, subprocess.CalledProcessError) as error:
            parts.append(f"no log of the operator: {error}")
        return "\n".join(parts)


def example(name: str, *, namespace: str, **spec: Any) -> list[Obj]:
    """An example's objects in another namespace; `spec` changes fields of the TorchTPUJob."""
    objects: list[Obj] = [each for each in yaml.safe_load_all((EXAMPLES / name).read_text()) if each]
    for each in objects:
        if each["kind"] != "Namespace":
            each["metadata"]["namespace"] = namespace
        if each["kind"] == "TorchTPUJob":
            each["spec"] |= spec
    return [each for each in objects if each["kind"] != "Namespace"]


def a_job(name: str, *, namespace: str, entrypoint: str = "echo done", **spec: Any) -> Obj:
    """A small job on one v6e 2x2 slice: one host, four workers."""
    fields: Mapping[str, Any] = {
        "accelerator": "v6e",
        "topology": "2x2",
        "image": "us-docker.pkg.dev/acme/ml/ray-torchtpu:2.60.0",
        "entrypoint": entrypoint,
        **spec,
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "torchtpu.dev/v1alpha1", "kind": "TorchTPUJob", "metadata": metadata, "spec": dict(fields)}


def condition(obj: Obj, type_: str) -> Obj:
    """A condition of the object; empty if it has none of that type."""
    found = [each for each in obj.get("status", {}).get("conditions", []) if each["type"] == type_]
    return found[0] if found else {}
