"""What people write for an accelerator and a topology, and what pods must not say: the answer to each, word by word.

Sources of the spellings: Cloud TPU's API, GKE's labels and machine types, Ray, product names, and plain slips.
"""

from tests.refusal_cases import CLASSES, JOBS
from tests.spec_cases import CASES, Document, job, offer, pod

Said = tuple[str, ...]

MEANT = {
    "v5litepod": "v5e",
    "tpu-v5-lite-device": "v5e",
    "tpu-v5-lite-podslice": "v5e",
    "TPU-V5LITEPOD": "v5e",
    "V5E": "v5e",
    "ct5lp-hightpu-8t": "v5e",
    "v6e-slice": "v6e",
    "tpu-v6e-slice": "v6e",
    "TPU-V6E": "v6e",
    "v6e ": "v6e",
    "trillium": "v6e",
    "ct6e": "v6e",
    "ct6e-standard-4t": "v6e",
    "tpu-v4-podslice": "v4",
    "tpu-v5p-slice": "v5p",
    "ct5p-hightpu-4t": "v5p",
    "tpu7x": "v7x",
    "Ironwood": "v7x",
    "tpu7x-standard-4t": "v7x",
    "TPU v6e": "v6e",
    "TPU_V5P": "v5p",
    "v5 lite": "v5e",
}
# the number in a type counts chips of v5e and v6e, and TensorCores, two per chip, of the others
SIZED = {
    "tpu-v6e-8": ("v6e", "2x4"),
    "v6e-64": ("v6e", "8x8"),
    "v5litepod-256": ("v5e", "16x16"),
    "V4-8": ("v4", "2x2x1"),
    "tpu7x-64": ("v7x", "2x4x4"),
    "v5p-16": ("v5p", "2x2x2"),
    "v6e-12": ("v6e", "4x4"),
    "v5p-4096": ("v5p", "2x2x2"),
    "v6e_16": ("v6e", "4x4"),
    "v6e:16": ("v6e", "4x4"),
    "v6e-2x4": ("v6e", "2x4"),
    "TPU v5p-2x2x4": ("v5p", "2x2x4"),
    "v5e-4x2": ("v5e", "4x4"),
}
UNKNOWN = ("v5", "tpu", "gpu", "h100", "v6e-", "v6e\u200b", "\uff56\uff16\uff45", "v4v5e")
SLIPS = {
    "2X4": "2x4",
    " 2x4": "2x4",
    "2x4 ": "2x4",
    "2x4\t": "2x4",
    "2x4\u00a0": "2x4",
    "2 x 4": "2x4",
    "2*4": "2x4",
    "4X2": "2x4",
    "4, 2": "2x4",
    "2,4": "2x4",
    "2×4": "2x4",
    "2\u04454": "2x4",
    "2\uff584": "2x4",
    "8": "2x4",
    "16": "4x4",
    "256": "16x16",
}
MALFORMED = ("7", "08", "v6e-8", "4-4", "4by4", "4x", "x4", "4x4x4x4", "0x4", "04x04", "-4x4", "\uff14x\uff14", "4x4.0")
TURNED = {("v6e", "4x2"): "2x4", ("v5e", "8x4"): "4x8", ("v5p", "4x2x2"): "2x2x4", ("v5p", "16x8x8"): "8x8x16"}
ABSENT = (
    ("v6e", "2x8"),
    ("v6e", "4x4x4"),
    ("v6e", "32x32"),
    ("v5e", "2x4x1"),
    ("v4", "4x4"),
    ("v5p", "2x2"),
    ("v6e", "2X8"),
    ("v5p", "4*4"),
    ("v5p", "2X2X8"),
    ("v4", "36x16x16"),
    ("v7x", "1x1x1"),
)
SMALL = (("v6e", "1x1"), ("v5e", "1x1"), ("v6e", "2x2"), ("v4", "2x2x1"), ("v7x", "2x2x1"))

_KNOWN = "v4, v5e, v5p, v6e, v7x"
_FORM = "is not of the form AxB or AxBxC (digits and lower-case x, no spaces)"
_FLAT = "it has 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"
_CUBES = "it has 2x2x1, 2x2x2, 2x2x4, 2x4x4, 4x4x4 and larger AxBxC with A <= B <= C, each a multiple of 4, up to"
_MOST = {"v4": 4096, "v5p": 8960, "v7x": 9216}


def _available(accelerator: str) -> str:
    return f"{_CUBES} {_MOST[accelerator]} chips" if accelerator in _MOST else _FLAT


def _accelerators() -> dict[str, tuple[Document, Said]]:
    cases: dict[str, tuple[Document, Said]] = {}
    for written, meant in MEANT.items():
        text = f'spec.accelerator: accelerator "{written}" is not known: did you mean "{meant}"?'
        cases[f"accelerator {written!r}"] = (job(accelerator=written), (text,))
    for written, (meant, example) in SIZED.items():
        text = (
            f'spec.accelerator: accelerator "{written}" is not known: did you mean "{meant}"? Give the size as topology, '
            f"for example {example}"
        )
        cases[f"accelerator {written!r}"] = (job(accelerator=written), (text,))
    for written in UNKNOWN:
        text = f'spec.accelerator: accelerator "{written}" is not known: use one of {_KNOWN}'
        cases[f"accelerator {written!r}"] = (job(accelerator=written), (text,))
    return cases


def _topologies() -> dict[str, tuple[Document, Said]]:
    cases: dict[str, tuple[Document, Said]] = {}
    for written, meant in SLIPS.items():
        text = f'spec.topology: topology "{written}" {_FORM}: did you mean "{meant}"?'
        cases[f"topology {written!r}"] = (job(topology=written), (text,))
    for written in MALFORMED:
        cases[f"topology {written!r}"] = (job(topology=written), (f'spec.topology: topology "{written}" {_FORM}',))
    for (accelerator, written), meant in TURNED.items():
        text = f'spec.topology: accelerator {accelerator} has no topology "{written}": did you mean "{meant}"?'
        cases[f"{accelerator} {written}"] = (job(accelerator=accelerator, topology=written), (text,))
    for accelerator, written in ABSENT:
        text = f'spec.topology: accelerator {accelerator} has no topology "{written}": {_available(accelerator)}'
        cases[f"{accelerator} {written}"] = (job(accelerator=accelerator, topology=written), (text,))
    for accelerator, written in SMALL:
        cases[f"{accelerator} {written}, small but valid"] = (job(accelerator=accelerator, topology=written), ())
    return cases


_TPU = {"limits": {"google.com/tpu": 1}}
_TPU_OF_OTHERS = (
    "must not ask for google.com/tpu: the container ray has all chips of the host, and no host would fit the pod"
)

PODS: dict[str, tuple[Document, Said]] = {
    "chips for a sidecar": (
        job(template=pod(containers=[{"name": "log", "image": "a", "resources": _TPU}])),
        (f"spec.template.spec.containers: container log {_TPU_OF_OTHERS}",),
    ),
    "chips for an init container": (
        job(worker={"template": pod(initContainers=[{"name": "warm", "image": "a", "resources": _TPU}])}),
        (f"spec.worker.template.spec.initContainers: container warm {_TPU_OF_OTHERS}",),
    ),
    "a node by name": (
        job(head={"template": pod(nodeName="gke-1")}),
        (
            "spec.head.template.spec.nodeName: nodeName would bypass the scheduler: leave it unset, and say in "
            "nodeSelector where the pod may run",
        ),
    ),
    "a volume in the place of the runner": (
        job(template=pod(volumes=[{"name": "data", "emptyDir": {}}, {"name": "torchtpu-runner", "emptyDir": {}}])),
        (
            "spec.template.spec.volumes: volume torchtpu-runner is the operator's: choose a name that does not begin "
            "with torchtpu-",
        ),
    ),
    "a larger /dev/shm": (job(template=pod(volumes=[{"name": "torchtpu-shm", "emptyDir": {"sizeLimit": "64Gi"}}])), ()),
    "a mount over the runner": (
        job(
            template=pod(containers=[{"name": "ray", "volumeMounts": [{"name": "data", "mountPath": "/opt/torchtpu"}]}])
        ),
        ("spec.template.spec.containers: mountPath /opt/torchtpu is the operator's: choose another one",),
    ),
    "the same path in a sidecar": (
        job(
            template=pod(
                containers=[{"name": "a", "image": "a", "volumeMounts": [{"name": "x", "mountPath": "/opt/torchtpu"}]}]
            )
        ),
        (),
    ),
    "a volume twice": (
        job(template=pod(volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}])),
        ('spec.template.spec.volumes[1]: Duplicate value: {"name":"a"}',),
    ),
    "volumes that are none": (
        job(template=pod(volumes="data")),
        ('spec.template.spec.volumes: "string": spec.template.spec.volumes in body must be of type array: "string"',),
    ),
}

POLICIES: dict[str, tuple[Document, Said]] = {
    "a workload policy by its path": (
        offer(workloadPolicy="projects/acme/regions/us-central1/resourcePolicies/wp-2x2x2"),
        (
            "spec.offers[0].workloadPolicy: workloadPolicy is the name of a resource policy in the region of the pool, "
            "not its path: write wp-2x2x2",
        ),
    ),
    "a workload policy in capitals": (
        offer(workloadPolicy="WP"),
        (
            "spec.offers[0].workloadPolicy: workloadPolicy must be the name of a resource policy: lower-case letters, "
            "digits and dashes, at most 63",
        ),
    ),
    "a workload policy by its name": (offer(workloadPolicy="wp-2x2x2"), ()),
}

SLICES: dict[str, tuple[Document, Said]] = {
    f"{count} slices": (job(numSlices=count), (f"spec.numSlices: numSlices is {count}: a job takes 1 to 16 slices",))
    for count in (-1, 17, 32)
}

ENTRYPOINTS: dict[str, tuple[Document, Said]] = {
    "an entrypoint of the most characters": (job(entrypoint="x" * 65536), ()),
    "an entrypoint of few characters and too many bytes": (
        job(entrypoint="echo " + "模" * 50000),
        (
            "spec.entrypoint: entrypoint has more than 131071 bytes, which Linux does not take in one argument: move the "
            "program into a file (workingDir or the image)",
        ),
    ),
    "an entrypoint with a NUL": (
        job(entrypoint="echo a\0b"),
        ("spec.entrypoint: entrypoint has a NUL character, which no command line can carry: remove it",),
    ),
}

ALL: dict[str, tuple[Document, Said]] = (
    CASES | _accelerators() | _topologies() | PODS | POLICIES | ENTRYPOINTS | SLICES | JOBS | CLASSES
)
"""With the cases of spec_cases and refusal_cases."""
