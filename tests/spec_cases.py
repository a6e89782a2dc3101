"""Objects and what is to be said about them: one table for the rules in Python and for those in the apiserver."""

import copy
from collections.abc import Iterator
from typing import Any

from torchtpu_operator.tpu import CATALOGUE

Document = dict[str, Any]

JOB: Document = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TorchTPUJob",
    "metadata": {"name": "llama-ft", "namespace": "default"},
    "spec": {
        "accelerator": "v6e",
        "topology": "4x4",
        "entrypoint": "python train.py",
        "image": "example.com/ray:2.60.0",
    },
}
CLASS: Document = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TPUSliceClass",
    "metadata": {"name": "default"},
    "spec": {"offers": [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"]}]},
}
SLICE: Document = {
    "apiVersion": "torchtpu.dev/v1alpha1",
    "kind": "TPUSlice",
    "metadata": {"name": "standing-0"},
    "spec": {
        "sliceClassName": "default",
        "accelerator": "v6e",
        "topology": "4x4",
        "offer": {"name": "od", "type": "OnDemand", "zone": "us-east5-b"},
        "nodePool": {"name": "standing-0"},
    },
}
_REMOVED = object()


def job(*, name: str = "llama-ft", **spec: Any) -> Document:
    """A good job with these spec fields changed; `_REMOVED` takes one away."""
    document = copy.deepcopy(JOB)
    document["metadata"]["name"] = name
    document["spec"] = {key: value for key, value in {**document["spec"], **spec}.items() if value is not _REMOVED}
    return document


def slice_class(**spec: Any) -> Document:
    """A good class with these spec fields changed."""
    document = copy.deepcopy(CLASS)
    document["spec"].update(spec)
    return document


def made_slice(**spec: Any) -> Document:
    """A good slice, made by hand, with these spec fields changed."""
    document = copy.deepcopy(SLICE)
    document["spec"].update(spec)
    return document


def offer(**fields: Any) -> Document:
    """A class with one offer."""
    return slice_class(offers=[{"name": "o", "type": "OnDemand", "zones": ["us-east5-b"], **fields}])


def pod(**spec: Any) -> Document:
    """A pod overlay."""
    return {"spec": spec}


_NOT_TOPOLOGY = "is not of the form AxB or AxBxC (digits and lower-case x, no spaces)"
_FLAT = "it has 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"
_CUBES = (
    "it has 2x2x1, 2x2x2, 2x2x4, 2x4x4, 4x4x4 and larger AxBxC with A <= B <= C, each a multiple of 4, up to 8960 chips"
)
_NAME = (
    "metadata.name: the name must be a lower-case DNS label that begins with a letter, at most 52 characters: "
    "pods, node pools and host names are named after it"
)
_PYTHONPATH = (
    "spec.entrypoint: this takes the place of the operator's path, where Ray Train finds what puts its ranks into physical order: write "
    "PYTHONPATH=<yours>:$PYTHONPATH, or set PYTHONPATH in spec.env"
)
_LAUNCH_TOOL = (
    "spec.entrypoint: PerDevice already starts one process per device and sets its rank: run the script itself "
    "(python train.py), or use launcher PerHost for torchrun"
)
_URI = "spec.workingDir.uri: workingDir.uri must be a zip that Ray can fetch: gs://..., s3://... or https://..., ending in .zip"
_CHIP_HOURS = 'budget.chipHours must be a number above 0, for example 500 or "12.5"'
_NO_FLEX = "type FlexStart is not yet supported: use OnDemand, Spot or Reservation"

# sentence -> (object, what is said; nothing: accepted)
CASES: dict[str, tuple[Document, tuple[str, ...]]] = {
    "the shortest job": (job(), ()),
    "an unknown accelerator": (
        job(accelerator="h100"),
        ('spec.accelerator: accelerator "h100" is not known: use one of v4, v5e, v5p, v6e, v7x',),
    ),
    "no accelerator": (
        job(accelerator=_REMOVED),
        ("spec.accelerator: accelerator is required: one of v4, v5e, v5p, v6e, v7x",),
    ),
    "an accelerator in Ray's spelling": (
        job(accelerator="TPU-V6E"),
        ('spec.accelerator: accelerator "TPU-V6E" is not known: did you mean "v6e"?',),
    ),
    "an accelerator with a size": (
        job(accelerator="v6e-16"),
        (
            'spec.accelerator: accelerator "v6e-16" is not known: did you mean "v6e"? Give the size as topology, '
            "for example 4x4",
        ),
    ),
    "an accelerator of three dimensions with a size": (
        job(accelerator="tpu7x-16", topology="2x2x2"),
        (
            'spec.accelerator: accelerator "tpu7x-16" is not known: did you mean "v7x"? Give the size as topology, '
            "for example 2x2x2",
        ),
    ),
    "GKE's label as accelerator": (
        job(accelerator="tpu-v5-lite-podslice"),
        ('spec.accelerator: accelerator "tpu-v5-lite-podslice" is not known: did you mean "v5e"?',),
    ),
    "no topology": (
        job(topology=_REMOVED),
        (
            "spec.topology: topology is required: the chips of one slice, for example 4x4 (v5e, v6e) or 2x2x2 "
            "(v4, v5p, v7x)",
        ),
    ),
    "a topology that the generation does not have": (
        job(topology="2x8"),
        (f'spec.topology: accelerator v6e has no topology "2x8": {_FLAT}',),
    ),
    "a flat topology for a cubic generation": (
        job(accelerator="v5p"),
        (f'spec.topology: accelerator v5p has no topology "4x4": {_CUBES}',),
    ),
    "the dimensions in the wrong order": (
        job(topology="4x2"),
        ('spec.topology: accelerator v6e has no topology "4x2": did you mean "2x4"?',),
    ),
    "three dimensions in the wrong order": (
        job(accelerator="v5p", topology="4x2x2"),
        ('spec.topology: accelerator v5p has no topology "4x2x2": did you mean "2x2x4"?',),
    ),
    "a topology in capitals": (
        job(topology="2X4"),
        (f'spec.topology: topology "2X4" {_NOT_TOPOLOGY}: did you mean "2x4"?',),
    ),
    "a topology with a space": (
        job(topology=" 4x4"),
        (f'spec.topology: topology " 4x4" {_NOT_TOPOLOGY}: did you mean "4x4"?',),
    ),
    "a cube in capitals and in the wrong order": (
        job(accelerator="v5p", topology="16X8X8"),
        (f'spec.topology: topology "16X8X8" {_NOT_TOPOLOGY}: did you mean "8x8x16"?',),
    ),
    "a topology with a star": (
        job(topology="4*4"),
        (f'spec.topology: topology "4*4" {_NOT_TOPOLOGY}: did you mean "4x4"?',),
    ),
    "a topology with a multiplication sign": (
        job(topology="4×4"),
        (f'spec.topology: topology "4×4" {_NOT_TOPOLOGY}: did you mean "4x4"?',),
    ),
    "a core count as topology": (
        job(accelerator="v5p", topology="16"),
        (f'spec.topology: topology "16" {_NOT_TOPOLOGY}',),
    ),
    "a topology of two lines": (
        job(topology="4x4\n"),
        (f"spec.topology: topology {_NOT_TOPOLOGY}",),
    ),
    "a cube": (job(accelerator="v5p", topology="8x8x16"), ()),
    "the largest documented slice of v5p": (job(accelerator="v5p", topology="16x16x24"), ()),
    "a cube that is too large": (
        job(accelerator="v4", topology="16x16x20"),
        (f'spec.topology: accelerator v4 has no topology "16x16x20": {_CUBES.replace("8960", "4096")}',),
    ),
    "2x4 on one host": (job(topology="2x4"), ()),
    "2x4 on one host, said so": (job(topology="2x4", chipsPerHost=8), ()),
    "2x4 on two hosts": (job(topology="2x4", chipsPerHost=4), ()),
    "2x4 on hosts that nobody sells": (
        job(topology="2x4", chipsPerHost=2),
        ("spec.chipsPerHost: v6e 2x4 has a choice of chips per host: 8 (1 host) or 4 (2 hosts)",),
    ),
    "the only chips per host, said so": (job(chipsPerHost=4), ()),
    "chips per host without a choice": (
        job(chipsPerHost=8),
        ("spec.chipsPerHost: v6e 4x4 has 4 chips per host: remove chipsPerHost or set it to 4",),
    ),
    "chips per host of a cube": (
        job(accelerator="v5p", topology="4x4x8", chipsPerHost=1),
        ("spec.chipsPerHost: v5p 4x4x8 has 4 chips per host: remove chipsPerHost or set it to 4",),
    ),
    "no slice": (job(numSlices=0), ("spec.numSlices: numSlices is 0: a job takes 1 to 16 slices",)),
    "sixteen slices": (job(numSlices=16), ()),
    "seventeen slices": (job(numSlices=17), ("spec.numSlices: numSlices is 17: a job takes 1 to 16 slices",)),
    "two slices of one host under PerDevice": (
        job(topology="2x2", numSlices=2),
        (
            "spec.numSlices: numSlices is 2, but a slice v6e 2x2 is a single host, and PerDevice cannot join those: "
            "choose a topology of several hosts such as 4x4, or launcher Driver",
        ),
    ),
    "two slices of one host under PerHost": (
        job(accelerator="v7x", topology="2x2x1", numSlices=2, launcher="PerHost"),
        (
            "spec.numSlices: numSlices is 2, but a slice v7x 2x2x1 is a single host, and PerHost cannot join those: "
            "choose a topology of several hosts such as 2x2x2, or launcher Driver",
        ),
    ),
    "two slices of one host under Driver": (job(topology="2x2", numSlices=2, launcher="Driver"), ()),
    "two slices 2x4 on two hosts each": (job(topology="2x4", chipsPerHost=4, numSlices=2), ()),
    "two slices 2x4 on one host each": (
        job(topology="2x4", numSlices=2),
        (
            "spec.numSlices: numSlices is 2, but a slice v6e 2x4 is a single host, and PerDevice cannot join those: "
            "choose a topology of several hosts such as 4x4, or launcher Driver",
        ),
    ),
    "no entrypoint": (
        job(entrypoint=_REMOVED),
        ("spec.entrypoint: entrypoint is required: the command that each worker runs, for example python train.py",),
    ),
    "an entrypoint of blanks": (
        job(entrypoint=" \n\t"),
        ("spec.entrypoint: entrypoint is required: the command that each worker runs, for example python train.py",),
    ),
    "an entrypoint of many lines": (
        job(entrypoint="set -e\npip install torchrun accelerate\ncat <<'E' | python -\nprint(\"$HOME\")\nE\n"),
        (),
    ),
    "an entrypoint of 50 kB": (job(entrypoint="python train.py " + "x" * 50000), ()),
    "torchrun under PerDevice": (job(entrypoint="torchrun --nproc-per-node 4 train.py"), (_LAUNCH_TOOL,)),
    "torchrun by its path": (job(entrypoint="exec /opt/venv/bin/torchrun train.py"), (_LAUNCH_TOOL,)),
    "torchrun after a step": (job(entrypoint="cd src && OMP_NUM_THREADS=1 torchrun train.py"), (_LAUNCH_TOOL,)),
    "torchrun on a line of its own": (job(entrypoint="set -x\n  torchrun train.py"), (_LAUNCH_TOOL,)),
    "torchrun with a limit of time": (job(entrypoint="timeout 3600 torchrun train.py"), (_LAUNCH_TOOL,)),
    "torchrun in an empty environment": (job(entrypoint="env -i A=1 torchrun train.py"), (_LAUNCH_TOOL,)),
    "torchrun in a condition": (job(entrypoint="if [ -e a ]; then torchrun a.py; fi"), (_LAUNCH_TOOL,)),
    "torchrun in a loop": (job(entrypoint="for i in 1 2; do\n  torchrun a.py\ndone"), (_LAUNCH_TOOL,)),
    "torchrun in a group": (job(entrypoint="{ torchrun a.py; } 2>&1 | tee log"), (_LAUNCH_TOOL,)),
    "torchrun, its failure wanted": (job(entrypoint="! torchrun a.py"), (_LAUNCH_TOOL,)),
    "accelerate's other name": (job(entrypoint="accelerate-launch a.py"), (_LAUNCH_TOOL,)),
    "a mention of torchrun on a line of its own": (job(entrypoint="python a.py \\\n  --launcher torchrun"), ()),
    "a file of that name": (job(entrypoint="python deepspeed.py && ls torchrun.log"), ()),
    "torchrun as a module": (job(entrypoint="python -m torch.distributed.run train.py"), (_LAUNCH_TOOL,)),
    "accelerate launch": (job(entrypoint="accelerate launch train.py"), (_LAUNCH_TOOL,)),
    "deepspeed": (job(entrypoint="deepspeed train.py"), (_LAUNCH_TOOL,)),
    "a mention of torchrun": (job(entrypoint="python train.py --launcher torchrun"), ()),
    "torchrun behind a package manager": (job(entrypoint="uv run torchrun train.py"), (_LAUNCH_TOOL,)),
    "deepspeed's launcher as a module": (job(entrypoint="python -mdeepspeed.launcher.runner a.py"), (_LAUNCH_TOOL,)),
    "Driver, with a PYTHONPATH of its own": (
        job(launcher="Driver", entrypoint="PYTHONPATH=src python a.py"),
        (_PYTHONPATH,),
    ),
    "Driver, with an exported PYTHONPATH": (
        job(launcher="Driver", entrypoint="cd code && export PYTHONPATH=$PWD/src; python a.py"),
        (_PYTHONPATH,),
    ),
    "accelerate's launcher as a module": (job(entrypoint="python -m accelerate.commands.launch a"), (_LAUNCH_TOOL,)),
    "another module of torch.distributed": (job(entrypoint="python -m torch.distributed.tensor.a"), ()),
    "an entrypoint as long as can be": (job(entrypoint="x" * 65536), ()),
    "accelerate as a library": (job(entrypoint="pip install accelerate deepspeed && python train.py"), ()),
    "Driver, with a PYTHONPATH before the operator's": (
        job(launcher="Driver", entrypoint="export PYTHONPATH=$PWD/src:${PYTHONPATH:-}; MYPYTHONPATH=a python a.py"),
        (),
    ),
    "PerDevice, with a PYTHONPATH of its own": (job(entrypoint="PYTHONPATH=src python a.py"), ()),
    "torchrun under PerHost": (job(entrypoint="torchrun train.py", launcher="PerHost"), ()),
    "a name with a dot": (job(name="llama.ft"), (_NAME,)),
    "a name that begins with a digit": (job(name="7b-ft"), (_NAME,)),
    "a name of 52 characters": (job(name="a" * 52), ()),
    "a name of 53 characters": (job(name="a" * 53), (_NAME,)),
    "a name of one character": (job(name="a"), ()),
    "a rank in env": (
        job(env=[{"name": "A", "value": "1"}, {"name": "RANK", "value": "0"}]),
        ("spec.env: RANK is set by the operator: choose another name",),
    ),
    "several reserved names in env": (
        job(env=[{"name": "WORLD_SIZE"}, {"name": "MASTER_ADDR"}]),
        ("spec.env: MASTER_ADDR is set by the operator: choose another name",),
    ),
    "a tuning variable in env": (job(env=[{"name": "TPU_PREMAPPED_BUFFER_SIZE", "value": "1"}]), ()),
    "a secret in env": (
        job(env=[{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}]),
        (),
    ),
    "a reserved name in runtimeEnv": (
        job(runtimeEnv={"env_vars": {"TPU_NAME": "x"}, "pip": ["einops"]}),
        ("spec.runtimeEnv.env_vars: TPU_NAME is set by the operator: choose another name",),
    ),
    "two working directories": (
        job(workingDir={"configMap": {"name": "code"}}, runtimeEnv={"working_dir": "gs://a/b.zip"}),
        ("spec.workingDir: the folder is given twice: use workingDir or runtimeEnv.working_dir, not both",),
    ),
    "a working directory of no source": (
        job(workingDir={}),
        ("spec.workingDir: workingDir needs exactly one of configMap and uri",),
    ),
    "a working directory of two sources": (
        job(workingDir={"configMap": {"name": "code"}, "uri": "gs://a/b.zip"}),
        ("spec.workingDir: workingDir needs exactly one of configMap and uri",),
    ),
    "a working directory from a folder": (job(workingDir={"uri": "gs://acme/code"}), (_URI,)),
    "a working directory from the local disk": (job(workingDir={"uri": "/home/me/code.zip"}), (_URI,)),
    "an old Ray": (
        job(rayVersion="2.57.1"),
        ("spec.rayVersion: Ray 2.57.1 is too old: 2.58.0 or later is needed to place workers on a slice",),
    ),
    "an old Ray for several slices": (
        job(rayVersion="2.59.0", numSlices=2),
        ("spec.rayVersion: Ray 2.59.0 is too old for several slices: 2.60.0 or later is needed",),
    ),
    "an old Ray for one slice": (job(rayVersion="2.59.0"), ()),
    "a Ray too old for anything, and several slices": (
        job(rayVersion="1.13.0", numSlices=2),
        ("spec.rayVersion: Ray 1.13.0 is too old: 2.58.0 or later is needed to place workers on a slice",),
    ),
    "the right Ray": (job(rayVersion="2.60.0"), ()),
    "a later Ray": (job(rayVersion="3.0.0rc1"), ()),
    "a back-off that shrinks": (
        job(failurePolicy={"backoff": {"initialSeconds": 60, "maxSeconds": 10}}),
        (
            "spec.failurePolicy.backoff.initialSeconds: backoff.initialSeconds must not be larger than "
            "backoff.maxSeconds",
        ),
    ),
    "a budget of nothing": (job(budget={"chipHours": 0}), (f"spec.budget.chipHours: {_CHIP_HOURS}",)),
    "a budget in words": (job(budget={"chipHours": "many"}), (f"spec.budget.chipHours: {_CHIP_HOURS}",)),
    "a budget of endless digits": (job(budget={"chipHours": "9" * 400}), (f"spec.budget.chipHours: {_CHIP_HOURS}",)),
    "a budget with a sign, which it does not need": (job(budget={"chipHours": "+12."}), ()),
    "a budget with an exponent": (job(budget={"chipHours": "1e3"}), (f"spec.budget.chipHours: {_CHIP_HOURS}",)),
    "a budget below nothing": (job(budget={"chipHours": "-1"}), (f"spec.budget.chipHours: {_CHIP_HOURS}",)),
    "a budget of two points": (job(budget={"chipHours": "1.2.3"}), (f"spec.budget.chipHours: {_CHIP_HOURS}",)),
    "a budget": (job(budget={"chipHours": "12.5"}), ()),
    "a budget in whole hours": (job(budget={"chipHours": 500}), ()),
    "a watch over progress": (job(failurePolicy={"noProgressSeconds": 600}), ()),
    "a watch over a Driver's progress": (
        job(launcher="Driver", failurePolicy={"noProgressSeconds": 600}),
        (
            "spec.failurePolicy.noProgressSeconds: noProgressSeconds needs launcher PerDevice or PerHost: a Driver starts "
            "its workers itself, and nobody else sees whether they go on",
        ),
    ),
    "an end of its own": (job(ttlSecondsAfterFinished=60), ()),
    "a start command in the overlay": (
        job(template=pod(containers=[{"name": "ray", "command": ["sleep"]}])),
        (
            "spec.template.spec.containers: the start command of the container ray is KubeRay's: leave command and "
            "args unset, and use spec.entrypoint or an init container",
        ),
    ),
    "chips in the overlay": (
        job(worker={"template": pod(containers=[{"name": "ray", "resources": {"limits": {"google.com/tpu": 4}}}])}),
        (
            "spec.worker.template.spec.containers: google.com/tpu of the container ray follows from the topology: "
            "leave it unset",
        ),
    ),
    "a reserved name in the overlay": (
        job(head={"template": pod(containers=[{"name": "ray", "env": [{"name": "TPU_WORKER_ID", "value": "1"}]}])}),
        ("spec.head.template.spec.containers: TPU_WORKER_ID is set by the operator: choose another name",),
    ),
    "a reserved name in a sidecar": (
        job(template=pod(containers=[{"name": "log", "image": "a", "env": [{"name": "RANK", "value": "1"}]}])),
        (),
    ),
    "a restart policy in the overlay": (
        job(template=pod(restartPolicy="Always")),
        (
            "spec.template.spec.restartPolicy: restartPolicy is set by the operator, so that a lost host rebuilds its "
            "whole slice: leave it unset",
        ),
    ),
    "a sidecar without image": (
        job(template=pod(containers=[{"name": "ray"}, {"name": "log"}])),
        ("spec.template.spec.containers: container log needs an image: only the container ray takes spec.image",),
    ),
    "an init container without image": (
        job(template=pod(initContainers=[{"name": "fetch"}])),
        ("spec.template.spec.initContainers: container fetch needs an image: only the container ray takes spec.image",),
    ),
    "workers pinned elsewhere": (
        job(template=pod(nodeSelector={"cloud.google.com/gke-nodepool": "mine"})),
        (
            "spec.template.spec.nodeSelector: the labels that pin a worker to its slice are set by the operator: "
            "remove cloud.google.com/gke-nodepool",
        ),
    ),
    "a head on a pool of its own": (
        job(head={"template": pod(nodeSelector={"cloud.google.com/gke-nodepool": "cpu"})}),
        (),
    ),
    "labels of KubeRay on the pods": (
        job(template={"metadata": {"labels": {"ray.io/group": "x", "team": "ml"}}}),
        ("spec.template.metadata.labels: labels that begin with ray.io/ are taken: remove them",),
    ),
    "an overlay full of what pods have": (
        job(
            template={
                "metadata": {"labels": {"team": "ml"}, "annotations": {"gke-gcsfuse/volumes": "true"}},
                "spec": {
                    "serviceAccountName": "trainer",
                    "imagePullSecrets": [{"name": "pull"}],
                    "tolerations": [{"operator": "Exists"}],
                    "volumes": [{"name": "data", "csi": {"driver": "gcsfuse.csi.storage.gke.io"}}],
                    "containers": [
                        {"name": "ray", "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
                        {"name": "log", "image": "fluent-bit:3"},
                    ],
                },
            }
        ),
        (),
    ),
    "several things wrong at once": (
        job(accelerator="v6", topology="4X4", numSlices=99, entrypoint=_REMOVED),
        (
            'spec.accelerator: accelerator "v6" is not known: did you mean "v6e"?',
            "spec.numSlices: numSlices is 99: a job takes 1 to 16 slices",
            "spec.entrypoint: entrypoint is required: the command that each worker runs, for example python train.py",
        ),
    ),
    "a launcher in small letters": (
        job(launcher="perdevice"),
        ('spec.launcher: Unsupported value: "perdevice": supported values: "PerDevice", "PerHost", "Driver"',),
    ),
    "a deadline of nothing": (
        job(startDeadlineSeconds=0),
        ("spec.startDeadlineSeconds: 0: spec.startDeadlineSeconds in body should be greater than or equal to 1",),
    ),
    "a number in quotes": (
        job(numSlices="2"),
        ('spec.numSlices: "string": spec.numSlices in body must be of type integer: "string"',),
    ),
    "a version that is a number": (
        job(rayVersion=2.6),
        ('spec.rayVersion: "number": spec.rayVersion in body must be of type string: "number"',),
    ),
    "an offer twice": (
        job(offers=["od", "spot", "od"]),
        ('spec.offers[2]: Duplicate value: "od"',),
    ),
    "a variable twice": (
        job(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        ('spec.env[1]: Duplicate value: {"name":"A"}',),
    ),
    "two main containers": (
        job(template=pod(containers=[{"name": "ray"}, {"name": "ray"}])),
        ('spec.template.spec.containers[1]: Duplicate value: {"name":"ray"}',),
    ),
    "null where nothing need be": (
        job(image=None, env=[{"name": "A", "value": None}], template={"spec": None}),
        (),
    ),
    "a resource of null": (
        job(template=pod(containers=[{"name": "ray", "resources": {"limits": {"cpu": None}}}])),
        (),
    ),
    "null where there is a default": (job(numSlices=None, launcher=None, failurePolicy={"maxRestarts": None}), ()),
    "null where other APIs take it": (job(template=pod(affinity=None)), ()),
    "deadlines without end": (
        job(queueDeadlineSeconds=None, activeDeadlineSeconds=None, ttlSecondsAfterFinished=None),
        (),
    ),
    "the shortest class": (slice_class(), ()),
    "a class without offers": (
        slice_class(offers=[]),
        ("spec.offers: 0: spec.offers in body should have at least 1 items",),
    ),
    "an offer without type": (
        slice_class(offers=[{"name": "o", "zones": ["us-east5-b"]}]),
        ("spec.offers[0].type: Required value",),
    ),
    "an offer without zones": (
        slice_class(offers=[{"name": "o", "type": "Spot"}]),
        ("spec.offers[0].zones: an offer needs zones, for example [us-east5-b]",),
    ),
    "a reservation without its name": (
        offer(type="Reservation"),
        ("spec.offers[0].reservation: an offer of type Reservation needs reservation",),
    ),
    "on-demand with a reservation": (
        offer(reservation={"name": "r"}),
        ("spec.offers[0].reservation: reservation belongs to type Reservation: remove it or change the type",),
    ),
    "a sub-block without block": (
        offer(type="Reservation", reservation={"name": "r", "subBlock": "s"}),
        ("spec.offers[0].reservation.subBlock: subBlock needs block",),
    ),
    "an offer for unknown accelerators": (
        offer(accelerators=["v6e", "v9"]),
        ('spec.offers[0].accelerators: accelerator "v9" is not known: use one of v4, v5e, v5p, v6e, v7x',),
    ),
    "flex-start of a generation without it": (
        offer(type="FlexStart", accelerators=["v4"]),
        (
            "spec.offers[0].accelerators: v4 cannot be had by flex-start: remove it from accelerators",
            f"spec.offers[0].type: {_NO_FLEX}",
        ),
    ),
    "flex-start, which nobody scales up yet": (offer(type="FlexStart"), (f"spec.offers[0].type: {_NO_FLEX}",)),
    "standing pools, which nobody adopts yet": (
        offer(type="Existing", existing={"nodePoolSelector": {}}, zones=[]),
        (f"spec.offers[0].type: {_NO_FLEX.replace('FlexStart', 'Existing')}",),
    ),
    "an empty pool to scale up": (
        offer(provisioning="ScaleUp"),
        ("spec.offers[0].provisioning: provisioning ScaleUp is not yet supported: use Create",),
    ),
    "a pool made with its nodes, said so": (offer(provisioning="Create"), ()),
    "a wait of less than a minute": (
        offer(waitSeconds=59),
        ("spec.offers[0].waitSeconds: 59: spec.offers[0].waitSeconds in body should be greater than or equal to 60",),
    ),
    "a taint of no known effect": (
        slice_class(nodePool={"taints": [{"key": "team", "value": "ml", "effect": "NO_SCHEDULE"}]}),
        ("spec.nodePool.taints[0].effect: effect must be one of NoSchedule, PreferNoSchedule, NoExecute",),
    ),
    "node labels of GKE's": (
        slice_class(nodePool={"labels": {"cloud.google.com/gke-spot": "true"}}),
        (
            "spec.nodePool.labels: labels that begin with cloud.google.com/ are set by GKE and the operator: "
            "remove them",
        ),
    ),
    "a reserved name in the class's overlay": (
        slice_class(
            jobDefaults={"template": pod(containers=[{"name": "ray", "env": [{"name": "LOCAL_RANK", "value": "0"}]}])}
        ),
        ("spec.jobDefaults.template.spec.containers: LOCAL_RANK is set by the operator: choose another name",),
    ),
    "a slice made by hand": (SLICE, ()),
    "a slice of no shape": (
        made_slice(accelerator="v6e", topology="4x2"),
        ('spec.topology: accelerator v6e has no topology "4x2": did you mean "2x4"?',),
    ),
    "a slice of no topology at all": (
        made_slice(topology=""),
        (
            "spec.topology: topology is required: the chips of one slice, for example 4x4 (v5e, v6e) or 2x2x2 "
            "(v4, v5p, v7x)",
        ),
    ),
    "a slice of no generation at all": (
        made_slice(accelerator=""),
        ("spec.accelerator: accelerator is required: one of v4, v5e, v5p, v6e, v7x",),
    ),
    "a slice of an unknown generation": (
        made_slice(accelerator="tpu-v6e-slice"),
        ('spec.accelerator: accelerator "tpu-v6e-slice" is not known: did you mean "v6e"?',),
    ),
    "a slice on a reservation without its name, which would cost on-demand": (
        made_slice(offer={"name": "o", "type": "Reservation", "zone": "us-east5-b"}),
        ("spec.offer.reservation: an offer of type Reservation needs reservation",),
    ),
    "a slice by flex-start of a generation without it": (
        made_slice(accelerator="v4", topology="2x2x2", offer={"name": "o", "type": "FlexStart", "zone": "a"}),
        ("spec.offer: v4 cannot be had by flex-start: take another offer", f"spec.offer.type: {_NO_FLEX}"),
    ),
    "a pool of one's own, adopted by hand": (
        made_slice(
            offer={"name": "o", "type": "Existing", "zone": "us-east5-b"},
            nodePool={"name": "standing-0", "managed": False},
        ),
        (),
    ),
    "a slice named otherwise than its pool": (
        {**SLICE, "metadata": {"name": "other"}},
        (
            "spec.nodePool.name: metadata.name and spec.nodePool.name must be the same: a slice is named as its node "
            "pool",
        ),
    ),
}


def generated() -> Iterator[tuple[str, Document]]:
    """Many more objects, about which apiserver and Python must merely say the same."""
    topologies = [
        "",
        "0x4",
        "04x4",
        "4x",
        "x4",
        "4x4x4x4",
        "10000x1",
        "4x4 ",
        "４x4",
        "8x4",
        "64x64",
        "4,4",
        "4 x 4",
        "8X4",
        "2*8",
    ]
    cubes = [
        "8X4x4",
        "12*8*4",
        "4X6X8",
        "9999x9999x9999",
        "9999 x 4 x 4",
        "4x4x4",
        "4x4x8",
        "8x4x4",
        "4x6x8",
        "2x4x8",
        "4x4x60",
        "16x16x16",
        "16x16x36",
        "16x16x40",
        "4x4x576",
    ]
    for name, generation in CATALOGUE.items():
        for topology in (*generation.shapes, *topologies, *cubes):
            yield f"{name} {topology!r}", job(accelerator=name, topology=topology)
        for topology in ("1x1", "2x2", "2x4", "4x4", "2x2x1", "2x2x2", "4x4x8"):
            for chips in (1, 2, 4, 8):
                yield (
                    f"{name} {topology} with {chips} chips per host",
                    job(accelerator=name, topology=topology, chipsPerHost=chips),
                )
            for launcher in ("PerDevice", "PerHost", "Driver"):
                yield (
                    f"two slices {name} {topology} under {launcher}",
                    job(accelerator=name, topology=topology, numSlices=2, launcher=launcher),
                )
        for spelling in generation.misspellings:
            for form in (spelling, spelling.upper(), f" {spelling} ", f"{spelling}-8", f"{spelling}-x"):
                yield f"accelerator {form!r}", job(accelerator=form)
