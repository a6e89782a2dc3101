"""Random objects from around the edges of the schema, without an apiserver: nothing breaks, and many are good."""

from collections import Counter
from collections.abc import Iterator

from tests.builders import NOW
from tests.fuzz import said_by_planner
from tests.spec_cases import Document, job
from tests.spec_fuzz import random_objects
from torchtpu_operator.api import ClaimRef, TorchTPUJob, TPUSliceClass
from torchtpu_operator.api.validate import InvalidObjectError, parse
from torchtpu_operator.plan.allocation.manifest import build_slice

CLAIM = ClaimRef(namespace="ml", name="llama-ft", uid="u", slice_index=0, sequence=0, claimed_at=NOW)


def test_planner_never_breaks_and_a_fair_share_is_good() -> None:
    said = [(document, *said_by_planner(document)) for document in random_objects(seed=1, count=400)]
    assert [(document, crash) for document, _, crash in said if crash] == []
    good = Counter(document["kind"] for document, refusals, _ in said if not refusals)
    assert sum(good.values()) > 100
    assert set(good) == {"TorchTPUJob", "TPUSlice", "TPUSliceClass"}


def test_the_same_seed_gives_the_same_objects() -> None:
    assert list(random_objects(seed=7, count=20)) == list(random_objects(seed=7, count=20))
    assert list(random_objects(seed=7, count=20)) != list(random_objects(seed=8, count=20))


def test_what_a_class_may_say_its_slices_may_say_too() -> None:
    """Otherwise allocation would grant for ever what the apiserver refuses."""
    shapes: tuple[dict[str, str], ...] = (
        {},
        {"accelerator": "v7x", "topology": "2x2x2"},
        {"accelerator": "v5p", "topology": "4x4x8"},
    )
    refused, count = [], 0
    for document in _slices([job(**shape) for shape in shapes]):
        count += 1
        try:
            parse(document)
        except InvalidObjectError as error:
            refused.append(str(error))
    assert (refused, count > 300) == ([], True)


def _slices(jobs: list[Document]) -> Iterator[Document]:
    for document in random_objects(seed=5, count=2000):
        if document["kind"] != "TPUSliceClass":
            continue
        try:
            slice_class = parse(document)
        except InvalidObjectError:
            continue
        assert isinstance(slice_class, TPUSliceClass)
        for asked in map(parse, jobs):
            assert isinstance(asked, TorchTPUJob)
            for offer in slice_class.spec.offers:
                for zone in offer.zones[:1]:
                    yield build_slice(asked, slice_class, offer=offer, zone=zone, claim=CLAIM)
