"""Objects as older versions stored them, in `tests/compat`."""

from collections.abc import Iterator
from typing import Any

import yaml

from tests.compat.snapshot import versions

Document = dict[str, Any]


def stored_objects() -> Iterator[tuple[str, Document]]:
    """`v0.1.0 TorchTPUJob shortest` -> the object, of every version."""
    for folder in versions():
        for file in sorted((folder / "objects").glob("*.yaml")):
            for document in yaml.safe_load_all(file.read_text("utf-8")):
                yield f"{folder.name} {document['kind']} {document['metadata']['name']}", document
