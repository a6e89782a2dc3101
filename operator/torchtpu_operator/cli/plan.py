"""`torchtpu plan`: what the operator would make of a job, without a cluster, by the operator's own functions."""

import argparse
import json
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from torchtpu_operator.api import ClaimRef, TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.api.base import ApiObject, ObjectMeta
from torchtpu_operator.api.offer import Offer, OfferType
from torchtpu_operator.api.slice_class import ClassSpec
from torchtpu_operator.cli.documents import read_objects
from torchtpu_operator.cli.errors import CommandError
from torchtpu_operator.plan.allocation.grant import is_usable
from torchtpu_operator.plan.allocation.manifest import build_slice
from torchtpu_operator.plan.job.admission import queueing
from torchtpu_operator.plan.job.class_fit import limits_fit, offers_fit, ray_fits
from torchtpu_operator.plan.job.host_fit import too_large
from torchtpu_operator.plan.names import installation_id
from torchtpu_operator.plan.node_pool import build_create_node_pool
from torchtpu_operator.plan.ray_cluster import ImageMissingError, WorkerPool, build_ray_cluster, shape_of
from torchtpu_operator.sdk.job import JobShape
from torchtpu_operator.tpu import Shape

_ZEROS: Final = "00000000-0000-0000-0000-000000000000"
_DEFAULT_ZONE: Final = "us-east5-b"
_NAMESPACE: Final = "torchtpu-system"
_CONVERTED: Final = ("RayJob ", "RayCluster ", "JobSet ", "Job ")
_CONVERT: Final = "docs/converting.md says what becomes of its fields"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def add_command(commands: Any) -> None:
    """Add `plan` to the subcommands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "plan",
        help="show the node pools and the RayCluster that a job would get",
        description="Print what the operator would make of a job: its shape, one CreateNodePool request per slice and the "
        "RayCluster. Works offline.",
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        help="file with the TorchTPUJob, and if you like its TPUSliceClass, in one or several files; - is stdin",
    )
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="format (default: yaml)")
    parser.add_argument("--uid", default=_ZEROS, help="uid of the job, which names derive from (default: zeros)")
    parser.add_argument(
        "--zone", help=f"zone of the pools (default: the offer's first, or {_DEFAULT_ZONE} without a class)"
    )
    parser.add_argument("--project", help="project of the GKE cluster, for the parent of the requests")
    parser.add_argument("--location", help="region or zone of the GKE cluster")
    parser.add_argument("--cluster", help="name of the GKE cluster")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> str:
    """The plan as text. Raises CommandError."""
    job, given = _job_and_class(*read_objects(options.filename))
    slice_class = given or _built_in_class(options.zone or _DEFAULT_ZONE)
    job = job.model_copy(update={"metadata": job.metadata.model_copy(update={"uid": options.uid})})
    document = build_plan(job, slice_class, zone=options.zone, parent=_parent(options))
    if options.output == "json":
        return json.dumps(document, indent=2) + "\n"
    headline = _headline(job, given, slice_class, zone=options.zone)
    return headline + yaml.safe_dump(document, sort_keys=False, width=120)


def build_plan(job: TorchTPUJob, slice_class: TPUSliceClass, *, zone: str | None, parent: str | None) -> dict[str, Any]:
    """`shape`, `nodePools` and `rayCluster` of a job on the first offer that fits. Raises CommandError."""
    if problem := queueing(job):
        raise CommandError([f"metadata.labels: {problem}"])
    shape = shape_of(job)
    offer = _offer(job, slice_class, shape, zone=zone)
    slices = [_slice(job, slice_class, offer, zone or offer.zones[0], index) for index in range(job.spec.num_slices)]
    installation = installation_id(kube_system_uid=_ZEROS, namespace=_NAMESPACE)
    try:
        ray_cluster = build_ray_cluster(
            job,
            defaults=slice_class.spec.job_defaults,
            pools=[WorkerPool.of(slice) for slice in slices],
            attempt=1,
        )
    except ImageMissingError as error:
        raise CommandError([f"spec.image: {error}"]) from error
    if large := too_large(ray_cluster["spec"]["workerGroupSpecs"][0]["template"], shape=shape):
        raise CommandError([large])
    return {
        "shape": {
            "accelerator": shape.accelerator,
            "topology": shape.topology,
            "machineType": shape.machine_type,
            "hosts": shape.hosts,
            "chipsPerHost": shape.chips_per_host,
            "chips": shape.chips,
            "workers": shape.workers,
        },
        "nodePools": [build_create_node_pool(slice, installation=installation, parent=parent) for slice in slices],
        "rayCluster": ray_cluster,
    }


def _headline(job: TorchTPUJob, given: TPUSliceClass | None, slice_class: TPUSliceClass, *, zone: str | None) -> str:
    """What the pages below come to: size and source of the chips, as comments."""
    shape = shape_of(job)
    offer = _offer(job, slice_class, shape, zone=zone)
    place = f"in {zone or offer.zones[0]}"
    if given is not None:
        source = f"offer {offer.name} ({offer.type}) of class {given.metadata.name}, {place}"
        source += "; the class is paused: the job would wait" if given.spec.paused else ""
    else:
        wanted = f"TPUSliceClass {job.spec.slice_class_name}" if job.spec.slice_class_name else "TPUSliceClass"
        source = f"an on-demand offer {place}, assumed: the files have no {wanted}; give it with another -f"
    return f"# {JobShape(slice=shape, slices=job.spec.num_slices)}\n# from {source}\n"


def _job_and_class(objects: list[ApiObject], others: list[str]) -> tuple[TorchTPUJob, TPUSliceClass | None]:
    jobs = [obj for obj in objects if isinstance(obj, TorchTPUJob)]
    classes = [obj for obj in objects if isinstance(obj, TPUSliceClass)]
    if not jobs:
        found = ", ".join(others + [f"{type(each).__name__} {each.metadata.name}" for each in objects]) or "no object"
        hint = f"; {_CONVERT}" if any(title.startswith(_CONVERTED) for title in others) else ""
        raise CommandError([f"-f: expected one TorchTPUJob in the files, found {found}{hint}"])
    if len(jobs) > 1:
        names = ", ".join(each.metadata.name for each in jobs)
        raise CommandError(
            [f"-f: expected one TorchTPUJob in the files, found {len(jobs)} ({names}): plan them one by one"]
        )
    job = jobs[0]
    if not classes:
        return job, None
    name = job.spec.slice_class_name
    if name is not None:
        fitting = [each for each in classes if each.metadata.name == name]
    else:
        fitting = [each for each in classes if each.is_default] or (classes if len(classes) == 1 else [])
    if len(fitting) != 1:
        given = ", ".join(each.metadata.name for each in classes)
        wanted = f"one TPUSliceClass {name}" if name else "one default TPUSliceClass"
        raise CommandError([f"spec.sliceClassName: expected {wanted} in the files, found {given}"])
    return job, fitting[0]


def _built_in_class(zone: str) -> TPUSliceClass:
    offer = Offer(name="on-demand", type=OfferType.ON_DEMAND, zones=(zone,))
    return TPUSliceClass(metadata=ObjectMeta(name="default"), spec=ClassSpec(offers=(offer,)))


def _offer(job: TorchTPUJob, slice_class: TPUSliceClass, shape: Shape, *, zone: str | None) -> Offer:
    problem = (
        ray_fits(job, slice_class)
        or offers_fit(job, slice_class, shape=shape)
        or limits_fit(job, slice_class, shape=shape, labels=None)
    )
    if problem is not None:
        raise CommandError([problem[1]])
    for offer in slice_class.spec.offers:
        if is_usable(job, offer) and (zone is None or zone in offer.zones):
            return offer
    raise CommandError([f"spec.offers: no offer of class {slice_class.metadata.name} for this job is in zone {zone}"])


def _slice(job: TorchTPUJob, slice_class: TPUSliceClass, offer: Offer, zone: str, index: int) -> TPUSlice:
    claim = ClaimRef(
        namespace=job.metadata.namespace or "default",
        name=job.metadata.name,
        uid=job.metadata.uid,
        slice_index=index,
        sequence=0,
        claimed_at=_EPOCH,
    )
    slice = TPUSlice.from_object(build_slice(job, slice_class, offer=offer, zone=zone, claim=claim))
    return slice.model_copy(update={"metadata": slice.metadata.model_copy(update={"uid": _ZEROS})})


def _parent(options: argparse.Namespace) -> str | None:
    given = (options.project, options.location, options.cluster)
    if not any(given):
        return None
    if not all(given):
        raise CommandError(["--project, --location and --cluster belong together: give all three or none"])
    return f"projects/{options.project}/locations/{options.location}/clusters/{options.cluster}"
