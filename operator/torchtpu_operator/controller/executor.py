"""Performs the actions of a plan, one function per type of action, in order, up to the first that fails."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from torchtpu_operator.clients.kube_errors import KubeError, call_failed
from torchtpu_operator.controller import execute_cloud, execute_objects, execute_slices
from torchtpu_operator.controller.world import Target, World
from torchtpu_operator.plan import actions
from torchtpu_operator.plan.observed import CallFailed, FailureClass, OperationStarted, Outcome

log = logging.getLogger(__name__)

# Losing a race and waiting in line are how this works; what needs a person is in the object's status.
_EVERYDAY = frozenset({FailureClass.CONFLICT, FailureClass.BUSY})

# Each function takes the action of its own type, which a common signature cannot say.
Perform = Callable[[World, Target, Any], Awaitable[Outcome]]

TABLE: Mapping[type, Perform] = MappingProxyType(
    {
        actions.AddFinalizer: execute_objects.add_finalizer,
        actions.RemoveFinalizer: execute_objects.remove_finalizer,
        actions.DeleteJob: execute_objects.delete_job,
        actions.CreateNodePool: execute_cloud.create_node_pool,
        actions.DeleteNodePool: execute_cloud.delete_node_pool,
        actions.CreateSlice: execute_slices.create_slice,
        actions.ClaimSlice: execute_slices.claim_slice,
        actions.ReleaseSlice: execute_slices.release_slice,
        actions.DeleteSlice: execute_slices.delete_slice,
        actions.WriteClassStatus: execute_slices.write_class_status,
        actions.DryRun: execute_objects.dry_run,
        actions.CreateObject: execute_objects.create_object,
        actions.CreateAuthSecret: execute_objects.create_auth_secret,
        actions.ScaleWorkersToZero: execute_objects.scale_workers_to_zero,
        actions.DeleteRayCluster: execute_objects.delete_ray_cluster,
        actions.ForceDeletePod: execute_objects.force_delete_pod,
        actions.SubmitRayJob: execute_cloud.submit_ray_job,
        actions.StopRayJob: execute_cloud.stop_ray_job,
    }
)


async def perform(world: World, target: Target, planned: Iterable[actions.Action]) -> tuple[Outcome, ...]:
    """The outcomes in order; fewer than the actions where one failed (its `CallFailed` is the last).

    Raises NotActingError.
    """
    outcomes: list[Outcome] = []
    for action in planned:
        world.check_acts()
        name = type(action).__name__
        try:
            outcome = await TABLE[type(action)](world, target, action)
        except KubeError as error:
            outcome = call_failed(error)
        outcomes.append(outcome)
        if isinstance(outcome, CallFailed):
            log.log(
                logging.INFO if outcome.failure in _EVERYDAY else logging.WARNING,
                "%s failed: %s",
                name,
                outcome.message,
                extra={"call": outcome.call, "failure": outcome.failure.value},
            )
            break
        more = {"operation": outcome.name} if isinstance(outcome, OperationStarted) else {"call": outcome.call}
        log.info("%s done", name, extra=more)
    return tuple(outcomes)
