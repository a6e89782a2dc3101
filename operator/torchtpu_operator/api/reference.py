"""docs/api.md and the tables of docs/troubleshooting.md, from models and rules: `python -m torchtpu_operator.api.reference`."""

import argparse
import sys
from pathlib import Path
from typing import Final

import yaml
from pydantic import BaseModel

from torchtpu_operator.api import constants
from torchtpu_operator.api.base import ApiObject, model_in
from torchtpu_operator.api.conditions import ConditionType
from torchtpu_operator.api.crd import Dumper, build_crd
from torchtpu_operator.api.job import TorchTPUJob
from torchtpu_operator.api.not_yet import NOT_YET
from torchtpu_operator.api.reason_texts import REASON_GROUPS, RESERVED, ReasonGroup
from torchtpu_operator.api.reference_examples import EXAMPLES
from torchtpu_operator.api.reference_fields import Part, code, models_below, prose, section, table
from torchtpu_operator.api.reference_names import ANNOTATIONS, ENV, LABELS, OTHERS
from torchtpu_operator.api.rules import RULES
from torchtpu_operator.api.slice import TPUSlice
from torchtpu_operator.api.slice_class import TPUSliceClass

PAGE: Final = "docs/api.md"
TROUBLESHOOTING: Final = "docs/troubleshooting.md"
KINDS: Final[tuple[type[ApiObject], ...]] = (TorchTPUJob, TPUSliceClass, TPUSlice)
_SOURCE: Final = "written by `make generate` from operator/torchtpu_operator/api: do not edit"
_WHOSE: Final = {
    TorchTPUJob: "Written by ML engineers: what to run, on how many slices of which shape.",
    TPUSliceClass: "Written by platform engineers: where capacity comes from, who may use it, and how much of it.",
    TPUSlice: "Made by the operator for jobs; by hand for standing capacity.",
}
_OF: Final = {
    TorchTPUJob: (
        "SlicesReady",
        "RayClusterReady",
        "Suspended",
        "Complete",
        "Failed",
        "Ready",
        "Reconciling",
        "Stalled",
    ),
    TPUSliceClass: (),
    TPUSlice: ("Ready", "Reconciling", "Stalled"),
}
_HEAD: Final = f"""\
<!-- Written by `make generate` from the models in operator/torchtpu_operator/api: do not edit. -->

# API reference

Group `{constants.GROUP}`, version `{constants.VERSION}`. The same texts stand in `kubectl explain ttj.spec`; in Python, fields
have the same names in snake_case ([Jobs from Python](python.md)). Durations are seconds, times are RFC 3339 in UTC.

Column *changes*: `never` needs a new object, `while suspended` needs `spec.suspend: true` first, `at any time` needs nothing. What
holds for a field holds for everything below it.
"""


def page() -> str:
    """The text of docs/api.md."""
    below = {kind: list(models_below(_spec(kind))) + list(models_below(_status(kind))) for kind in KINDS}
    shared = [
        model
        for model in dict.fromkeys(model for models in below.values() for model in models)
        if sum(model in models for models in below.values()) > 1
    ]
    parts = _parts(list(dict.fromkeys(model for models in below.values() for model in models)))
    text = [_HEAD, _contents()]
    for kind in KINDS:
        text += [_kind(kind)]
        text += [section(model, parts[model]) for model in dict.fromkeys(below[kind]) if model not in shared]
        text += [_rules(kind)]
    text += ["## Shared objects\n", "Objects that several kinds use.\n"]
    text += [section(model, parts[model]) for model in shared]
    text += [_conditions(), _reasons(), _names(), _not_yet()]
    return "\n".join(text)


def _contents() -> str:
    kinds = [f"- [{kind.__name__}](#{kind.__name__.lower()}): {_WHOSE[kind]}" for kind in KINDS]
    rest = ["Shared objects", "Conditions", "Reasons", "Reserved names", "Not yet supported"]
    return "\n".join([*kinds, *(f"- [{title}](#{title.lower().replace(' ', '-')})" for title in rest)]) + "\n"


def _spec(kind: type[ApiObject]) -> type[BaseModel]:
    return _inner(kind, "spec")


def _status(kind: type[ApiObject]) -> type[BaseModel]:
    return _inner(kind, "status")


def _inner(kind: type[BaseModel], field: str) -> type[BaseModel]:
    model = model_in(kind.model_fields[field].annotation)
    if model is None:
        raise AssertionError(f"{kind.__name__}.{field} is no object")
    return model


def _parts(models: list[type[BaseModel]]) -> dict[type[BaseModel], list[Part]]:
    found: dict[type[BaseModel], list[Part]] = {model: [] for model in models}
    for owner in (*KINDS, *models):
        for name, field in owner.model_fields.items():
            inner = model_in(field.annotation)
            if inner in found:
                found[inner].append(Part(owner=owner.__name__, field=field.alias or name))
    return found


def _kind(kind: type[ApiObject]) -> str:
    crd = build_crd(kind)["spec"]
    names, version = crd["names"], crd["versions"][0]
    lines = [
        f"## {kind.__name__}\n",
        f"{prose(kind.__doc__ or '')} {_WHOSE[kind]}\n",
        f"{'Namespaced' if crd['scope'] == 'Namespaced' else 'Cluster-scoped'}; `kubectl get {names['shortNames'][0]}`, also `{names['plural']}`. What it shows (*wide*: only with `-o wide`):\n",
        table(
            ("column", "from", ""),
            [
                (column["name"].upper(), code(column["jsonPath"]), "wide" if column.get("priority") else "")
                for column in version["additionalPrinterColumns"]
            ],
        ),
    ]
    titles = (
        ("The shortest:\n", "With more of what there is:\n") if len(EXAMPLES[kind.__name__]) > 1 else ("Example:\n",)
    )
    for title, example in zip(titles, EXAMPLES[kind.__name__], strict=True):
        lines += [title, f"```yaml\n{yaml.dump(example, Dumper=Dumper, sort_keys=False, width=120)}```\n"]
    if _OF[kind]:
        wanted = [ConditionType(name) for name in _OF[kind]]
        lines += [f"[Conditions](#conditions): {', '.join(map(code, wanted))}.\n"]
    return "\n".join(lines)


def _rules(kind: type[ApiObject]) -> str:
    """What is refused beside types and bounds, by field."""
    messages: dict[tuple[str, ...], list[str]] = {}
    for rule in RULES[kind.__name__]:
        if rule.transition is None and not rule.id.startswith("not-yet-"):
            places = tuple(f"{node}{rule.field}".lstrip(".") for node in rule.at)
            messages.setdefault(places, []).append(prose(rule.message))
    rows = [("<br>".join(map(code, places)), "<br>".join(texts)) for places, texts in messages.items()]
    return "\n".join(
        [
            f"### Rules of {kind.__name__}\n",
            "Refused at apply time, with the reason and the fix in the message:\n",
            table(("field", "message"), rows),
        ]
    )


def _conditions() -> str:
    rows = [
        (code(each), ", ".join(k.__name__ for k in KINDS if each in _OF[k]), prose(each.meaning))
        for each in ConditionType
    ]
    return "\n".join(
        [
            "## Conditions\n",
            "One of Ready, Reconciling and Stalled is True, as kstatus reads them: `kubectl wait`, Argo CD and Flux see a job "
            "that waits as in progress, one that runs as healthy.\n",
            table(("condition", "of", "True means"), rows),
        ]
    )


def conditions_table() -> str:
    """For docs/troubleshooting.md: what True means."""
    return table(
        ("condition", "True means"), [(code(each), each.meaning) for each in ConditionType if each != "SweepHalted"]
    )


def _reasons() -> str:
    lines = [
        "## Reasons\n",
        "Why something is as it is: the `reason` of conditions, attempts and events, for scripts.\n",
    ]
    for group in REASON_GROUPS:
        lines += [f"### {group.title}\n", reasons_table(group)]
    return "\n".join(lines)


def reasons_table(group: ReasonGroup) -> str:
    """Reasons of one kind of trouble."""
    return table(
        ("reason", "meaning, and what to do"), [(", ".join(map(code, reasons)), text) for text, reasons in group.rows]
    )


def _names() -> str:
    def rows(names: dict[str, tuple[str, str]]) -> list[tuple[str, ...]]:
        return [(code(name), prose(where), prose(meaning)) for name, (where, meaning) in names.items()]

    env = [(code(name), prose(meaning)) for name, meaning in sorted(ENV.items())]
    return "\n".join(
        [
            "## Reserved names\n",
            "Labels:\n",
            table(("label", "on", "value"), rows(LABELS)),
            "Annotations:\n",
            table(("annotation", "on", "value"), rows(ANNOTATIONS)),
            "Others:\n",
            table(("name", "what", "meaning"), rows(OTHERS)),
            "Environment variables that operator and runner set, and that `env`, the container `ray` of a template and "
            "`runtimeEnv.env_vars` may not; every other name passes. `PYTHONPATH` is joined with yours.\n",
            table(("variable", "meaning"), env),
        ]
    )


def _not_yet() -> str:
    rows = [
        (kind, code(f"{entry.at}.{entry.field}"), ", ".join(map(code, entry.values)) or "at all", entry.instead)
        for kind, entries in NOT_YET.items()
        for entry in entries
    ]
    return "\n".join(
        [
            "## Not yet supported\n",
            "In the schema, so that objects stay valid when it comes; refused until then:\n",
            table(("kind", "field", "values", "meanwhile"), rows),
        ]
    )


def troubleshooting(text: str) -> str:
    """The page with its tables renewed: each stands between `<!-- table: KEY, ... -->` and `<!-- end -->`."""
    tables = {group.key: reasons_table(group) for group in REASON_GROUPS if group.key != RESERVED}
    for key, body in {"conditions": conditions_table(), **tables}.items():
        start, end = f"<!-- table: {key}, {_SOURCE} -->\n", "<!-- end -->"
        head, found, rest = text.partition(start)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{TROUBLESHOOTING} has no table {key}: expected {start.strip()} and {end}")
        text = f"{head}{start}\n{body}\n{end}{tail}"
    return text


def main(argv: list[str] | None = None) -> int:
    """Write the pages, or with --check say what differs (exit code 1)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[3], help="root of the repository")
    options = parser.parse_args(argv)
    guide: Path = options.root / TROUBLESHOOTING
    wanted: dict[Path, str] = {options.root / PAGE: page(), guide: troubleshooting(guide.read_text("utf-8"))}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if options.check:
            print(f"{path} is out of date: run make generate", file=sys.stderr)
        else:
            path.write_text(wanted[path], "utf-8")
            print(f"wrote {path}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
