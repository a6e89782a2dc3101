"""Rules about a TorchTPUJob beside its shape and its pods: name, program, versions, what may change when."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from torchtpu_operator.api.constants import JOB_KIND, MAX_JOB_NAME, MIN_RAY, MIN_RAY_SEVERAL_SLICES, RAY_VERSION
from torchtpu_operator.api.failure_policy import Backoff
from torchtpu_operator.api.job import Budget, JobSpec, Launcher, TorchTPUJob, WorkingDir
from torchtpu_operator.api.not_yet import NOT_YET
from torchtpu_operator.api.rule import FORBIDDEN, REQUIRED, Rule, cel_string, cel_text
from torchtpu_operator.api.shape_rules import SHAPE_RULES
from torchtpu_operator.api.template_rules import ENV_RULES, JOB_TEMPLATES, WORKER_TEMPLATES, template_rules
from torchtpu_operator.runner.constants import MAX_ENTRYPOINT_BYTES

JOB_NAME: Final = (
    f"the name must be a lower-case DNS label that begins with a letter, at most {MAX_JOB_NAME} characters: "
    "pods, node pools and host names are named after it"
)
NO_ENTRYPOINT: Final = "entrypoint is required: the command that each worker runs, for example python train.py"
LONG_ENTRYPOINT: Final = (
    f"entrypoint has more than {MAX_ENTRYPOINT_BYTES} bytes, which Linux does not take in one argument: move the program "
    "into a file (workingDir or the image)"
)
NUL_IN_ENTRYPOINT: Final = "entrypoint has a NUL character, which no command line can carry: remove it"
LAUNCH_TOOL: Final = (
    "PerDevice already starts one process per device and sets its rank: run the script itself "
    "(python train.py), or use launcher PerHost for torchrun"
)
WORKING_DIR: Final = "workingDir needs exactly one of configMap and uri"
WORKING_DIR_URI: Final = (
    "workingDir.uri must be a zip that Ray can fetch: gs://..., s3://... or https://..., ending in .zip"
)
TWO_WORKING_DIRS: Final = "the folder is given twice: use workingDir or runtimeEnv.working_dir, not both"
PYTHONPATH_DRIVER: Final = (
    "this takes the place of the operator's path, where Ray Train finds what puts its ranks into physical order: write "
    "PYTHONPATH=<yours>:$PYTHONPATH, or set PYTHONPATH in spec.env"
)
NO_PROGRESS_DRIVER: Final = (
    "noProgressSeconds needs launcher PerDevice or PerHost: a Driver starts its workers itself, and nobody else sees "
    "whether they go on"
)
BACKOFF: Final = "backoff.initialSeconds must not be larger than backoff.maxSeconds"
CHIP_HOURS: Final = 'budget.chipHours must be a number above 0, for example 500 or "12.5"'
OLD_RAY: Final = "Ray {version} is too old: {needed}.0 or later is needed to place workers on a slice"
OLD_RAY_FOR_SLICES: Final = "Ray {version} is too old for several slices: {needed}.0 or later is needed"
NEVER: Final = "{field} never changes: make a new job"
WHILE_SUSPENDED: Final = "{field} changes only while the job is suspended: set spec.suspend to true first"

NEVER_CHANGES: Final = (
    "accelerator",
    "topology",
    "numSlices",
    "chipsPerHost",
    "sliceClassName",
    "offers",
    "launcher",
    "managedBy",
    "checkpointDir",
)
CHANGES_WHILE_SUSPENDED: Final = (
    "entrypoint",
    "image",
    "rayVersion",
    "env",
    "runtimeEnv",
    "workingDir",
    "template",
    "head",
    "worker",
)

# the pattern of the schema does not keep the rules from running
_NO_RAY_VERSION = f"!has(self.rayVersion) || !self.rayVersion.matches({cel_string(RAY_VERSION)})"
_NAME = f"^[a-z]([-a-z0-9]{{0,{MAX_JOB_NAME - 2}}}[a-z0-9])?$"
# A launch tool at the start of a command, behind assignments and wrappers; a mere mention (pip install) passes.
# Two expressions: what one may cost grows with the length of the pattern times that of the entrypoint.
_LAUNCH = (
    r"(^|[;&|(\n\"'`])\s*((\w+=\S*|exec|env|time|nohup|nice|(uv|poetry|pdm) run)\s+)*"
    r"(\S*/)?(torchrun|deepspeed|accelerate\s+launch)(\s|$)"
)
_LAUNCH_MODULE = r"\s-m\s*(torch.distributed|accelerate.commands|deepspeed).\w*(run|launch)"
_PYTHONPATH = r"(^|[\s;&|(])PYTHONPATH="
_URI = r"^(gs|s3|https)://.+\.zip$"
_DECIMAL = r"(?=.{1,16}$)\+?([0-9]+\.?[0-9]*|\.[0-9]+)"  # a Kubernetes quantity without suffix, at most 16 characters


def _name(job: TorchTPUJob) -> str | None:
    return None if re.fullmatch(_NAME, job.metadata.name) else JOB_NAME


def _entrypoint(spec: JobSpec) -> str | None:
    return None if spec.entrypoint.strip(" \t\r\n") else NO_ENTRYPOINT


def _long_entrypoint(spec: JobSpec) -> str | None:
    return LONG_ENTRYPOINT if len(spec.entrypoint.encode()) > MAX_ENTRYPOINT_BYTES else None


def _nul_in_entrypoint(spec: JobSpec) -> str | None:
    return NUL_IN_ENTRYPOINT if "\0" in spec.entrypoint else None


def _launch_tool(pattern: str) -> Callable[[JobSpec], str | None]:
    def check(spec: JobSpec) -> str | None:
        if spec.launcher is not Launcher.PER_DEVICE:
            return None
        return LAUNCH_TOOL if re.search(pattern, spec.entrypoint, re.ASCII) else None

    return check


def _python_path(spec: JobSpec) -> str | None:
    if spec.launcher is not Launcher.DRIVER or not re.search(_PYTHONPATH, spec.entrypoint, re.ASCII):
        return None
    return None if "$PYTHONPATH" in spec.entrypoint or "${PYTHONPATH" in spec.entrypoint else PYTHONPATH_DRIVER


def old_ray(version: str, *, num_slices: int) -> str | None:
    """What is wrong with this Ray version (`2.60.0`), of the spec or as the head says it."""
    major, minor, *_ = version.split(".")
    given = (int(major), int(minor))
    if given < MIN_RAY:
        return OLD_RAY.format(version=version, needed=_dotted(MIN_RAY))
    if num_slices > 1 and given < MIN_RAY_SEVERAL_SLICES:
        return OLD_RAY_FOR_SLICES.format(version=version, needed=_dotted(MIN_RAY_SEVERAL_SLICES))
    return None


def _ray_version(spec: JobSpec) -> str | None:
    return None if spec.ray_version is None else old_ray(spec.ray_version, num_slices=1)


def _ray_version_for_slices(spec: JobSpec) -> str | None:
    if spec.ray_version is None or old_ray(spec.ray_version, num_slices=1):
        return None
    return old_ray(spec.ray_version, num_slices=spec.num_slices)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _at_least(version: tuple[int, int]) -> str:
    major, minor = version
    return f"[self.rayVersion.split('.')].all(v, int(v[0]) > {major} || (int(v[0]) == {major} && int(v[1]) >= {minor}))"


def _working_dir(working_dir: WorkingDir) -> str | None:
    return WORKING_DIR if (working_dir.config_map is None) == (working_dir.uri is None) else None


def _working_dir_uri(working_dir: WorkingDir) -> str | None:
    return None if working_dir.uri is None or re.fullmatch(_URI, working_dir.uri) else WORKING_DIR_URI


def _two_working_dirs(spec: JobSpec) -> str | None:
    twice = spec.working_dir is not None and spec.runtime_env is not None and spec.runtime_env.working_dir is not None
    return TWO_WORKING_DIRS if twice else None


def _backoff(backoff: Backoff) -> str | None:
    return BACKOFF if backoff.initial_seconds > backoff.max_seconds else None


def _no_progress(spec: JobSpec) -> str | None:
    watched = spec.failure_policy.no_progress_seconds is not None
    return NO_PROGRESS_DRIVER if watched and spec.launcher is Launcher.DRIVER else None


def _chip_hours(budget: Budget) -> str | None:
    hours = budget.chip_hours
    if isinstance(hours, int):
        return None if hours > 0 else CHIP_HOURS
    return None if re.fullmatch(_DECIMAL, hours) and Decimal(hours) > 0 else CHIP_HOURS


def _unchanged(name: str, message: str, *, while_suspended: bool) -> Callable[[JobSpec, JobSpec], str | None]:
    attribute = next(key for key, field in JobSpec.model_fields.items() if field.alias == name)

    def check(spec: JobSpec, old: JobSpec) -> str | None:
        if while_suspended and old.suspend:
            return None
        return None if getattr(spec, attribute) == getattr(old, attribute) else message

    return check


def _immutable(name: str, *, while_suspended: bool) -> Rule:
    message = (WHILE_SUSPENDED if while_suspended else NEVER).format(field=name)
    same = f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
    return Rule(
        id=f"immutable-{name}",
        at=("spec",),
        field=f".{name}",
        cel=f"(has(oldSelf.suspend) && oldSelf.suspend) || ({same})" if while_suspended else same,
        message=message,
        transition=_unchanged(name, message, while_suspended=while_suspended),
        reason=FORBIDDEN,
    )


JOB_RULES: Final = (
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
    *SHAPE_RULES,
    Rule(
        id="entrypoint-given",
        at=("spec",),
        field=".entrypoint",
        cel="has(self.entrypoint) && self.entrypoint.matches('[^ \\\\t\\\\r\\\\n]')",
        message=NO_ENTRYPOINT,
        check=_entrypoint,
        reason=REQUIRED,
    ),
    Rule(
        id="long-entrypoint",
        at=("spec",),
        field=".entrypoint",
        cel=f"!has(self.entrypoint) || bytes(self.entrypoint).size() <= {MAX_ENTRYPOINT_BYTES}",
        message=LONG_ENTRYPOINT,
        check=_long_entrypoint,
    ),
    Rule(
        id="nul-in-entrypoint",
        at=("spec",),
        field=".entrypoint",
        cel="!has(self.entrypoint) || !self.entrypoint.contains('\\u0000')",
        message=NUL_IN_ENTRYPOINT,
        check=_nul_in_entrypoint,
    ),
    *(
        Rule(
            id=id_,
            at=("spec",),
            field=".entrypoint",
            cel=(
                "self.launcher != 'PerDevice' || !has(self.entrypoint)"
                f" || !self.entrypoint.matches({cel_string(pattern)})"
            ),
            message=LAUNCH_TOOL,
            check=_launch_tool(pattern),
        )
        for id_, pattern in (("launch-tool", _LAUNCH), ("launch-module", _LAUNCH_MODULE))
    ),
    Rule(
        id="driver-pythonpath",
        at=("spec",),
        field=".entrypoint",
        cel=(
            "self.launcher != 'Driver' || !has(self.entrypoint)"
            f" || !self.entrypoint.matches({cel_string(_PYTHONPATH)})"
            " || self.entrypoint.contains('$PYTHONPATH') || self.entrypoint.contains('${PYTHONPATH')"
        ),
        message=PYTHONPATH_DRIVER,
        check=_python_path,
    ),
    Rule(
        id="ray-version",
        at=("spec",),
        field=".rayVersion",
        cel=f"{_NO_RAY_VERSION} || {_at_least(MIN_RAY)}",
        message=f"Ray is too old: {_dotted(MIN_RAY)}.0 or later is needed to place workers on a slice",
        message_expression=cel_text(OLD_RAY.replace("{needed}", _dotted(MIN_RAY)), version="self.rayVersion"),
        check=_ray_version,
    ),
    Rule(
        id="ray-version-several-slices",
        at=("spec",),
        field=".rayVersion",
        cel=(
            f"{_NO_RAY_VERSION} || self.numSlices <= 1 || !({_at_least(MIN_RAY)})"
            f" || {_at_least(MIN_RAY_SEVERAL_SLICES)}"
        ),
        message=f"Ray is too old for several slices: {_dotted(MIN_RAY_SEVERAL_SLICES)}.0 or later is needed",
        message_expression=cel_text(
            OLD_RAY_FOR_SLICES.replace("{needed}", _dotted(MIN_RAY_SEVERAL_SLICES)), version="self.rayVersion"
        ),
        check=_ray_version_for_slices,
    ),
    *ENV_RULES,
    Rule(
        id="working-dir-source",
        at=("spec.workingDir",),
        field="",
        cel="has(self.configMap) != has(self.uri)",
        message=WORKING_DIR,
        check=_working_dir,
    ),
    Rule(
        id="working-dir-uri",
        at=("spec.workingDir",),
        field=".uri",
        cel=f"!has(self.uri) || self.uri.matches({cel_string(_URI)})",
        message=WORKING_DIR_URI,
        check=_working_dir_uri,
    ),
    Rule(
        id="two-working-dirs",
        at=("spec",),
        field=".workingDir",
        cel="!has(self.workingDir) || !has(self.runtimeEnv) || !has(self.runtimeEnv.working_dir)",
        message=TWO_WORKING_DIRS,
        check=_two_working_dirs,
    ),
    Rule(
        id="backoff",
        at=("spec.failurePolicy.backoff",),
        field=".initialSeconds",
        cel="self.initialSeconds <= self.maxSeconds",
        message=BACKOFF,
        check=_backoff,
    ),
    Rule(
        id="chip-hours",
        at=("spec.budget",),
        field=".chipHours",
        cel=(
            "type(self.chipHours) == int ? self.chipHours > 0 : "
            # no pattern of the whole form: to CEL the text has no maxLength, and a long pattern costs accordingly
            r"self.chipHours.size() <= 16 && isQuantity(self.chipHours) && !self.chipHours.matches('\\pL')"
            " && quantity(self.chipHours).isGreaterThan(quantity('0'))"
        ),
        message=CHIP_HOURS,
        check=_chip_hours,
    ),
    Rule(
        id="no-progress-launcher",
        at=("spec",),
        field=".failurePolicy.noProgressSeconds",
        cel="self.launcher != 'Driver' || !has(self.failurePolicy) || !has(self.failurePolicy.noProgressSeconds)",
        message=NO_PROGRESS_DRIVER,
        check=_no_progress,
        reason=FORBIDDEN,
    ),
    *(each.rule() for each in NOT_YET[JOB_KIND]),
    *template_rules(everywhere=JOB_TEMPLATES, workers=WORKER_TEMPLATES),
    *(_immutable(name, while_suspended=False) for name in NEVER_CHANGES),
    *(_immutable(name, while_suspended=True) for name in CHANGES_WHILE_SUSPENDED),
)
