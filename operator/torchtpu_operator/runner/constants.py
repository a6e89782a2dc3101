"""The one list of names shared by the operator, which writes them, and the runner, which reads them.

Imports nothing, so that the operator can use it without ray.
"""

from typing import Final

# --- Where things lie in head and worker containers

PACKAGE: Final = "torchtpu_runner"
"""Import name of the runner inside the Ray pods."""

MOUNT_PATH: Final = "/opt/torchtpu"
"""Mount point of the ConfigMap `<RayCluster>-runner`, read-only, in head and workers. Put it on PYTHONPATH.

The volume's `items` lay the keys out: every module at `torchtpu_runner/<module>.py`, the entrypoint at `entrypoint`.
"""

PACKAGE_DIR: Final = PACKAGE
"""Folder of the modules, relative to MOUNT_PATH."""

ENTRYPOINT_KEY: Final = "entrypoint"
"""Key and file name, relative to MOUNT_PATH, of the job's entrypoint, byte for byte as written.

A file and not an environment variable: Kubernetes expands `$(NAME)` and folds `$$` in env values, execve() limits one
env string to 128 KiB, and every process of every pod would carry it. Read on the head alone.
"""

WORKING_DIR: Final = "/opt/torchtpu-job/code"
"""Where `workingDir.configMap` is mounted, in head and workers, and the value of ENV_WORKING_DIR then. Not below
MOUNT_PATH, since runtimes cannot make a mount point inside a read-only volume."""

MAX_ENTRYPOINT_BYTES: Final = 128 * 1024 - 1
"""Linux' limit of one execve() argument (MAX_ARG_STRLEN, with its terminating NUL): the entrypoint is one argument."""

_FIND: Final = f"export PYTHONPATH={MOUNT_PATH}${{PYTHONPATH:+:$PYTHONPATH}}; exec"
"""Once more, in the job's own shell: a PYTHONPATH in runtimeEnv.env_vars takes the place of the pod's. exec, since a shell
dies of Ray's stop at once, and its orphans stay in the process table, for which Ray waits until the grace is over."""

RUNNER_COMMAND: Final = f"{_FIND} python -m {PACKAGE}"
"""Entrypoint of the Ray job for launchers PerDevice and PerHost."""

DRIVER_COMMAND: Final = f"{_FIND} python -m {PACKAGE}.command"
"""Entrypoint of the Ray job for launcher Driver: bash with the user's own text, its output also in the head's log."""

TRAIN_CALLBACK: Final = f"{PACKAGE}.train_callback.SliceOrderCallback"
"""Value of ENV_RAY_TRAIN_CALLBACKS for launcher Driver."""


# --- Launchers

LAUNCHER_PER_DEVICE: Final = "PerDevice"
LAUNCHER_PER_HOST: Final = "PerHost"
LAUNCHER_DRIVER: Final = "Driver"
LAUNCHERS: Final = (LAUNCHER_PER_DEVICE, LAUNCHER_PER_HOST, LAUNCHER_DRIVER)

# --- Inputs: set by the operator in the env of head and worker pods (never in the submission's runtime_env)

ENV_LAUNCHER: Final = "TORCHTPU_LAUNCHER"
"""One of LAUNCHERS."""
ENV_SLICES: Final = "TORCHTPU_SLICES"
"""JSON list in slice order, e.g. `[{"name": "ml-llama-s0", "hosts": 4}]`: name is the TPU_NAME of the slice's worker
group (Ray's label `ray.io/tpu-slice-name`), hosts its number of pods."""
ENV_TOPOLOGY: Final = "TORCHTPU_TOPOLOGY"
"""Topology of one slice as Ray and GKE write it, e.g. `4x4` or `2x2x1`. Part of the users' contract too."""
ENV_ACCELERATOR_TYPE: Final = "TORCHTPU_ACCELERATOR_TYPE"
"""Ray's accelerator type, e.g. `TPU-V6E`, `TPU-V5LITEPOD`, `TPU-V7X`; also the value of Ray's node label
`ray.io/accelerator-type`. Part of the users' contract too."""
ENV_CHIPS_PER_HOST: Final = "TORCHTPU_CHIPS_PER_HOST"
"""Physical chips of one host: 1, 4 or 8."""
ENV_DEVICES_PER_CHIP: Final = "TORCHTPU_DEVICES_PER_CHIP"
"""TPU devices of one chip: 2 for v7x, 1 for all others. The operator sets ENV_RAY_TPU_RESOURCE_PER_CHIP to the same."""
ENV_TORCH_TOPOLOGY: Final = "TORCHTPU_TORCH_TOPOLOGY"
"""Value for TORCH_TPU_TOPOLOGY: three comma-separated dimensions, `4,4,1`; v7x adds the devices per chip, `2,2,1,2`."""
ENV_STOP_GRACE_SECONDS: Final = "TORCHTPU_STOP_GRACE_SECONDS"
"""stopGracePeriodSeconds: from SIGTERM to SIGKILL when the job is stopped. Default 60."""
ENV_WORKING_DIR: Final = "TORCHTPU_WORKING_DIR"
"""Working directory of the entrypoint. Unset: that of the Ray worker (runtime_env's working_dir, if given)."""
ENV_ENTRYPOINT_FILE: Final = "TORCHTPU_ENTRYPOINT_FILE"
"""Optional: another path of the entrypoint than MOUNT_PATH/ENTRYPOINT_KEY."""
ENV_NO_PROGRESS_SECONDS: Final = "TORCHTPU_NO_PROGRESS_SECONDS"
"""failurePolicy.noProgressSeconds: how long all ranks may give no sign of life. Unset: for ever."""
ENV_RESERVE_TIMEOUT_SECONDS: Final = "TORCHTPU_RESERVE_TIMEOUT_SECONDS"
"""Optional: how long the placement group over all slices may stay pending. Default 120."""
ENV_START_TIMEOUT_SECONDS: Final = "TORCHTPU_START_TIMEOUT_SECONDS"
"""Optional: how long the Ray actors may take to report in. Default 300 (a cold image on 64 hosts)."""
ENV_NODE_NAME: Final = "TORCHTPU_NODE_NAME"
"""Optional, worker pods, by fieldRef spec.nodeName: names the Kubernetes node in the world table and in messages."""
ENV_POD_NAME: Final = "TORCHTPU_POD_NAME"
"""Optional, worker pods, by fieldRef metadata.name; without it KubeRay's RAY_CLOUD_INSTANCE_ID or the host name."""

ENV_RAY_TRAIN_CALLBACKS: Final = "RAY_TRAIN_CALLBACKS"
"""Launcher Driver: Ray Train's list of callback classes; TRAIN_CALLBACK."""
ENV_RAY_TPU_RESOURCE_PER_CHIP: Final = "RAY_TPU_RESOURCE_PER_CHIP"
"""v7x, on every Ray process: `2`, so that Ray counts devices and not chips."""
ENV_PYTHONPATH: Final = "PYTHONPATH"
"""MOUNT_PATH goes before what the image or the user has there."""

# --- Contract with the user's program
# Set by the operator in the pods' env, passed through to every rank:

ENV_ATTEMPT: Final = "TORCHTPU_ATTEMPT"
"""Number of the attempt, from 1."""
ENV_RESTARTS: Final = "TORCHTPU_RESTARTS"
"""How often the job was restarted for whatever reason (attempt - 1)."""
ENV_CHECKPOINT_DIR: Final = "TORCHTPU_CHECKPOINT_DIR"
"""spec.checkpointDir, the same over attempts and suspends; unset if the job has none."""
ENV_NUM_SLICES: Final = "TORCHTPU_NUM_SLICES"
ENV_NUM_WORKERS: Final = "TORCHTPU_NUM_WORKERS"
"""TPU devices over all slices: the world size of launcher PerDevice."""
ENV_SLICE_ID: Final = "TORCHTPU_SLICE_ID"
"""Index of the slice of this process, from 0 (a literal per worker group; the runner sets it per rank too)."""

# Set by the operator per worker group for Ray, and by the runner per rank in the order of the ranks:

ENV_TPU_NAME: Final = "TPU_NAME"
ENV_TPU_WORKER_ID: Final = "TPU_WORKER_ID"
"""Pod env: KubeRay's host index. Rank env: position of the rank's host in TPU_WORKER_HOSTNAMES."""

# Set by the runner per rank:

ENV_TPU_WORKER_HOSTNAMES: Final = "TPU_WORKER_HOSTNAMES"
"""Addresses of the hosts of the rank's slice, in rank order."""
ENV_JOB_COMPLETION_INDEX: Final = "JOB_COMPLETION_INDEX"
"""Position of the host in its slice: torch_tpu's launch helper takes NODE_RANK from it when it cannot ask the chips."""
ENV_HEARTBEAT_FILE: Final = "TORCHTPU_HEARTBEAT_FILE"
"""A program that is silent for long touches this file as a sign of life; each rank (host under PerHost) has its own."""
ENV_RANK: Final = "RANK"
ENV_LOCAL_RANK: Final = "LOCAL_RANK"
ENV_WORLD_SIZE: Final = "WORLD_SIZE"
ENV_LOCAL_WORLD_SIZE: Final = "LOCAL_WORLD_SIZE"
ENV_NODE_RANK: Final = "NODE_RANK"
"""Index of the host over all slices, slice-major."""
ENV_NNODES: Final = "NNODES"
"""Hosts over all slices."""
ENV_MASTER_ADDR: Final = "MASTER_ADDR"
ENV_MASTER_PORT: Final = "MASTER_PORT"
ENV_TORCH_TPU_TOPOLOGY: Final = "TORCH_TPU_TOPOLOGY"
ENV_TORCH_TPU_SLICEBUILDER_ADDRESSES: Final = "TORCH_TPU_SLICEBUILDER_ADDRESSES"
"""`host:port` of every rank of the slice; entry i is where in-slice rank i listens."""
ENV_TORCH_TPU_XPROF_SESSION_ID: Final = "TORCH_TPU_XPROF_SESSION_ID"
ENV_MEGASCALE_COORDINATOR_ADDRESS: Final = "MEGASCALE_COORDINATOR_ADDRESS"
ENV_MEGASCALE_NUM_SLICES: Final = "MEGASCALE_NUM_SLICES"
ENV_MEGASCALE_SLICE_ID: Final = "MEGASCALE_SLICE_ID"
ENV_MEGASCALE_PORT: Final = "MEGASCALE_PORT"
"""The four only with more than one slice."""
ENV_PET_NNODES: Final = "PET_NNODES"
ENV_PET_NODE_RANK: Final = "PET_NODE_RANK"
ENV_PET_NPROC_PER_NODE: Final = "PET_NPROC_PER_NODE"
ENV_PET_MASTER_ADDR: Final = "PET_MASTER_ADDR"
ENV_PET_MASTER_PORT: Final = "PET_MASTER_PORT"
"""torchrun's arguments as env, launcher PerHost only, in place of RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE."""

OPERATOR_ENV: Final = frozenset(
    {
        ENV_LAUNCHER,
        ENV_SLICES,
        ENV_TOPOLOGY,
        ENV_ACCELERATOR_TYPE,
        ENV_CHIPS_PER_HOST,
        ENV_DEVICES_PER_CHIP,
        ENV_TORCH_TOPOLOGY,
        ENV_STOP_GRACE_SECONDS,
        ENV_NO_PROGRESS_SECONDS,
        ENV_WORKING_DIR,
        ENV_NODE_NAME,
        ENV_POD_NAME,
        ENV_RAY_TRAIN_CALLBACKS,
        ENV_RAY_TPU_RESOURCE_PER_CHIP,
        ENV_ATTEMPT,
        ENV_RESTARTS,
        ENV_CHECKPOINT_DIR,
        ENV_NUM_SLICES,
        ENV_NUM_WORKERS,
        ENV_SLICE_ID,
        ENV_TPU_NAME,
        ENV_TPU_WORKER_ID,
    }
)
"""What the operator sets in the pods for the runner, beside Ray's own names (token, address) and PYTHONPATH, which is
joined with the user's and so not reserved."""

RUNNER_ENV: Final = frozenset(
    {
        ENV_TPU_WORKER_ID,
        ENV_TPU_WORKER_HOSTNAMES,
        ENV_JOB_COMPLETION_INDEX,
        ENV_SLICE_ID,
        ENV_HEARTBEAT_FILE,
        ENV_RANK,
        ENV_LOCAL_RANK,
        ENV_WORLD_SIZE,
        ENV_LOCAL_WORLD_SIZE,
        ENV_NODE_RANK,
        ENV_NNODES,
        ENV_MASTER_ADDR,
        ENV_MASTER_PORT,
        ENV_TORCH_TPU_TOPOLOGY,
        ENV_TORCH_TPU_SLICEBUILDER_ADDRESSES,
        ENV_TORCH_TPU_XPROF_SESSION_ID,
        ENV_MEGASCALE_COORDINATOR_ADDRESS,
        ENV_MEGASCALE_NUM_SLICES,
        ENV_MEGASCALE_SLICE_ID,
        ENV_MEGASCALE_PORT,
        ENV_PET_NNODES,
        ENV_PET_NODE_RANK,
        ENV_PET_NPROC_PER_NODE,
        ENV_PET_MASTER_ADDR,
        ENV_PET_MASTER_PORT,
    }
)
"""Every name that the runner may set for a rank."""

RESERVED_ENV: Final = OPERATOR_ENV | RUNNER_ENV
"""Refused in spec.env, templates and runtimeEnv.env_vars; every other name passes."""

# --- Ports on TPU hosts

SLICEBUILDER_BASE_PORT: Final = 8070
"""torch_tpu's TORCH_TPU_BASE_PORT; local rank i listens on 8070 + i, so below Ray's metrics port 8080."""
MEGASCALE_BASE_PORT: Final = 8081
"""Several slices: coordinator on 8081 of rank 0's host, local rank i on 8081 + i. As Ray Train numbers them."""
MASTER_PORT: Final = 29500
"""torch's rendezvous on rank 0's host; torch's and torch_tpu's default."""
HANDSHAKE_PORT: Final = 36423
"""torch_tpu's own (TORCH_TPU_INTERNAL_HANDSHAKE_PORT); listed so that nobody takes it."""
PORTS: Final = {
    "slicebuilder": (SLICEBUILDER_BASE_PORT, SLICEBUILDER_BASE_PORT + 7),
    "megascale": (MEGASCALE_BASE_PORT, MEGASCALE_BASE_PORT + 7),
    "master": (MASTER_PORT, MASTER_PORT),
    "handshake": (HANDSHAKE_PORT, HANDSHAKE_PORT),
}
"""First and last port of each use, at most 8 devices per host."""

# --- Output of the Ray job's driver

MESSAGE_PREFIX: Final = "[torchtpu] "
"""The runner's own lines; a rank's lines begin with `[rank N] ` (or `[host N] ` under PerHost)."""
WORLD_PREFIX: Final = "TORCHTPU_WORLD "
"""One line of JSON before the entrypoint starts: `{"order", "workers": [{"rank", "slice", "sliceName", "host", "chip",
"device", "nodeIp", "pod", "node"}]}`; see world.py."""
RESULT_PREFIX: Final = "TORCHTPU_RESULT "
"""Last line of the driver's output, JSON, at most MAX_RESULT_BYTES; see result.py for its fields and `parse_result`."""
MAX_RESULT_BYTES: Final = 8 * 1024
"""Ray's job info carries the last 20,000 characters of a failed driver's log in `message`; the line must fit."""
ORDER_PREFIX: Final = "TORCHTPU_ORDER "
"""Launcher Driver: JSON of Ray Train's order of ranks before and after ours, printed by the train callback."""

# Exit codes of the runner's own failures; `reason` in the result line tells them from a user's exit code.
EXIT_RESERVE_TIMEOUT: Final = 69
EXIT_RUNNER_ERROR: Final = 70
EXIT_HOST_LOST: Final = 75
EXIT_BAD_WORLD: Final = 76
EXIT_BAD_CONFIG: Final = 78
EXIT_NO_PROGRESS: Final = 124
EXIT_STOPPED: Final = 143

REASON_SUCCEEDED: Final = "Succeeded"
REASON_ENTRYPOINT_FAILED: Final = "EntrypointFailed"
REASON_HOST_LOST: Final = "HostLost"
REASON_WORKER_DIED: Final = "WorkerDied"
REASON_PLACEMENT_GROUP_TIMEOUT: Final = "PlacementGroupTimeout"
REASON_WORKER_INIT_TIMEOUT: Final = "WorkerInitTimeout"
REASON_WORKER_ENV_MISMATCH: Final = "WorkerEnvMismatch"
REASON_WORKER_ID_CONFLICT: Final = "WorkerIdConflict"
REASON_CHIP_VISIBILITY: Final = "ChipVisibility"
REASON_PORT_IN_USE: Final = "PortInUse"
REASON_NO_PROGRESS: Final = "NoProgress"
REASON_BAD_CONFIG: Final = "BadRunnerConfig"
REASON_STOPPED: Final = "Stopped"
REASON_RUNNER_ERROR: Final = "RunnerError"
REASONS: Final = frozenset(
    {
        REASON_SUCCEEDED,
        REASON_ENTRYPOINT_FAILED,
        REASON_HOST_LOST,
        REASON_WORKER_DIED,
        REASON_PLACEMENT_GROUP_TIMEOUT,
        REASON_WORKER_INIT_TIMEOUT,
        REASON_WORKER_ENV_MISMATCH,
        REASON_WORKER_ID_CONFLICT,
        REASON_CHIP_VISIBILITY,
        REASON_PORT_IN_USE,
        REASON_NO_PROGRESS,
        REASON_BAD_CONFIG,
        REASON_STOPPED,
        REASON_RUNNER_ERROR,
    }
)
INFRASTRUCTURE_REASONS: Final = frozenset(
    {
        REASON_HOST_LOST,
        REASON_WORKER_DIED,
        REASON_PLACEMENT_GROUP_TIMEOUT,
        REASON_WORKER_INIT_TIMEOUT,
        REASON_WORKER_ENV_MISMATCH,
        REASON_WORKER_ID_CONFLICT,
        REASON_CHIP_VISIBILITY,
    }
)
"""Not the user's program: a fresh RayCluster on the same slices may help."""
