"""Environment and command line of a container, as Kubernetes defines them. Pure: sources are looked up by a Protocol."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from sim.kubelet.fields import field_value, resource_value

Json = dict[str, Any]

_ENV_NAME: Final = re.compile(r"[^=\x00-\x1f\x7f]+")


class ConfigError(Exception):
    """The container cannot be configured now: the message is what `CreateContainerConfigError` shows."""


class Sources(Protocol):
    """ConfigMaps and Secrets of the pod's namespace, fetched before; None if the object does not exist."""

    def config_map(self, name: str) -> Mapping[str, bytes] | None: ...

    def secret(self, name: str) -> Mapping[str, bytes] | None: ...


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)`; `$$` is a literal `$`; a reference without a value stays as written.

    Source: Kubernetes' third_party/forked/golang/expansion.
    """
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "$" or position + 1 == len(text):
            out.append(char)
            position += 1
            continue
        following = text[position + 1]
        end = text.find(")", position + 2) if following == "(" else -1
        if following == "$":
            out.append("$")
            position += 2
        elif end >= 0:
            name = text[position + 2 : end]
            out.append(values.get(name, f"$({name})"))
            position = end + 1
        else:
            out.append("$" + following)
            position += 2
    return "".join(out)


def build_service_env(*, host: str, port: int) -> dict[str, str]:
    """Variables of service `kubernetes`, the only one of which pods learn: other ClusterIPs lead nowhere here."""
    tcp = f"KUBERNETES_PORT_{port}_TCP"
    url = f"tcp://{host}:{port}"
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        "KUBERNETES_PORT": url,
        tcp: url,
        f"{tcp}_PROTO": "tcp",
        f"{tcp}_PORT": str(port),
        f"{tcp}_ADDR": host,
    }


def build_container_env(
    container: Json, *, pod: Json, sources: Sources, service_env: Mapping[str, str], node_allocatable: Mapping[str, str]
) -> dict[str, str]:
    """What `env` and `envFrom` of a container yield; raises ConfigError for what is required and missing.

    `pod` has the addresses in its status already. Later entries see earlier ones, and of two of the same name the
    later wins.
    """
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        env.update(_from_source(source, sources=sources))
    for entry in container.get("env") or ():
        name = entry["name"]
        if entry.get("value"):
            env[name] = expand(entry["value"], {**service_env, **env})
        elif "valueFrom" in entry:
            value = _value_from(entry["valueFrom"], container, pod=pod, sources=sources, allocatable=node_allocatable)
            if value is not None:
                env[name] = value
        else:
            env[name] = ""
    return {**service_env, **env}


def build_command(
    container: Json, *, entrypoint: Sequence[str], command: Sequence[str], values: Mapping[str, str]
) -> list[str]:
    """The argument vector: the pod's command and args over the image's entrypoint and command."""
    if own := container.get("command"):
        words = [*own, *(container.get("args") or ())]
        return [expand(word, values) for word in words]
    return [*entrypoint, *([expand(word, values) for word in container["args"]] if container.get("args") else command)]


def _from_source(source: Json, *, sources: Sources) -> dict[str, str]:
    kind, key, reference = (
        ("configmap", "configMapRef", source["configMapRef"])
        if "configMapRef" in source
        else ("secret", "secretRef", source["secretRef"])
    )
    data = sources.config_map(reference["name"]) if key == "configMapRef" else sources.secret(reference["name"])
    if data is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f'{kind} "{reference["name"]}" not found')
    prefix = source.get("prefix", "")
    pairs = ((prefix + name, value) for name, value in sorted(data.items()))
    return {name: value.decode(errors="replace") for name, value in pairs if _ENV_NAME.fullmatch(name)}


def _value_from(
    source: Json, container: Json, *, pod: Json, sources: Sources, allocatable: Mapping[str, str]
) -> str | None:
    namespace = pod["metadata"]["namespace"]
    if reference := source.get("fieldRef"):
        return field_value(pod, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource_value(pod, reference, container_name=container["name"], allocatable=allocatable)
    if reference := source.get("configMapKeyRef"):
        return _key(sources.config_map(reference["name"]), reference, kind="configmap", where=f"ConfigMap {namespace}")
    if reference := source.get("secretKeyRef"):
        return _key(sources.secret(reference["name"]), reference, kind="secret", where=f"Secret {namespace}")
    raise ConfigError(f"valueFrom {sorted(source)} is not known to the simulated kubelet")


def _key(data: Mapping[str, bytes] | None, reference: Json, *, kind: str, where: str) -> str | None:
    optional = bool(reference.get("optional"))
    if data is None:
        if optional:
            return None
        raise ConfigError(f'{kind} "{reference["name"]}" not found')
    if reference["key"] not in data:
        if optional:
            return None
        raise ConfigError(f"couldn't find key {reference['key']} in {where}/{reference['name']}")
    return data[reference["key"]].decode(errors="replace")
