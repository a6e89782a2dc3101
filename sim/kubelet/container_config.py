"""What a container is started with: image, user, command, environment, mounts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.images import Image
from sim.kubelet.env import ConfigError, Sources, build_command, build_container_env
from sim.kubelet.fields import quantity
from sim.kubelet.pod_files import pod_hostname
from sim.kubelet.sandbox import Mount, RootKind, Sandbox
from sim.nodes import TPU_RESOURCE

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class HostView:
    """What a container learns of its host."""

    root: RootKind
    allocatable: Mapping[str, str]
    tpu_env: Mapping[str, str]
    service_env: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ContainerConfig:
    sandbox: Sandbox
    command: Sequence[str]
    env: Mapping[str, str]


def build_env(container: Json, *, pod: Json, image: Image, sources: Sources, host: HostView) -> dict[str, str]:
    """The whole environment: the image's, the device plugin's where chips are asked for, the pod's. Later ones win.

    Raises ConfigError.
    """
    try:
        own = build_container_env(
            container, pod=pod, sources=sources, service_env=host.service_env, node_allocatable=host.allocatable
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error
    plugin = host.tpu_env if tpu_request(container) else {}
    return {**image.env, "HOME": image.home, "HOSTNAME": pod_hostname(pod), **plugin, **own}


def build_config(
    container: Json, *, pod: Json, image: Image, env: Mapping[str, str], mounts: Sequence[Mount], root: RootKind
) -> ContainerConfig:
    """Raises ConfigError when the security context and the image do not go together."""
    pod_security = pod["spec"].get("securityContext") or {}
    security = {**pod_security, **(container.get("securityContext") or {})}
    user = security.get("runAsUser", image.user)
    if security.get("runAsNonRoot") and user == 0:
        raise ConfigError(
            "container has runAsNonRoot and image will run as root"
            f' (pod: "{pod["metadata"]["name"]}", container: {container["name"]})'
        )
    command = build_command(container, entrypoint=image.entrypoint, command=image.command, values=env)
    if not command:
        raise ConfigError("no command specified")
    group = pod_security.get("fsGroup")
    return ContainerConfig(
        sandbox=Sandbox(
            image=image,
            root=root,
            hostname=pod_hostname(pod),
            user=user,
            group=security.get("runAsGroup", user if "runAsUser" not in security else 0),
            groups=[*(pod_security.get("supplementalGroups") or ()), *([group] if group is not None else [])],
            working_dir=container.get("workingDir") or image.working_dir,
            mounts=mounts,
            read_only_root=bool(security.get("readOnlyRootFilesystem")),
            drop_capabilities="ALL" in ((security.get("capabilities") or {}).get("drop") or ()),
        ),
        command=command,
        env=env,
    )


def termination_log(container: Json, *, source: Path) -> Mount:
    """Where the container may leave its last words."""
    return Mount(source=source, target=container.get("terminationMessagePath") or "/dev/termination-log")


def tpu_request(container: Json) -> int:
    """Chips that a container asks for."""
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        if amount := (resources.get(kind) or {}).get(TPU_RESOURCE):
            return int(quantity(amount))
    return 0


def admission_error(pod: Json, *, chips: int, partial: bool) -> str | None:
    """What GKE's device plugin has against a pod on a host of `chips` chips, or None.

    `partial` is for generations whose chips may be shared out (tpu7x).
    """
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    for request in (tpu_request(container) for container in containers):
        if request and request != chips and not (partial and request < chips):
            return (
                "Allocate failed due to rpc error: code = Unknown desc = you must request all"
                f" {chips} chips on this node together, which is unexpected"
            )
    return None
