"""What is a change of a running job: for the rules, and for the hash that a running attempt is held against."""

import pytest

from tests.edit_cases import EDITS, Spec
from tests.spec_cases import job
from torchtpu_operator.api import TorchTPUJob
from torchtpu_operator.api.job_rules import CHANGES_WHILE_SUSPENDED
from torchtpu_operator.api.rules import violations
from torchtpu_operator.plan.ray_cluster import attempt_hash


@pytest.mark.parametrize(("before", "after", "said"), EDITS.values(), ids=EDITS)
def test_edit(before: Spec, after: Spec, said: str) -> None:
    old, new = (TorchTPUJob.from_object(job(**fields)) for fields in (before, after))
    found = "; ".join(violation.message for violation in violations(new, old=old))
    pinned = any(field in CHANGES_WHILE_SUSPENDED for field in before)
    assert (found, attempt_hash(new) == attempt_hash(old)) == (said, not (said and pinned))
