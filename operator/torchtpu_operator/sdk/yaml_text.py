"""YAML as kubectl reads it, and such that kubectl reads back what was meant.

kubectl's parser (goyaml v2) is neither YAML 1.1 nor 1.2: `y`, `on`, `1e3`, `0o7` are no strings, `1:30` and dates are, and
`1.0` is 1. Python's parser differs in each of these, so both directions get resolvers of their own.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

_BOOL: Final = {
    **dict.fromkeys(("y", "yes", "true", "on"), True),
    **dict.fromkeys(("n", "no", "false", "off"), False),
}
_RESOLVERS: Final = (
    ("bool", "|".join(f"{w}|{w.capitalize()}|{w.upper()}" for w in _BOOL), "yYnNtTfFoO"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
    ("merge", "<<", "<"),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own name


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own name

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's own name
        return True  # anchors are correct, and nobody reads them


def _number(_: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    text = str(node.value).replace("_", "").lower()
    digits = text.lstrip("-+")
    if digits[:2] in ("0x", "0b", "0o"):
        return int(text, 0)
    if re.fullmatch("0[0-7]+", digits):
        return int(text, 8)
    if digits.isdigit():
        return int(text)
    value = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    return int(value) if value.is_integer() else value  # as JSON, which knows no 1.0


def _bool(_: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    return _BOOL[str(node.value).lower()]


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    odd = any(mark in text for mark in "\x85\u2028\u2029\ufeff")  # PyYAML writes them as they are, and reads line ends
    style = '"' if odd else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


for _name, _pattern, _first in _RESOLVERS:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:bool", _bool)
for _name in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_name}", _number)
_Dumper.add_representer(str, _text)


def load_documents(text: str) -> list[dict[str, Any]]:
    """Every object in the text, those of a List one by one. Raises ValueError in one line."""
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {_where_and_why(error)}") from error
    found: list[dict[str, Any]] = []
    while documents:
        document = documents.pop(0)
        if isinstance(document, dict) and document.get("kind") == "List":
            documents = [*(document.get("items") or ()), *documents]
        elif isinstance(document, dict):
            found.append(_with_text_keys(document))
        elif document is not None:
            raise ValueError(f"expected an object with apiVersion and kind, found {type(document).__name__}")
    return found


def _where_and_why(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or (mark := error.problem_mark or error.context_mark) is None:
        return " ".join(str(error).split())
    why = ", ".join(part for part in (error.context, error.problem) if part)
    return f"line {mark.line + 1}, column {mark.column + 1}: {why}"


def _with_text_keys(value: Any) -> Any:
    """JSON's keys are strings: `{on: 1}` has the key "true", as in kubectl."""
    if isinstance(value, list):
        return [_with_text_keys(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        str(key).lower() if isinstance(key, bool) else str(key): _with_text_keys(entry) for key, entry in value.items()
    }


def dump_document(document: Mapping[str, Any]) -> str:
    """One object in the order of its keys; text of several lines as a block, words like `on` in quotes."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=2**31, allow_unicode=True)
