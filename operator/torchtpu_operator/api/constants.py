"""Names that users, GKE, Kubernetes and our own layers share: group, labels, annotations, finalizer, taint."""

from typing import Final

GROUP: Final = "torchtpu.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

JOB_KIND: Final = "TorchTPUJob"
JOB_PLURAL: Final = "torchtpujobs"
SLICE_KIND: Final = "TPUSlice"
SLICE_PLURAL: Final = "tpuslices"
CLASS_KIND: Final = "TPUSliceClass"
CLASS_PLURAL: Final = "tpusliceclasses"

LABEL_JOB: Final = f"{GROUP}/job"
LABEL_JOB_NAMESPACE: Final = f"{GROUP}/job-namespace"
LABEL_JOB_UID: Final = f"{GROUP}/job-uid"
LABEL_SLICE: Final = f"{GROUP}/slice"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
LABEL_INSTALLATION: Final = f"{GROUP}/installation"  # on every node pool that we make: whose it is
LABEL_SLICE_UID: Final = f"{GROUP}/slice-uid"
LABEL_SPEC_HASH: Final = (
    f"{GROUP}/spec-hash"  # on the node pool; the same value as ANNOTATION_SPEC_HASH of its TPUSlice
)

ANNOTATION_SPEC_HASH: Final = f"{GROUP}/spec-hash"
ANNOTATION_DEFAULT_CLASS: Final = f"{GROUP}/is-default-class"
ANNOTATION_APPROVED_ORPHANS: Final = (
    f"{GROUP}/approve-orphan-deletion"  # value: the number of orphans that an admin has looked at
)

FINALIZER: Final = f"{GROUP}/cleanup"

TAINT_SLICE: Final = f"{GROUP}/slice"  # on every node of a pool that we make: no other pod drifts onto paid chips
TPU_RESOURCE: Final = "google.com/tpu"

MANAGED_BY: Final = f"{GROUP}/operator"  # spec.managedBy and spec.controllerName of this operator

NODE_LABEL_POOL: Final = "cloud.google.com/gke-nodepool"
NODE_LABEL_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
NODE_LABEL_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"

TAKEN_LABELS: Final = ("ray.io/", f"{GROUP}/", "app.kubernetes.io/name")  # on Ray pods: selectors rely on them
TAKEN_ANNOTATIONS: Final = ("ray.io/", f"{GROUP}/")  # on Ray pods: they change what KubeRay and we make of them

MAX_SLICES: Final = 16
MAX_INT: Final = 2**31 - 1  # int32, as in batch/v1: a moment plus so many seconds is still a date
MAX_JOB_NAME: Final = 52  # leaves room for what is derived from it under a label's 63 characters
MAX_ATTEMPT_HISTORY: Final = 10  # older attempts are dropped, so that a job that restarts 1,000 times stays small
MAX_MESSAGE: Final = 1024

RAY_VERSION: Final = r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}[-+.0-9A-Za-z]*$"
MIN_RAY: Final = (2, 58)  # slice_placement_group takes devices per chip and a label selector per bundle
MIN_RAY_SEVERAL_SLICES: Final = (2, 60)  # earlier ones refuse torch on several slices
MAX_EXIT_CODE: Final = 255
DOMAIN_PATH: Final = (
    r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._/A-Za-z0-9]*[A-Za-z0-9])?$"  # as batch/v1's managedBy
)
