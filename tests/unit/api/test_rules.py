"""The rule table on the Python side; tests/component/test_crds.py puts the same objects before the apiserver."""

import pytest

from tests.spec_cases import Document, generated, job
from tests.spelling_cases import ALL as CASES
from torchtpu_operator.api.rules import RULES, violations
from torchtpu_operator.api.validate import InvalidObjectError, parse
from torchtpu_operator.runner.constants import RESERVED_ENV

_PREFIXES = ("Invalid value: ", "Forbidden: ")


def said(document: Document) -> tuple[str, ...]:
    try:
        parse(document)
    except InvalidObjectError as error:
        return tuple(str(violation) for violation in error.violations)
    return ()


def plain(line: str) -> str:
    path, _, message = line.partition(": ")
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return f"{path}: {message}"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said(case: tuple[Document, tuple[str, ...]]) -> None:
    document, want = case
    assert sorted(map(plain, said(document))) == sorted(want)


def test_every_object_gets_a_verdict() -> None:
    assert {type(said(document)) for _, document in generated()} == {tuple}


@pytest.mark.parametrize("name", sorted(RESERVED_ENV))
def test_every_name_that_operator_and_runner_set_is_reserved(name: str) -> None:
    assert said(job(env=[{"name": name, "value": "x"}])) == (
        f"spec.env: {name} is set by the operator: choose another name",
    )


def test_ids_are_unique_and_messages_are_one_line() -> None:
    for rules in RULES.values():
        assert len({rule.id for rule in rules}) == len(rules)
        assert [rule.id for rule in rules if "\n" in rule.message or not rule.message] == []


def test_unchanged_object_passes_every_transition_rule() -> None:
    for document, want in CASES.values():
        if not want:
            obj = parse(document)
            assert violations(obj, old=obj) == ()
