"""Every call that reached the simulated GKE: what a test may ask of the past."""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

MUTATING = frozenset({"CreateNodePool", "DeleteNodePool", "SetNodePoolSize", "CancelOperation"})


@dataclass(kw_only=True)
class Call:
    """One mutating call."""

    at: datetime
    method: str
    body: dict[str, Any]
    """The request as proto3 JSON."""
    outcome: str = ""
    """"OK", or the name of the code that it was refused with; empty while it is under way."""
    answer_lost: bool = False

    @property
    def pool(self) -> str:
        """The node pool that the call names."""
        if self.method == "CreateNodePool":
            return str(self.body.get("nodePool", {}).get("name", ""))
        return str(self.body.get("name", "")).rpartition("/nodePools/")[2]


@dataclass
class CallLog:
    mutating: list[Call] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """All calls by method, refused ones included."""
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(method, code name) -> calls."""
    forbidden: list[str] = field(default_factory=list)
    """Methods that the operator must never call, such as DeleteCluster: a test run asserts that this is empty."""

    def of(self, method: str, *, pool: str | None = None) -> list[Call]:
        """The mutating calls of one method, for one pool if given."""
        return [call for call in self.mutating if call.method == method and pool in (None, call.pool)]

    def summary(self) -> dict[str, int]:
        return dict(sorted(self.counts.items()))


def to_json(message: Any) -> dict[str, Any]:
    """A proto-plus message as proto3 JSON, with enum names and without what is unset."""
    text = type(message).to_json(message, use_integers_for_enums=False, always_print_fields_with_no_presence=False)
    decoded: dict[str, Any] = json.loads(text)
    return decoded
