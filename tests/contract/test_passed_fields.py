"""Fields of other APIs' types that our schema must name: as those APIs' own clients know them."""

from collections.abc import Iterable
from typing import Any

import pytest
import ray.runtime_env as ray_runtime_env
from google.cloud import container_v1
from kubernetes import client
from pydantic import BaseModel

from torchtpu_operator.api import passed_fields
from torchtpu_operator.api.job import RuntimeEnv
from torchtpu_operator.api.offer import NetworkConfig
from torchtpu_operator.api.pod import (
    ContainerOverlay,
    EnvVar,
    EnvVarSource,
    PodOverlaySpec,
    Resources,
    TolerationOverlay,
    VolumeMountOverlay,
    VolumeOverlay,
)

KUBERNETES: dict[type[BaseModel], Any] = {
    PodOverlaySpec: client.V1PodSpec,
    ContainerOverlay: client.V1Container,
    VolumeOverlay: client.V1Volume,
    VolumeMountOverlay: client.V1VolumeMount,
    TolerationOverlay: client.V1Toleration,
    Resources: client.V1ResourceRequirements,
    EnvVar: client.V1EnvVar,
    EnvVarSource: client.V1EnvVarSource,
}


def unnamed(model: type[BaseModel], theirs: Iterable[str]) -> set[str]:
    return set(theirs) - set(model.model_json_schema(by_alias=True)["properties"])


@pytest.mark.parametrize("model", KUBERNETES, ids=lambda model: model.__name__)
def test_every_field_of_a_pod_is_named(model: type[BaseModel]) -> None:
    """A field that is missing could take the place of another one in a running job, unseen by the rules."""
    assert unnamed(model, KUBERNETES[model].attribute_map.values()) == set()


def test_every_field_of_a_network_config_is_named() -> None:
    theirs = (
        f"{first}{''.join(word.capitalize() for word in rest)}"
        for first, *rest in (name.split("_") for name in container_v1.NodeNetworkConfig.meta.fields)
    )
    assert unnamed(NetworkConfig, theirs) == set()


def test_every_field_of_a_runtime_env_is_named() -> None:
    theirs = ray_runtime_env.RuntimeEnv.known_fields - ray_runtime_env.RuntimeEnv.extensions_fields
    assert unnamed(RuntimeEnv, theirs) == set()
    assert len(passed_fields.RUNTIME_ENV) > 10
