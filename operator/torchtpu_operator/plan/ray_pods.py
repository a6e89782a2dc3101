"""Pod templates of a RayCluster: the operator's pod, the overlays of class and job, and what stays the operator's."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import to_dict
from torchtpu_operator.api.job import Launcher, TorchTPUJob
from torchtpu_operator.api.pod import PodTemplate
from torchtpu_operator.plan import names
from torchtpu_operator.plan.quantities import quantity
from torchtpu_operator.plan.runner_files import ENTRYPOINT_ITEM, runner_modules
from torchtpu_operator.plan.strategic_merge import merge
from torchtpu_operator.runner import constants as runner
from torchtpu_operator.tpu import Shape

MAIN_CONTAINER: Final = "ray"
TOKEN_KEY: Final = "auth_token"  # noqa: S105 - KubeRay's own key for the same secret

HEAD_CPU: Final = "1"
HEAD_MEMORY: Final = (
    "4Gi"  # GCS, dashboard and the driver; a Driver job that loads data there raises it by head.template
)
WORKER_SHARE: Final = 0.8  # of the machine: the rest is the node's own and that of its daemons
SHM_DIVISOR: Final = 2  # half of the container's memory, in which it counts; Ray's object store wants 30 % there

_GCS_PORT: Final = 6379
_AGENT_PORT: Final = 52365
_WAIT_SECONDS: Final = 120
_AWAIT_HEAD: Final = "torchtpu-await-head"
_RUNNER_VOLUME: Final = "torchtpu-runner"
_CODE_VOLUME: Final = "torchtpu-code"
_SHM_VOLUME: Final = "torchtpu-shm"
_SHM: Final = "/dev/shm"

# KubeRay's own probes wait 10 s before their first look, head and workers one after the other, and need wget.
_HEALTH: Final = {"httpGet": {"path": "/api/healthz", "port": _AGENT_PORT}, "timeoutSeconds": 5}
_ALIVE: Final = {**_HEALTH, "initialDelaySeconds": 30, "periodSeconds": 10, "failureThreshold": 30}
_WORKER_READY: Final = {**_HEALTH, "periodSeconds": 1, "failureThreshold": 60}
# The head is in DNS, and so reachable for its workers, from the moment that GCS listens; the dashboard comes later.
_HEAD_READY: Final = {"tcpSocket": {"port": _GCS_PORT}, "timeoutSeconds": 5, "periodSeconds": 1, "failureThreshold": 60}


class PodBuilder:
    """Builds the templates of one attempt."""

    def __init__(
        self,
        job: TorchTPUJob,
        *,
        image: str,
        class_template: PodTemplate | None,
        shape: Shape,
        ray_cluster: str,
        attempt: int,
    ) -> None:
        self._job, self._image, self._shape = job, image, shape
        self._class_template, self._ray_cluster, self._attempt = class_template, ray_cluster, attempt

    def head(self) -> dict[str, Any]:
        """Pod template of the Ray head: a CPU pod, never on a TPU host."""
        spec = self._job.spec
        container = self._container(
            env=[
                *self._shared_env(),
                # Ray's own wait between SIGTERM and SIGKILL of a stopped job is 3 s: no time for a checkpoint
                {"name": "RAY_JOB_STOP_WAIT_TIME_S", "value": str(spec.stop_grace_period_seconds + 15)},
            ],
            requests={"cpu": HEAD_CPU, "memory": HEAD_MEMORY},
            limits={"memory": HEAD_MEMORY},
            readiness=_HEAD_READY,
        )
        container["ports"] = [
            {"name": "gcs-server", "containerPort": _GCS_PORT},
            {"name": "dashboard", "containerPort": 8265},
            {"name": "client", "containerPort": 10001},
        ]
        pod = self._pod(container, labels={})
        pod["spec"]["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": constants.NODE_LABEL_ACCELERATOR, "operator": "DoesNotExist"}]}
                    ]
                }
            }
        }
        pod = self._overlaid(pod, spec.head.template if spec.head else None)
        pod["spec"]["restartPolicy"] = "Always"
        return self._protected(pod, self._shared_env())

    def worker(self, *, index: int, pool: str, taints: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Pod template of the hosts of one slice, pinned to its node pool."""
        spec, shape = self._job.spec, self._shape
        cpu, memory = worker_cpu(shape), worker_memory_gib(shape)
        own_env = [*self._shared_env(), *self._slice_env(index)]
        container = self._container(
            env=[
                *own_env,
                # on SIGTERM Ray would drain up to 30 s while leases are held: a lost slice is rebuilt that much later
                {"name": "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "value": "0"},
            ],
            requests={"cpu": str(cpu), "memory": f"{memory}Gi"},
            limits={"memory": f"{memory}Gi"},
            readiness=_WORKER_READY,
        )
        pod = self._pod(container, labels={constants.LABEL_SLICE: pool})
        pod = self._overlaid(pod, spec.worker.template if spec.worker else None)
        pod_spec = pod["spec"]
        pod_spec["restartPolicy"] = "Never"  # a lost host rebuilds its slice: libtpu cannot rejoin one
        pod_spec["nodeSelector"] = {
            **pod_spec.get("nodeSelector", {}),
            constants.NODE_LABEL_POOL: pool,
            constants.NODE_LABEL_ACCELERATOR: shape.gke_accelerator,
            constants.NODE_LABEL_TOPOLOGY: shape.topology,
        }
        pod_spec["tolerations"] = [
            {"key": constants.TPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"},
            {"key": constants.TAINT_SLICE, "operator": "Equal", "value": pool, "effect": "NoSchedule"},
            *({"key": t["key"], "operator": "Equal", "value": t["value"], "effect": t["effect"]} for t in taints),
            *pod_spec.get("tolerations", []),
        ]
        resources = _main(pod).setdefault("resources", {})
        for kind in ("requests", "limits"):
            resources[kind] = {**resources.get(kind, {}), constants.TPU_RESOURCE: str(shape.chips_per_host)}
        pod = self._protected(pod, own_env)
        pod["spec"]["initContainers"] = [self._await_head(pod), *pod["spec"].get("initContainers", [])]
        return pod

    def _container(
        self,
        *,
        env: list[dict[str, Any]],
        requests: dict[str, str],
        limits: dict[str, str],
        readiness: Mapping[str, Any],
    ) -> dict[str, Any]:
        container: dict[str, Any] = {
            "name": MAIN_CONTAINER,
            "image": self._image,
            "env": env,
            "resources": {"requests": requests, "limits": limits},
            # a host that does not start says why in its status, where the job's message finds it
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "readinessProbe": dict(readiness),
            "livenessProbe": dict(_ALIVE),
            "volumeMounts": [*self._mounts(), {"name": _SHM_VOLUME, "mountPath": _SHM}],
        }
        if self._code is not None:
            container["workingDir"] = runner.WORKING_DIR
        return container

    def _pod(self, container: dict[str, Any], *, labels: dict[str, str]) -> dict[str, Any]:
        volumes = [*self._volumes(), {"name": _SHM_VOLUME, "emptyDir": {"medium": "Memory"}}]
        spec: dict[str, Any] = {"containers": [container], "volumes": volumes}
        if self._job.spec.priority_class_name:
            spec["priorityClassName"] = self._job.spec.priority_class_name
        return {
            "metadata": {
                "labels": {**job_labels(self._job, attempt=self._attempt), **labels},
                "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
            },
            "spec": spec,
        }

    def _overlaid(self, pod: dict[str, Any], role: PodTemplate | None) -> dict[str, Any]:
        spec = self._job.spec
        env = [to_dict(entry) for entry in spec.env or ()]
        layers = [
            to_dict(self._class_template) if self._class_template else {},
            {"spec": {"containers": [{"name": MAIN_CONTAINER, "env": env}]}} if env else {},
            to_dict(spec.template) if spec.template else {},
            to_dict(role) if role else {},
        ]
        asked: dict[str, Any] = {}
        for layer in layers:
            pod = merge(pod, layer)
            for container in layer.get("spec", {}).get("containers", ()):
                if container["name"] == MAIN_CONTAINER:
                    asked = merge(asked, container.get("resources", {}))
        _settle_resources(_main(pod)["resources"], asked)
        _size_shm(pod)
        if pod["spec"].get("hostNetwork"):  # with the host's own DNS the workers would not find the head
            pod["spec"].setdefault("dnsPolicy", "ClusterFirstWithHostNet")
        # the first container is the one that KubeRay starts Ray in
        containers = pod["spec"]["containers"]
        pod["spec"]["containers"] = sorted(containers, key=lambda container: container["name"] != MAIN_CONTAINER)
        return pod

    def _protected(self, pod: dict[str, Any], own_env: list[dict[str, Any]]) -> dict[str, Any]:
        """What overlays must not change, whatever passed the rules (a class's overlay may be older than they are)."""
        pod = merge(pod, {"metadata": {"labels": job_labels(self._job, attempt=self._attempt)}})
        container = _main(pod)
        container.pop("command", None)
        container["args"] = [self._before_ray()]
        container["env"] = merge({"env": container["env"]}, {"env": own_env})["env"]
        container["volumeMounts"] = merge(container, {"volumeMounts": self._mounts()})["volumeMounts"]
        pod["spec"]["volumes"] = merge(pod["spec"], {"volumes": self._volumes()})["volumes"]
        mounts = [mount for mount in container["volumeMounts"] if mount["mountPath"] == _SHM]
        if all(mount["name"] != _SHM_VOLUME for mount in mounts):  # the user's own /dev/shm took the place of ours
            pod["spec"]["volumes"] = [volume for volume in pod["spec"]["volumes"] if volume["name"] != _SHM_VOLUME]
        return pod

    def _volumes(self) -> list[dict[str, Any]]:
        items = [{"key": name, "path": f"{runner.PACKAGE_DIR}/{name}"} for name in sorted(runner_modules())]
        source = {"name": names.runner_config_map_name(self._ray_cluster), "items": [*items, ENTRYPOINT_ITEM]}
        code = [{"name": _CODE_VOLUME, "configMap": {"name": self._code}}] if self._code is not None else []
        return [{"name": _RUNNER_VOLUME, "configMap": source}, *code]

    def _mounts(self) -> list[dict[str, Any]]:
        paths = {_RUNNER_VOLUME: runner.MOUNT_PATH}
        if self._code is not None:
            paths[_CODE_VOLUME] = runner.WORKING_DIR
        return [{"name": name, "mountPath": path, "readOnly": True} for name, path in paths.items()]

    def _before_ray(self) -> str:
        """What the shell does before KubeRay's `ray start`, which KubeRay appends with `&&`.

        In the shell, since a variable of the pod would take the place of the image's own PYTHONPATH.
        """
        ours = f"{runner.MOUNT_PATH}:{runner.WORKING_DIR}" if self._code is not None else runner.MOUNT_PATH
        return f"export {runner.ENV_PYTHONPATH}={ours}${{{runner.ENV_PYTHONPATH}:+:${runner.ENV_PYTHONPATH}}}"

    def _await_head(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        """Hold the host until the head answers: KubeRay's own wait looks once, too early, and then sleeps 5 s."""
        container = _main(pod)
        address = f"{self._ray_cluster}-head-svc/{_GCS_PORT}"
        script = (
            "trap 'exit 143' TERM; "  # as process 1 it would sit out the whole grace of a pod that is deleted
            f"until (exec 3<>/dev/tcp/{address}) 2>/dev/null || (( SECONDS > {_WAIT_SECONDS} )); do sleep 0.2; done"
        )
        small = {"cpu": "50m", "memory": "64Mi"}
        waiting: dict[str, Any] = {
            "name": _AWAIT_HEAD,
            "image": container["image"],
            "command": ["bash", "-c", script],
            "resources": {"requests": small, "limits": small},
        }
        inherited: dict[str, Any] = {
            key: container[key] for key in ("imagePullPolicy", "securityContext") if key in container
        }
        return waiting | inherited

    @property
    def _code(self) -> str | None:
        working_dir = self._job.spec.working_dir
        return working_dir.config_map.name if working_dir and working_dir.config_map else None

    def _shared_env(self) -> list[dict[str, Any]]:
        spec, shape = self._job.spec, self._shape
        slices = [
            {"name": names.tpu_name(self._ray_cluster, slice_index=index), "hosts": shape.hosts}
            for index in range(spec.num_slices)
        ]
        values: dict[str, str | None] = {
            "RAY_AUTH_MODE": "token",
            runner.ENV_LAUNCHER: str(spec.launcher),
            runner.ENV_SLICES: json.dumps(slices),
            runner.ENV_TOPOLOGY: shape.topology,
            runner.ENV_ACCELERATOR_TYPE: shape.ray_accelerator_type,
            runner.ENV_CHIPS_PER_HOST: str(shape.chips_per_host),
            runner.ENV_DEVICES_PER_CHIP: str(shape.devices_per_chip),
            runner.ENV_TORCH_TOPOLOGY: shape.torch_tpu_topology,
            runner.ENV_NUM_SLICES: str(spec.num_slices),
            runner.ENV_NUM_WORKERS: str(spec.num_slices * shape.workers),
            runner.ENV_ATTEMPT: str(self._attempt),
            runner.ENV_RESTARTS: str(self._attempt - 1),
            runner.ENV_STOP_GRACE_SECONDS: str(spec.stop_grace_period_seconds),
            runner.ENV_NO_PROGRESS_SECONDS: (
                str(spec.failure_policy.no_progress_seconds) if spec.failure_policy.no_progress_seconds else None
            ),
            runner.ENV_CHECKPOINT_DIR: spec.checkpoint_dir,
            runner.ENV_WORKING_DIR: runner.WORKING_DIR if self._code is not None else None,
            runner.ENV_RAY_TRAIN_CALLBACKS: runner.TRAIN_CALLBACK if spec.launcher is Launcher.DRIVER else None,
            runner.ENV_RAY_TPU_RESOURCE_PER_CHIP: (str(shape.devices_per_chip) if shape.devices_per_chip > 1 else None),
        }
        secret = {"name": names.auth_secret_name(self._ray_cluster), "key": TOKEN_KEY}
        return [
            # a `$` in a path or a name is the user's, not the start of a reference
            *(
                {"name": name, "value": value.replace("$(", "$$(")}
                for name, value in values.items()
                if value is not None
            ),
            {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": secret}},
        ]

    def _slice_env(self, index: int) -> list[dict[str, Any]]:
        host_index = {"fieldRef": {"fieldPath": "metadata.labels['ray.io/replica-host-index']"}}
        worker_id: dict[str, Any] = {"valueFrom": host_index} if self._shape.multi_host else {"value": "0"}
        return [
            {"name": runner.ENV_TPU_NAME, "value": names.tpu_name(self._ray_cluster, slice_index=index)},
            {"name": runner.ENV_TPU_WORKER_ID, **worker_id},
            {"name": runner.ENV_SLICE_ID, "value": str(index)},
            {"name": runner.ENV_NODE_NAME, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": runner.ENV_POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]


def job_labels(job: TorchTPUJob, *, attempt: int) -> dict[str, str]:
    """Labels of every object that an attempt makes in the namespace of the job."""
    return {
        constants.LABEL_JOB: job.metadata.name,
        constants.LABEL_JOB_NAMESPACE: job.metadata.namespace or "default",
        constants.LABEL_JOB_UID: job.metadata.uid,
        constants.LABEL_ATTEMPT: str(attempt),
    }


def worker_cpu(shape: Shape) -> int:
    """CPUs that a worker pod asks for."""
    return int(shape.vcpu * WORKER_SHARE)


def worker_memory_gib(shape: Shape) -> int:
    """Memory that a worker pod asks for, in GiB (machines are sold in GB)."""
    return int(shape.memory_gb * 1e9 / 2**30 * WORKER_SHARE)


def _settle_resources(resources: dict[str, Any], asked: Mapping[str, Any]) -> None:
    """Where users give one of request and limit, ours of the other must not contradict it."""
    for name in ("cpu", "memory"):
        request, limit = asked.get("requests", {}).get(name), asked.get("limits", {}).get(name)
        if limit is not None and request is None:
            resources["requests"] = {**resources["requests"], name: limit}
        if request is not None and limit is None and name in resources["limits"]:
            resources["limits"] = {**resources["limits"], name: request}


def _size_shm(pod: Mapping[str, Any]) -> None:
    """Our /dev/shm follows the memory that the container has in the end, unless an overlay gives it a size."""
    resources = _main(pod)["resources"]
    memory = quantity(resources.get("limits", {}).get("memory") or resources.get("requests", {}).get("memory") or "")
    for volume in pod["spec"].get("volumes") or ():
        ours = volume["name"] == _SHM_VOLUME and volume.get("emptyDir") == {"medium": "Memory"}
        if ours and memory is not None:
            half = int(memory) // SHM_DIVISOR
            size = f"{half // 2**30}Gi" if half >= 2**30 else f"{half // 2**20}Mi"
            volume["emptyDir"] = {"medium": "Memory", "sizeLimit": size}


def _main(pod: Mapping[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = next(c for c in pod["spec"]["containers"] if c["name"] == MAIN_CONTAINER)
    return container
