"""Names that are computed, never invented: whoever comes after a crash computes the same ones and finds what is ours.

Limits: GKE node pools 40 characters; RayClusters 41, since the TPU webhook cuts `<cluster>-headless` at 50; labels 63.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

NODE_POOL_LIMIT: Final = 40
RAY_CLUSTER_LIMIT: Final = 41


def slice_name(job_name: str, *, job_uid: str, index: int, sequence: int) -> str:
    """TPUSlice and node pool for one slice of a job; `sequence` counts how often the job gave that index up."""
    return _cut(job_name, f"-{index}-{_digest(job_uid, str(index), str(sequence))[:8]}", limit=NODE_POOL_LIMIT)


def ray_cluster_name(job_name: str, *, job_uid: str, attempt: int) -> str:
    """RayCluster of one attempt."""
    return _cut(job_name, f"-{_digest(job_uid)[:8]}-a{attempt}", limit=RAY_CLUSTER_LIMIT)


def submission_id(job_uid: str, *, attempt: int) -> str:
    """Ray submission id: Ray refuses a second one of the same name, so an attempt is run at most once."""
    return f"{job_uid}-{attempt}"


def worker_group_name(slice_index: int) -> str:
    """Worker group of one slice."""
    return f"s{slice_index}"


def tpu_name(ray_cluster: str, *, slice_index: int) -> str:
    """TPU_NAME of one slice, which Ray shows as `ray.io/tpu-slice-name`; another one for each attempt."""
    return f"{ray_cluster}-{worker_group_name(slice_index)}"


def runner_config_map_name(ray_cluster: str) -> str:
    """ConfigMap with the runner of one attempt."""
    return f"{ray_cluster}-runner"


def auth_secret_name(ray_cluster: str) -> str:
    """Secret with the Ray token of one attempt."""
    return f"{ray_cluster}-auth"


def failure_config_map_name(ray_cluster: str) -> str:
    """ConfigMap with the last lines of the rank that failed."""
    return f"{ray_cluster}-failure"


def capacity_pod_name(slice_name: str, *, host: int) -> str:
    """Pod that pulls one host of a slice up from zero."""
    return f"{slice_name}-capacity-{host}"


def workload_policy_name(gke_accelerator: str, topology: str) -> str:
    """Workload policy of a shape: shared by all pools of a region, so the topology is in the name."""
    return f"torchtpu-{gke_accelerator}-{topology}"


def installation_id(*, kube_system_uid: str, namespace: str) -> str:
    """Which operator made a pool: this cluster (the uid of its kube-system) and the operator's namespace."""
    return _digest(kube_system_uid, namespace)[:16]


def document_hash(document: Mapping[str, Any]) -> str:
    """A short hash of a JSON document, independent of the order of its keys; fits a label."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _cut(job_name: str, suffix: str, *, limit: int) -> str:
    stem = re.sub("[^-a-z0-9]", "-", job_name.lower())[: limit - len(suffix)].rstrip("-")
    if not stem or not stem[0].isalpha():
        stem = f"j{stem}"[: limit - len(suffix)].rstrip("-")
    return stem + suffix
