"""Rules about names: of a job, and of the objects that it names."""

import re
from collections.abc import Callable
from typing import Any, Final

from torchtpu_operator.api.constants import DOMAIN_PATH, MAX_JOB_NAME
from torchtpu_operator.api.job import JobSpec, TorchTPUJob
from torchtpu_operator.api.rule import Rule, cel_string, cel_text

JOB_NAME: Final = (
    f"the name must be a lower-case DNS label that begins with a letter, at most {MAX_JOB_NAME} characters: "
    "pods, node pools and host names are named after it"
)
HANDS_OFF: Final = (
    'managedBy "{name}" is no controller: it needs a domain and a name, as in kueue.x-k8s.io/multikueue; leave it unset '
    "for this operator"
)
NO_NAME: Final = (
    '{field} "{name}" is no name of an object: it is of lower-case letters, digits, dashes and dots, with a letter or '
    "digit at both ends"
)

_NAME = f"^[a-z]([-a-z0-9]{{0,{MAX_JOB_NAME - 2}}}[a-z0-9])?$"
_OBJECT_NAME = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"


def _name(job: TorchTPUJob) -> str | None:
    return None if re.fullmatch(_NAME, job.metadata.name) else JOB_NAME


def _managed_by(spec: JobSpec) -> str | None:
    return None if re.fullmatch(DOMAIN_PATH, spec.managed_by) else HANDS_OFF.format(name=spec.managed_by)


def _object_name(field: str, attribute: str) -> Callable[[Any], str | None]:
    def check(node: Any) -> str | None:
        name = getattr(node, attribute)
        return None if name is None or re.fullmatch(_OBJECT_NAME, name) else NO_NAME.format(field=field, name=name)

    return check


def _names(at: str, field: str, attribute: str, *, called: str) -> Rule:
    """A name that ends up in a request path, or that no object can have."""
    return Rule(
        id=f"name-{called}",
        at=(at,),
        field=f".{field}",
        cel=f"!has(self.{field}) || self.{field}.matches({cel_string(_OBJECT_NAME)})",
        message=f"{called} is no name of an object: it is of lower-case letters, digits, dashes and dots",
        message_expression=cel_text(NO_NAME.replace("{field}", called), name=f"self.{field}"),
        check=_object_name(called, attribute),
    )


NAME_RULES: Final = (
    Rule(
        id="job-name",
        at=("",),
        field=".metadata.name",
        # the apiserver itself sees to it that it is a DNS subdomain; a pattern costs ten times as much, since to CEL
        # the name has no maxLength
        cel=(
            f"self.metadata.name.size() <= {MAX_JOB_NAME} && self.metadata.name >= 'a'"
            " && !self.metadata.name.contains('.')"
        ),
        message=JOB_NAME,
        check=_name,
    ),
    Rule(
        id="managed-by",
        at=("spec",),
        field=".managedBy",
        cel=f"self.managedBy.matches({cel_string(DOMAIN_PATH)})",
        message="managedBy is no controller: it needs a domain and a name; leave it unset for this operator",
        message_expression=cel_text(HANDS_OFF, name="self.managedBy"),
        check=_managed_by,
    ),
    _names("spec", "sliceClassName", "slice_class_name", called="sliceClassName"),
    _names("spec", "priorityClassName", "priority_class_name", called="priorityClassName"),
    _names("spec.workingDir.configMap", "name", "name", called="workingDir.configMap.name"),
)
