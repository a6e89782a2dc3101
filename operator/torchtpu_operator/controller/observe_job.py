"""Fills a `JobObserved`: caches for what is watched, live looks for what the plan asks for."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from torchtpu_operator.api import TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.clients.kinds import NODES, RAY_CLUSTERS, SLICES
from torchtpu_operator.clients.kube_errors import KubeError, call_failed
from torchtpu_operator.clients.ray_jobs import RayHead, RayJob
from torchtpu_operator.controller.caches import reader
from torchtpu_operator.controller.facts import on_lost_node, read_node
from torchtpu_operator.controller.workqueue import Key
from torchtpu_operator.controller.world import World
from torchtpu_operator.plan.allocation import Wait
from torchtpu_operator.plan.job import JobNeeds, JobObserved, job_needs
from torchtpu_operator.plan.observed import CallFailed, Outcome, PodSeen, RaySeen

Json = Mapping[str, Any]

_read_slice = reader(TPUSlice)
_TERMINAL = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})


class WhyWaiting(Protocol):
    def of(self, job_uid: str) -> Wait | None: ...


async def observe_job(
    world: World, job: TorchTPUJob, *, key: Key, waits: WhyWaiting, outcomes: tuple[Outcome, ...]
) -> JobObserved:
    needs = job_needs(job, now=world.clock.now())
    namespace = job.metadata.namespace or ""
    cluster, slices, pods = await asyncio.gather(
        _ray_cluster(world, needs, namespace=namespace),
        _slices(world, job, live=needs.slices_live, by=key),
        _pods(world, job),
    )
    ray = None
    if needs.ray and cluster is not None and not isinstance(cluster, CallFailed):
        ray = await _ray(world, cluster, needs)
    slice_class, default_classes = _slice_class(world, job)
    fact = world.caches.namespaces.get(namespace)
    return JobObserved(
        job=job,
        needs=needs,
        slice_class=slice_class,
        default_classes=default_classes,
        slices=slices,
        ray_cluster=cluster,
        pods=pods,
        ray=ray,
        kuberay=world.caches.kuberay,
        wait=waits.of(job.metadata.uid),
        namespace_labels=fact.labels if fact else None,
        namespace_terminating=fact.terminating if fact else False,
        outcomes=outcomes,
    )


def _slice_class(world: World, job: TorchTPUJob) -> tuple[TPUSliceClass | None, int]:
    """The class that is pinned, named or the only default one; and how many call themselves default."""
    defaults = [known.model for known in world.caches.classes if known.parsed and known.parsed.is_default]
    name = (job.status.resolved.slice_class_name if job.status.resolved else "") or job.spec.slice_class_name
    if not name:
        return (defaults[0] if len(defaults) == 1 else None), len(defaults)
    known = world.caches.classes.get(name)
    return (known.model if known else None), len(defaults)


async def _slices(world: World, job: TorchTPUJob, *, live: bool, by: Key) -> tuple[TPUSlice, ...]:
    """Those with a claimRef of this uid, by slice index. Raises KubeError: to a finishing job unknown is not none."""
    uid = job.metadata.uid
    if live:
        found = await world.kube.list(SLICES)
        for raw in found:
            world.caches.remember(SLICES, raw, by=by)
        mine = [raw for raw in found if ((raw.get("spec") or {}).get("claimRef") or {}).get("uid") == uid]
        held = [_read_slice(raw).model for raw in mine]
    else:
        held = [known.model for known in world.caches.slices.by("claimant", uid)]
    return tuple(sorted(held, key=lambda slice_: slice_.spec.claim_ref.slice_index if slice_.spec.claim_ref else 0))


async def _ray_cluster(world: World, needs: JobNeeds, *, namespace: str) -> Json | CallFailed | None:
    if not needs.ray_cluster:
        return None
    try:
        return await world.kube.get(RAY_CLUSTERS, needs.ray_cluster, namespace=namespace)
    except KubeError as error:
        return call_failed(error)


async def _pods(world: World, job: TorchTPUJob) -> tuple[PodSeen, ...]:
    pods = [fact.seen for fact in world.caches.pods.by("job", job.metadata.uid)]
    lost = await asyncio.gather(*(_is_on_lost_node(world, pod) for pod in pods))
    return tuple(on_lost_node(pod) if gone else pod for pod, gone in zip(pods, lost, strict=True))


async def _is_on_lost_node(world: World, pod: PodSeen) -> bool:
    """TPU hosts are watched; other nodes (a head's) are asked live, and only about pods that look ill."""
    if not pod.node:
        return False
    if watched := world.caches.nodes.get(pod.node):
        return not watched.seen.ready
    if pod.node_type == "worker":
        return True
    if pod.ready and not pod.terminating:
        return False
    try:
        node = await world.kube.get(NODES, pod.node)
    except KubeError:
        return False  # unknown is not lost; asked again at the next look
    return node is None or not read_node(node).seen.ready


async def _ray(world: World, cluster: Json, needs: JobNeeds) -> RaySeen | CallFailed:
    async def look(head: RayHead) -> RaySeen | CallFailed:
        version = await world.ray.version(head)
        if isinstance(version, CallFailed):
            return version
        nodes = await world.ray.nodes(head) if needs.ray_nodes else ()
        if isinstance(nodes, CallFailed):
            return nodes
        job = await world.ray.job(head, needs.submission_id) if needs.submission_id else None
        if isinstance(job, CallFailed):
            return job
        if job is not None and needs.result:
            job = await _with_result(world, head, job)
        return RaySeen(
            version=version.ray, session_name=version.session_name, nodes=nodes, job=job.seen if job else None
        )

    return await world.heads.ask(cluster, look)


async def _with_result(world: World, head: RayHead, job: RayJob) -> RayJob:
    """The runner's result line, from the log's end. Without it the job's own state still says how it ended."""
    if job.seen.status not in _TERMINAL or job.seen.result is not None:
        return job
    log = await world.ray.log_tail(head, job.seen.submission_id)
    return job if isinstance(log, CallFailed) else job.with_log(log)
