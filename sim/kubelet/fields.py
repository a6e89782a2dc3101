"""Values of a pod's own fields and resources, for env and for downwardAPI files."""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from kubernetes.utils.quantity import parse_quantity

Json = dict[str, Any]

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def quantity(text: str | int | float | None) -> Decimal:
    """A Kubernetes quantity in base units (cores, bytes); nothing is 0."""
    return Decimal(parse_quantity(text)) if text is not None else Decimal(0)


def field_value(pod: Json, path: str) -> str:
    """The value of a fieldRef path; an absent label or annotation is empty. ValueError for a path that is not allowed."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    match path:
        case "metadata.name" | "metadata.namespace" | "metadata.uid":
            return str(metadata[path.removeprefix("metadata.")])
        case "metadata.labels" | "metadata.annotations":
            return format_map(metadata.get(path.removeprefix("metadata.")) or {})
        case "spec.nodeName" | "spec.serviceAccountName":
            return str(pod["spec"].get(path.removeprefix("spec."), ""))
        case "status.podIP" | "status.hostIP":
            return str(status.get(path.removeprefix("status."), ""))
        case "status.podIPs" | "status.hostIPs":
            return ",".join(entry["ip"] for entry in status.get(path.removeprefix("status."), ()))
    raise ValueError(f"fieldPath {path} is not supported")


def format_map(values: Mapping[str, str]) -> str:
    """Labels or annotations as downwardAPI files show them: key="value" lines, sorted, quoted as Go quotes."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "\n".join(
        f'{key}="{"".join(escapes.get(char, char) for char in value)}"' for key, value in sorted(values.items())
    )


def resource_value(pod: Json, reference: Json, *, container_name: str, allocatable: Mapping[str, str]) -> str:
    """A resourceFieldRef, divided and rounded up; an unset limit is the node's allocatable."""
    name = reference.get("containerName") or container_name
    kind, resource = reference["resource"].split(".", 1)
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    resources = next((c.get("resources") or {} for c in containers if c["name"] == name), {})
    amount = (resources.get(kind) or {}).get(resource)
    if amount is None and kind == "limits":
        amount = allocatable.get(resource)
    divisor = quantity(reference.get("divisor")) or Decimal(1)
    return str((quantity(amount) / divisor).to_integral_value(ROUND_CEILING))
