"""What each reason means and what to do about it: the one source of docs/api.md and docs/troubleshooting.md."""

from dataclasses import dataclass
from typing import Final

from torchtpu_operator.api.reasons import Reason


@dataclass(frozen=True, kw_only=True)
class ReasonGroup:
    """Reasons of one kind of trouble."""

    key: str
    title: str
    rows: tuple[tuple[str, tuple[Reason, ...]], ...]
    """What a person is told, and the reasons for which that sentence does."""


RESERVED: Final = "reserved"
"""Key of the group of reasons that nobody tells yet."""

REASON_GROUPS: Final = (
    ReasonGroup(
        key="spec",
        title="The spec or the installation",
        rows=(
            (
                "the message names field and fix; most fields never change, so delete the job and create it again",
                (Reason.INVALID_SPEC,),
            ),
            ("set `spec.image`, or `jobDefaults.image` of the class", (Reason.IMAGE_MISSING,)),
            ("create the class, or name another one in `spec.sliceClassName`", (Reason.CLASS_NOT_FOUND,)),
            (
                'annotate one class with `torchtpu.dev/is-default-class: "true"`, or set `spec.sliceClassName`',
                (Reason.NO_DEFAULT_CLASS,),
            ),
            ("leave the annotation on one class", (Reason.SEVERAL_DEFAULT_CLASSES,)),
            (
                "the class's `allowedNamespaces` leaves this namespace out: ask its owner",
                (Reason.NAMESPACE_NOT_ALLOWED,),
            ),
            (
                "`spec.offers` names none that the class has, or none of them has this accelerator",
                (Reason.NO_MATCHING_OFFER,),
            ),
            (
                "the job is larger than a limit of the class (`limits`, an offer's `maxChips`, a reservation's `chips`): "
                "waiting cannot help. Use fewer chips, or ask the class's owner",
                (Reason.LIMITS_TOO_SMALL,),
            ),
            (
                "remove the label `kueue.x-k8s.io/queue-name`: Kueue is not integrated yet",
                (Reason.QUEUEING_UNSUPPORTED,),
            ),
            (
                "the operator's version does not know a field or value of the object: install operator and CRDs of one version",
                (Reason.OBJECT_UNREADABLE,),
            ),
            ("install KubeRay; the job goes on by itself", (Reason.KUBERAY_MISSING,)),
            (
                "`spec.rayVersion` and the image disagree, or the image's Ray is too old for what the job asks",
                (Reason.RAY_VERSION_UNSUPPORTED,),
            ),
            (
                "head and workers have different images (a template sets one of them): give both the same Ray and Python",
                (Reason.WORKER_VERSION_MISMATCH,),
            ),
            (
                "the apiserver refuses the RayCluster or its pods (policy, webhook, a wrong template, a ServiceAccount or "
                "PriorityClass that does not exist): its words are in the message. Tried again with back-off, up to every "
                "five minutes. Found before anything is spent; if a policy begins to refuse later, the slices are kept "
                "until `startDeadlineSeconds`",
                (Reason.ADMISSION_DENIED,),
            ),
            (
                "create the ConfigMap that `spec.workingDir` names; the job goes on by itself",
                (Reason.WORKING_DIR_NOT_FOUND,),
            ),
        ),
    ),
    ReasonGroup(
        key="capacity",
        title="Waiting for capacity",
        rows=(
            ("nothing: the job was just seen, or is being checked by a dry run", (Reason.PENDING,)),
            ("nothing: other jobs are before it, or its slices are being made", (Reason.WAITING_FOR_SLICES,)),
            (
                "the class's `limits` are used up; wait, raise them, or delete what is not needed. Ends at `queueDeadlineSeconds`",
                (Reason.WAITING_FOR_LIMITS,),
            ),
            ("an admin has set `paused` on the class", (Reason.CLASS_PAUSED,)),
            (
                "every offer has refused lately; the message lists why, `tpusc` when each is asked again",
                (Reason.OFFERS_EXHAUSTED,),
            ),
            (
                "failed: raise `queueDeadlineSeconds`, or find out who holds the chips (`kubectl get tpus`)",
                (Reason.QUEUE_DEADLINE_EXCEEDED,),
            ),
            (
                "failed: no chips within `capacityDeadlineSeconds`; add offers or zones to the class",
                (Reason.CAPACITY_DEADLINE_EXCEEDED,),
            ),
        ),
    ),
    ReasonGroup(
        key="slices",
        title="Slices",
        rows=(
            (
                "GKE makes the node pool. On GKE this takes minutes",
                (
                    Reason.NODE_POOL_REQUESTED,
                    Reason.NODE_POOL_CREATING,
                ),
            ),
            ("the pool is there, hosts are missing or do not show all chips yet", (Reason.WAITING_FOR_NODES,)),
            (
                "all hosts are there with all chips",
                (
                    Reason.NODES_READY,
                    Reason.SLICES_READY,
                ),
            ),
            ("a host is lost; GKE may repair it for ten minutes, then the slice is replaced", (Reason.SLICE_DEGRADED,)),
            ("the slice will not come back; another one is asked for", (Reason.SLICE_LOST,)),
            (
                "the job has let go, or is about to",
                (
                    Reason.SLICE_RELEASED,
                    Reason.WAITING_FOR_RELEASE,
                ),
            ),
            (
                "the pool goes; the TPUSlice stays until GKE says 404",
                (
                    Reason.NODE_POOL_DELETING,
                    Reason.NODE_POOL_DELETED,
                ),
            ),
            ("GKE shows the pool in an error state; the message has GKE's words", (Reason.NODE_POOL_BROKEN,)),
        ),
    ),
    ReasonGroup(
        key="gke",
        title="What GKE answers",
        rows=(
            (
                "nothing: GKE runs another operation on the cluster (an upgrade, a create that looks for capacity)",
                (Reason.CLUSTER_BUSY,),
            ),
            (
                "if it stays: the operator's network path to `container.googleapis.com`, or the GKE status page",
                (Reason.GKE_UNREACHABLE,),
            ),
            ("nothing: asked less often", (Reason.GKE_THROTTLED,)),
            (
                "grant the operator's identity the permission that the message names ([how](../charts/torchtpu-operator/README.md))",
                (Reason.PERMISSION_DENIED,),
            ),
            ("nothing: the next offer is tried, this one again later; more zones help", (Reason.STOCKOUT,)),
            ("raise the quota that the message names in that region", (Reason.QUOTA_EXCEEDED,)),
            ("correct name, project or zone of the reservation in the class", (Reason.RESERVATION_INVALID,)),
            ("wait, or find out who uses the reservation", (Reason.RESERVATION_FULL,)),
            ("the reservation is for another machine type or zone", (Reason.RESERVATION_MISMATCH,)),
            (
                "correct the class's `nodePool` or the shape: GKE's words are in the message. The same is not asked again "
                "until the class is changed; other offers are tried",
                (Reason.INVALID_REQUEST,),
            ),
            (
                "v7x on several hosts: the workload policy does not exist in that region (`torchtpu-tpu7x-<topology>`, or "
                "what `workloadPolicy` of the offer names). Make it: `gcloud compute resource-policies create "
                "workload-policy NAME --type=HIGH_THROUGHPUT --accelerator-topology=TOPOLOGY --region=REGION`; it is looked "
                "for again by itself",
                (Reason.PLACEMENT_POLICY_NOT_FOUND,),
            ),
            ("a larger pod range in the class's `networkConfig`, or fewer pods per node", (Reason.NETWORK_EXHAUSTED,)),
            ("delete node pools that nobody needs", (Reason.TOO_MANY_NODE_POOLS,)),
            (
                "the chart's `gke.project`, `gke.location` and `gke.cluster` do not name this cluster",
                (Reason.CLUSTER_NOT_FOUND,),
            ),
            (
                "the zone has no such machine, or the cluster has no nodes there: correct the offer's zones",
                (Reason.WRONG_ZONE,),
            ),
            (
                "a node pool or RayCluster of the wanted name exists and is not ours: rename or delete it; we do not touch it",
                (Reason.NAME_CONFLICT,),
            ),
            ("the offer's `waitSeconds` are over; the next offer is tried", (Reason.CAPACITY_TIMEOUT,)),
            ("GKE said something that we do not know: please report the message", (Reason.UNKNOWN_ERROR,)),
        ),
    ),
    ReasonGroup(
        key="running",
        title="Starting and running",
        rows=(
            (
                "pods are on their way; all are in Ray. A pod that stays in ContainerCreating waits for a volume, a Secret or a ConfigMap: `kubectl describe pod` has the event",
                (
                    Reason.RAY_CLUSTER_STARTING,
                    Reason.RAY_CLUSTER_READY,
                ),
            ),
            (
                "correct `spec.image`, or give the nodes' service account access to the registry",
                (Reason.IMAGE_PULL_FAILED,),
            ),
            (
                "a pod fits no node: the scheduler's words are in the message. The head needs a CPU node",
                (Reason.POD_UNSCHEDULABLE,),
            ),
            (
                "a container ends before Ray is up: look at its log; usually an image without Ray, or a command in the template",
                (Reason.CONTAINER_FAILING,),
            ),
            (
                "the head does not answer yet, or hosts are missing in Ray's node list; the message says which",
                (Reason.WAITING_FOR_RAY,),
            ),
            ("pods of the attempt before still terminate; two attempts never overlap", (Reason.WAITING_FOR_OLD_PODS,)),
            ("somebody else has suspended the RayCluster", (Reason.CHILD_SUSPENDED,)),
            ("the job is being handed to Ray", (Reason.SUBMITTING,)),
            (
                "as they say",
                (
                    Reason.STARTED,
                    Reason.RUNNING,
                    Reason.RESUMED,
                ),
            ),
            (
                "events of an attempt on its way: all slices are there, Ray has taken the job, the program runs",
                (Reason.ATTEMPT_STARTED, Reason.JOB_SUBMITTED, Reason.JOB_RUNNING),
            ),
            ("the spec was changed while suspended: a new attempt begins with it", (Reason.SPEC_CHANGED,)),
            (
                "the RayCluster was deleted or replaced behind our back: counted as a disruption",
                (Reason.RAY_CLUSTER_LOST,),
            ),
            ("no worker runs any more", (Reason.RAY_CLUSTER_DELETED,)),
            (
                "failed: not running within `startDeadlineSeconds` of capacity; the message has the last obstacle",
                (Reason.START_DEADLINE_EXCEEDED,),
            ),
        ),
    ),
    ReasonGroup(
        key="ends",
        title="Ends",
        rows=(
            (
                "the program ended badly; for up to 60 s it is watched whether a lost host was the cause",
                (Reason.CLASSIFYING,),
            ),
            (
                "a rank ended with an exit code: the message has the rank, the code and its last line",
                (Reason.ENTRYPOINT_FAILED,),
            ),
            (
                "Ray could not set up `spec.runtimeEnv`: wrong package, no way to the index",
                (Reason.RUNTIME_ENV_FAILED,),
            ),
            ("somebody stopped the Ray job", (Reason.JOB_STOPPED,)),
            (
                "no rank printed a line or touched `$TORCHTPU_HEARTBEAT_FILE` for `noProgressSeconds`: a hang; the stacks of all ranks are in the job's log, and the message names the rank that was silent for longest",
                (Reason.NO_PROGRESS,),
            ),
            (
                "a disruption: the platform broke the attempt, not the program; restarts up to `maxDisruptions`",
                (
                    Reason.HEAD_LOST,
                    Reason.HOST_LOST,
                ),
            ),
            (
                "failed: the limit in `failurePolicy` is reached; the message has the last cause",
                (
                    Reason.RESTARTS_EXHAUSTED,
                    Reason.DISRUPTIONS_EXHAUSTED,
                ),
            ),
            ("failed: `activeDeadlineSeconds` are over", (Reason.ACTIVE_DEADLINE_EXCEEDED,)),
            ("failed: `budget.chipHours` would be passed", (Reason.BUDGET_EXHAUSTED,)),
            (
                "as they say",
                (
                    Reason.SUCCEEDED,
                    Reason.SUSPENDED,
                    Reason.DELETING,
                ),
            ),
            (
                "events at the end of an attempt, with its cause: a failure is counted in `status.restarts`, a disruption in "
                "`status.disruptions`, a stop (suspend, deadline, deletion) nowhere",
                (
                    Reason.ATTEMPT_SUCCEEDED,
                    Reason.ATTEMPT_FAILURE,
                    Reason.ATTEMPT_DISRUPTION,
                    Reason.ATTEMPT_STOPPED,
                ),
            ),
            ("event of a job that has succeeded and given everything back", (Reason.COMPLETED,)),
            (
                "event before the end of an ended job: `ttlSecondsAfterFinished` is over, it is deleted",
                (Reason.TTL_EXPIRED,),
            ),
            (
                "the ended job stays although it has `ttlSecondsAfterFinished`: Argo CD or Flux tracks it and would create it again, and so run it again; remove the field, or delete the job at its source",
                (Reason.TTL_IGNORED,),
            ),
        ),
    ),
    ReasonGroup(
        key=RESERVED,
        title="Not told yet",
        rows=(
            (
                "`spec.managedBy` names another controller: this operator leaves the job alone",
                (Reason.MANAGED_BY_OTHER,),
            ),
            ("use KubeRay 1.5 to 1.7", (Reason.KUBERAY_UNSUPPORTED,)),
            ("nothing: the last call failed, the next one comes by itself", (Reason.BACKING_OFF,)),
            (
                "spot or flex-start capacity was taken back: the job restarts on another slice, counted as a disruption",
                (Reason.SLICE_PREEMPTED,),
            ),
            (
                "more orphaned pools than expected: an admin looks at them and approves the number with the annotation `torchtpu.dev/approve-orphan-deletion` on the class",
                (Reason.SWEEP_HALTED,),
            ),
            ("the next attempt is on its way", (Reason.RESTARTING,)),
            ("the slices are being given back", (Reason.FINISHING,)),
        ),
    ),
)
