"""The keyword arguments of `new()` and `replace()`: the fields of a spec in snake_case, with their types."""

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypedDict, TypeVar

from pydantic import BaseModel

from torchtpu_operator.api import constants
from torchtpu_operator.api.failure_policy import FailurePolicy
from torchtpu_operator.api.job import Budget, Launcher, RuntimeEnv, WorkingDir
from torchtpu_operator.api.offer import NodePoolTemplate
from torchtpu_operator.api.pod import EnvVar, PodRole, PodTemplate
from torchtpu_operator.api.slice_class import AllowedNamespaces, ClassReclaim, JobDefaults, Limits
from torchtpu_operator.api.unknown_fields import meant
from torchtpu_operator.api.validate import KINDS

Plain = Mapping[str, Any]
"""A nested object as YAML has it, in camelCase; a typed model does as well."""

EnvValue = str | int | Plain
"""A value, or as in `valueFrom` where it comes from: `secret_key("hf", "token")`."""

Function = TypeVar("Function", bound=Callable[..., Any])


class MetadataFields(TypedDict, total=False):
    """What `metadata` takes beside the name."""

    labels: Mapping[str, str] | None
    annotations: Mapping[str, str] | None


class JobOptions(MetadataFields, total=False):
    """Everything about a job that has a default. None: as if it were not given."""

    namespace: str | None
    num_slices: int | None
    chips_per_host: int | None
    slice_class_name: str | None
    offers: Sequence[str] | None
    launcher: Launcher | Literal["PerDevice", "PerHost", "Driver"] | None
    image: str | None
    ray_version: str | None
    working_dir: WorkingDir | Plain | str | None
    checkpoint_dir: str | None
    runtime_env: RuntimeEnv | Plain | None
    env: Mapping[str, EnvValue] | Sequence[EnvVar | Plain] | None
    template: PodTemplate | Plain | None
    head: PodRole | Plain | None
    worker: PodRole | Plain | None
    suspend: bool | None
    managed_by: str | None
    priority_class_name: str | None
    failure_policy: FailurePolicy | Plain | None
    queue_deadline_seconds: int | None
    capacity_deadline_seconds: int | None
    start_deadline_seconds: int | None
    active_deadline_seconds: int | None
    stop_grace_period_seconds: int | None
    budget: Budget | Plain | None
    log_retention_seconds: int | None
    ttl_seconds_after_finished: int | None


class JobFields(JobOptions, total=False):
    """Everything about a job."""

    name: str
    accelerator: str
    topology: str
    entrypoint: str


class ClassOptions(MetadataFields, total=False):
    """Everything about a class that has a default. None: as if it were not given."""

    controller_name: str | None
    paused: bool | None
    node_pool: NodePoolTemplate | Plain | None
    max_lifetime_seconds: int | None
    reclaim: ClassReclaim | Plain | None
    allowed_namespaces: AllowedNamespaces | Plain | None
    limits: Limits | Plain | None
    job_defaults: JobDefaults | Plain | None


def plain(value: Any) -> Any:
    """A value as JSON has it: models as they were given, without their defaults."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(entry) for entry in value]
    return value


def with_fields(
    document: Plain,
    fields: Mapping[str, Any],
    *,
    kind: str,
    spec: type[BaseModel],
    short: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The document with these fields of metadata and spec set, or with None taken away. Raises TypeError for others.

    `short` turns convenient values of some fields into the API's form.
    """
    parts: dict[str, dict[str, Any]] = {part: dict(document.get(part, {})) for part in ("metadata", "spec")}
    for name, value in fields.items():
        field = spec.model_fields.get(name)
        if field is None and name not in ("name", "namespace", "labels", "annotations"):
            raise TypeError(f"{kind} has no field {name!r}{_hint(name, kind)}")
        part, key = ("metadata", name) if field is None else ("spec", field.alias or name)
        if value is None:
            parts[part].pop(key, None)
        else:
            parts[part][key] = plain(short.get(name, plain)(value))
    return {"apiVersion": constants.API_VERSION, "kind": kind, **parts}


def _hint(name: str, kind: str) -> str:
    """What `validate()` would say, but spelt as arguments are: `failure_policy.max_restarts`."""
    found = meant(name, model=KINDS[kind], loc=("spec",)).removeprefix("spec.").removeprefix("metadata.")
    if not found.startswith("template."):  # pod templates are written as YAML has them
        found = re.sub("(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0].lower()}", found)
    return f": did you mean {found}?" if found else ""


def documented(options: type, model: type[BaseModel]) -> Callable[[Function], Function]:
    """Shows notebooks and help() what `**fields` takes; editors read the annotation."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        hints = typing.get_type_hints(options)
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in hints.items()
        ]
        lines = [
            f"{name}: {' '.join(str(field.description).split())}"
            for name, field in model.model_fields.items()
            if name in hints or name in signature.parameters
        ]
        function.__signature__ = signature.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n" + "\n".join(lines)
        return function

    return decorate
