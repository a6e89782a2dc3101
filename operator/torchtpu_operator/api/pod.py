"""Pod overlays: what users may lay over the pods that the operator builds.

Typed to the skeleton that rules look at; every other field of a pod spec is kept as it is written.
"""

from typing import ClassVar

from pydantic import Field
from pydantic.config import JsonDict

from torchtpu_operator.api import passed_fields
from torchtpu_operator.api.base import ApiModel, OpenModel
from torchtpu_operator.api.constants import TAKEN_ANNOTATIONS, TAKEN_LABELS

MAX_CONTAINERS = 10  # bounds what the rules that look into each may cost (make cel-cost)
BY_NAME: JsonDict = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
BY_MOUNT_PATH: JsonDict = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["mountPath"]}
MAX_ENV = 256
MAX_VOLUMES = 64


class EnvVarSource(OpenModel):
    """Where the value of a variable comes from, as in a pod."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.ENV_SOURCE
    passed_as: ClassVar[str] = "kubectl explain pod.spec.containers.env.valueFrom"


class EnvVar(OpenModel):
    """One environment variable, as in a container of a pod."""

    name: str = Field(description="Name of the variable. Example: HF_TOKEN.", max_length=253)
    value: str | None = Field(
        default=None,
        description="Its value. $(OTHER) is replaced by a variable that stands before it, as in a pod. Not together with "
        "valueFrom.",
        max_length=131072,
    )
    value_from: EnvVarSource | None = Field(
        default=None,
        description="Where the value comes from, as in a pod: secretKeyRef, configMapKeyRef, fieldRef or "
        "resourceFieldRef. Example: {secretKeyRef: {name: hf, key: token}}.",
    )


class Resources(OpenModel):
    """Requests and limits of one container."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.RESOURCES
    passed_as: ClassVar[str] = "kubectl explain pod.spec.containers.resources"

    limits: dict[str, int | str] | None = Field(
        default=None, description="Limits by resource. Example: {memory: 64Gi}.", max_length=32
    )
    requests: dict[str, int | str] | None = Field(
        default=None, description="Requests by resource. Example: {cpu: 8}.", max_length=32
    )


class VolumeMountOverlay(OpenModel):
    """Where a volume is seen in a container, as in a pod."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.VOLUME_MOUNT
    passed_as: ClassVar[str] = "kubectl explain pod.spec.containers.volumeMounts"

    name: str = Field(description="Name of the volume.", max_length=63)
    mount_path: str = Field(
        description="Path in the container. /dev/shm takes the place of the operator's; /opt/torchtpu is taken.",
        max_length=1024,
    )


class VolumeOverlay(OpenModel):
    """A volume of any kind, as in a pod; one of the same name is replaced."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.VOLUME
    passed_as: ClassVar[str] = "kubectl explain pod.spec.volumes"

    name: str = Field(
        description="Name of the volume. Names that begin with torchtpu- are taken, but for torchtpu-shm, the "
        "operator's /dev/shm: an emptyDir in memory of half the container's memory.",
        max_length=63,
    )


class TolerationOverlay(OpenModel):
    """A toleration, as in a pod."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.TOLERATION
    passed_as: ClassVar[str] = "kubectl explain pod.spec.tolerations"

    key: str | None = Field(
        default=None, description="Key of the taint; unset with operator Exists: all.", max_length=317
    )


class ContainerOverlay(OpenModel):
    """A container of a pod. The one named `ray` is merged into the operator's; any other one is added, and needs an
    image. Fields that are not listed here pass as they are: securityContext, lifecycle and so on."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.CONTAINER
    passed_as: ClassVar[str] = "kubectl explain pod.spec.containers"

    name: str = Field(
        description="Name of the container; `ray` is the main container of head and workers.", max_length=63
    )
    image: str | None = Field(
        default=None,
        description="Image of the container. Required but for `ray`, which has spec.image. Example: busybox:1.37.",
        max_length=1024,
    )
    command: tuple[str, ...] | None = Field(
        default=None,
        description="Command of an added container; not for `ray`, whose start command is KubeRay's.",
        max_length=64,
    )
    args: tuple[str, ...] | None = Field(
        default=None,
        description="Arguments of an added container; not for `ray`, whose start command is KubeRay's.",
        max_length=64,
    )
    restart_policy: str | None = Field(
        default=None,
        description="Always makes an init container a sidecar, which runs as long as the pod; not for `ray`, whose hosts "
        "are restarted together. Example: Always.",
        max_length=16,
    )
    env: tuple[EnvVar, ...] | None = Field(
        default=None,
        description="Environment variables; an entry of the same name replaces the operator's default. Example: [{name: "
        'OMP_NUM_THREADS, value: "8"}].',
        max_length=MAX_ENV,
        json_schema_extra=BY_NAME,
    )
    volume_mounts: tuple[VolumeMountOverlay, ...] | None = Field(
        default=None,
        description="Volumes in the container, merged by mountPath.",
        max_length=MAX_VOLUMES,
        json_schema_extra=BY_MOUNT_PATH,
    )
    resources: Resources | None = Field(
        default=None,
        description="Requests and limits. google.com/tpu is the operator's: the container `ray` of a worker has all "
        "chips of the host; its CPU and memory are by default most of the host. Example: {limits: {memory: 64Gi}}.",
    )


class PodOverlaySpec(OpenModel):
    """A pod spec, laid over the operator's by the rules of strategic merge: maps merge, lists of named things merge by
    name, other lists are replaced. Fields that are not listed here pass as they are: volumes, serviceAccountName,
    tolerations, securityContext, imagePullSecrets and so on."""

    passed: ClassVar[tuple[str, ...]] = passed_fields.POD_SPEC
    passed_as: ClassVar[str] = "kubectl explain pod.spec"

    containers: tuple[ContainerOverlay, ...] | None = Field(
        default=None,
        description="Containers, merged by name; `ray` is the main container, others are sidecars. Example: [{name: "
        "ray, volumeMounts: [{name: data, mountPath: /data}]}].",
        max_length=MAX_CONTAINERS,
        json_schema_extra=BY_NAME,
    )
    init_containers: tuple[ContainerOverlay, ...] | None = Field(
        default=None,
        description="Init containers, run before Ray starts; merged by name.",
        max_length=MAX_CONTAINERS,
        json_schema_extra=BY_NAME,
    )
    node_selector: dict[str, str] | None = Field(
        default=None,
        description="Node labels that the pod needs. In workers, the labels that pin them to their slice are the "
        "operator's. Example: {disk: fast}.",
        max_length=64,
    )
    node_name: str | None = Field(
        default=None, description="Not taken: pods are placed by the scheduler; use nodeSelector.", max_length=253
    )
    volumes: tuple[VolumeOverlay, ...] | None = Field(
        default=None,
        description="Volumes of every kind, merged by name. Example: [{name: data, persistentVolumeClaim: {claimName: "
        "data}}].",
        max_length=MAX_VOLUMES,
        json_schema_extra=BY_NAME,
    )
    tolerations: tuple[TolerationOverlay, ...] | None = Field(
        default=None,
        description="Tolerations, added to the operator's own. Example: [{key: team, operator: Exists}].",
        max_length=64,
    )
    restart_policy: str | None = Field(
        default=None,
        description="The operator's, so that a lost host rebuilds its whole slice: leave it unset.",
        max_length=16,
    )


class PodOverlayMeta(ApiModel):
    """Metadata laid over that of the pod."""

    labels: dict[str, str] | None = Field(
        default=None,
        description=f"Labels added to the pod. Those that begin with {', '.join(TAKEN_LABELS)} are taken. "
        "Example: {team: nlp}.",
        max_length=64,
    )
    annotations: dict[str, str] | None = Field(
        default=None,
        description=f"Annotations added to the pod. Those that begin with {', '.join(TAKEN_ANNOTATIONS)} are taken. "
        'Example: {gke-gcsfuse/volumes: "true"}.',
        max_length=64,
    )


class PodTemplate(ApiModel):
    """A pod overlay: what users lay over the pods that the operator builds."""

    metadata: PodOverlayMeta | None = Field(default=None, description="Labels and annotations added to the pods.")
    spec: PodOverlaySpec | None = Field(
        default=None,
        description="Pod spec laid over the operator's: volumes, service account, tolerations, sidecars and so on. "
        "hostNetwork brings dnsPolicy ClusterFirstWithHostNet, and the ports of head and workers are then the "
        "node's: one Ray head per node. Example: {serviceAccountName: trainer}.",
    )


class PodRole(ApiModel):
    """What applies to the pods of one role alone."""

    template: PodTemplate | None = Field(
        default=None, description="Pod overlay for this role, laid over spec.template."
    )
