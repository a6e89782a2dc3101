"""Random objects: the apiserver's verdict is the planner's."""

from tests.crd_api import Api
from tests.fuzz import judge
from tests.spec_fuzz import random_objects


def test_what_the_apiserver_accepts_is_planned_and_what_it_refuses_is_refused(crds: Api) -> None:
    """Around the edges of the schema, the same verdict here and there, and never an exception; `make fuzz` for more."""
    verdicts = [judge(crds, document) for document in random_objects(seed=20261130, count=300)]
    assert [str(each) for each in verdicts if not each.agree] == []
    assert sum(not each.apiserver for each in verdicts) > 60
