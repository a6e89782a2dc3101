"""When a field of a spec may change: read off the rule table, so that the texts cannot say anything else."""

import enum
from collections.abc import Mapping
from typing import Final

from torchtpu_operator.api import constants
from torchtpu_operator.api.class_rules import SLICE_SNAPSHOT
from torchtpu_operator.api.job_rules import CHANGES_WHILE_SUSPENDED, NEVER_CHANGES


class Mutability(enum.StrEnum):
    """When a field may change; the value is what a reader is told."""

    NEVER = "Never changes."
    WHILE_SUSPENDED = "Changes only while the job is suspended."
    ALWAYS = "Changes at any time."


_FIXED: Final[Mapping[str, Mapping[str, Mutability]]] = {
    constants.JOB_KIND: {
        **dict.fromkeys(NEVER_CHANGES, Mutability.NEVER),
        **dict.fromkeys(CHANGES_WHILE_SUSPENDED, Mutability.WHILE_SUSPENDED),
    },
    constants.SLICE_KIND: dict.fromkeys(SLICE_SNAPSHOT, Mutability.NEVER),
}


def mutability(kind: str, field: str) -> Mutability:
    """Of a field of `spec` by its name in the API, and so of everything below it."""
    return _FIXED.get(kind, {}).get(field, Mutability.ALWAYS)
