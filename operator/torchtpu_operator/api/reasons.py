"""Reasons of conditions, phases and events: PascalCase, a closed set that the documentation lists.

The value is what users see and script against: once released it stays.
"""

import enum


class Reason(enum.StrEnum):
    """Why something is as it is."""

    # spec and installation
    INVALID_SPEC = "InvalidSpec"  # what the apiserver could not see: the message names the field and the fix
    IMAGE_MISSING = "ImageMissing"  # neither spec.image nor jobDefaults.image of the class
    CLASS_NOT_FOUND = "ClassNotFound"
    NO_DEFAULT_CLASS = "NoDefaultClass"
    SEVERAL_DEFAULT_CLASSES = "SeveralDefaultClasses"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    NO_MATCHING_OFFER = "NoMatchingOffer"
    LIMITS_TOO_SMALL = "LimitsTooSmall"  # of the class, for this job: waiting cannot help
    MANAGED_BY_OTHER = "ManagedByOther"
    QUEUEING_UNSUPPORTED = "QueueingUnsupported"
    OBJECT_UNREADABLE = "ObjectUnreadable"
    KUBERAY_MISSING = "KubeRayMissing"
    KUBERAY_UNSUPPORTED = "KubeRayUnsupported"
    RAY_VERSION_UNSUPPORTED = "RayVersionUnsupported"
    WORKER_VERSION_MISMATCH = "WorkerVersionMismatch"  # workers of another Ray or Python than the head
    ADMISSION_DENIED = "AdmissionDenied"
    WORKING_DIR_NOT_FOUND = "WorkingDirNotFound"

    # waiting for capacity
    WAITING_FOR_SLICES = "WaitingForSlices"
    WAITING_FOR_LIMITS = "WaitingForLimits"
    CLASS_PAUSED = "ClassPaused"
    OFFERS_EXHAUSTED = "OffersExhausted"
    BACKING_OFF = "BackingOff"
    QUEUE_DEADLINE_EXCEEDED = "QueueDeadlineExceeded"
    CAPACITY_DEADLINE_EXCEEDED = "CapacityDeadlineExceeded"

    # slices
    PENDING = "Pending"
    NODE_POOL_REQUESTED = "NodePoolRequested"
    NODE_POOL_CREATING = "NodePoolCreating"
    WAITING_FOR_NODES = "WaitingForNodes"
    NODES_READY = "NodesReady"
    SLICES_READY = "SlicesReady"
    NODE_POOL_DELETING = "NodePoolDeleting"
    NODE_POOL_DELETED = "NodePoolDeleted"
    SLICE_DEGRADED = "SliceDegraded"
    SLICE_PREEMPTED = "SlicePreempted"
    SLICE_LOST = "SliceLost"
    SLICE_RELEASED = "SliceReleased"
    WAITING_FOR_RELEASE = "WaitingForRelease"

    # GKE's answers (facts: error classifier)
    CLUSTER_BUSY = "ClusterBusy"
    GKE_UNREACHABLE = "GKEUnreachable"
    GKE_THROTTLED = "GKEThrottled"
    PERMISSION_DENIED = "PermissionDenied"
    STOCKOUT = "Stockout"
    QUOTA_EXCEEDED = "QuotaExceeded"
    RESERVATION_INVALID = "ReservationInvalid"
    RESERVATION_FULL = "ReservationFull"
    RESERVATION_MISMATCH = "ReservationMismatch"
    INVALID_REQUEST = "InvalidRequest"
    PLACEMENT_POLICY_NOT_FOUND = "PlacementPolicyNotFound"
    NETWORK_EXHAUSTED = "NetworkExhausted"
    TOO_MANY_NODE_POOLS = "TooManyNodePools"
    CLUSTER_NOT_FOUND = "ClusterNotFound"
    WRONG_ZONE = "WrongZone"
    NAME_CONFLICT = "NameConflict"  # a node pool of that name is there and is not ours
    CAPACITY_TIMEOUT = "CapacityTimeout"
    UNKNOWN_ERROR = "UnknownError"
    NODE_POOL_BROKEN = "NodePoolBroken"
    SWEEP_HALTED = "SweepHalted"

    # attempt
    RAY_CLUSTER_STARTING = "RayClusterStarting"
    RAY_CLUSTER_READY = "RayClusterReady"
    RAY_CLUSTER_LOST = "RayClusterLost"
    RAY_CLUSTER_DELETED = "RayClusterDeleted"
    CHILD_SUSPENDED = "ChildSuspended"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    POD_UNSCHEDULABLE = "PodUnschedulable"
    CONTAINER_FAILING = "ContainerFailing"
    WAITING_FOR_RAY = "WaitingForRay"
    WAITING_FOR_OLD_PODS = "WaitingForOldPods"
    SUBMITTING = "Submitting"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    STARTED = "Started"
    SPEC_CHANGED = "SpecChanged"
    RESUMED = "Resumed"
    ATTEMPT_STARTED = "AttemptStarted"
    JOB_SUBMITTED = "JobSubmitted"
    JOB_RUNNING = "JobRunning"

    # ends
    ATTEMPT_SUCCEEDED = "AttemptSucceeded"
    ATTEMPT_FAILURE = "AttemptFailure"
    ATTEMPT_DISRUPTION = "AttemptDisruption"
    ATTEMPT_STOPPED = "AttemptStopped"
    COMPLETED = "Completed"
    CLASSIFYING = "Classifying"
    ENTRYPOINT_FAILED = "EntrypointFailed"
    RUNTIME_ENV_FAILED = "RuntimeEnvFailed"
    JOB_STOPPED = "JobStopped"
    NO_PROGRESS = "NoProgress"
    HEAD_LOST = "HeadLost"
    HOST_LOST = "HostLost"
    START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"
    ACTIVE_DEADLINE_EXCEEDED = "ActiveDeadlineExceeded"
    BUDGET_EXHAUSTED = "BudgetExhausted"
    RESTARTS_EXHAUSTED = "RestartsExhausted"
    DISRUPTIONS_EXHAUSTED = "DisruptionsExhausted"
    SUCCEEDED = "Succeeded"
    SUSPENDED = "Suspended"
    FINISHING = "Finishing"
    DELETING = "Deleting"
    TTL_EXPIRED = "TTLExpired"
    TTL_IGNORED = "TTLIgnored"  # Argo CD or Flux would create the job again
