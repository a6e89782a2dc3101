"""Lay a pod overlay over a pod: maps merge, lists of named things merge by their key, other lists are replaced.

The rules of Kubernetes' strategic merge patch for the pod spec, without its `$patch` directives; null removes a field.
"""

from collections.abc import Mapping
from typing import Any, Final

_DEEP: Final = {"containers": "name", "initContainers": "name"}  # an entry of the same key is merged field by field
_WHOLE: Final = {  # an entry of the same key is replaced: half of two volumes is no volume
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
}


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """A new document; neither argument is changed."""
    result = dict(base)
    for key, value in overlay.items():
        old = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            result[key] = merge(old, value)
        elif isinstance(value, (list, tuple)) and isinstance(old, (list, tuple)) and key in (_DEEP | _WHOLE):
            result[key] = _merge_named(old, value, by=(_DEEP | _WHOLE)[key], deep=key in _DEEP)
        else:
            result[key] = value
    return result


def _merge_named(base: Any, overlay: Any, *, by: str, deep: bool) -> list[Any]:
    changes = {entry.get(by): entry for entry in overlay}
    merged = [
        (merge(entry, changes[entry.get(by)]) if deep else changes[entry.get(by)])
        if entry.get(by) in changes
        else entry
        for entry in base
    ]
    known = {entry.get(by) for entry in base}
    return merged + [entry for entry in overlay if entry.get(by) not in known]
