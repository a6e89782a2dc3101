"""helm, as the bench builds it, against this repository's chart."""

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sim import tools

REPO = Path(__file__).parents[3]
CHART = REPO / "charts" / "torchtpu-operator"
RELEASE, NAMESPACE = "torchtpu-operator", "torchtpu-system"
VALUES: dict[str, Any] = {
    "gke": {"project": "demo", "location": "us-east5", "cluster": "bench"},
    "defaultClass": {"zones": ["us-east5-b", "us-east5-a"]},
}
"""The least that an installation must say."""


class HelmError(Exception):
    """helm refused; the message is its own."""


def helm(*argv: str, values: Mapping[str, Any] | None = None) -> str:
    """helm's output; `values` go in as a file. Raises HelmError."""
    try:
        program = tools.path("helm")
    except tools.ToolMissingError as error:
        pytest.skip(f"helm is one of the bench's programs: {error}")
    command = [str(program), *argv, *(["--values", "-"] if values is not None else [])]
    done = subprocess.run(command, input=json.dumps(values or {}), capture_output=True, text=True, check=False)
    if done.returncode:
        raise HelmError(done.stderr)
    return done.stdout


def render(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every manifest of the release in helm's order, hooks last."""
    return [document for document in yaml.load_all(_rendered(json.dumps(values)), Loader=yaml.CSafeLoader) if document]


@cache
def _rendered(values: str) -> str:
    return helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, values=json.loads(values))
