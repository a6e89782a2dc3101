"""Read objects of our kinds from YAML or JSON files."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchtpu_operator.api.base import ApiObject
from torchtpu_operator.api.constants import GROUP
from torchtpu_operator.api.validate import KINDS, InvalidObjectError, parse
from torchtpu_operator.cli.errors import CommandError
from torchtpu_operator.sdk.yaml_text import load_documents


def read_objects(paths: Sequence[str]) -> tuple[list[ApiObject], list[str]]:
    """Every object of our kinds in these files, and the titles of the others; `-` is stdin.

    Raises CommandError with everything that is wrong in all of them.
    """
    documents = [document for path in paths for document in _documents(path)]
    others = [_title(document) for document in documents if _is_foreign(document)]
    documents = [document for document in documents if not _is_foreign(document)]
    objects, problems = [], []
    for document in documents:
        try:
            objects.append(parse(document))
        except InvalidObjectError as error:
            whose = f" ({_title(document)})" if len(documents) > 1 else ""
            problems += [f"{violation}{whose}" for violation in error.violations]
    if problems:
        raise CommandError(problems)
    return objects, others


def _title(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name", "without a name") if isinstance(metadata, Mapping) else "without a name"
    return f"{document.get('kind', 'object')} {name}"


def _is_foreign(document: Mapping[str, Any]) -> bool:
    """Another API's object, such as the ConfigMap with the job's code: a file may hold what belongs together."""
    group = str(document.get("apiVersion", "")).partition("/")[0]
    return bool(group) and group != GROUP and document.get("kind") not in KINDS


def _documents(path: str) -> list[dict[str, Any]]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
        return load_documents(text)
    except OSError as error:
        raise CommandError([f"{path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise CommandError([f"{path}: not YAML: {' '.join(str(error).split())}"]) from error
    except ValueError as error:
        raise CommandError([f"{path}: {error}"]) from error
