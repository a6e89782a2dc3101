"""YAML as kubectl reads it; the table is what kubectl 1.36 makes of each word (`kubectl annotate --local -o json`)."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchtpu_operator.sdk.yaml_text import dump_document, load_documents

KUBECTL: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "on", "On", "True", "true"), True),
    **dict.fromkeys(("n", "No", "off", "OFF", "false"), False),
    **dict.fromkeys(("~", "null", "Null", ""), None),
    **{"1e3": 1000, "1.5E3": 1500, "1e+3": 1000, "1.": 1, "1.0": 1, "5.": 5, "1e-3": 0.001, ".5": 0.5, "-.5": -0.5},
    **{"010": 8, "0777": 511, "0o7": 7, "0O7": 7, "08": 8, "0x1F": 31, "0X1f": 31, "0b11": 3, "0B1": 1, "00": 0},
    **{"1_000": 1000, "0_1": 1, "+1": 1, "-0": 0, "12": 12, "100000000000000000000": 10**20},
}
STRINGS = (
    "tRue",
    "1:30",
    "190:20:30",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "4x4",
    "2.60.0",
    "=",
    "0xg",
    "1,000",
    "0b12",
    "0o8",
    "_1",
    "1e",
    "nan",
)


@pytest.mark.parametrize("word", [*KUBECTL, *STRINGS])
def test_words(word: str) -> None:
    read = load_documents(f"k: {word}\n")[0]["k"]
    written = dump_document({"k": word})
    want = word if word in STRINGS else KUBECTL[word]
    assert (read, type(read), load_documents(written)[0]["k"]) == (want, type(want), word)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=8,
)


@example({"a": "a\nb\x85c\u2028\ufeff"})
@given(st.dictionaries(st.sampled_from(["a", "b", "on", "1e3"]), JSON, min_size=1))
def test_what_is_written_is_read_back(document: dict[str, Any]) -> None:
    assert load_documents(dump_document(document)) == [document]


def test_a_list_is_its_items() -> None:
    assert load_documents("kind: List\nitems: [{a: 1}, {kind: List, items: [{b: 2}]}]\n---\n---\nc: 3") == [
        {"a": 1},
        {"b": 2},
        {"c": 3},
    ]


def test_merge_keys() -> None:
    assert load_documents("a: &a {x: 1}\nb: {<<: *a, z: 2}")[0]["b"] == {"x": 1, "z": 2}


def test_keys_are_strings() -> None:
    assert load_documents("on: {1: a, 1.0: b, 2026-01-01: [{off: c}]}") == [
        {"true": {"1": "b", "2026-01-01": [{"false": "c"}]}}
    ]
