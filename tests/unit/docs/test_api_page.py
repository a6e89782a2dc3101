"""docs/api.md is what models and rules say, and nobody can get lost in it."""

import re
from pathlib import Path

import pytest

from torchtpu_operator.api import Reason, constants
from torchtpu_operator.api.conditions import ConditionType
from torchtpu_operator.api.env_rules import RESERVED_ENV
from torchtpu_operator.api.reason_texts import REASON_GROUPS, RESERVED
from torchtpu_operator.api.reference import KINDS, main, troubleshooting
from torchtpu_operator.api.reference_examples import EXAMPLES, Document
from torchtpu_operator.api.reference_fields import models_below
from torchtpu_operator.api.reference_names import ANNOTATIONS, ENV, LABELS
from torchtpu_operator.api.validate import parse

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "api.md").read_text()
SECTIONS = {part.partition("\n")[0].strip("# "): part for part in re.split(r"^(?=##+ )", PAGE, flags=re.MULTILINE)}
MODELS = {model.__name__: model for kind in KINDS for model in models_below(kind)} | {}
OBJECTS = [name for name in MODELS if name not in {kind.__name__ for kind in KINDS} | {"ObjectMeta"}]
SHOWN = [
    (f"{kind}, {which}", document)
    for kind, documents in EXAMPLES.items()
    for which, document in zip(("the shortest", "fuller"), documents, strict=False)
]


def test_pages_are_up_to_date() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("name", OBJECTS)
def test_every_field_is_listed(name: str) -> None:
    listed = re.findall(r"^\| `([^`]+)` \|", SECTIONS[name], re.MULTILINE)
    assert listed == [field.alias or key for key, field in MODELS[name].model_fields.items()]


def test_every_link_leads_to_a_heading_and_headings_are_unique() -> None:
    headings = re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings]
    assert (sorted(set(re.findall(r"\]\(#([^)]+)\)", PAGE)) - set(anchors)), len(set(anchors))) == ([], len(anchors))


def test_tables_are_whole() -> None:
    """An unescaped pipe would shift the cells behind it."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    cells = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    ragged = [
        line
        for line, before, here in zip(lines[1:], cells, cells[1:], strict=False)
        if before != here
        and not line.startswith(("| field", "| column", "| condition", "| reason", "| label", "| kind"))
        and not line.startswith(("| annotation", "| name |", "| variable"))
    ]
    assert ragged == []


@pytest.mark.parametrize("document", [each[1] for each in SHOWN], ids=[each[0] for each in SHOWN])
def test_examples_are_valid(document: Document) -> None:
    assert parse(document).to_object()["metadata"] == document["metadata"]


def test_every_label_annotation_and_variable_is_listed() -> None:
    names = vars(constants)
    labels = {value for name, value in names.items() if name.startswith("LABEL_")}
    annotations = {value for name, value in names.items() if name.startswith("ANNOTATION_")}
    assert (set(LABELS), set(ANNOTATIONS), set(ENV)) == (labels, annotations - labels, set(RESERVED_ENV))


def test_every_condition_is_explained() -> None:
    assert [each for each in ConditionType if f"\n| `{each}` |" not in SECTIONS["Conditions"]] == []


def test_every_reason_is_explained_once() -> None:
    explained = [reason for group in REASON_GROUPS for _, reasons in group.rows for reason in reasons]
    assert sorted(explained) == sorted(Reason)


def test_reasons_that_are_not_told_yet_are_marked() -> None:
    """Who begins to use one moves its text out of that group; who stops using one moves it there."""
    package = ROOT / "operator" / "torchtpu_operator"
    sources = [path for layer in ("plan", "clients", "controller") for path in (package / layer).rglob("*.py")]
    used = {name for path in sources for name in re.findall(r"\bReason\.([A-Z_]+)\b", path.read_text())}
    marked = [
        reason.name for group in REASON_GROUPS if group.key == RESERVED for _, each in group.rows for reason in each
    ]
    assert sorted(marked) == sorted(reason.name for reason in Reason if reason.name not in used)


def test_a_page_without_a_table_says_which() -> None:
    with pytest.raises(ValueError, match="has no table conditions: expected <!-- table: conditions, "):
        troubleshooting("# Troubleshooting\n")
