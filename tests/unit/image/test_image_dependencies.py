"""What the operator's image is made of, judged without building it."""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).parents[3]
PINNED = {
    canonicalize_name(name)
    for name in re.findall(r"^([\w.-]+)==", (REPO / "requirements.lock").read_text(), re.MULTILINE)
}


def closure(declared: list[str]) -> set[str]:
    """Names of everything that pip would install for these requirements on Linux."""
    environment: dict[str, str] = {key: str(value) for key, value in default_environment().items()}
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(text), "") for text in declared]
    while waiting:
        requirement, parent_extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate(environment | {"extra": parent_extra}):
            continue
        for extra in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), extra)
            if key not in seen:
                seen.add(key)
                waiting += [(Requirement(text), extra) for text in requires(requirement.name) or []]
    return {name for name, _ in seen}


def test_every_package_of_the_image_is_locked_and_none_is_ray_or_torch() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    packages = closure(project["dependencies"])
    assert (packages - PINNED, packages & {"ray", "torch", "torch-tpu", "kubernetes-asyncio", "pykube-ng"}) == (
        set(),
        set(),
    )


def test_every_command_that_pip_installs_finds_its_module_in_the_wheel() -> None:
    document = tomllib.loads((REPO / "pyproject.toml").read_text())
    packages = {Path(folder).name for folder in document["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
    missing = {
        name
        for name, target in document["project"]["scripts"].items()
        if target.partition(":")[0].partition(".")[0] not in packages
    }
    assert (document["project"]["scripts"] != {}, missing) == (True, set())


def test_the_build_context_has_what_the_dockerfile_copies_and_nothing_else() -> None:
    copied = {
        source
        for line in (REPO / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    kept = {line[1:] for line in (REPO / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert (kept, {source for source in copied if not (REPO / source).exists()}) == (copied, set())


def test_the_image_runs_as_the_chart_does() -> None:
    text = (REPO / "Dockerfile").read_text()
    deployment = (REPO / "charts/torchtpu-operator/templates/deployment.yaml").read_text()
    user, command = re.search(r"^USER (\d+):", text, re.MULTILINE), re.search(r"^CMD (.*)$", text, re.MULTILINE)
    assert user is not None
    assert command is not None
    wanted = (f"runAsUser: {user[1]}", f"command: {command[1]}".replace('"', ""))
    assert [part for part in wanted if part not in deployment] == []
