"""Random objects from around the edges of the schema, without an apiserver: nothing breaks, and many are good."""

from collections import Counter

from tests.fuzz import said_by_planner
from tests.spec_fuzz import random_objects


def test_planner_never_breaks_and_a_fair_share_is_good() -> None:
    said = [(document, *said_by_planner(document)) for document in random_objects(seed=1, count=400)]
    assert [(document, crash) for document, _, crash in said if crash] == []
    good = Counter(document["kind"] for document, refusals, _ in said if not refusals)
    assert sum(good.values()) > 100
    assert set(good) == {"TorchTPUJob", "TPUSlice", "TPUSliceClass"}


def test_the_same_seed_gives_the_same_objects() -> None:
    assert list(random_objects(seed=7, count=20)) == list(random_objects(seed=7, count=20))
    assert list(random_objects(seed=7, count=20)) != list(random_objects(seed=8, count=20))
