"""Rules about environment variables: what operator and runner set themselves, wherever a user could set it, too."""

from collections.abc import Iterable
from typing import Final

from torchtpu_operator.api.job import JobSpec, RuntimeEnv
from torchtpu_operator.api.pod import EnvVar, PodTemplate
from torchtpu_operator.api.rule import FORBIDDEN, Rule, cel_list, cel_map, cel_text
from torchtpu_operator.runner.constants import RESERVED_ENV as RUNNER_RESERVED_ENV

RESERVED_ENV: Final = RUNNER_RESERVED_ENV | {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}

RESERVED: Final = "{name} is set by the operator: choose another name"

_RESERVED_CEL = f"[{cel_map(dict.fromkeys(sorted(RESERVED_ENV), 1))}]"
_RESERVED_LIST = cel_list(sorted(RESERVED_ENV))


def _first_reserved(names: Iterable[str]) -> str | None:
    taken = min(RESERVED_ENV.intersection(names), default=None)
    return None if taken is None else RESERVED.format(name=taken)


def _env_names(env: tuple[EnvVar, ...] | None) -> Iterable[str]:
    return (entry.name for entry in env or ())


def _spec_env(spec: JobSpec) -> str | None:
    return _first_reserved(_env_names(spec.env))


def _template_env(template: PodTemplate) -> str | None:
    containers = (template.spec.containers or ()) if template.spec else ()
    return _first_reserved(
        name for container in containers if container.name == "ray" for name in _env_names(container.env)
    )


def _runtime_env(runtime_env: RuntimeEnv) -> str | None:
    return _first_reserved(runtime_env.env_vars or {})


def template_env_rule(at: tuple[str, ...]) -> Rule:
    """The rule for the container ray of pod overlays at these places."""
    return Rule(
        id="template-reserved-env",
        at=at,
        field=".spec.containers",
        cel=(
            f"!has(self.spec) || !has(self.spec.containers) || {_RESERVED_CEL}.all(taken,"
            " self.spec.containers.all(c, c.name != 'ray' || !has(c.env) || c.env.all(e, !(e.name in taken))))"
        ),
        message="an environment variable of the container ray is set by the operator: choose another name",
        message_expression=cel_text(
            RESERVED,
            name=(
                f"{_RESERVED_LIST}.filter(n, self.spec.containers.exists(c, c.name == 'ray' && has(c.env)"
                " && c.env.exists(e, e.name == n)))[0]"
            ),
        ),
        check=_template_env,
        reason=FORBIDDEN,
    )


ENV_RULES: Final = (
    Rule(
        id="reserved-env",
        at=("spec",),
        field=".env",
        cel=f"!has(self.env) || {_RESERVED_CEL}.all(taken, self.env.all(e, !(e.name in taken)))",
        message="an environment variable is set by the operator: choose another name",
        message_expression=cel_text(RESERVED, name=f"{_RESERVED_LIST}.filter(n, self.env.exists(e, e.name == n))[0]"),
        check=_spec_env,
        reason=FORBIDDEN,
    ),
    Rule(
        id="reserved-runtime-env",
        at=("spec.runtimeEnv",),
        field=".env_vars",
        cel=f"!has(self.env_vars) || {_RESERVED_CEL}.all(taken, self.env_vars.all(k, !(k in taken)))",
        message="an environment variable is set by the operator: choose another name",
        message_expression=cel_text(RESERVED, name=f"{_RESERVED_LIST}.filter(n, n in self.env_vars)[0]"),
        check=_runtime_env,
        reason=FORBIDDEN,
    ),
)
