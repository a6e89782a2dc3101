"""The manifest that the demo applies, and what it is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEFAULT_NAMESPACE = "ml"
"""For examples that leave the namespace to whoever applies them."""


class ExampleError(Exception):
    """The file cannot be demonstrated; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Example:
    path: Path
    namespace: str
    job: str
    """Name of its one TorchTPUJob."""
    wanted: Mapping[str, Any]
    """spec of that job, as written."""


def read_example(path: Path) -> Example:
    """Raises ExampleError unless the file holds exactly one TorchTPUJob, and one namespace at most."""
    try:
        documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
    except OSError as error:
        raise ExampleError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ExampleError(f"{path} is not YAML: {error}") from error
    if not all(isinstance(each, dict) for each in documents):
        raise ExampleError(f"{path} holds something that is no Kubernetes object")
    jobs = [each for each in documents if each.get("kind") == "TorchTPUJob"]
    if len(jobs) != 1:
        raise ExampleError(f"{path} holds {len(jobs)} TorchTPUJobs; the demo follows exactly one")
    name = jobs[0].get("metadata", {}).get("name")
    if not name:
        raise ExampleError(f"{path}: the TorchTPUJob has no metadata.name")
    namespaces = {each["metadata"]["namespace"] for each in documents if each.get("metadata", {}).get("namespace")}
    if len(namespaces) > 1:
        raise ExampleError(f"{path} spreads over the namespaces {', '.join(sorted(namespaces))}; use one")
    namespace = namespaces.pop() if namespaces else DEFAULT_NAMESPACE
    return Example(path=path, namespace=namespace, job=name, wanted=jobs[0].get("spec", {}))
