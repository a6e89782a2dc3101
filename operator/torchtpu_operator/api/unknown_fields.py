"""What was meant by a field that is not there: misspelt, in the wrong place, or another API's name for it."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import BaseModel

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import model_in

Loc = Sequence[int | str]

_CLASS_OF_JOB: Final = "spec.sliceClassName, of a class with such an offer"
_BY_ANNOTATION: Final = 'the annotation torchtpu.dev/is-default-class: "true"'
# What users of RayJob, Job, JobSet, xpk and torchrun write into the spec of a job, by letters alone.
_OF_JOB: Final[Mapping[str, str]] = {
    **dict.fromkeys(("command", "args", "cmd", "script"), "spec.entrypoint"),
    **dict.fromkeys(("replicas", "parallelism", "slices", "numreplicas"), "spec.numSlices"),
    **dict.fromkeys(("backofflimit", "retries", "maxretries", "restarts"), "spec.failurePolicy.maxRestarts"),
    **dict.fromkeys(("spot", "preemptible", "zone", "zones", "reservation", "ondemand"), _CLASS_OF_JOB),
    **dict.fromkeys(("timeout", "timeoutseconds", "maxruntime"), "spec.activeDeadlineSeconds"),
    **{name: f"metadata.{name}" for name in ("name", "namespace", "labels", "annotations")},
    "serviceaccountname": "spec.template.spec.serviceAccountName",
    "imagepullsecrets": "spec.template.spec.imagePullSecrets",
    "volumemounts": "spec.template.spec.containers[].volumeMounts, with the container's name: ray",
}
_OF_CLASS: Final[Mapping[str, str]] = dict.fromkeys(("default", "isdefault", "isdefaultclass"), _BY_ANNOTATION)
_FOREIGN: Final[Mapping[str, Mapping[str, str]]] = {constants.JOB_KIND: _OF_JOB, constants.CLASS_KIND: _OF_CLASS}


def meant(name: str, *, model: type[BaseModel], loc: Loc) -> str:
    """The field that was probably meant by `name` at `loc`, or "". One that is elsewhere comes with its whole path."""
    here = {_letters(each): each for each in _fields_at(model, loc)}
    letters = _letters(name)
    if letters in here:
        return here[letters]
    if list(loc) == ["spec"] and (found := _FOREIGN.get(_kind(model), {}).get(letters)):
        return found
    return next((path for path, field in _paths(model) if _letters(field) == letters), "") or nearest(
        name, [*here.values()]
    )


def nearest(name: str, known: Sequence[str]) -> str:
    """The one of `known` that is spelt most alike, or ""."""
    by_letters = {_letters(each): each for each in known}
    near = difflib.get_close_matches(_letters(name), [*by_letters], n=1, cutoff=0.6)
    return by_letters[near[0]] if near else ""


def _letters(name: str) -> str:
    return name.lower().replace("_", "")  # num_slices, NumSlices and numslices are one


def _kind(model: type[BaseModel]) -> str:
    kind = model.model_fields.get("kind")
    return str(kind.default) if kind else ""


def _fields_at(model: type[BaseModel], loc: Loc) -> list[str]:
    node: type[BaseModel] | None = model
    for step in loc:
        if isinstance(step, int) or node is None:
            continue
        field = next((f for name, f in node.model_fields.items() if step in (f.alias, name)), None)
        node = model_in(field.annotation) if field else None
    return [field.alias or name for name, field in node.model_fields.items()] if node else []


def _paths(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Path and name of every field that users write, the shallow ones first."""
    level: list[tuple[str, type[BaseModel]]] = [("", model)]
    while level:
        deeper = []
        for prefix, node in level:
            for name, field in node.model_fields.items():
                alias = field.alias or name
                if not prefix and alias in ("status", "metadata"):
                    continue
                path = f"{prefix}{alias}"
                yield path, alias
                if inner := model_in(field.annotation):
                    many = "[]" if inner is not field.annotation and "tuple" in str(field.annotation) else ""
                    deeper.append((f"{path}{many}.", inner))
        level = deeper
