"""The CEL rules stay far below what kube-apiserver allows, by its own estimate."""

import pytest

from tests.cel_cost import MAX_OF_CRD, MAX_OF_RULE, Costs, estimate
from torchtpu_operator.api.rules import RULES


@pytest.fixture(scope="module")
def costs() -> Costs:
    return estimate()


def test_no_rule_takes_a_tenth_of_what_one_may_cost(costs: Costs) -> None:
    dear = {
        f"{each.kind} {each.path} {each.id}": f"{each.worst:.1%}" for each in costs.rules if each.worst > MAX_OF_RULE
    }
    assert dear == {}


def test_no_crd_takes_a_quarter_of_what_one_may_cost(costs: Costs) -> None:
    assert {kind: f"{total:.1%}" for kind, total in costs.totals.items() if total > MAX_OF_CRD} == {}


def test_every_rule_is_estimated(costs: Costs) -> None:
    wanted = sorted((kind, path, rule.id) for kind, rules in RULES.items() for rule in rules for path in rule.at)
    assert sorted((each.kind, each.path, each.id) for each in costs.rules) == wanted
    assert all(each.rule > 0 for each in costs.rules)
