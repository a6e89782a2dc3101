"""The cache: newest version wins, whoever brought it; what is gone stays gone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtpu_operator.controller.cache import Change, ObjectCache


def obj(version: int, *, uid: str = "u1", name: str = "a", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ml", "uid": uid, "resourceVersion": str(version), **meta}}


def a_cache() -> tuple[ObjectCache[str], list[Change[str]]]:
    changes: list[Change[str]] = []
    cache = ObjectCache(
        lambda raw: f"{raw['metadata']['uid']}@{raw['metadata']['resourceVersion']}",
        indices={"uid": lambda value: (value.split("@")[0],)},
        changed=changes.append,
    )
    return cache, changes


def test_an_event_older_than_our_own_write_changes_nothing() -> None:
    cache, changes = a_cache()
    cache.remember(obj(5))
    assert (cache.remember(obj(4)), cache.get("a", namespace="ml"), changes) == (False, "u1@5", [Change(None, "u1@5")])


def test_the_same_version_twice_is_one_change() -> None:
    cache, changes = a_cache()
    cache.remember(obj(5))
    cache.remember(obj(5))
    assert len(changes) == 1


def test_a_late_answer_does_not_bring_a_deleted_object_back() -> None:
    cache, _ = a_cache()
    cache.remember(obj(5))
    cache.forget(obj(7))
    assert (cache.remember(obj(6)), cache.get("a", namespace="ml"), len(cache)) == (False, None, 0)


def test_a_namesake_of_another_uid_replaces_and_is_not_dropped_by_the_old_ones_deletion() -> None:
    cache, _ = a_cache()
    cache.remember(obj(5))
    cache.remember(obj(8, uid="u2"))
    cache.forget(obj(7, uid="u1"))
    assert (cache.get("a", namespace="ml"), cache.by("uid", "u1"), cache.by("uid", "u2")) == ("u2@8", (), ("u2@8",))


def test_a_late_event_of_the_older_namesake_does_not_replace_the_newer_one() -> None:
    cache, _ = a_cache()
    cache.remember(obj(8, uid="u2"))
    assert (cache.remember(obj(5, uid="u1")), cache.get("a", namespace="ml")) == (False, "u2@8")


def test_the_answer_that_took_the_last_finalizer_off_means_gone() -> None:
    cache, changes = a_cache()
    cache.remember(obj(5, finalizers=["f"], deletionTimestamp="2026-11-30T12:00:00Z"))
    cache.remember(obj(6, deletionTimestamp="2026-11-30T12:00:00Z", deletionGracePeriodSeconds=0))
    assert (cache.get("a", namespace="ml"), changes[-1]) == (None, Change("u1@5", None))


def test_a_pod_in_its_grace_period_is_still_there() -> None:
    cache, _ = a_cache()
    cache.remember(obj(6, deletionTimestamp="2026-11-30T12:00:00Z", deletionGracePeriodSeconds=30))
    assert cache.get("a", namespace="ml") == "u1@6"


def test_a_list_drops_what_it_does_not_show_unless_that_is_newer_than_the_list() -> None:
    cache, _ = a_cache()
    cache.remember(obj(5, name="gone"))
    cache.remember(obj(6, name="changed", uid="u2"))
    before = cache.snapshot()
    cache.remember(obj(9, name="changed", uid="u2"))
    cache.remember(obj(10, name="new", uid="u3"))
    assert (cache.forget_absent(before, []), sorted(cache)) == ([("ml", "gone")], ["u2@9", "u3@10"])


@given(st.permutations(range(1, 8)), st.integers(0, 7))
def test_whatever_the_order_of_events_the_newest_stays(order: list[int], deleted_after: int) -> None:
    cache, _ = a_cache()
    for position, version in enumerate(order):
        cache.remember(obj(version))
        if position == deleted_after:
            cache.forget(obj(99))
    want = None if deleted_after < len(order) else "u1@7"
    assert cache.get("a", namespace="ml") == want


@pytest.mark.parametrize("group", ["u1", "u2"])
def test_an_index_follows_its_values(group: str) -> None:
    cache, _ = a_cache()
    cache.remember(obj(1, uid="u1", name="b"))
    cache.remember(obj(2, uid="u1", name="a"))
    cache.remember(obj(3, uid="u2", name="c"))
    want = {"u1": ("u1@2", "u1@1"), "u2": ("u2@3",)}
    assert cache.by("uid", group) == want[group]
