# ruff: noqa: ARG001 - every action has one signature
"""Actions on GKE and on the Ray head."""

from torchtpu_operator.clients.kinds import RAY_CLUSTERS
from torchtpu_operator.clients.ray_jobs import RayHead, RayJob
from torchtpu_operator.controller.world import Target, World
from torchtpu_operator.plan.actions import CreateNodePool, DeleteNodePool, StopRayJob, SubmitRayJob
from torchtpu_operator.plan.observed import CallFailed, FailureClass, Outcome, Performed


async def create_node_pool(world: World, target: Target, action: CreateNodePool) -> Outcome:
    return await world.gke.create_node_pool(action.request)


async def delete_node_pool(world: World, target: Target, action: DeleteNodePool) -> Outcome:
    return await world.gke.delete_node_pool(action.name)


async def submit_ray_job(world: World, target: Target, action: SubmitRayJob) -> Outcome:
    """At most once per submission id: look, POST only into the recorded session, and after any failure look again."""
    cluster = await world.kube.get(RAY_CLUSTERS, action.ray_cluster, namespace=target.namespace)
    if cluster is None:
        return _conflict(f"RayCluster {action.ray_cluster} is gone")

    async def submit(head: RayHead) -> Performed | CallFailed:
        known = await world.ray.job(head, action.submission_id)
        if known is not None:
            return known if isinstance(known, CallFailed) else _adopted(action, known)
        version = await world.ray.version(head)
        if isinstance(version, CallFailed):
            return version
        if version.session_name != action.session_name:
            return _conflict(f"the Ray head has restarted: session {version.session_name} instead of the recorded one")
        refused = await world.ray.submit(
            head,
            submission_id=action.submission_id,
            entrypoint=action.entrypoint,
            metadata=action.metadata,
            runtime_env=action.runtime_env,
        )
        if refused is None:
            return Performed(call=_SUBMIT)
        after = await world.ray.job(head, action.submission_id)  # no answer is no refusal
        return _adopted(action, after) if isinstance(after, RayJob) else refused

    return await world.heads.ask(cluster, submit)


_SUBMIT = "POST /api/jobs/"


def _adopted(action: SubmitRayJob, job: RayJob) -> Performed | CallFailed:
    """The id is taken; ours unless its metadata says otherwise."""
    if any(job.metadata.get(key) != value for key, value in action.metadata.items()):
        return _conflict(f"submission id {action.submission_id} is taken by another job")
    return Performed(call=_SUBMIT)


async def stop_ray_job(world: World, target: Target, action: StopRayJob) -> Outcome:
    cluster = await world.kube.get(RAY_CLUSTERS, action.ray_cluster, namespace=target.namespace)
    done = Performed(call=f"POST /api/jobs/{action.submission_id}/stop")
    if cluster is None:
        return done

    async def stop(head: RayHead) -> Performed | CallFailed:
        return await world.ray.stop(head, action.submission_id) or done

    return await world.heads.ask(cluster, stop)


def _conflict(message: str) -> CallFailed:
    return CallFailed(call=_SUBMIT, failure=FailureClass.CONFLICT, message=message)
