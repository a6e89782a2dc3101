"""What one attempt is made of: the RayCluster, its runner and its token."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import comparable, to_dict
from torchtpu_operator.api.job import Launcher, TorchTPUJob
from torchtpu_operator.api.job_rules import CHANGES_WHILE_SUSPENDED
from torchtpu_operator.api.slice import TPUSlice
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.plan import names
from torchtpu_operator.plan.observed import RayJobSeen
from torchtpu_operator.plan.ray_pods import TOKEN_KEY, PodBuilder, job_labels
from torchtpu_operator.plan.runner_files import runner_modules
from torchtpu_operator.runner import constants as runner
from torchtpu_operator.tpu import Shape, resolve


class ImageMissingError(ValueError):
    """Neither the job nor its class names an image."""


@dataclass(frozen=True, kw_only=True)
class WorkerPool:
    """The node pool of one slice, as far as pods must know it."""

    name: str
    taints: tuple[tuple[str, str, str], ...] = ()  # key, value, effect, beside the taint of the slice itself

    @classmethod
    def of(cls, slice: TPUSlice) -> Self:
        """The pool of a TPUSlice."""
        pool = slice.spec.node_pool
        return cls(name=pool.name, taints=tuple((taint.key, taint.value, taint.effect) for taint in pool.taints))


def shape_of(job: TorchTPUJob) -> Shape:
    """The shape of one slice of the job. Raises ShapeError."""
    return resolve(job.spec.accelerator, job.spec.topology, chips_per_host=job.spec.chips_per_host)


def image_of(job: TorchTPUJob, defaults: JobDefaults) -> str:
    """The image of head and workers. Raises ImageMissingError."""
    if image := job.spec.image or defaults.image:
        return image
    raise ImageMissingError(
        "there is no image: set spec.image, or jobDefaults.image in the TPUSliceClass, to one with Ray and torch_tpu"
    )


def build_ray_cluster(
    job: TorchTPUJob, *, defaults: JobDefaults, pools: Sequence[WorkerPool], attempt: int
) -> dict[str, Any]:
    """The RayCluster of one attempt: a head, and one worker group `s<i>` for each of `pools`, in slice order.

    Raises ShapeError and ImageMissingError. Uses no field that KubeRay 1.5.0 lacks.
    """
    shape = shape_of(job)
    name = names.ray_cluster_name(job.metadata.name, job_uid=job.metadata.uid, attempt=attempt)
    pods = PodBuilder(
        job,
        image=image_of(job, defaults),
        class_template=defaults.template,
        shape=shape,
        ray_cluster=name,
        attempt=attempt,
    )
    spec: dict[str, Any] = {
        "enableInTreeAutoscaling": False,
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0", "dashboard-host": "0.0.0.0"},  # noqa: S104 - inside the pod
            "template": pods.head(),
        },
        "workerGroupSpecs": [
            {
                "groupName": names.worker_group_name(index),
                "replicas": 1,
                "minReplicas": 1,
                "maxReplicas": 1,
                "numOfHosts": shape.hosts,
                "rayStartParams": _worker_start_params(shape),
                "template": pods.worker(
                    index=index,
                    pool=pool.name,
                    taints=[{"key": key, "value": value, "effect": effect} for key, value, effect in pool.taints],
                ),
            }
            for index, pool in enumerate(pools)
        ],
    }
    if version := job.spec.ray_version or defaults.ray_version:
        spec["rayVersion"] = version
    manifest = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": _metadata(job, name, attempt=attempt),
        "spec": spec,
    }
    copy: dict[str, Any] = json.loads(json.dumps(manifest))  # no part is shared with another or with the job
    return copy


def build_runner_config_map(job: TorchTPUJob, *, attempt: int) -> dict[str, Any]:
    """The runner and the entrypoint of one attempt; immutable, so that an upgrade never changes a running one."""
    cluster = names.ray_cluster_name(job.metadata.name, job_uid=job.metadata.uid, attempt=attempt)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(job, names.runner_config_map_name(cluster), attempt=attempt),
        "immutable": True,
        "data": {**runner_modules(), runner.ENTRYPOINT_KEY: job.spec.entrypoint},
    }


def build_failure_config_map(job: TorchTPUJob, failed: RayJobSeen, *, attempt: int) -> dict[str, Any]:
    """Where an attempt broke off and what was printed last; it outlives the head and its log."""
    cluster = names.ray_cluster_name(job.metadata.name, job_uid=job.metadata.uid, attempt=attempt)
    result = failed.result or {}
    told = {
        "reason": result.get("reason") or failed.error_type,
        "exitCode": result.get("exitCode", failed.exit_code),
        "rank": result.get("rank"),
        "pod": result.get("pod"),
        "node": result.get("node"),
        "lastLines": "".join(f"{line}\n" for line in failed.last_lines),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(job, names.failure_config_map_name(cluster), attempt=attempt),
        "immutable": True,
        "data": {key: str(value) for key, value in told.items() if value not in (None, "")},
    }


def build_auth_secret(job: TorchTPUJob, *, attempt: int, token: str) -> dict[str, Any]:
    """The Ray token of one attempt."""
    cluster = names.ray_cluster_name(job.metadata.name, job_uid=job.metadata.uid, attempt=attempt)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(job, names.auth_secret_name(cluster), attempt=attempt),
        "immutable": True,
        "type": "Opaque",
        "data": {TOKEN_KEY: base64.b64encode(token.encode()).decode()},
    }


def build_runtime_env(job: TorchTPUJob) -> dict[str, Any]:
    """Ray's runtime_env of the submission: the user's own, and nothing of ours.

    A variable of ours in it would clash with a script's own `ray.init(runtime_env=...)`.
    """
    given = to_dict(job.spec.runtime_env) if job.spec.runtime_env else {}
    runtime_env = {name: value for name, value in given.items() if value is not None}
    if job.spec.working_dir and job.spec.working_dir.uri:
        runtime_env["working_dir"] = job.spec.working_dir.uri
    return runtime_env


def ray_entrypoint(job: TorchTPUJob) -> str:
    """What Ray is given to run: the runner, or for launcher Driver what runs the user's own text as it was written."""
    return runner.DRIVER_COMMAND if job.spec.launcher is Launcher.DRIVER else runner.RUNNER_COMMAND


def attempt_hash(job: TorchTPUJob) -> str:
    """Hash of the fields that a running attempt depends on; a difference ends it.

    Blind to what the apiserver lets pass for the same, another order of variables or volumes: a running job must not
    be started anew by an edit that it may take at any time. The next attempt has the new order.
    """
    document = comparable(job.spec)
    return names.document_hash({key: document[key] for key in CHANGES_WHILE_SUSPENDED if key in document})


def _worker_start_params(shape: Shape) -> dict[str, str]:
    if shape.devices_per_chip == 1:
        return {}
    # KubeRay offers the chips of the limit; with RAY_TPU_RESOURCE_PER_CHIP Ray counts devices
    return {"resources": json.dumps(json.dumps({"TPU": shape.devices_per_host}))}


def _metadata(job: TorchTPUJob, name: str, *, attempt: int) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": job.metadata.namespace or "default",
        "labels": job_labels(job, attempt=attempt),
        "ownerReferences": [
            {
                "apiVersion": constants.API_VERSION,
                "kind": constants.JOB_KIND,
                "name": job.metadata.name,
                "uid": job.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
