"""Rules about pod overlays: what the operator owns, and what every container needs."""

from collections.abc import Callable, Iterable
from typing import Final

from torchtpu_operator.api import constants
from torchtpu_operator.api.constants import TAKEN_ANNOTATIONS, TAKEN_LABELS
from torchtpu_operator.api.env_rules import template_env_rule
from torchtpu_operator.api.pod import ContainerOverlay, PodTemplate
from torchtpu_operator.api.rule import FORBIDDEN, Rule, cel_list, cel_map, cel_text
from torchtpu_operator.runner.constants import MOUNT_PATH, WORKING_DIR

MAIN_CONTAINER: Final = "ray"
PINNED_NODE_LABELS: Final = (
    constants.NODE_LABEL_POOL,
    constants.NODE_LABEL_ACCELERATOR,
    constants.NODE_LABEL_TOPOLOGY,
)

JOB_TEMPLATES: Final = ("spec.template", "spec.head.template", "spec.worker.template")
WORKER_TEMPLATES: Final = ("spec.template", "spec.worker.template")
CLASS_TEMPLATES: Final = ("spec.jobDefaults.template",)

RESTART_POLICY: Final = (
    "restartPolicy is set by the operator, so that a lost host rebuilds its whole slice: leave it unset"
)
START_COMMAND: Final = (
    "the start command of the container ray is KubeRay's: leave command and args unset, and use spec.entrypoint "
    "or an init container"
)
TPU_LIMIT: Final = "google.com/tpu of the container ray follows from the topology: leave it unset"
TPU_OF_OTHERS: Final = (
    "container {name} must not ask for google.com/tpu: the container ray has all chips of the host, and no host "
    "would fit the pod"
)
NODE_NAME: Final = "nodeName would bypass the scheduler: leave it unset, and say in nodeSelector where the pod may run"
VOLUME: Final = "volume {name} is the operator's: choose a name that does not begin with torchtpu-"
MOUNT: Final = "mountPath {path} is the operator's: choose another one"
NEEDS_IMAGE: Final = "container {name} needs an image: only the container ray takes spec.image"
NODE_LABELS: Final = "the labels that pin a worker to its slice are set by the operator: remove {name}"
POD_ANNOTATIONS: Final = "annotations that begin with {prefix} are for KubeRay and the operator: remove them"
POD_LABELS: Final = "labels that begin with {prefix} are taken: remove them"
TAKEN_MOUNTS: Final = (MOUNT_PATH, WORKING_DIR)
INIT_NAME: Final = "init container {name} has the name of one of the operator's: choose another one"
OVER_SHM: Final = "mountPath /dev/shm/ would lie over the operator's /dev/shm: write /dev/shm"
OPEN_VOLUME: Final = "torchtpu-shm"  # the operator's /dev/shm, which users may size or replace

_PINNED_CEL = cel_map(dict.fromkeys(PINNED_NODE_LABELS, 1))
# Guards are spelt with has(): an optional's orValue() hides maxItems and maxLength from the cost estimate.
_NO_CONTAINERS = "!has(self.spec) || !has(self.spec.containers)"
_CONTAINERS = "self.spec.containers"
_OWN_NAME = "(c.name == 'ray' || c.name.startsWith('torchtpu-'))"
_NODE_SELECTOR = "self.spec.nodeSelector"
_LABELS = "self.metadata.labels"
_ANNOTATIONS = "self.metadata.annotations"
_TAKEN = " || ".join(f"k.startsWith('{prefix}')" for prefix in TAKEN_LABELS)
_TAKEN_ANNOTATION = " || ".join(f"k.startsWith('{prefix}')" for prefix in TAKEN_ANNOTATIONS)


def _containers(template: PodTemplate) -> tuple[ContainerOverlay, ...]:
    return (template.spec.containers or ()) if template.spec else ()


def _main(template: PodTemplate) -> Iterable[ContainerOverlay]:
    return (container for container in _containers(template) if container.name == MAIN_CONTAINER)


def _restart_policy(template: PodTemplate) -> str | None:
    return RESTART_POLICY if template.spec and template.spec.restart_policy is not None else None


def _container_restart(template: PodTemplate) -> str | None:
    return RESTART_POLICY if any(each.restart_policy is not None for each in _main(template)) else None


def _start_command(template: PodTemplate) -> str | None:
    taken = any(container.command is not None or container.args is not None for container in _main(template))
    return START_COMMAND if taken else None


def _asks_for_tpu(container: ContainerOverlay) -> bool:
    resources = container.resources
    if resources is None:
        return False
    return constants.TPU_RESOURCE in {**(resources.limits or {}), **(resources.requests or {})}


def _tpu_limit(template: PodTemplate) -> str | None:
    return TPU_LIMIT if any(_asks_for_tpu(container) for container in _main(template)) else None


def _tpu_of_others(template: PodTemplate) -> str | None:
    return _tpu_elsewhere(container for container in _containers(template) if container.name != MAIN_CONTAINER)


def _tpu_of_init(template: PodTemplate) -> str | None:
    return _tpu_elsewhere((template.spec.init_containers or ()) if template.spec else ())


def _tpu_elsewhere(containers: Iterable[ContainerOverlay]) -> str | None:
    name = next((container.name for container in containers if _asks_for_tpu(container)), None)
    return None if name is None else TPU_OF_OTHERS.format(name=name)


def _node_name(template: PodTemplate) -> str | None:
    return NODE_NAME if template.spec and template.spec.node_name is not None else None


def _volumes(template: PodTemplate) -> str | None:
    for volume in (template.spec.volumes or ()) if template.spec else ():
        if volume.name.startswith("torchtpu-") and volume.name != OPEN_VOLUME:
            return VOLUME.format(name=volume.name)
    return None


def _mounts(template: PodTemplate) -> str | None:
    paths = tuple(_mount_paths(template))
    taken = next((each for each in TAKEN_MOUNTS if any(f"{path}/".startswith(f"{each}/") for path in paths)), None)
    return None if taken is None else MOUNT.format(path=taken)


def _over_shm(template: PodTemplate) -> str | None:
    return OVER_SHM if "/dev/shm/" in _mount_paths(template) else None


def _mount_paths(template: PodTemplate) -> Iterable[str]:
    return (mount.mount_path for container in _main(template) for mount in container.volume_mounts or ())


def _needs_image(template: PodTemplate) -> str | None:
    return _without_image(_containers(template))


def _init_needs_image(template: PodTemplate) -> str | None:
    return _without_image((template.spec.init_containers or ()) if template.spec else ())


def _init_name(template: PodTemplate) -> str | None:
    inits = (template.spec.init_containers or ()) if template.spec else ()
    taken = (each.name for each in inits if each.name == MAIN_CONTAINER or each.name.startswith("torchtpu-"))
    name = next(taken, None)
    return None if name is None else INIT_NAME.format(name=name)


def _without_image(containers: Iterable[ContainerOverlay]) -> str | None:
    for container in containers:
        if container.name != MAIN_CONTAINER and container.image is None:
            return NEEDS_IMAGE.format(name=container.name)
    return None


def _node_labels(template: PodTemplate) -> str | None:
    selector = (template.spec.node_selector or {}) if template.spec else {}
    taken = next((key for key in PINNED_NODE_LABELS if key in selector), None)
    return None if taken is None else NODE_LABELS.format(name=taken)


def _pod_labels(template: PodTemplate) -> str | None:
    labels = (template.metadata.labels or {}) if template.metadata else {}
    taken = _first_prefix(TAKEN_LABELS, labels)
    return None if taken is None else POD_LABELS.format(prefix=taken)


def _pod_annotations(template: PodTemplate) -> str | None:
    annotations = (template.metadata.annotations or {}) if template.metadata else {}
    taken = _first_prefix(TAKEN_ANNOTATIONS, annotations)
    return None if taken is None else POD_ANNOTATIONS.format(prefix=taken)


def _first_prefix(prefixes: Iterable[str], keys: Iterable[str]) -> str | None:
    return next((prefix for prefix in prefixes if any(key.startswith(prefix) for key in keys)), None)


def template_rules(*, everywhere: tuple[str, ...], workers: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules for pod overlays at these places; `workers` are those that reach worker pods."""
    return (
        template_env_rule(everywhere),
        Rule(
            id="template-restart-policy",
            at=everywhere,
            field=".spec.restartPolicy",
            cel="!has(self.spec) || !has(self.spec.restartPolicy)",
            message=RESTART_POLICY,
            check=_restart_policy,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-container-restart",
            at=everywhere,
            field=".spec.containers",
            cel=f"{_NO_CONTAINERS} || {_CONTAINERS}.all(c, c.name != 'ray' || !has(c.restartPolicy))",
            message=RESTART_POLICY,
            check=_container_restart,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-start-command",
            at=everywhere,
            field=".spec.containers",
            cel=f"{_NO_CONTAINERS} || {_CONTAINERS}.all(c, c.name != 'ray' || (!has(c.command) && !has(c.args)))",
            message=START_COMMAND,
            check=_start_command,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-tpu-limit",
            at=everywhere,
            field=".spec.containers",
            cel=(
                f"{_NO_CONTAINERS} || {_CONTAINERS}.all(c, c.name != 'ray' || !has(c.resources) || ("
                "(!has(c.resources.limits) || !('google.com/tpu' in c.resources.limits)) && "
                "(!has(c.resources.requests) || !('google.com/tpu' in c.resources.requests))))"
            ),
            message=TPU_LIMIT,
            check=_tpu_limit,
            reason=FORBIDDEN,
        ),
        _tpu_rule(everywhere, field="containers", others="c.name == 'ray' || ", check=_tpu_of_others),
        _tpu_rule(everywhere, field="initContainers", others="", check=_tpu_of_init),
        Rule(
            id="template-node-name",
            at=everywhere,
            field=".spec.nodeName",
            cel="!has(self.spec) || !has(self.spec.nodeName)",
            message=NODE_NAME,
            check=_node_name,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-volumes",
            at=everywhere,
            field=".spec.volumes",
            cel=(
                "!has(self.spec) || !has(self.spec.volumes)"
                f" || self.spec.volumes.all(v, !v.name.startsWith('torchtpu-') || v.name == '{OPEN_VOLUME}')"
            ),
            message="volumes whose names begin with torchtpu- are the operator's",
            message_expression=cel_text(
                VOLUME,
                name=f"self.spec.volumes.filter(v, v.name.startsWith('torchtpu-') && v.name != '{OPEN_VOLUME}')[0].name",
            ),
            check=_volumes,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-mounts",
            at=everywhere,
            field=".spec.containers",
            cel=_no_mount(" || ".join(_below(f"'{path}'") for path in TAKEN_MOUNTS)),
            message="some mount paths are the operator's: choose others",
            message_expression=cel_text(
                MOUNT,
                path=(
                    f"{cel_list(TAKEN_MOUNTS)}.filter(p, {_CONTAINERS}.exists(c, c.name == 'ray'"
                    f" && has(c.volumeMounts) && c.volumeMounts.exists(m, {_below('p')})))[0]"
                ),
            ),
            check=_mounts,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-shm",
            at=everywhere,
            field=".spec.containers",
            cel=_no_mount("m.mountPath == '/dev/shm/'"),
            message=OVER_SHM,
            check=_over_shm,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-init-name",
            at=everywhere,
            field=".spec.initContainers",
            cel=f"!has(self.spec) || !has(self.spec.initContainers) || self.spec.initContainers.all(c, !{_OWN_NAME})",
            message="an init container has the name of one of the operator's: choose another one",
            message_expression=cel_text(INIT_NAME, name=f"self.spec.initContainers.filter(c, {_OWN_NAME})[0].name"),
            check=_init_name,
        ),
        _image_rule(everywhere, field="containers", check=_needs_image),
        _image_rule(everywhere, field="initContainers", check=_init_needs_image),
        Rule(
            id="template-node-labels",
            at=workers,
            field=".spec.nodeSelector",
            cel=f"!has(self.spec) || !has(self.spec.nodeSelector) || {_NODE_SELECTOR}.all(k, !(k in {_PINNED_CEL}))",
            message="the labels that pin a worker to its slice are set by the operator",
            message_expression=cel_text(
                NODE_LABELS, name=f"{cel_list(PINNED_NODE_LABELS)}.filter(k, k in {_NODE_SELECTOR})[0]"
            ),
            check=_node_labels,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-labels",
            at=everywhere,
            field=".metadata.labels",
            cel=f"!has(self.metadata) || !has(self.metadata.labels) || {_LABELS}.all(k, !({_TAKEN}))",
            message=f"labels that begin with {', '.join(TAKEN_LABELS)} are taken",
            message_expression=cel_text(
                POD_LABELS,
                prefix=f"{cel_list(TAKEN_LABELS)}.filter(p, {_LABELS}.exists(k, k.startsWith(p)))[0]",
            ),
            check=_pod_labels,
            reason=FORBIDDEN,
        ),
        Rule(
            id="template-annotations",
            at=everywhere,
            field=".metadata.annotations",
            cel=(f"!has(self.metadata) || !has({_ANNOTATIONS}) || {_ANNOTATIONS}.all(k, !({_TAKEN_ANNOTATION}))"),
            message=f"annotations that begin with {', '.join(TAKEN_ANNOTATIONS)} are for KubeRay and the operator",
            message_expression=cel_text(
                POD_ANNOTATIONS,
                prefix=f"{cel_list(TAKEN_ANNOTATIONS)}.filter(p, {_ANNOTATIONS}.exists(k, k.startsWith(p)))[0]",
            ),
            check=_pod_annotations,
            reason=FORBIDDEN,
        ),
    )


def _below(path: str) -> str:
    """As CEL: the mount `m` is at this path or below it, in what is a read-only volume."""
    return f"(m.mountPath == {path} || m.mountPath.startsWith({path} + '/'))"


def _no_mount(wrong: str) -> str:
    """As CEL: no mount `m` of the container ray is wrong."""
    mounts = f"c.name != 'ray' || !has(c.volumeMounts) || c.volumeMounts.all(m, !({wrong}))"
    return f"{_NO_CONTAINERS} || {_CONTAINERS}.all(c, {mounts})"


def _tpu_rule(at: tuple[str, ...], *, field: str, others: str, check: Callable[[PodTemplate], str | None]) -> Rule:
    asks = (
        "has(c.resources) && ((has(c.resources.limits) && 'google.com/tpu' in c.resources.limits)"
        " || (has(c.resources.requests) && 'google.com/tpu' in c.resources.requests))"
    )
    mine = "c.name != 'ray' && " if others else ""
    return Rule(
        id=f"template-tpu-others-{field}",
        at=at,
        field=f".spec.{field}",
        cel=f"!has(self.spec) || !has(self.spec.{field}) || self.spec.{field}.all(c, {others}!({asks}))",
        message="only the container ray may have google.com/tpu, which is the operator's",
        message_expression=cel_text(TPU_OF_OTHERS, name=f"self.spec.{field}.filter(c, {mine}{asks})[0].name"),
        check=check,
        reason=FORBIDDEN,
    )


def _image_rule(at: tuple[str, ...], *, field: str, check: Callable[[PodTemplate], str | None]) -> Rule:
    return Rule(
        id=f"template-image-{field}",
        at=at,
        field=f".spec.{field}",
        cel=f"!has(self.spec) || !has(self.spec.{field}) || self.spec.{field}.all(c, c.name == 'ray' || has(c.image))",
        message="every container but ray needs an image",
        message_expression=cel_text(
            NEEDS_IMAGE, name=f"self.spec.{field}.filter(c, c.name != 'ray' && !has(c.image))[0].name"
        ),
        check=check,
    )
