"""Every name and label that a job brings about, read from what is really built: legal, within its limit, nobody else's."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spec_cases import job as a_spec
from torchtpu_operator.api import ClaimRef, TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.api.timestamps import parse_time
from torchtpu_operator.api.validate import InvalidObjectError, parse
from torchtpu_operator.plan import names
from torchtpu_operator.plan.allocation.manifest import build_slice
from torchtpu_operator.plan.job.manifests import Manifests
from torchtpu_operator.plan.node_pool import build_create_node_pool
from torchtpu_operator.plan.ray_cluster import WorkerPool

Json = dict[str, Any]
UIDS = st.uuids().map(str)
JOB_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?", fullmatch=True)
NAMESPACES = st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)

LABEL_VALUE = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
CLASS = TPUSliceClass.from_object(
    {
        "apiVersion": "torchtpu.dev/v1alpha1",
        "kind": "TPUSliceClass",
        "metadata": {"name": "default"},
        "spec": {"offers": [{"name": "od", "type": "OnDemand", "zones": ["us-east5-b"]}]},
    }
)


def named(name: str, *, namespace: str = "ml", uid: str, slices: int = 2) -> TorchTPUJob:
    document = a_spec(name=name, numSlices=slices)
    document["metadata"] |= {"namespace": namespace, "uid": uid}
    parsed = parse(document)
    assert isinstance(parsed, TorchTPUJob)
    return parsed


def slices_of(job: TorchTPUJob) -> list[TPUSlice]:
    now = parse_time("2026-11-30T12:00:00Z")
    return [
        TPUSlice.from_object(
            build_slice(
                job,
                CLASS,
                offer=CLASS.spec.offers[0],
                zone="us-east5-b",
                claim=ClaimRef(
                    namespace=job.metadata.namespace or "",
                    name=job.metadata.name,
                    uid=job.metadata.uid,
                    slice_index=index,
                    sequence=0,
                    claimed_at=now,
                ),
            )
        )
        for index in range(job.spec.num_slices)
    ]


def objects(job: TorchTPUJob, *, attempt: int) -> list[Json]:
    """Everything in Kubernetes that one attempt and its dry run name."""
    pools = tuple(WorkerPool.of(each) for each in slices_of(job))
    manifests = Manifests(job=job, slice_class=CLASS, pools=pools, attempt=attempt)
    created = [action.manifest for action in manifests.create()]
    return [*map(dict, created), *manifests.dry_run(), *(each.to_object() for each in slices_of(job))]


def labels(value: Any) -> Iterator[str]:
    """Values of every `labels` and `nodeSelector` at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("labels", "nodeSelector", "matchLabels") and isinstance(inner, dict):
                yield from inner.values()
            else:
                yield from labels(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from labels(inner)


@settings(max_examples=25)
@given(JOB_NAMES, NAMESPACES, UIDS, st.integers(1, 1_000_000))
def test_every_name_and_label_is_legal_where_it_goes(name: str, namespace: str, uid: str, attempt: int) -> None:
    job = named(name, namespace=namespace, uid=uid)
    made = objects(job, attempt=attempt)
    bad_names = [each["metadata"]["name"] for each in made if not DNS_LABEL.fullmatch(each["metadata"]["name"])]
    too_long = [each["metadata"]["name"] for each in made if len(each["metadata"]["name"]) > 63]
    bad_labels = [value for each in made for value in labels(each) if not LABEL_VALUE.fullmatch(value)]
    cluster = names.ray_cluster_name(name, job_uid=uid, attempt=attempt)
    derived = {  # by KubeRay, the TPU webhook and Ray, with their limits
        f"{cluster}-head-svc": 50,
        f"{cluster}-headless": 50,
        names.tpu_name(cluster, slice_index=15): 63,
    }
    over = [text for text, limit in derived.items() if len(text) > limit]
    assert (bad_names, too_long, bad_labels, over) == ([], [], [], [])


@settings(max_examples=25)
@given(JOB_NAMES, UIDS)
def test_every_node_pool_is_one_that_gke_takes(name: str, uid: str) -> None:
    for slice_ in slices_of(named(name, uid=uid)):
        made = slice_.model_copy(update={"metadata": slice_.metadata.model_copy(update={"uid": uid})})
        pool = build_create_node_pool(made, installation="0123456789abcdef", parent=None)["nodePool"]
        config = pool["config"]
        values = [*config["labels"].values(), *config["resourceLabels"].values(), config["taints"][0]["value"]]
        capacity = names.capacity_pod_name(pool["name"], host=1535)
        assert (slice_.metadata.name, len(pool["name"]) <= 40, len(capacity) <= 63) == (pool["name"], True, True)
        assert [value for value in values if not LABEL_VALUE.fullmatch(value)] == []


UID, OTHER = "11111111-2222-3333-4444-555555555555", "66666666-2222-3333-4444-555555555555"
LONG = "llama-3-405b-instruct-finetune-on-customer"  # 42 characters
NEIGHBOURS = {
    "two jobs that share 42 characters": ((f"{LONG}-a", "ml"), (f"{LONG}-b", "ml")),
    "one name in two namespaces": (("train", "ml"), ("train", "research")),
    "one long name in two namespaces": ((LONG, "ml"), (LONG, "research")),
    "a name that ends as a derived one would": (("train", "ml"), ("train-0-7c2e3f16", "ml")),
    "a job and its namesake that came later": (("train", "ml"), ("train", "ml")),
}


@pytest.mark.parametrize(("one", "other"), NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_two_jobs_never_meet_in_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    found = []
    for (name, namespace), uid in ((one, UID), (other, OTHER)):
        job = named(name, namespace=namespace, uid=uid, slices=16)
        made = objects(job, attempt=1)
        env = {
            entry["value"]
            for each in made
            if each["kind"] == "RayCluster"
            for group in each["spec"]["workerGroupSpecs"]
            for entry in group["template"]["spec"]["containers"][0]["env"]
            if entry["name"] == "TPU_NAME"
        }
        slices = {each["metadata"]["name"] for each in made if each["kind"] == "TPUSlice"}
        assert (len(env), len(slices)) == (16, 16)
        found.append({each["metadata"]["name"] for each in made} | env | {names.submission_id(uid, attempt=1)})
    assert found[0] & found[1] == set()


LENGTHS = {length: "a" + "b" * (length - 2) + "9" for length in (1, 2, 20, 40, 47, 51, 52)} | {1: "a"}
REFUSED = {
    "53 characters": "a" * 53,
    "63 characters": "a" * 63,
    "253 characters": "a" * 253,
    "a dash at the end": "train-",
    "a dash at the beginning": "-train",
    "a digit at the beginning": "7b-train",
    "a dot": "llama.train",
    "capitals": "Train",
    "a line after it": "train\n",
}


@pytest.mark.parametrize("length", LENGTHS)
def test_a_name_of_so_many_characters_is_taken(length: int) -> None:
    job = named(LENGTHS[length], uid=UID)
    made = objects(job, attempt=7)
    assert (len(job.metadata.name), max(len(each["metadata"]["name"]) for each in made) <= 63) == (length, True)


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_a_name_that_would_break_later_is_refused_at_once(name: str) -> None:
    with pytest.raises(InvalidObjectError, match="must be a lower-case DNS label"):
        named(name, uid=UID)
