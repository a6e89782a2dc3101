"""What kube-apiserver estimates our CEL rules to cost, as shares of its limits: `make cel-cost`."""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from sim import tools
from torchtpu_operator.api.crd import crd_files
from torchtpu_operator.api.rules import RULES

MAX_OF_RULE: Final = 0.10
"""Share of the limit for one expression that none of ours may pass: room for the next Kubernetes' estimate."""
MAX_OF_CRD: Final = 0.25
"""Share of the limit for all expressions of a CRD."""


@dataclass(frozen=True, kw_only=True)
class RuleCost:
    """One rule at one place; costs are shares of the limit for one expression."""

    kind: str
    path: str
    id: str
    rule: float
    message: float

    @property
    def worst(self) -> float:
        return max(self.rule, self.message)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """All rules, the dearest first, and per kind the share of the limit for a CRD."""

    rules: tuple[RuleCost, ...]
    totals: Mapping[str, float]


def estimate() -> Costs:
    """By `tools/celcost`, about the CRDs as the models and rules make them now. Raises ToolMissingError."""
    with tempfile.TemporaryDirectory(prefix="torchtpu-crds-") as folder:
        paths = []
        for name, text in crd_files().items():
            paths.append(Path(folder) / name)
            paths[-1].write_text(text, "utf-8")
        done = subprocess.run([tools.path("celcost"), *paths], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    rules = sorted(_rules(report), key=lambda each: (-each.worst, each.kind, each.path, each.id))
    totals = {crd["kind"]: crd["total"] / report["crdLimit"] for crd in report["crds"]}
    return Costs(rules=tuple(rules), totals=totals)


def _rules(report: Mapping[str, Any]) -> Iterator[RuleCost]:
    for crd in report["crds"]:
        ids = {path: [rule.id for rule in RULES[crd["kind"]] if path in rule.at] for path in _places(crd["kind"])}
        for entry in crd["rules"]:
            yield RuleCost(
                kind=crd["kind"],
                path=entry["path"],
                id=ids[entry["path"]][entry["index"]],
                rule=entry["cost"] / report["ruleLimit"],
                message=entry["messageCost"] / report["ruleLimit"],
            )


def _places(kind: str) -> set[str]:
    return {path for rule in RULES[kind] for path in rule.at}


def table(costs: Costs, *, least: float) -> Table:
    """Rules that take at least this share of the limit for one expression."""
    made = Table(title="CEL rules, as shares of what kube-apiserver allows one expression")
    for title in ("kind", "at", "rule"):
        made.add_column(title)
    for title in ("rule", "message"):
        made.add_column(title, justify="right")
    for each in costs.rules:
        if each.worst >= least:
            style = "bold red" if each.worst > MAX_OF_RULE else None
            made.add_row(
                each.kind, each.path or "(root)", each.id, f"{each.rule:.2%}", f"{each.message:.2%}", style=style
            )
    left_out = sum(each.worst < least for each in costs.rules)
    made.caption = f"{left_out} of {len(costs.rules)} rules take less than {least:.1%}" if left_out else None
    return made


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cel_cost", description=__doc__)
    parser.add_argument("--least", type=float, default=0.001, help="leave out what costs less (default: 0.001)")
    costs, console = estimate(), Console()
    console.print(table(costs, least=parser.parse_args(argv).least))
    for kind, total in costs.totals.items():
        console.print(
            f"{kind}: {total:.2%} of what a CRD may cost", style="bold red" if total > MAX_OF_CRD else "green"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
