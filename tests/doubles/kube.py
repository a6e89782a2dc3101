# ruff: noqa: ARG002 - the signatures are the Protocol's
"""An in-memory Kubernetes API with what controllers trip over: versions, conflicts, finalizers, status as a subresource,
garbage collection by ownerReferences, and a watch that can be held back."""

import builtins
import itertools
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from torchtpu_operator.clients.kinds import CLASSES, GROUP, JOBS, RAY_CLUSTERS, SLICES, VERSION, Kind
from torchtpu_operator.clients.kube_errors import KubeError

Obj = dict[str, Any]
Name = tuple[str, str, str]
Json = TypeVar("Json")
Watch = Callable[[str, Obj], object]
"""Called with ADDED, MODIFIED or DELETED and the object; the answer is nobody's."""
Fault = Callable[[str, Kind, str], None]
"""Called with verb, kind and name before a call takes effect; raises KubeError to refuse it."""

_WITH_STATUS = {JOBS, SLICES, CLASSES}


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class MemoryKube:
    """Implements `KubeApi`. Objects that come in and go out are copies."""

    clock: Callable[[], datetime] = _utc_now
    kuberay: bool = True
    before: Fault | None = None
    after: Fault | None = None
    """Called once a call has taken effect; raising there is an answer that got lost."""
    held_back: bool = False
    """While True, watchers are told nothing; `release` tells them all of it."""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """(verb, plural, name) of every call."""

    def __post_init__(self) -> None:
        self._objects: dict[Name, Obj] = {}
        self._versions, self._uids = itertools.count(100), itertools.count(1)
        self._watches: dict[Kind, list[Watch]] = {}
        self._late: list[tuple[Kind, str, Obj]] = []
        self._kinds: dict[str, Kind] = {}

    # --- KubeApi

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> Obj | None:
        self._enter("get", kind, name)
        found = self._objects.get(_key(kind, namespace, name))
        self._leave("get", kind, name)
        return _copied(found)

    async def list(self, kind: Kind, *, namespace: str | None = None, labels: str = "") -> list[Obj]:
        self._enter("list", kind, "")
        found = [
            _copied(obj)
            for (plural, where, _), obj in sorted(self._objects.items())
            if plural == kind.plural and namespace in (None, where) and _selected(obj, labels)
        ]
        self._leave("list", kind, "")
        return found

    async def create(self, kind: Kind, obj: Mapping[str, Any], *, dry_run: bool = False) -> Obj:
        meta = obj["metadata"]
        name = meta.get("name") or meta.get("generateName", "") + "x"
        self._enter("dry-run" if dry_run else "create", kind, name)
        key = _key(kind, meta.get("namespace"), name)
        if key in self._objects:
            raise _refused(409, "AlreadyExists", f'{kind.plural} "{name}" already exists')
        made = _copied(dict(obj))
        made["metadata"] |= {
            "name": name,
            "uid": f"uid-{next(self._uids)}",
            "creationTimestamp": _text(self.clock()),
            "generation": 1,
        }
        if kind in _WITH_STATUS:
            made["status"] = {"observedGeneration": -1}
        if not dry_run:
            self._store(key, kind, made, "ADDED")
        self._leave("create", kind, name)
        return _copied(made)

    async def replace(self, kind: Kind, obj: Mapping[str, Any]) -> Obj:
        meta = obj["metadata"]
        self._enter("replace", kind, meta["name"])
        key, there = self._there(kind, meta.get("namespace"), meta["name"])
        self._check(there, meta)
        changed = _copied(dict(obj))
        self._store(key, kind, changed, "MODIFIED")
        self._leave("replace", kind, meta["name"])
        return _copied(changed)

    async def merge(self, kind: Kind, name: str, patch: Mapping[str, Any], *, namespace: str | None = None) -> Obj:
        self._enter("merge", kind, name)
        key, there = self._there(kind, namespace, name)
        self._check(there, patch.get("metadata") or {})
        patched: Obj = _merged(there, patch)
        if kind in _WITH_STATUS:
            patched["status"] = there.get("status")
        self._update(key, kind, there, patched)
        self._leave("merge", kind, name)
        return _copied(patched)

    async def apply(self, kind: Kind, obj: Mapping[str, Any], *, subresource: str | None = None) -> Obj:
        assert subresource == "status", "the operator applies nothing but status"
        meta = obj["metadata"]
        self._enter("apply-status", kind, meta["name"])
        key, there = self._there(kind, meta.get("namespace"), meta["name"])
        self._check(there, meta)
        self._update(key, kind, there, _copied(there) | {"status": _copied(obj["status"])})
        self._leave("apply-status", kind, meta["name"])
        return _copied(self._objects.get(key, there))

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        uid: str,
        namespace: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Obj | None:
        self._enter("delete", kind, name)
        key = _key(kind, namespace, name)
        there = self._objects.get(key)
        if there is not None:
            self._check(there, {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {}))
            if there["metadata"].get("finalizers"):
                leaving = _copied(there)
                leaving["metadata"].setdefault("deletionTimestamp", _text(self.clock()))
                leaving["metadata"]["deletionGracePeriodSeconds"] = 0
                self._update(key, kind, there, leaving)
            else:
                self._remove(key, kind)
        self._leave("delete", kind, name)
        return _copied(self._objects.get(key))

    async def may(self, *, verb: str, group: str, resource: str, namespace: str | None = None) -> bool:
        return True

    async def served(self, group: str, version: str) -> frozenset[str]:
        if (group, version) == (GROUP, VERSION):
            return frozenset({JOBS.plural, SLICES.plural, CLASSES.plural})
        if group == RAY_CLUSTERS.group and self.kuberay:
            return frozenset({RAY_CLUSTERS.plural})
        return frozenset()

    # --- for tests

    def watch(self, kind: Kind, told: Watch) -> None:
        """Tell of every later change."""
        self._watches.setdefault(kind, []).append(told)

    def release(self) -> None:
        """Tell the watchers what was held back."""
        self.held_back = False
        late, self._late = self._late, []
        for kind, event, obj in late:
            self._tell(kind, event, obj)

    def put_status(self, kind: Kind, name: str, status: Mapping[str, Any], *, namespace: str | None = None) -> Obj:
        """Another controller's or the kubelet's status."""
        key, there = self._there(kind, namespace, name)
        self._update(key, kind, there, _copied(there) | {"status": _copied(dict(status))})
        return _copied(self._objects[key])

    def peek(self, kind: Kind, name: str, *, namespace: str | None = None) -> Obj | None:
        """The object, without a call."""
        return _copied(self._objects.get(_key(kind, namespace, name)))

    def all(self, kind: Kind) -> builtins.list[Obj]:
        """All objects of a kind, without a call."""
        return [_copied(obj) for key, obj in sorted(self._objects.items()) if key[0] == kind.plural]

    def _enter(self, verb: str, kind: Kind, name: str) -> None:
        self.calls.append((verb, kind.plural, name))
        if self.before:
            self.before(verb, kind, name)

    def _leave(self, verb: str, kind: Kind, name: str) -> None:
        if self.after:
            self.after(verb, kind, name)

    def _there(self, kind: Kind, namespace: str | None, name: str) -> tuple[Name, Obj]:
        key = _key(kind, namespace, name)
        if key not in self._objects:
            raise _refused(404, "NotFound", f'{kind.plural} "{name}" not found')
        return key, self._objects[key]

    def _check(self, there: Obj, want: Mapping[str, Any]) -> None:
        for field_ in ("uid", "resourceVersion"):
            if want.get(field_) and want[field_] != there["metadata"][field_]:
                raise _refused(409, "Conflict", f"{field_} is {there['metadata'][field_]}, not {want[field_]}")

    def _update(self, key: Name, kind: Kind, there: Obj, new: Obj) -> None:
        if new == there:
            return
        if new.get("spec") != there.get("spec"):
            new["metadata"]["generation"] = there["metadata"]["generation"] + 1
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            new["metadata"]["resourceVersion"] = str(next(self._versions))
            self._remove(key, kind)
        else:
            self._store(key, kind, new, "MODIFIED")

    def _store(self, key: Name, kind: Kind, obj: Obj, event: str) -> None:
        obj["metadata"]["resourceVersion"] = str(next(self._versions))
        self._objects[key] = obj
        self._kinds[kind.plural] = kind
        self._tell(kind, event, obj)

    def _remove(self, key: Name, kind: Kind) -> None:
        gone = self._objects.pop(key)
        gone["metadata"]["resourceVersion"] = str(next(self._versions))
        self._tell(kind, "DELETED", gone)
        for other, obj in list(self._objects.items()):
            owners = obj["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == gone["metadata"]["uid"] for owner in owners) and other in self._objects:
                self._remove(other, self._kinds[other[0]])

    def _tell(self, kind: Kind, event: str, obj: Obj) -> None:
        if self.held_back:
            self._late.append((kind, event, _copied(obj)))
            return
        for told in self._watches.get(kind, ()):
            told(event, _copied(obj))


def _copied(obj: Json) -> Json:
    """A deep copy; for JSON pickle is several times as fast as `copy.deepcopy`."""
    copied: Json = pickle.loads(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL))
    return copied


def _key(kind: Kind, namespace: str | None, name: str) -> Name:
    return kind.plural, (namespace or "") if kind.namespaced else "", name


def _refused(status: int, reason: str, message: str) -> KubeError:
    return KubeError(message, call="memory", status=status, reason=reason)


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _selected(obj: Obj, labels: str) -> bool:
    have = obj["metadata"].get("labels") or {}
    for term in filter(None, labels.split(",")):
        key, equals, value = term.partition("=")
        if key not in have or (equals and have[key] != value):
            return False
    return True


def _merged(there: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return _copied(patch)
    merged = _copied(dict(there)) if isinstance(there, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
