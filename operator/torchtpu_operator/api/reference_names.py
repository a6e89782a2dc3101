"""Names that operator and runner set or read, with what they are for: reserved, and listed in docs/api.md."""

from typing import Final

from torchtpu_operator.api import constants

LABELS: Final = {
    constants.LABEL_JOB: ("RayCluster, pods, ConfigMap and Secret of an attempt", "name of the job"),
    constants.LABEL_JOB_NAMESPACE: ("the same", "namespace of the job"),
    constants.LABEL_JOB_UID: ("the same", "uid of the job"),
    constants.LABEL_ATTEMPT: ("the same", "number of the attempt"),
    constants.LABEL_SLICE: ("node pools, their nodes, worker pods", "name of the TPUSlice"),
    constants.LABEL_INSTALLATION: ("node pools and their nodes", "the operator that made them"),
    constants.LABEL_SLICE_UID: ("node pools and their nodes", "uid of the TPUSlice"),
    constants.LABEL_SPEC_HASH: (
        "node pools and their nodes; as an annotation TPUSlices",
        "what the pool was made from",
    ),
}
ANNOTATIONS: Final = {
    constants.ANNOTATION_DEFAULT_CLASS: (
        "TPUSliceClass, by an admin",
        '"true": the class for jobs that name none; at most one may have it',
    ),
    constants.ANNOTATION_APPROVED_ORPHANS: ("TPUSliceClass, by an admin", "reserved: not read yet"),
}
OTHERS: Final = {
    constants.FINALIZER: ("finalizer of TorchTPUJob and TPUSlice", "goes when nothing is left that costs money"),
    constants.TAINT_SLICE: (
        "taint (NoSchedule) of every node that the operator makes",
        "name of the TPUSlice: no other pod drifts onto paid chips",
    ),
    constants.MANAGED_BY: ("spec.managedBy, spec.controllerName", "this operator"),
}
ENV: Final = {
    "RANK": "rank of the process, in physical order (PerDevice)",
    "LOCAL_RANK": "rank on its host (PerDevice)",
    "WORLD_SIZE": "number of ranks (PerDevice)",
    "LOCAL_WORLD_SIZE": "ranks on its host (PerDevice)",
    "NODE_RANK": "index of the host over all slices, slice by slice",
    "NNODES": "hosts over all slices",
    "MASTER_ADDR": "address of the host of rank 0",
    "MASTER_PORT": "port of torch's rendezvous",
    "PET_NNODES": "torchrun's --nnodes (PerHost)",
    "PET_NODE_RANK": "torchrun's --node-rank (PerHost)",
    "PET_NPROC_PER_NODE": "torchrun's --nproc-per-node (PerHost)",
    "PET_MASTER_ADDR": "torchrun's --master-addr (PerHost)",
    "PET_MASTER_PORT": "torchrun's --master-port (PerHost)",
    "TORCHTPU_ATTEMPT": "number of the attempt, from 1",
    "TORCHTPU_RESTARTS": "restarts so far, for whatever reason",
    "TORCHTPU_CHECKPOINT_DIR": "spec.checkpointDir, the same over attempts and suspends",
    "TORCHTPU_NUM_SLICES": "slices of the job",
    "TORCHTPU_SLICE_ID": "index of the slice of the process, from 0",
    "TORCHTPU_NUM_WORKERS": "TPU devices of all slices",
    "TORCHTPU_TOPOLOGY": "topology of one slice, for example 4x4",
    "TORCHTPU_ACCELERATOR_TYPE": "Ray's accelerator type, for example TPU-V6E",
    "TORCHTPU_HEARTBEAT_FILE": "file of the rank (PerHost: of the host) to touch as a sign of life, for noProgressSeconds",
    "TORCHTPU_LAUNCHER": "spec.launcher",
    "TORCHTPU_SLICES": "the slices and their hosts, for the runner",
    "TORCHTPU_CHIPS_PER_HOST": "chips of one host",
    "TORCHTPU_DEVICES_PER_CHIP": "TPU devices of one chip: 2 for v7x, else 1",
    "TORCHTPU_TORCH_TOPOLOGY": "what TORCH_TPU_TOPOLOGY is set to",
    "TORCHTPU_STOP_GRACE_SECONDS": "spec.stopGracePeriodSeconds",
    "TORCHTPU_NO_PROGRESS_SECONDS": "spec.failurePolicy.noProgressSeconds",
    "TORCHTPU_WORKING_DIR": "where spec.workingDir.configMap is mounted",
    "TORCHTPU_NODE_NAME": "Kubernetes node of the pod",
    "TORCHTPU_POD_NAME": "name of the pod",
    "TORCH_TPU_TOPOLOGY": "torch_tpu: topology of one slice, for example 4,4,1",
    "TORCH_TPU_SLICEBUILDER_ADDRESSES": "torch_tpu: host:port of every rank of the slice",
    "TORCH_TPU_XPROF_SESSION_ID": "torch_tpu: session of its profiler",
    "TPU_NAME": "Ray's name of the slice",
    "TPU_WORKER_ID": "index of the host in its slice",
    "TPU_WORKER_HOSTNAMES": "addresses of the hosts of the slice",
    "JOB_COMPLETION_INDEX": "index of the host in its slice, for torch_tpu",
    "MEGASCALE_COORDINATOR_ADDRESS": "several slices: host:port of the coordinator",
    "MEGASCALE_NUM_SLICES": "several slices: their number",
    "MEGASCALE_SLICE_ID": "several slices: index of the slice of the process",
    "MEGASCALE_PORT": "several slices: port of the process",
    "RAY_TRAIN_CALLBACKS": "Driver: puts the ranks of Ray Train into physical order",
    "RAY_TPU_RESOURCE_PER_CHIP": "v7x: Ray counts devices, two per chip",
    "RAY_AUTH_MODE": "token: Ray answers nobody else",
    "RAY_AUTH_TOKEN": "the token of the attempt",
}
