"""The operator in the bench, by its chart, as its users install it."""

import time
import urllib.request
from collections.abc import Callable
from typing import Any, Final

from sim.bench import Bench
from sim.demo.cluster import ClusterReader
from sim.demo.writes import Calls, parse_calls
from sim.tools.catalogue import REPOSITORY

CHART: Final = REPOSITORY / "charts" / "torchtpu-operator"
NAMESPACE: Final = "torchtpu-system"
RELEASE: Final = "torchtpu"

VALUES: Final[dict[str, str]] = {
    "gke.project": "demo",
    "gke.location": "us-east5",
    "gke.cluster": "bench",
    "gke.endpoint": "10.96.0.20:443",
    "gke.insecure": "true",
    "defaultClass.zones": "{us-east5-b}",
}
"""What a bench's GKE is called and where it listens; it has no TLS and asks for no credentials."""

READY_SECONDS: Final = 180.0
_SELECTOR = f"app.kubernetes.io/instance={RELEASE}"
_METRICS_PORT = 8081


class InstallationError(Exception):
    """The operator does not come up; the message says what its pods say."""


def install(bench: Bench) -> None:
    """Raises CalledProcessError with helm's words."""
    flags = [flag for key, value in VALUES.items() for flag in ("--set", f"{key}={value}")]
    bench.helm("install", RELEASE, str(CHART), "--namespace", NAMESPACE, "--create-namespace", *flags)


def wait_until_ready(reader: ClusterReader, *, say: Callable[[str], None]) -> None:
    """Until a pod of the operator is Ready. Raises InstallationError or ClusterError."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        pods = reader.operator_pods(NAMESPACE, _SELECTOR)
        states = [_state(pod) for pod in pods]
        if "Ready" in states:
            return
        text = ", ".join(states) or "no pod yet"
        say(text)
        if time.monotonic() > deadline:
            raise InstallationError(f"the operator is not Ready after {READY_SECONDS:.0f} s: {text}")
        time.sleep(0.5)


def read_calls(bench: Bench, reader: ClusterReader) -> Calls:
    """The operator's counters of API calls. Raises OSError or InstallationError."""
    pod = next((each for each in reader.operator_pods(NAMESPACE, _SELECTOR) if each["status"].get("podIP")), None)
    if pod is None:
        raise InstallationError("the operator's pod has no address")
    starts = [container["restartCount"] for container in pod["status"].get("containerStatuses", [])]
    port = bench.forward(pod["status"]["podIP"], _METRICS_PORT)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return parse_calls(answer.read().decode(), process=f"{pod['metadata']['uid']} {starts}")


def _state(pod: dict[str, Any]) -> str:
    status = pod.get("status", {})
    if any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", [])):
        return "Ready"
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason"):
            return f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
        if ended := container.get("state", {}).get("terminated"):
            return f"ended with exit code {ended.get('exitCode')}"
        if container.get("restartCount"):
            return f"restarted {container['restartCount']} times"
    return str(status.get("phase", "Pending"))
