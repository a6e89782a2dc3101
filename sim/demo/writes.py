"""How much one job costs the APIs, from the operator's own metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prometheus_client.parser import text_string_to_metric_families

CALLS = "torchtpu_api_calls_total"
EVENTS = "torchtpu_events_total"

_WRITES = {
    "kubernetes": ("create", "merge", "apply", "apply-status", "delete"),
    "gke": ("CreateNodePool", "SetNodePoolSize", "DeleteNodePool"),
    "ray": ("submit", "stop"),
}
"""What changes something for good. The operator replaces nothing but its Lease, whoever has jobs or none, and what a dry
run makes is never stored: neither is counted as a job's."""

_NO_READS = {"kubernetes": ("replace", "dry-run")}


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Counters at one moment."""

    by_verb: Mapping[tuple[str, str], int]
    """(target, verb) -> calls, whatever came of them."""
    events: int = 0
    """Kubernetes events that were written; each is one of the creates or merges."""
    process: str = ""
    """Whose counters they are: pod and start."""
    restarted: bool = False
    """The operator was restarted meanwhile: what it had counted before that is not in here."""

    def since(self, before: "Calls") -> "Calls":
        """What was added. After a restart of the operator all of its calls are new."""
        if self.process != before.process:
            return replace(self, restarted=True)
        by_verb = {key: count - before.by_verb.get(key, 0) for key, count in self.by_verb.items()}
        return Calls(by_verb=by_verb, events=self.events - before.events, process=self.process)

    def writes(self, target: str) -> dict[str, int]:
        """Verb -> calls that change something."""
        return {verb: count for verb, count in self._of(target).items() if verb in _WRITES[target]}

    def reads(self, target: str) -> int:
        """Calls that change nothing; watches run on and are not counted."""
        skipped = (*_WRITES[target], *_NO_READS.get(target, ()))
        return sum(count for verb, count in self._of(target).items() if verb not in skipped)

    def _of(self, target: str) -> dict[str, int]:
        return {verb: count for (where, verb), count in sorted(self.by_verb.items()) if where == target and count}


def parse_calls(exposition: str, *, process: str) -> Calls:
    """From the text of /metrics."""
    by_verb: dict[tuple[str, str], int] = {}
    events = 0
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name == CALLS:
                key = sample.labels["target"], sample.labels["verb"]
                by_verb[key] = by_verb.get(key, 0) + int(sample.value)
            elif sample.name == EVENTS and sample.labels["result"] == "written":
                events += int(sample.value)
    return Calls(by_verb=by_verb, events=events, process=process)
