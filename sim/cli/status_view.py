"""`sim status` for people."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

_GOOD, _WAITING, _BAD = "green", "yellow", "red"


def build_view(status: Mapping[str, Any], objects: Sequence[Mapping[str, Any]], *, now: float) -> RenderableType:
    """`status` as the bench tells it, `objects` Nodes and Pods; `now` in seconds since the epoch."""
    nodes = [each for each in objects if each["kind"] == "Node"]
    pods = [each for each in objects if each["kind"] == "Pod"]
    parts: list[RenderableType] = [_programs(status["programs"], now)]
    if nodes:
        parts.append(_nodes(nodes, now))
    if status["pools"]:
        parts.append(_pools(status["pools"]))
    if pods:
        parts.append(_pods(pods, now))
    return Group(*parts)


def age(seconds: float) -> str:
    """As kubectl writes it: 42s, 3m, 5h, 2d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size or (unit == "d" and seconds >= size):
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def size(count: float) -> str:
    """Bytes with a unit."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _programs(programs: Sequence[Mapping[str, Any]], now: float) -> Table:
    total = sum(program["rss_bytes"] for program in programs)
    table = _table(f"programs · {size(total)}", "program", "state", "pid", "memory", "age", "restarts")
    for program in programs:
        running = program["running"]
        state = _colored("running", _GOOD) if running else _colored(f"ended {program['exit_code']}", _BAD)
        since = age(now - program["started_at"]) if program["started_at"] else ""
        table.add_row(
            program["name"], state, str(program["pid"]), size(program["rss_bytes"]), since, str(program["restarts"])
        )
    return table


def _nodes(nodes: Iterable[Mapping[str, Any]], now: float) -> Table:
    table = _table("nodes", "node", "state", "zone", "TPU", "chips", "address", "age")
    for node in nodes:
        labels, status = node["metadata"].get("labels", {}), node.get("status", {})
        table.add_row(
            node["metadata"]["name"],
            _ready(status.get("conditions", [])),
            labels.get("topology.kubernetes.io/zone", ""),
            labels.get("cloud.google.com/gke-tpu-topology", ""),
            status.get("allocatable", {}).get("google.com/tpu", ""),
            next((each["address"] for each in status.get("addresses", []) if each["type"] == "InternalIP"), ""),
            _object_age(node, now),
        )
    return table


def _pools(pools: Iterable[Mapping[str, Any]]) -> Table:
    table = _table("TPU node pools (GKE)", "pool", "status", "machine", "topology", "zones", "nodes")
    colors = {"RUNNING": _GOOD, "ERROR": _BAD, "RUNNING_WITH_ERROR": _BAD}
    for pool in pools:
        table.add_row(
            pool["name"],
            _colored(pool["status"], colors.get(pool["status"], _WAITING)),
            pool["machine_type"],
            pool["topology"],
            ", ".join(pool["zones"]),
            str(len(pool["nodes"])),
        )
    return table


def _pods(pods: Iterable[Mapping[str, Any]], now: float) -> Table:
    table = _table("pods", "namespace", "pod", "state", "ready", "restarts", "node", "address", "age")
    for pod in pods:
        status = pod.get("status", {})
        containers = status.get("containerStatuses", [])
        ready = sum(container["ready"] for container in containers)
        table.add_row(
            pod["metadata"]["namespace"],
            pod["metadata"]["name"],
            _pod_state(pod),
            f"{ready}/{len(pod['spec']['containers'])}",
            str(sum(container["restartCount"] for container in containers)),
            pod["spec"].get("nodeName", ""),
            status.get("podIP", ""),
            _object_age(pod, now),
        )
    return table


def _pod_state(pod: Mapping[str, Any]) -> Text:
    """A waiting container's reason says more than the phase."""
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"]:
        return _colored("Terminating", _WAITING)
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        reason = container.get("state", {}).get("waiting", {}).get("reason")
        if reason:
            bad = "BackOff" in reason or reason.startswith("Err")
            return _colored(reason, _BAD if bad else _WAITING)
    phase = status.get("phase", "Unknown")
    return _colored(phase, {"Running": _GOOD, "Succeeded": _GOOD, "Failed": _BAD}.get(phase, _WAITING))


def _ready(conditions: Iterable[Mapping[str, Any]]) -> Text:
    ready = next((each["status"] for each in conditions if each["type"] == "Ready"), "Unknown")
    return _colored("Ready", _GOOD) if ready == "True" else _colored("NotReady", _BAD)


def _object_age(thing: Mapping[str, Any], now: float) -> str:
    created = datetime.fromisoformat(thing["metadata"]["creationTimestamp"])
    return age(now - created.timestamp())


def _colored(text: str, color: str) -> Text:
    return Text(text, style=color)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, header_style="dim")
    for column in columns:
        justify: JustifyMethod = "right" if column in ("pid", "memory", "chips", "restarts") else "left"
        # Names are for copying: a long one goes on in the next line instead of losing its end.
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column in ("state", "age", "ready"))
    return table
