"""Read objects of our kinds from YAML or JSON files."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.api.constants import GROUP
from torchtpu_operator.api.validate import KINDS, InvalidObjectError, parse
from torchtpu_operator.cli.errors import CommandError


def read_objects(paths: Sequence[str]) -> list[ApiObject]:
    """Every object in these files, `-` being stdin. Raises CommandError with everything that is wrong in all of them."""
    objects, problems = [], []
    for path in paths:
        for document in _documents(path):
            if _is_foreign(document):
                continue
            try:
                objects.append(parse(document))
            except InvalidObjectError as error:
                problems += [str(violation) for violation in error.violations]
    if problems:
        raise CommandError(problems)
    return objects


def _is_foreign(document: Mapping[str, Any]) -> bool:
    """Another API's object, such as the ConfigMap with the job's code: a file may hold what belongs together."""
    group = str(document.get("apiVersion", "")).partition("/")[0]
    return bool(group) and group != GROUP and document.get("kind") not in KINDS


def _documents(path: str) -> Iterator[dict[str, Any]]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
        documents = list(yaml.load_all(text, Loader=_Loader))
    except OSError as error:
        raise CommandError([f"{path}: {error.strerror}"]) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError([f"{path}: not YAML: {' '.join(str(error).split())}"]) from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise CommandError(
                [f"{path}: expected an object with apiVersion and kind, found {type(document).__name__}"]
            )
        if document.get("kind") == "List":
            yield from document.get("items", ())
        else:
            yield document


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a date is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
