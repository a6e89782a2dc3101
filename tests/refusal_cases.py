"""What a class must not say, and what of a job is found out late unless the schema says it: word by word."""

from typing import Any

from tests.spec_cases import SLICE, Document, job, made_slice, offer, pod, slice_class

Said = tuple[str, ...]


def _default(**fields: Any) -> Document:
    return slice_class(jobDefaults=fields)


def _exit_codes(*values: int) -> Document:
    return job(failurePolicy={"rules": [{"action": "Fail", "onExitCodes": {"operator": "In", "values": list(values)}}]})


def _mount(path: str) -> Document:
    return job(template=pod(containers=[{"name": "ray", "volumeMounts": [{"name": "d", "mountPath": path}]}]))


def _selector(**need: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "team", **need}]}


_VERSION = "is not a version of Ray: write its three numbers, for example 2.60.0"
_ZONE = "is not a zone: write lower-case letters, digits and dashes, for example us-east5-b"
_IMAGE = "is not the name of an image: write registry/path:tag, without https:// and spaces"
_VALUES = "operator In and NotIn need values, Exists and DoesNotExist take none"
_OPERATOR = "operator must be one of In, NotIn, Exists, DoesNotExist"
_CODES = "spec.failurePolicy.rules[0].onExitCodes.values"
_RUNTIME_DIR = (
    "spec.runtimeEnv.working_dir: runtimeEnv.working_dir must be an archive that Ray can fetch, for example "
    "gs://acme/code.zip: a folder of your own machine stays there"
)
_MOUNTS = "spec.template.spec.containers: mountPath"
_RESERVATION_NAME = "name must be the name of a reservation: lower-case letters, digits and dashes, at most 63"

JOBS: dict[str, tuple[Document, Said]] = {
    **{
        f"Ray {written!r}": (job(rayVersion=written), (f'spec.rayVersion: rayVersion "{written}" {_VERSION}',))
        for written in ("2.60", "v2.60.0", "latest", "")
    },
    **{
        f"the image {written!r}": (job(image=written), (f'spec.image: image "{written}" {_IMAGE}',))
        for written in ("https://gcr.io/acme/ray:1", "docker://acme/ray", " acme/ray:1", "acme/ray 1")
    },
    **{
        f"the image {written!r}": (job(image=written), ())
        for written in ("ray", "localhost:5000/acme/ray", f"gcr.io/acme/ray@sha256:{'a' * 64}")
    },
    "exit codes of a failure": (_exit_codes(1, 42, 255), ()),
    "success as a failure": (_exit_codes(1, 0), (f"{_CODES}: exit code 0 of a failure cannot be: values are 1 to 255 (0 is success)",)),
    "an exit code that no process has": (
        _exit_codes(256),
        (f"{_CODES}: exit code 256 of a failure cannot be: values are 1 to 255 (0 is success)",),
    ),
    "an exit code below nothing": (
        _exit_codes(-9),
        (f"{_CODES}: exit code -9 of a failure cannot be: values are 1 to 255 (0 is success)",),
    ),
    **{
        f"a runtime environment in {written!r}": (job(runtimeEnv={"working_dir": written}), (_RUNTIME_DIR,))
        for written in (".", "/home/me/code", "gs://acme/code", "code.zip", "")
    },
    **{
        f"a runtime environment in {written}": (job(runtimeEnv={"working_dir": written}), ())
        for written in ("s3://a/b.zip", "https://a/b.zip?x=1", "file:///mnt/a.tar.gz", "local:///app")
    },
    **{
        f"a runtime environment with {field}": (
            job(runtimeEnv={field: value}),
            (
                f"spec.runtimeEnv.{field}: runtimeEnv is written in Ray's own words, and Ray takes no notice of {field}: "
                f"write {word}",
            ),
        )
        for field, word, value in (
            ("envVars", "env_vars", {"A": "1"}),
            ("workingDir", "working_dir", "gs://a/b.zip"),
            ("pyModules", "py_modules", ["gs://a/b.zip"]),
        )
    },
    **{
        f"a {field} {name!r}": (
            job(**{field: name}),
            (
                f'spec.{field}: {field} "{name}" is no name of an object: it is of lower-case letters, digits, dashes and '
                "dots, with a letter or digit at both ends",
            ),
        )
        for field, name in (("sliceClassName", "Gold"), ("sliceClassName", "a b"), ("priorityClassName", ""))
    },
    **{
        f"code in a ConfigMap {name!r}": (
            job(workingDir={"configMap": {"name": name}}),
            (
                f'spec.workingDir.configMap.name: workingDir.configMap.name "{name}" is no name of an object: it is of '
                "lower-case letters, digits, dashes and dots, with a letter or digit at both ends",
            ),
        )
        for name in ("..", "../secrets/hf", "../../kube-system/secrets/a", "code?x", "Code")
    },
    "names of objects": (job(sliceClassName="gold.1", priorityClassName="a", workingDir={"configMap": {"name": "c-1"}}), ()),
    "hands off for another controller": (job(managedBy="kueue.x-k8s.io/multikueue"), ()),
    "hands off for nobody": (
        job(managedBy=""),
        (
            'spec.managedBy: managedBy "" is no controller: it needs a domain and a name, as in '
            "kueue.x-k8s.io/multikueue; leave it unset for this operator",
        ),
    ),
    "hands off for a person": (
        job(managedBy="me"),
        (
            'spec.managedBy: managedBy "me" is no controller: it needs a domain and a name, as in '
            "kueue.x-k8s.io/multikueue; leave it unset for this operator",
        ),
    ),
    **{
        f"a mount at {path}": (_mount(path), (f"{_MOUNTS} {taken} is the operator's: choose another one",))
        for path, taken in {
            "/opt/torchtpu/": "/opt/torchtpu",
            "/opt/torchtpu/torchtpu_runner": "/opt/torchtpu",
            "/opt/torchtpu-job/code": "/opt/torchtpu-job/code",
            "/opt/torchtpu-job/code/data": "/opt/torchtpu-job/code",
        }.items()
    },
    **{f"a mount at {path}": (_mount(path), ()) for path in ("/opt", "/opt/torchtpus", "/opt/torchtpu-job", "/dev/shm")},
    "a mount over /dev/shm": (
        _mount("/dev/shm/"),
        (f"{_MOUNTS} /dev/shm/ would lie over the operator's /dev/shm: write /dev/shm",),
    ),
    **{
        f"an init container {name}": (
            job(template=pod(initContainers=[{"name": name, "image": "a"}])),
            (
                f"spec.template.spec.initContainers: init container {name} has the name of one of the operator's: choose "
                "another one",
            ),
        )
        for name in ("ray", "torchtpu-await-head")
    },
    **{
        f"an annotation {name}": (
            job(worker={"template": {"metadata": {"annotations": {name: "true"}}}}),
            (
                f"spec.worker.template.metadata.annotations: annotations that begin with {name.partition('/')[0]}/ are for "
                "KubeRay and the operator: remove them",
            ),
        )
        for name in ("ray.io/overwrite-container-cmd", "torchtpu.dev/job")
    },
    "a restart policy of the container": (
        job(worker={"template": pod(containers=[{"name": "ray", "restartPolicy": "Always"}])}),
        (
            "spec.worker.template.spec.containers: restartPolicy is set by the operator, so that a lost host rebuilds its "
            "whole slice: leave it unset",
        ),
    ),
    "a sidecar that starts first": (
        job(template=pod(initContainers=[{"name": "proxy", "image": "a", "restartPolicy": "Always"}])),
        (),
    ),
    "annotations of others": (
        job(template={"metadata": {"annotations": {"gke-gcsfuse/volumes": "true", "cloud.google.com/a": "b"}}}),
        (),
    ),
    "a reserved name in an init container, which is no worker": (
        job(template=pod(initContainers=[{"name": "warm", "image": "a", "env": [{"name": "RANK", "value": "0"}]}])),
        (),
    ),
}  # fmt: skip

CLASSES: dict[str, tuple[Document, Said]] = {
    "a class on an image with a scheme": (
        _default(image="https://gcr.io/acme/ray:1"),
        (f'spec.jobDefaults.image: image "https://gcr.io/acme/ray:1" {_IMAGE}',),
    ),
    "a class on an unwritten Ray": (
        _default(rayVersion="2.60"),
        (f'spec.jobDefaults.rayVersion: rayVersion "2.60" {_VERSION}',),
    ),
    "a class on an old Ray": (
        _default(rayVersion="2.9.0"),
        ("spec.jobDefaults.rayVersion: Ray 2.9.0 is too old: 2.58.0 or later is needed to place workers on a slice",),
    ),
    "a class on a Ray for one slice": (_default(rayVersion="2.59.0"), ()),
    "a region for a zone": (
        offer(zones=["us-east5-b", "us-east5"]),
        ('spec.offers[0].zones: "us-east5" is a region: name its zones, for example us-east5-b',),
    ),
    **{
        f"a zone {written!r}": (offer(zones=[written]), (f'spec.offers[0].zones: "{written}" {_ZONE}',))
        for written in ("", "US-EAST5-B", "us-east5-b ", "projects/p/zones/us-east5-b", "a" * 64)
    },
    "a zone for AI": (offer(zones=["us-south1-ai1b"]), ()),
    "an offer in capitals": (
        offer(name="Spot"),
        (
            "spec.offers[0].name: the name of an offer must be lower-case letters, digits and dashes, at most 63, and "
            'not "Spot": jobs pick offers by it',
        ),
    ),
    "a price in dollars": (
        offer(pricePerChipHour="$1.20"),
        (
            'spec.offers[0].pricePerChipHour: pricePerChipHour "$1.20" is no decimal: write digits and a point, in '
            'quotes, for example "1.20"',
        ),
    ),
    "a reservation by its path": (
        offer(type="Reservation", reservation={"name": "projects/acme-tpu/reservations/v6e-res"}),
        (
            "spec.offers[0].reservation.name: name is the name of the reservation, not its path: write v6e-res, and its "
            "project as project",
        ),
    ),
    "a reservation by a path beyond a name's length": (
        offer(type="Reservation", reservation={"name": f"projects/{'a' * 30}/reservations/{'r' * 40}"}),
        (
            f"spec.offers[0].reservation.name: name is the name of the reservation, not its path: write {'r' * 40}, and "
            "its project as project",
        ),
    ),
    **{
        f"a reservation whose {field} is a path": (
            offer(type="Reservation", reservation={"name": "r", "block": "b", field: f"projects/acme/{'x' * 60}"}),
            (f"spec.offers[0].reservation.{field}: {field} is an ID and no path: write its last part alone",),
        )
        for field in ("project", "block", "subBlock")
    },
    "nodes with an account of Kubernetes'": (
        slice_class(nodePool={"serviceAccount": "tpu-nodes"}),
        (
            'spec.nodePool.serviceAccount: serviceAccount "tpu-nodes" is no e-mail address of a Google service account: '
            "write tpu-nodes@<project>.iam.gserviceaccount.com, or leave it unset for the cluster's default",
        ),
    ),
    "nodes with the default account, said so": (slice_class(nodePool={"serviceAccount": "default"}), ()),
    "a reservation in capitals": (
        offer(type="Reservation", reservation={"name": "V6E"}),
        (f"spec.offers[0].reservation.name: {_RESERVATION_NAME}",),
    ),
    **{
        f"a slice named {name!r}": (
            {**SLICE, "metadata": {"name": name}, "spec": {**SLICE["spec"], "nodePool": {"name": name}}},
            (
                f'spec.nodePool.name: nodePool.name "{name}" is no name of a node pool: lower-case letters, digits and '
                "dashes, a letter first, at most 40",
            ),
        )
        for name in ("a.b", "1a", "a" * 41)
    },
    "a slice on a reservation by its path": (
        made_slice(
            offer={"name": "o", "type": "Reservation", "zone": "us-east5-b", "reservation": {"name": "projects/p/r"}}
        ),
        (
            "spec.offer.reservation.name: name is the name of the reservation, not its path: write r, and its project as "
            "project",
        ),
    ),
    **{
        f"accelerators of an offer: {written}": (
            offer(accelerators=[written]),
            (f'spec.offers[0].accelerators: accelerator "{written}" is not known: did you mean "{meant}"?',),
        )
        for written, meant in {"tpu-v6e-slice": "v6e", "V5P": "v5p", "v6e-16": "v6e", "tpu7x": "v7x"}.items()
    },
    **{
        f"a selector with operator {written!r}": (
            slice_class(allowedNamespaces={"selector": _selector(operator=written, values=["nlp"])}),
            (f"spec.allowedNamespaces.selector.matchExpressions[0].operator: {_OPERATOR}",),
        )
        for written in ("in", "Equals", "")
    },
    "a selector without the values it needs": (
        slice_class(limits={"namespaces": [{"selector": _selector(operator="In"), "chips": 8}]}),
        (f"spec.limits.namespaces[0].selector.matchExpressions[0].values: {_VALUES}",),
    ),
    "a selector with values that it does not look at": (
        slice_class(allowedNamespaces={"selector": _selector(operator="Exists", values=["nlp"])}),
        (f"spec.allowedNamespaces.selector.matchExpressions[0].values: {_VALUES}",),
    ),
    "selectors": (
        slice_class(
            allowedNamespaces={"selector": _selector(operator="NotIn", values=["nlp"])},
            limits={"namespaces": [{"selector": _selector(operator="DoesNotExist"), "chips": 8}]},
        ),
        (),
    ),
    **{
        f"a taint {key}": (
            slice_class(nodePool={"taints": [{"key": key, "effect": "NoSchedule"}]}),
            (f"spec.nodePool.taints[0].key: taint {key} is set by GKE or the operator: remove it",),
        )
        for key in ("google.com/tpu", "torchtpu.dev/slice")
    },
    **{
        f"a cost label {key!r}": (
            slice_class(nodePool={"resourceLabels": {key: "x"}}),
            (
                f'spec.nodePool.resourceLabels: resourceLabels: "{key}" is no label of a virtual machine: at most 63 '
                "lower-case letters, digits, dashes and underscores, a letter first, and not torchtpu-",
            ),
        )
        for key in ("Cost-Center", "1a", "a/b", "torchtpu-slice")
    },
    "a cost label of no value that may be": (
        slice_class(nodePool={"resourceLabels": {"cost-center": "ML Team"}}),
        (
            "spec.nodePool.resourceLabels: resourceLabels: the value of cost-center is none of a virtual machine: at most "
            "63 lower-case letters, digits, dashes and underscores",
        ),
    ),
    "cost labels": (slice_class(nodePool={"resourceLabels": {"cost-center": "ml", "owner_1": ""}}), ()),
    "a class of nobody": (
        slice_class(controllerName=""),
        (
            'spec.controllerName: controllerName "" is no controller: it needs a domain and a name; leave it unset for '
            "this operator",
        ),
    ),
    "a class of another installation": (slice_class(controllerName="torchtpu.dev/second"), ()),
}
