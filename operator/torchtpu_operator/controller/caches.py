"""Everything that the operator has seen of the cluster, and whom a change of it wakes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from torchtpu_operator.api import TorchTPUJob, TPUSlice, TPUSliceClass
from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.clients.calls import shortened
from torchtpu_operator.clients.kinds import CLASSES, JOBS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, SLICES, Kind
from torchtpu_operator.controller.cache import Change, ObjectCache
from torchtpu_operator.controller.facts import NamespaceFact, NodeFact, PodFact, read_namespace, read_node, read_pod
from torchtpu_operator.controller.workqueue import Key

M = TypeVar("M", bound=ApiObject)

ALLOCATION = Key("allocation", "", "")


class UnreadableError(Exception):
    """An object of ours that this version cannot read; it must not be treated as absent."""


@dataclass(frozen=True)
class Known(Generic[M]):
    """One object of ours: as the apiserver gave it, and as a model."""

    raw: dict[str, Any]
    parsed: M | None
    problem: str = ""

    @property
    def model(self) -> M:
        if self.parsed is None:
            raise UnreadableError(self.problem)
        return self.parsed

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])


def reader(model: type[M]) -> Callable[[dict[str, Any]], Known[M]]:
    def read(raw: dict[str, Any]) -> Known[M]:
        try:
            return Known(raw, model.from_object(raw))
        except ValidationError as error:
            meta = raw["metadata"]
            name = "/".join(part for part in (meta.get("namespace"), meta["name"]) if part)
            fields = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
            return Known(raw, None, shortened(f"{model.__name__} {name} cannot be read: {fields}"))

    return read


def job_key(raw: dict[str, Any]) -> Key:
    return Key("job", raw["metadata"]["namespace"], raw["metadata"]["name"])


def slice_key(name: str) -> Key:
    return Key("slice", "", name)


class Caches:
    """The caches by kind. A change wakes every key whose plan may depend on it, but not the key that made it."""

    def __init__(self, *, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._by: Key | None = None
        self.kuberay = False
        """Whether rayclusters.ray.io/v1 is served."""
        self.jobs: ObjectCache[Known[TorchTPUJob]] = ObjectCache(
            reader(TorchTPUJob),
            indices={"uid": lambda job: (job.uid,), "namespace": lambda job: (job.raw["metadata"]["namespace"],)},
            changed=lambda change: self._spread(self._of_job(change)),
        )
        self.slices: ObjectCache[Known[TPUSlice]] = ObjectCache(
            reader(TPUSlice),
            indices={"claimant": _claimant},
            changed=lambda change: self._spread(self._of_slice(change)),
        )
        self.classes: ObjectCache[Known[TPUSliceClass]] = ObjectCache(
            reader(TPUSliceClass), changed=lambda change: self._spread(self._of_class(change))
        )
        self.nodes: ObjectCache[NodeFact] = ObjectCache(
            read_node,
            indices={"pool": lambda node: (node.pool,)},
            changed=lambda change: self._spread(self._of_node(change)),
        )
        self.pods: ObjectCache[PodFact] = ObjectCache(
            read_pod,
            indices={"job": lambda pod: (pod.job_uid,)},
            changed=lambda change: self._spread(self._of_pod(change)),
        )
        self.namespaces: ObjectCache[NamespaceFact] = ObjectCache(
            read_namespace, changed=lambda change: self._spread(self._of_namespace(change))
        )

        self.priorities: ObjectCache[tuple[str, int]] = ObjectCache(
            lambda obj: (obj["metadata"]["name"], int(obj.get("value") or 0)),
            changed=lambda _: self._spread((ALLOCATION,)),
        )

    def of(self, kind: Kind) -> "ObjectCache[Any]":
        """The cache of a kind; KeyError for one that is only watched to wake others."""
        caches: dict[Kind, ObjectCache[Any]] = {
            JOBS: self.jobs,
            SLICES: self.slices,
            CLASSES: self.classes,
            NODES: self.nodes,
            PODS: self.pods,
            NAMESPACES: self.namespaces,
            PRIORITY_CLASSES: self.priorities,
        }
        return caches[kind]

    def remember(self, kind: Kind, obj: Mapping[str, Any], *, by: Key) -> None:
        """The answer to a write by `by`, whose own plan goes on with it anyway and so is not woken."""
        self._by = by
        try:
            self.of(kind).remember(obj)
        finally:
            self._by = None

    def forget(self, kind: Kind, obj: Mapping[str, Any], *, by: Key) -> None:
        """An object that `by` found to be gone."""
        self._by = by
        try:
            self.of(kind).forget(obj)
        finally:
            self._by = None

    def wake_job_of(self, uid: str) -> None:
        """Wake the job of this uid, if there is one: for children that are not cached (RayClusters)."""
        self._spread(self._job_keys(uid))

    def wake_all(self) -> None:
        self._spread([*(job_key(job.raw) for job in self.jobs), *self._slice_keys(), ALLOCATION])

    def set_kuberay(self, served: bool) -> None:
        if served != self.kuberay:
            self.kuberay = served
            self._spread(job_key(job.raw) for job in self.jobs)

    def _spread(self, keys: Iterable[Key]) -> None:
        for key in dict.fromkeys(keys):
            if key != self._by:
                self._wake(key)

    def _of_job(self, change: Change[Known[TorchTPUJob]]) -> Iterator[Key]:
        for job in (change.new, change.old):
            if job:
                yield job_key(job.raw)
                # A slice on its way asks its claimant before each call to GKE; the rest of a job is not its business.
                if not (change.old and change.new and _asks_the_same(change.old.raw, change.new.raw)):
                    for slice_ in self.slices.by("claimant", job.uid):
                        yield slice_key(slice_.raw["metadata"]["name"])
        yield ALLOCATION

    def _of_slice(self, change: Change[Known[TPUSlice]]) -> Iterator[Key]:
        for slice_ in (change.new, change.old):
            if slice_:
                yield slice_key(slice_.raw["metadata"]["name"])
                for uid in _claimant(slice_):
                    yield from self._job_keys(uid)
        yield ALLOCATION

    def _of_class(self, change: Change[Known[TPUSliceClass]]) -> Iterator[Key]:
        yield ALLOCATION
        if change.old and change.new and _is_the_same_class(change.old.raw, change.new.raw):
            return  # only its status, which every slice changes
        # Which class a job has may depend on every class (the default one), so all of them are asked.
        yield from (job_key(job.raw) for job in self.jobs)

    def _of_node(self, change: Change[NodeFact]) -> Iterator[Key]:
        for node in (change.new, change.old):
            if node and node.pool:
                yield slice_key(node.pool)
                if slice_ := self.slices.get(node.pool):
                    for uid in _claimant(slice_):
                        yield from self._job_keys(uid)

    def _of_pod(self, change: Change[PodFact]) -> Iterator[Key]:
        for pod in (change.new, change.old):
            if pod:
                yield from self._job_keys(pod.job_uid)

    def _of_namespace(self, change: Change[NamespaceFact]) -> Iterator[Key]:
        if change.old and change.new and change.old == change.new:
            return
        yield ALLOCATION
        for namespace in (change.new, change.old):
            if namespace:
                yield from (job_key(job.raw) for job in self.jobs.by("namespace", namespace.name))

    def _job_keys(self, uid: str) -> Iterator[Key]:
        yield from (job_key(job.raw) for job in self.jobs.by("uid", uid))

    def _slice_keys(self) -> Iterator[Key]:
        yield from (slice_key(slice_.raw["metadata"]["name"]) for slice_ in self.slices)


def _claimant(slice_: Known[TPUSlice]) -> tuple[str, ...]:
    claim = (slice_.raw.get("spec") or {}).get("claimRef") or {}
    return (claim["uid"],) if claim.get("uid") else ()


def _asks_the_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a job's demand, uid and deletion are what they were."""
    return _demand(old) == _demand(new)


def _demand(job: Mapping[str, Any]) -> tuple[Any, ...]:
    meta = job["metadata"]
    return meta["uid"], meta.get("deletionTimestamp"), (job.get("status") or {}).get("demand")


def _is_the_same_class(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return all(
        old["metadata"].get(field) == new["metadata"].get(field)
        for field in ("uid", "generation", "annotations", "deletionTimestamp")
    )
