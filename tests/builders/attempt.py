"""What the planners see of an attempt: RayCluster, pods, Ray's nodes and job."""

from typing import Any

from tests.builders.common import JOB_UID, SESSION
from tests.builders.jobs import JobBuilder, a_job
from torchtpu_operator.plan import names
from torchtpu_operator.plan.observed import (
    PodSeen,
    RayJobSeen,
    RayNodeSeen,
    RaySeen,
)


def a_ray_cluster(
    job: JobBuilder | None = None, *, uid: str = "rc-uid", attempt: int = 1, owner: str | None = None, replicas: int = 1,
    deleting: bool = False, suspend: bool = False, conditions: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:  # fmt: skip
    of = (job or a_job()).job
    meta: dict[str, Any] = {
        "name": names.ray_cluster_name(of.metadata.name, job_uid=of.metadata.uid, attempt=attempt),
        "namespace": of.metadata.namespace,
        "uid": uid,
        "resourceVersion": "30",
        "ownerReferences": [{"uid": of.metadata.uid if owner is None else owner, "kind": "TorchTPUJob"}],
    }
    if deleting:
        meta["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    groups = [
        {"groupName": f"s{index}", "replicas": replicas, "minReplicas": replicas, "numOfHosts": 4}
        for index in range(of.spec.num_slices)
    ]
    spec: dict[str, Any] = {"workerGroupSpecs": groups}
    if suspend:
        spec["suspend"] = True
    status = {"head": {"serviceName": f"{meta['name']}-head-svc"}, "conditions": list(conditions)}
    return {"metadata": meta, "spec": spec, "status": status}


def a_pod(name: str = "", *, node_type: str = "worker", host: int = 0, group: int = 0, **fields: Any) -> PodSeen:
    """A Ready worker of the first attempt."""
    head = node_type == "head"
    values: dict[str, Any] = {
        "name": name or ("head" if head else f"s{group}-{host}"),
        "namespace": "ml",
        "uid": "head-uid" if head else f"pod-uid-{group}-{host}",
        "phase": "Running",
        "ready": True,
        "node": "cpu-0" if head else f"node-{host}",
        "node_type": node_type,
        "group": "" if head else f"s{group}",
        "attempt": 1,
        "replica": "" if head else f"s{group}-abcde",
        "host_index": "" if head else str(host),
    }
    return PodSeen(**(values | fields))


def some_pods(hosts: int = 4, *, groups: int = 1, attempt: int = 1) -> tuple[PodSeen, ...]:
    """Head and workers of a whole attempt, all Ready."""
    workers = [a_pod(host=host, group=group, attempt=attempt) for group in range(groups) for host in range(hosts)]
    return (a_pod(node_type="head", attempt=attempt), *workers)


def some_ray_nodes(
    job: JobBuilder | None = None, *, attempt: int = 1, hosts: int | None = None
) -> tuple[RayNodeSeen, ...]:
    """Ray's own list with every host of every slice."""
    of = job or a_job()
    shape = of.shape
    cluster = names.ray_cluster_name(of.job.metadata.name, job_uid=of.job.metadata.uid, attempt=attempt)
    return tuple(
        RayNodeSeen(
            node_id=f"{index}-{host}",
            alive=True,
            ip=f"10.0.{index}.{host}",
            tpus=float(shape.devices_per_host),
            slice_name=names.tpu_name(cluster, slice_index=index),
            worker_id=str(host),
            pod_type=shape.ray_pod_type,
        )
        for index in range(of.job.spec.num_slices)
        for host in range(shape.hosts if hosts is None else hosts)
    )


def a_ray(
    job: RayJobSeen | None = None,
    *,
    nodes: tuple[RayNodeSeen, ...] = (),
    session: str = SESSION,
    version: str = "2.60.0",
) -> RaySeen:
    return RaySeen(version=version, session_name=session, nodes=nodes, job=job)


def a_ray_job(status: str = "RUNNING", *, attempt: int = 1, **fields: Any) -> RayJobSeen:
    return RayJobSeen(submission_id=names.submission_id(JOB_UID, attempt=attempt), status=status, **fields)
