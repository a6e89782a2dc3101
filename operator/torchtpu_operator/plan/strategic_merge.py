"""Lay a pod overlay over a pod: maps merge, lists of named things merge by their key, other lists are replaced.

The rules of Kubernetes' strategic merge patch for the pod spec, without its `$patch` directives; null removes a field.
Where a field is one of several (a variable's value or valueFrom, a volume's source, a probe's handler) the overlay's
choice takes the place of the other one, as after `kubectl apply`; a bare patch would leave both, which is no pod.

Order matters to `$(VAR)` and to init containers: an overlay's entries keep their own order, those of the base too, and
what is new follows what was there, unless the overlay places it before an entry of the base.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

_KEYS: Final = {  # list -> what names its entries; source: patchMergeKey in k8s.io/api/core/v1
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
}
_RETAIN_KEYS: Final = {"volumes", "resourceClaims"}  # of an entry that is there, only the overlay's fields stay
_WHOLE: Final = {"env"}  # an entry of the same name is replaced: half of two sources is none
_ONE_HANDLER: Final = {"readinessProbe", "livenessProbe", "startupProbe", "preStop", "postStart"}
_HANDLERS: Final = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """A new document; neither argument is changed."""
    result = dict(base)
    for key, value in overlay.items():
        old = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            kept = old if isinstance(old, Mapping) else {}
            if key in _ONE_HANDLER and _HANDLERS & value.keys():
                kept = {name: part for name, part in kept.items() if name not in _HANDLERS - value.keys()}
            result[key] = merge(kept, value)
        elif key in _KEYS and _is_named(value) and _is_named(old):
            result[key] = _merge_named(old, value, list_=key)
        else:
            result[key] = value
    return result


def _is_named(value: Any) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    # what is no list of objects goes into the pod as it is: the apiserver says what is wrong with it
    return isinstance(value, (list, tuple)) and all(isinstance(entry, Mapping) for entry in value)


def _merge_named(
    base: Sequence[Mapping[str, Any]], overlay: Sequence[Mapping[str, Any]], *, list_: str
) -> list[Mapping[str, Any]]:
    by = _KEYS[list_]
    places = {entry.get(by): place for place, entry in enumerate(base)}
    changed = {entry.get(by) for entry in overlay}
    merged: list[Mapping[str, Any]] = []
    new: list[Mapping[str, Any]] = []
    done = 0
    for entry in overlay:
        place = places.get(entry.get(by))
        if place is None:
            new.append(entry)
            continue
        merged += [other for other in base[done:place] if other.get(by) not in changed]
        done = max(done, place + 1)
        merged += [*new, _merge_entry(base[place], entry, list_=list_)]
        new = []
    return merged + [other for other in base[done:] if other.get(by) not in changed] + new


def _merge_entry(base: Mapping[str, Any], overlay: Mapping[str, Any], *, list_: str) -> Mapping[str, Any]:
    if list_ in _WHOLE:
        return overlay
    if list_ in _RETAIN_KEYS:
        base = {key: value for key, value in base.items() if key in overlay}
    return merge(base, overlay)
