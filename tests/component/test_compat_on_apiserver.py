"""What older versions stored lives on under today's CRDs in a real kube-apiserver; so does what today's would refuse."""

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from sim.control_plane.api_client import wait_until
from tests.crd_api import Api, causes, said_by_apiserver
from tests.spec_cases import Document, job, made_slice, offer, pod
from tests.stored_objects import stored_objects
from torchtpu_operator.api.crd import crd_files
from torchtpu_operator.api.rule import Rule

STORED = dict(stored_objects())
FINALIZER = "torchtpu.dev/cleanup"
LATER = Rule(
    id="later",
    at=("spec",),
    field=".checkpointDir",
    cel="!has(self.checkpointDir) || self.checkpointDir.startsWith('gs://')",
    message="checkpointDir must begin with gs://",
    ratchet=("checkpointDir",),
)


@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_stored_object_is_taken_written_suspended_and_let_go(crds: Api, stored: Document) -> None:
    spec, status = stored["spec"], stored["status"]
    made = crds.create({key: value for key, value in stored.items() if key != "status"})
    try:
        written = crds.patch(stored, {"status": status}, status=True)
        again = crds.patch(stored, {"status": {"message": "seen", "observedGeneration": 99}}, status=True)
        crds.patch(stored, {"metadata": {"finalizers": [FINALIZER]}})
        if stored["kind"] == "TorchTPUJob":
            crds.patch(stored, {"spec": {"suspend": not spec["suspend"]}})
        let_go = crds.patch(stored, {"metadata": {"finalizers": None}})
    finally:
        crds.delete(stored)
    assert lost(spec, made["spec"]) == []
    assert lost(status, written["status"]) == []
    assert (again["status"]["observedGeneration"], "finalizers" in let_go["metadata"]) == (99, False)


def lost(stored: Any, served: Any, path: str = "") -> list[str]:
    """What the apiserver did not keep; what later versions add by default is no loss."""
    if isinstance(stored, dict) and isinstance(served, dict):
        return [entry for key, value in stored.items() for entry in lost(value, served.get(key), f"{path}.{key}")]
    if isinstance(stored, list) and isinstance(served, list) and len(stored) == len(served):
        pairs = zip(stored, served, strict=True)
        return [entry for index, pair in enumerate(pairs) for entry in lost(*pair, f"{path}[{index}]")]
    return [] if stored == served else [f"{path}: {stored!r} became {served!r}"]


# sentence -> an object that was fine before there were rules, and is not now
NOW_REFUSED: dict[str, Document] = {
    "an accelerator that there is no longer": job(name="old-accelerator", accelerator="v3"),
    "a topology that there is no longer": job(name="old-topology", topology="2x8"),
    "a program that is started in another way now": job(name="old-entrypoint", entrypoint="torchrun train.py"),
    "a deadline out of bounds": job(name="old-deadline", startDeadlineSeconds=0),
    "a value that an enum lost": job(name="old-launcher", launcher="PerSocket"),
    "a version that is no version": job(name="old-version", rayVersion="latest"),
    "an overlay with what the operator owns": job(name="old-overlay", template=pod(restartPolicy="Always")),
    "several things": job(name="old-several", accelerator="v3", numSlices=99, env=[{"name": "RANK", "value": "0"}]),
    "a slice of no shape": made_slice(topology="2x8"),
    "a class whose offer lacks its settings": offer(type="Reservation"),
}


def is_refused(crds: Api, document: Document) -> bool:
    return bool(said_by_apiserver(crds, document))


def is_taken(crds: Api, document: Document) -> bool:
    return not is_refused(crds, document)


@pytest.fixture(scope="module")
def old_objects(crds: Api) -> Iterator[dict[str, Document]]:
    """Each object stored while the CRDs had no rules and no bounds; then came today's."""
    documents = {name: with_finalizer(document) for name, document in NOW_REFUSED.items()}
    crds.install(loosened(yaml.safe_load(text)) for text in crd_files().values())
    for document in documents.values():
        wait_until(
            partial(is_taken, crds, document),
            what=f"no rule for {document['metadata']['name']}",
            seconds=60,
            check=lambda: None,
        )
        crds.create(document)
    crds.install()
    for document in documents.values():
        fresh = {**document, "metadata": {**document["metadata"], "name": "fresh-object"}}
        wait_until(
            partial(is_refused, crds, fresh),
            what=f"today's rules for {document['metadata']['name']}",
            seconds=60,
            check=lambda: None,
        )
    yield documents
    for document in documents.values():
        crds.delete(document)


@pytest.mark.parametrize("name", NOW_REFUSED)
def test_object_that_todays_rules_refuse_is_still_written_and_let_go(
    crds: Api, old_objects: dict[str, Document], name: str
) -> None:
    """Status, labels and finalizers: a controller can always tell what is the case, and let go."""
    document = old_objects[name]
    written = crds.patch(document, {"status": {"observedGeneration": 1, "conditions": [STALLED]}}, status=True)
    crds.patch(document, {"metadata": {"labels": {"seen": "true"}}})
    let_go = crds.patch(document, {"metadata": {"finalizers": None}})
    assert written["status"]["conditions"] == [STALLED]
    assert (let_go["metadata"]["labels"], "finalizers" in let_go["metadata"]) == ({"seen": "true"}, False)


STALLED: Document = {
    "type": "Stalled",
    "status": "True",
    "reason": "InvalidSpec",
    "message": "made by an older version",
    "lastTransitionTime": "2026-11-30T12:00:00Z",
    "observedGeneration": 1,
}


def test_a_later_edit_of_such_an_object_is_judged_by_todays_rules(crds: Api, old_objects: dict[str, Document]) -> None:
    """Why a rule that comes later has to ratchet: those of the first release let nothing of the spec pass."""
    with pytest.raises(ApiException) as refused:
        crds.patch(old_objects["an accelerator that there is no longer"], {"spec": {"suspend": True}})
    assert [each.partition(": ")[0] for each in causes(refused.value)] == ["spec.accelerator"]


@pytest.fixture
def with_later_rule(crds: Api) -> Iterator[Document]:
    """A job that was stored before a rule that ratchets came."""
    document = job(name="before-the-rule", checkpointDir="/mnt")
    crds.create(document)
    later = [yaml.safe_load(text) for text in crd_files().values()]
    for crd in later:
        if crd["spec"]["names"]["kind"] == document["kind"]:
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            schema["properties"]["spec"]["x-kubernetes-validations"].append(LATER.validation())
    fresh = {**document, "metadata": {**document["metadata"], "name": "after-the-rule"}}
    crds.install(later)
    wait_until(lambda: bool(said_by_apiserver(crds, fresh)), what="the later rule", seconds=60, check=lambda: None)
    yield document
    crds.install()
    wait_until(lambda: not said_by_apiserver(crds, fresh), what="today's rules", seconds=60, check=lambda: None)
    crds.delete(document)


def test_a_later_rule_that_ratchets_lets_an_old_job_be_suspended(crds: Api, with_later_rule: Document) -> None:
    suspended = crds.patch(with_later_rule, {"spec": {"suspend": True}})
    fresh = {**with_later_rule, "metadata": {**with_later_rule["metadata"], "name": "after-the-rule"}}
    assert (suspended["spec"]["suspend"], said_by_apiserver(crds, fresh)) == (
        True,
        ("spec.checkpointDir: checkpointDir must begin with gs://",),
    )


def with_finalizer(document: Document) -> Document:
    return {**document, "metadata": {**document["metadata"], "finalizers": [FINALIZER]}}


def loosened(crd: Document) -> Document:
    """The same fields, as if nobody had thought of a rule or a bound yet."""
    loose = copy.deepcopy(crd)
    _loosen(loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return loose


def _loosen(node: Document) -> None:
    for key in ("x-kubernetes-validations", "minimum", "maximum", "minLength", "pattern", "enum"):
        node.pop(key, None)
    for child in node.get("properties", {}).values():
        _loosen(child)
    for inner in ("items", "additionalProperties"):
        if isinstance(node.get(inner), dict):
            _loosen(node[inner])
