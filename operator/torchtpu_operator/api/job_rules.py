"""Rules about a TorchTPUJob beside its shape and its pods: name, program, versions, what may change when."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from torchtpu_operator.api.base import comparable
from torchtpu_operator.api.constants import JOB_KIND, MAX_EXIT_CODE
from torchtpu_operator.api.env_rules import ENV_RULES
from torchtpu_operator.api.failure_policy import Backoff, OnExitCodes
from torchtpu_operator.api.image_rules import image_rules
from torchtpu_operator.api.job import Budget, JobSpec, Launcher, RuntimeEnv, WorkingDir
from torchtpu_operator.api.name_rules import NAME_RULES
from torchtpu_operator.api.not_yet import NOT_YET
from torchtpu_operator.api.rule import FORBIDDEN, REQUIRED, Rule, cel_string, cel_text
from torchtpu_operator.api.shape_rules import SHAPE_RULES
from torchtpu_operator.api.template_rules import JOB_TEMPLATES, WORKER_TEMPLATES, template_rules
from torchtpu_operator.api.version_rules import SEVERAL_SLICES, version_rules
from torchtpu_operator.runner.constants import MAX_ENTRYPOINT_BYTES

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
RUNTIME_WORKING_DIR: Final = (
    "runtimeEnv.working_dir must be an archive that Ray can fetch, for example gs://acme/code.zip: a folder of your own "
    "machine stays there"
)
OTHERS_WORD: Final = "runtimeEnv is written in Ray's own words, and Ray takes no notice of {field}: write {word}"
CAMEL_CASED: Final = {"envVars": "env_vars", "workingDir": "working_dir", "pyModules": "py_modules"}
TWO_WORKING_DIRS: Final = "the folder is given twice: use workingDir or runtimeEnv.working_dir, not both"
PYTHONPATH_DRIVER: Final = (
    "this takes the place of the operator's path, where Ray Train finds what puts its ranks into physical order: write "
    "PYTHONPATH=<yours>:$PYTHONPATH, or set PYTHONPATH in spec.env"
)
NO_PROGRESS_DRIVER: Final = (
    "noProgressSeconds needs launcher PerDevice or PerHost: a Driver starts its workers itself, and nobody else sees "
    "whether they go on"
)
EXIT_CODE: Final = "exit code {code} of a failure cannot be: values are 1 to 255 (0 is success)"
BACKOFF: Final = "backoff.initialSeconds must not be larger than backoff.maxSeconds"
CHIP_HOURS: Final = 'budget.chipHours must be a number above 0, for example 500 or "12.5"'
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

# A launch tool at the start of a command, behind assignments and wrappers; a mere mention (pip install) passes.
# Two expressions: what one may cost grows with the length of the pattern times that of the entrypoint.
_LAUNCH = (
    r"(^|[;&|({!\n\"'`])\s*((\w+=\S*|exec|env|time(out)?|nohup|then|do|\w+ run)\s+([-\d]\S*\s+)*)*"
    r"(\S*/)?(torchrun|deepspeed|accelerate[\s-]+launch)(\s|$)"
)
_LAUNCH_MODULE = r"\s-m\s*(torch.distributed|accelerate.commands|deepspeed).\w*(run|launch)"
_PYTHONPATH = r"(^|[\s;&|(])PYTHONPATH="
_URI = r"^(gs|s3|https)://.+\.zip$"
_RUNTIME_URI = (  # what Ray itself takes
    r"^((gs|s3|https?|azure|abfss|file)://.+\.(zip|jar|tar|tgz|gz|bz2|xz|zst)([?].*)?|local:///.*)$"
)
_DECIMAL = r"(?=.{1,16}$)\+?([0-9]+\.?[0-9]*|\.[0-9]+)"  # a Kubernetes quantity without suffix, at most 16 characters


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


def _working_dir(working_dir: WorkingDir) -> str | None:
    return WORKING_DIR if (working_dir.config_map is None) == (working_dir.uri is None) else None


def _working_dir_uri(working_dir: WorkingDir) -> str | None:
    return None if working_dir.uri is None or re.fullmatch(_URI, working_dir.uri) else WORKING_DIR_URI


def _runtime_working_dir(runtime_env: RuntimeEnv) -> str | None:
    given = runtime_env.working_dir
    return None if given is None or re.fullmatch(_RUNTIME_URI, given) else RUNTIME_WORKING_DIR


def _others_word(field: str, word: str) -> Callable[[RuntimeEnv], str | None]:
    def check(runtime_env: RuntimeEnv) -> str | None:
        given = getattr(runtime_env, field) is not None
        return OTHERS_WORD.format(field=field, word=word) if given else None

    return check


def _exit_codes(on: OnExitCodes) -> str | None:
    wrong = next((code for code in on.values if not 1 <= code <= MAX_EXIT_CODE), None)
    return None if wrong is None else EXIT_CODE.format(code=wrong)


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
    def check(spec: JobSpec, old: JobSpec) -> str | None:
        if while_suspended and old.suspend:
            return None
        return None if comparable(spec).get(name) == comparable(old).get(name) else message

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
    *NAME_RULES,
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
    *image_rules("spec"),
    *version_rules("spec"),
    SEVERAL_SLICES,
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
        id="runtime-working-dir",
        at=("spec.runtimeEnv",),
        field=".working_dir",
        cel=f"!has(self.working_dir) || self.working_dir.matches({cel_string(_RUNTIME_URI)})",
        message=RUNTIME_WORKING_DIR,
        check=_runtime_working_dir,
    ),
    *(
        Rule(
            id=f"runtime-env-{field}",
            at=("spec.runtimeEnv",),
            field=f".{field}",
            cel=f"!has(self.{field})",
            message=OTHERS_WORD.format(field=field, word=word),
            check=_others_word(field, word),
        )
        for field, word in CAMEL_CASED.items()
    ),
    Rule(
        id="exit-codes",
        at=("spec.failurePolicy.rules[*].onExitCodes",),
        field=".values",
        cel=f"self.values.all(v, v >= 1 && v <= {MAX_EXIT_CODE})",
        message=f"exit codes of a failure are 1 to {MAX_EXIT_CODE} (0 is success)",
        message_expression=cel_text(EXIT_CODE, code=f"self.values.filter(v, v < 1 || v > {MAX_EXIT_CODE})[0]"),
        check=_exit_codes,
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
