"""What was last seen of one kind, from the watch, from lists and from the answers to our own writes.

Ordered by resourceVersion (comparable as integers within a kind since Kubernetes 1.35, KEP-5504), so that a watch event
that is older than our own write cannot undo it. A uid that is gone stays gone: late answers do not bring it back.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Obj = Mapping[str, Any]
Name = tuple[str, str]
"""Namespace ("" when cluster-scoped) and name."""

_GONE_KEPT = 10_000


@dataclass(frozen=True)
class Change(Generic[T]):
    """`old` None: it is new; `new` None: it is gone."""

    old: T | None
    new: T | None


@dataclass(frozen=True)
class Entry(Generic[T]):
    uid: str
    version: int
    value: T


class ObjectCache(Generic[T]):
    def __init__(
        self,
        read: Callable[[dict[str, Any]], T],
        *,
        indices: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
        changed: Callable[[Change[T]], None] = lambda _: None,
    ) -> None:
        """`read` makes the value that is kept out of a raw object; `indices` name groups to look values up by."""
        self._read, self._indices, self.changed = read, dict(indices or {}), changed
        self._entries: dict[Name, Entry[T]] = {}
        self._groups: dict[str, defaultdict[str, set[Name]]] = {name: defaultdict(set) for name in self._indices}
        self._gone: OrderedDict[str, None] = OrderedDict()

    def remember(self, obj: Obj) -> bool:
        """Take an object in if it is newer than what is known; whether it was."""
        meta = obj["metadata"]
        name, uid, version = _name(meta), meta["uid"], _version(meta)
        known = self._entries.get(name)
        if uid in self._gone:
            return False
        if _is_last_sight(meta):
            self.forget(obj)
            return known is not None and known.uid == uid
        if known and known.version >= version:
            return False
        value = self._read({**obj, "metadata": {key: item for key, item in meta.items() if key != "managedFields"}})
        self._put(name, Entry(uid, version, value))
        self.changed(Change(known.value if known else None, value))
        return True

    def forget(self, obj: Obj) -> None:
        """The object is gone (a DELETED event, or a 404 for this uid); a namesake of another uid stays."""
        meta = obj["metadata"]
        name, uid = _name(meta), meta["uid"]
        self._gone[uid] = None
        while len(self._gone) > _GONE_KEPT:
            self._gone.popitem(last=False)
        known = self._entries.get(name)
        if known and known.uid == uid:
            self._drop(name, known)
            self.changed(Change(known.value, None))

    def forget_absent(self, before: Mapping[Name, Entry[T]], present: Iterable[Name]) -> list[Name]:
        """Drop what a complete list did not show and has not changed since the snapshot `before` that list."""
        absent = [name for name in before.keys() - set(present) if self._entries.get(name) is before[name]]
        for name in absent:
            entry = before[name]
            self.forget({"metadata": {"namespace": name[0], "name": name[1], "uid": entry.uid}})
        return absent

    def is_behind(self, obj: Obj) -> bool:
        """Whether this object is newer than what is known, or not known at all."""
        meta = obj["metadata"]
        known = self._entries.get(_name(meta))
        if meta["uid"] in self._gone:
            return False
        return known is None or known.version < _version(meta)

    def snapshot(self) -> dict[Name, Entry[T]]:
        return dict(self._entries)

    def get(self, name: str, *, namespace: str = "") -> T | None:
        entry = self._entries.get((namespace, name))
        return entry.value if entry else None

    def by(self, index: str, value: str) -> tuple[T, ...]:
        """The values in one group of an index, by namespace and name."""
        return tuple(self._entries[name].value for name in sorted(self._groups[index].get(value, ())))

    def __iter__(self) -> Iterator[T]:
        return iter([entry.value for entry in self._entries.values()])

    def __len__(self) -> int:
        return len(self._entries)

    def _put(self, name: Name, entry: Entry[T]) -> None:
        if known := self._entries.get(name):
            self._drop(name, known)
        self._entries[name] = entry
        for index, groups in self._indices.items():
            for group in groups(entry.value):
                self._groups[index][group].add(name)

    def _drop(self, name: Name, entry: Entry[T]) -> None:
        del self._entries[name]
        for index, groups in self._indices.items():
            for group in groups(entry.value):
                members = self._groups[index][group]
                members.discard(name)
                if not members:
                    del self._groups[index][group]


def _name(meta: Mapping[str, Any]) -> Name:
    return meta.get("namespace") or "", meta["name"]


def _version(meta: Mapping[str, Any]) -> int:
    return int(meta["resourceVersion"])


def _is_last_sight(meta: Mapping[str, Any]) -> bool:
    """Whether this is the answer to the removal of the last finalizer: the object as it was a moment before it went, under
    a version that may be known already. Pods in their grace period are there until their DELETED."""
    return bool(
        meta.get("deletionTimestamp") and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
    )
