"""What one attempt consists of, as the job's plan needs it: each part is built only when it is asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torchtpu_operator.api import TorchTPUJob, TPUSliceClass
from torchtpu_operator.api.slice_class import JobDefaults
from torchtpu_operator.plan import names
from torchtpu_operator.plan.actions import CreateAuthSecret, CreateObject
from torchtpu_operator.plan.gate import WorkerGroup
from torchtpu_operator.plan.observed import RayJobSeen
from torchtpu_operator.plan.ray_cluster import (
    WorkerPool,
    attempt_hash,
    build_auth_secret,
    build_failure_config_map,
    build_ray_cluster,
    build_runner_config_map,
    build_runtime_env,
    ray_entrypoint,
    shape_of,
)
from torchtpu_operator.plan.ray_pods import TOKEN_KEY
from torchtpu_operator.tpu import Shape

if TYPE_CHECKING:
    from torchtpu_operator.plan.job.draft import Draft

Json = dict[str, Any]


@dataclass(frozen=True)
class Manifests:
    """One attempt of one job on its slices."""

    job: TorchTPUJob
    slice_class: TPUSliceClass | None
    pools: tuple[WorkerPool, ...]
    attempt: int

    @classmethod
    def of(cls, draft: "Draft", *, attempt: int = 1) -> "Manifests":
        """Of the job's slices, in slice order; before they are there, of pools with made-up names (for the dry run)."""
        observed, count, held = draft.observed, draft.spec.num_slices, draft.held
        pools = tuple(
            WorkerPool.of(held[index]) if index in held else WorkerPool(name=f"slice-{index}") for index in range(count)
        )
        return cls(job=observed.job, slice_class=observed.slice_class, pools=pools, attempt=attempt)

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.job)

    @cached_property
    def spec_hash(self) -> str:
        """Of the fields that a running attempt depends on."""
        return attempt_hash(self.job)

    @cached_property
    def groups(self) -> tuple[WorkerGroup, ...]:
        cluster = names.ray_cluster_name(self.job.metadata.name, job_uid=self.job.metadata.uid, attempt=self.attempt)
        return tuple(
            WorkerGroup(name=names.worker_group_name(index), tpu_name=names.tpu_name(cluster, slice_index=index))
            for index in range(len(self.pools))
        )

    @property
    def ray_entrypoint(self) -> str:
        return ray_entrypoint(self.job)

    @property
    def runtime_env(self) -> Json:
        return build_runtime_env(self.job)

    def ray_cluster(self) -> Json:
        defaults = self.slice_class.spec.job_defaults if self.slice_class is not None else JobDefaults()
        return build_ray_cluster(self.job, defaults=defaults, pools=self.pools, attempt=self.attempt)

    def create(self) -> tuple[CreateObject | CreateAuthSecret, ...]:
        """ConfigMap and Secret first: a pod that starts without them would wait for the kubelet's next look."""
        secret = build_auth_secret(self.job, attempt=self.attempt, token="")
        secret.pop("data")  # the token is made where it is written, and never part of a plan
        return (
            CreateObject(manifest=build_runner_config_map(self.job, attempt=self.attempt)),
            CreateAuthSecret(manifest=secret, key=TOKEN_KEY),
            CreateObject(manifest=self.ray_cluster()),
        )

    def failure(self, failed: RayJobSeen) -> CreateObject:
        """What is kept of an attempt that broke off."""
        return CreateObject(manifest=build_failure_config_map(self.job, failed, attempt=self.attempt))

    def config_maps(self) -> tuple[tuple[str, str], ...]:
        """(namespace, name) of what the pods cannot start without."""
        source = self.job.spec.working_dir.config_map if self.job.spec.working_dir else None
        return () if source is None else ((self.job.metadata.namespace or "default", source.name),)

    def dry_run(self) -> tuple[Json, ...]:
        """The RayCluster and one pod of each template, as the apiserver must accept them before anything is spent."""
        cluster = self.ray_cluster()
        templates = {"head": cluster["spec"]["headGroupSpec"]["template"]}
        for group in cluster["spec"]["workerGroupSpecs"][:1]:
            templates["worker"] = group["template"]
        pods = tuple(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **template.get("metadata", {}),
                    "name": f"{cluster['metadata']['name']}-{role}-check",
                    "namespace": cluster["metadata"]["namespace"],
                },
                "spec": template["spec"],
            }
            for role, template in templates.items()
        )
        return (build_runner_config_map(self.job, attempt=self.attempt), cluster, *pods)
