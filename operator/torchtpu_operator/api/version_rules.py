"""Rules about Ray versions, of a job and of a class's jobDefaults."""

import re
from typing import Final

from torchtpu_operator.api.constants import MIN_RAY, MIN_RAY_SEVERAL_SLICES, RAY_VERSION
from torchtpu_operator.api.job import JobSpec
from torchtpu_operator.api.rule import Rule, cel_string, cel_text
from torchtpu_operator.api.slice_class import JobDefaults

NO_VERSION: Final = 'rayVersion "{version}" is not a version of Ray: write its three numbers, for example 2.60.0'
OLD_RAY: Final = "Ray {version} is too old: {needed}.0 or later is needed to place workers on a slice"
OLD_RAY_FOR_SLICES: Final = "Ray {version} is too old for several slices: {needed}.0 or later is needed"

_IS_VERSION = f"self.rayVersion.matches({cel_string(RAY_VERSION)})"
_NOT_JUDGED = f"!has(self.rayVersion) || !{_IS_VERSION}"


def old_ray(version: str, *, num_slices: int) -> str | None:
    """What is wrong with this Ray version (`2.60.0`), of a spec or as the head says it; None too if it is none."""
    if not re.fullmatch(RAY_VERSION, version):
        return None
    major, minor, *_ = version.split(".")
    given = (int(major), int(minor))
    if given < MIN_RAY:
        return OLD_RAY.format(version=version, needed=_dotted(MIN_RAY))
    if num_slices > 1 and given < MIN_RAY_SEVERAL_SLICES:
        return OLD_RAY_FOR_SLICES.format(version=version, needed=_dotted(MIN_RAY_SEVERAL_SLICES))
    return None


def _form(node: JobSpec | JobDefaults) -> str | None:
    version = node.ray_version
    return None if version is None or re.fullmatch(RAY_VERSION, version) else NO_VERSION.format(version=version)


def _new_enough(node: JobSpec | JobDefaults) -> str | None:
    return None if node.ray_version is None else old_ray(node.ray_version, num_slices=1)


def _new_enough_for_slices(spec: JobSpec) -> str | None:
    if spec.ray_version is None or old_ray(spec.ray_version, num_slices=1):
        return None
    return old_ray(spec.ray_version, num_slices=spec.num_slices)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _at_least(version: tuple[int, int]) -> str:
    major, minor = version
    return f"[self.rayVersion.split('.')].all(v, int(v[0]) > {major} || (int(v[0]) == {major} && int(v[1]) >= {minor}))"


def version_rules(at: str) -> tuple[Rule, ...]:
    """What a rayVersion must be, whatever the job."""
    return (
        Rule(
            id="ray-version-form",
            at=(at,),
            field=".rayVersion",
            cel=f"!has(self.rayVersion) || {_IS_VERSION}",
            message="rayVersion is not a version of Ray: write its three numbers, for example 2.60.0",
            message_expression=cel_text(NO_VERSION, version="self.rayVersion"),
            check=_form,
        ),
        Rule(
            id="ray-version",
            at=(at,),
            field=".rayVersion",
            cel=f"{_NOT_JUDGED} || {_at_least(MIN_RAY)}",
            message=f"Ray is too old: {_dotted(MIN_RAY)}.0 or later is needed to place workers on a slice",
            message_expression=cel_text(OLD_RAY.replace("{needed}", _dotted(MIN_RAY)), version="self.rayVersion"),
            check=_new_enough,
        ),
    )


SEVERAL_SLICES: Final = Rule(
    id="ray-version-several-slices",
    at=("spec",),
    field=".rayVersion",
    cel=(f"{_NOT_JUDGED} || self.numSlices <= 1 || !({_at_least(MIN_RAY)}) || {_at_least(MIN_RAY_SEVERAL_SLICES)}"),
    message=f"Ray is too old for several slices: {_dotted(MIN_RAY_SEVERAL_SLICES)}.0 or later is needed",
    message_expression=cel_text(
        OLD_RAY_FOR_SLICES.replace("{needed}", _dotted(MIN_RAY_SEVERAL_SLICES)), version="self.rayVersion"
    ),
    check=_new_enough_for_slices,
)
