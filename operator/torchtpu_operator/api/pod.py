"""Pod overlays: what users may lay over the pods that the operator builds.

Typed to the skeleton that rules look at; every other field of a pod spec is kept as it is written.
"""

from typing import Any

from pydantic import Field
from pydantic.config import JsonDict

from torchtpu_operator.api.base import ApiModel, OpenModel

MAX_CONTAINERS = 16
BY_NAME: JsonDict = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
MAX_ENV = 256


class EnvVar(OpenModel):
    """One environment variable, as in a pod's container."""

    name: str = Field(description="Name of the variable.", max_length=253)
    value: str | None = Field(
        None, description="Its value; $(OTHER) is replaced as in a pod. Exclusive with valueFrom.", max_length=131072
    )
    value_from: dict[str, Any] | None = Field(
        None,
        description="Source of the value, as in a pod: secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef.",
    )


class Resources(OpenModel):
    """Requests and limits of one container."""

    limits: dict[str, int | str] | None = Field(
        None, description="Limits by resource, for example {memory: 64Gi}.", max_length=32
    )
    requests: dict[str, int | str] | None = Field(
        None, description="Requests by resource, for example {cpu: 8}.", max_length=32
    )


class ContainerOverlay(OpenModel):
    """A container: the one named `ray` is merged into the operator's, any other one is added and needs an image."""

    name: str = Field(
        description="Name of the container; `ray` is the main container of head and workers.", max_length=63
    )
    image: str | None = Field(
        None, description="Image; required but for the container `ray`, which takes spec.image.", max_length=1024
    )
    command: tuple[str, ...] | None = Field(
        None, description="Command; not for the container `ray`, whose start command KubeRay makes.", max_length=64
    )
    args: tuple[str, ...] | None = Field(
        None, description="Arguments; not for the container `ray`, whose start command KubeRay makes.", max_length=64
    )
    env: tuple[EnvVar, ...] | None = Field(
        None,
        description="Environment; an entry of the same name replaces the operator's default.",
        max_length=MAX_ENV,
        json_schema_extra=BY_NAME,
    )
    resources: Resources | None = Field(
        None, description="Requests and limits; google.com/tpu of the container `ray` is the operator's."
    )


class PodOverlaySpec(OpenModel):
    """A pod spec, laid over the operator's by the rules of strategic merge (lists of named things merge by name)."""

    containers: tuple[ContainerOverlay, ...] | None = Field(
        None,
        description="Containers, merged by name; `ray` is the main container.",
        max_length=MAX_CONTAINERS,
        json_schema_extra=BY_NAME,
    )
    init_containers: tuple[ContainerOverlay, ...] | None = Field(
        None,
        description="Init containers, run before Ray starts; merged by name.",
        max_length=MAX_CONTAINERS,
        json_schema_extra=BY_NAME,
    )
    node_selector: dict[str, str] | None = Field(
        None,
        description="Node labels that the pod needs. The labels that pin a worker to its slice are the operator's.",
        max_length=64,
    )
    restart_policy: str | None = Field(
        None, description="Owned by the operator (a lost worker rebuilds its slice): leave it unset.", max_length=16
    )


class PodOverlayMeta(ApiModel):
    """Metadata laid over that of the pod."""

    labels: dict[str, str] | None = Field(
        None,
        description="Labels added to the pod; ray.io/, torchtpu.dev/ and app.kubernetes.io/name are taken.",
        max_length=64,
    )
    annotations: dict[str, str] | None = Field(None, description="Annotations added to the pod.", max_length=64)


class PodTemplate(ApiModel):
    """A pod overlay."""

    metadata: PodOverlayMeta | None = Field(None, description="Labels and annotations added to the pods.")
    spec: PodOverlaySpec | None = Field(
        None,
        description="Pod spec laid over the operator's: volumes, serviceAccountName, tolerations, sidecars and so on.",
    )


class PodRole(ApiModel):
    """What applies to the pods of one role alone."""

    template: PodTemplate | None = Field(None, description="Pod overlay for this role, laid over spec.template.")
