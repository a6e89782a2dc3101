"""What files a volume shows: pure functions from a volume's spec and its sources to paths, contents and modes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sim.kubelet.env import Sources
from sim.kubelet.fields import field_value, resource_value

Json = dict[str, Any]

DEFAULT_MODE: Final = 0o644
DEFAULT_TOKEN_SECONDS: Final = 3600


class VolumeError(Exception):
    """The volume cannot be set up now: the message is what a `FailedMount` event shows."""


@dataclass(frozen=True, kw_only=True)
class File:
    content: bytes
    mode: int


@dataclass(frozen=True, kw_only=True)
class TokenRequest:
    """A ServiceAccount token that a projected volume asks for."""

    audience: str
    """Empty: the apiserver's own."""
    seconds: int


Files = dict[str, File]


def token_requests(volume: Json) -> list[TokenRequest]:
    """Tokens that must be fetched before `project` can run, in the order of the sources."""
    sources = (volume.get("projected") or {}).get("sources") or ()
    return [_token_request(source["serviceAccountToken"]) for source in sources if "serviceAccountToken" in source]


def project(
    volume: Json,
    *,
    pod: Json,
    sources: Sources,
    tokens: Mapping[TokenRequest, str],
    allocatable: Mapping[str, str],
) -> Files:
    """Files of a configMap, secret, downwardAPI or projected volume: relative path -> content and mode."""
    if spec := volume.get("configMap"):
        return _keys(sources.config_map(spec["name"]), spec, name=spec["name"], kind="configmap", mode=_mode(spec))
    if spec := volume.get("secret"):
        name = spec["secretName"]
        return _keys(sources.secret(name), spec, name=name, kind="secret", mode=_mode(spec))
    if "downwardAPI" in volume:
        spec = volume["downwardAPI"]
        return _downward(spec, pod=pod, allocatable=allocatable, mode=_mode(spec))
    if "projected" not in volume:
        raise VolumeError(f"volume {volume['name']}: the simulated kubelet has no volumes of kind {_kind(volume)}")
    projected = volume["projected"]
    mode = _mode(projected)
    files: Files = {}
    for source in projected.get("sources") or ():
        if spec := source.get("configMap"):
            files |= _keys(sources.config_map(spec["name"]), spec, name=spec["name"], kind="configmap", mode=mode)
        elif spec := source.get("secret"):
            files |= _keys(sources.secret(spec["name"]), spec, name=spec["name"], kind="secret", mode=mode)
        elif "downwardAPI" in source:
            files |= _downward(source["downwardAPI"], pod=pod, allocatable=allocatable, mode=mode)
        elif spec := source.get("serviceAccountToken"):
            files[spec["path"]] = File(content=tokens[_token_request(spec)].encode(), mode=mode)
        else:
            raise VolumeError(f"volume {volume['name']}: the simulated kubelet cannot project {sorted(source)}")
    return files


def _keys(data: Mapping[str, bytes] | None, spec: Json, *, name: str, kind: str, mode: int) -> Files:
    optional = bool(spec.get("optional"))
    if data is None:
        if optional:
            return {}
        raise VolumeError(f'{kind} "{name}" not found')
    if not spec.get("items"):
        return {key: File(content=value, mode=mode) for key, value in data.items()}
    files: Files = {}
    for item in spec["items"]:
        if item["key"] in data:
            files[item["path"]] = File(content=data[item["key"]], mode=item.get("mode", mode))
        elif not optional:
            raise VolumeError(f"{kind} references non-existent config key: {item['key']}")
    return files


def _downward(spec: Json, *, pod: Json, allocatable: Mapping[str, str], mode: int) -> Files:
    files: Files = {}
    for item in spec.get("items") or ():
        if reference := item.get("fieldRef"):
            text = field_value(pod, reference["fieldPath"])
        else:
            text = resource_value(pod, item["resourceFieldRef"], container_name="", allocatable=allocatable)
        files[item["path"]] = File(content=text.encode(), mode=item.get("mode", mode))
    return files


def _token_request(spec: Json) -> TokenRequest:
    return TokenRequest(audience=spec.get("audience", ""), seconds=spec.get("expirationSeconds", DEFAULT_TOKEN_SECONDS))


def _mode(spec: Json) -> int:
    return int(spec.get("defaultMode", DEFAULT_MODE))


def _kind(volume: Json) -> str:
    return next((key for key in volume if key != "name"), "emptyDir")
