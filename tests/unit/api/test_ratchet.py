"""Rules that come after a release let objects pass that were stored before, as long as these stay as they are."""

import pytest

from tests.spec_cases import Document, job
from torchtpu_operator.api import TorchTPUJob
from torchtpu_operator.api.rule import Rule
from torchtpu_operator.api.rules import violations

LATER: Rule = Rule(
    id="later",
    at=("spec",),
    field=".checkpointDir",
    cel="!has(self.checkpointDir) || self.checkpointDir.startsWith('gs://')",
    message="checkpointDir must begin with gs://",
    check=lambda spec: (
        None if spec.checkpoint_dir is None or spec.checkpoint_dir.startswith("gs://") else LATER.message
    ),
    ratchet=("checkpointDir",),
)
SAID = ("spec.checkpointDir: checkpointDir must begin with gs://",)

# sentence -> (what was stored, None if nothing; what comes; what is said)
WRITES: dict[str, tuple[Document | None, Document, tuple[str, ...]]] = {
    "a new object": (None, job(checkpointDir="/mnt"), SAID),
    "a new object that keeps the rule": (None, job(checkpointDir="gs://a"), ()),
    "the old value, kept": (job(checkpointDir="/mnt"), job(checkpointDir="/mnt", suspend=True), ()),
    "another old value": (job(checkpointDir="/mnt"), job(checkpointDir="/tmp"), SAID),
    "a value where there was none": (job(), job(checkpointDir="/tmp"), SAID),
    "a good value, made bad": (job(checkpointDir="gs://a"), job(checkpointDir="/tmp"), SAID),
    "a bad value, taken away": (job(checkpointDir="/mnt"), job(), ()),
}


@pytest.mark.parametrize("case", WRITES.values(), ids=WRITES)
def test_write_under_a_later_rule(
    case: tuple[Document | None, Document, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchtpu_operator.api.rules.RULES", {"TorchTPUJob": (LATER,)})
    stored, new, want = case
    old = None if stored is None else TorchTPUJob.from_object(stored)
    assert tuple(map(str, violations(TorchTPUJob.from_object(new), old=old))) == want


def test_a_later_rule_in_the_crd_looks_at_the_old_object() -> None:
    assert LATER.validation() == {
        "rule": (
            "(oldSelf.hasValue() && has(self.checkpointDir) == has(oldSelf.value().checkpointDir) && "
            "(!has(self.checkpointDir) || self.checkpointDir == oldSelf.value().checkpointDir)) || "
            "(!has(self.checkpointDir) || self.checkpointDir.startsWith('gs://'))"
        ),
        "message": "checkpointDir must begin with gs://",
        "reason": "FieldValueInvalid",
        "fieldPath": ".checkpointDir",
        "optionalOldSelf": True,
    }
