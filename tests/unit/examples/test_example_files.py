"""The examples are what people copy: planned without error, with programs that compile, and for every need one."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from tests.manifests import REPOSITORY, Manifest, documented, examples
from torchtpu_operator.api.constants import CLASS_KIND
from torchtpu_operator.api.job import Launcher
from torchtpu_operator.api.not_yet import NOT_YET
from torchtpu_operator.api.offer import OfferType
from torchtpu_operator.tpu import CATALOGUE

EXAMPLES = examples()
DOCUMENTED = documented()
README = (REPOSITORY / "examples" / "README.md").read_text()

LATER = {value for each in NOT_YET[CLASS_KIND] if each.field == "type" for value in each.values}
RUN = re.compile(r"^# Run +(?P<command>kubectl apply (?:-n \S+ )?-f examples/\S+)", re.MULTILINE)


def programs(manifest: Manifest) -> dict[str, str]:
    """Python files of ConfigMaps, and Python between heredoc marks in entrypoints."""
    files = {
        name: text
        for each in manifest.of_kind("ConfigMap")
        for name, text in each["data"].items()
        if name.endswith(".py")
    }
    for job in manifest.of_kind("TorchTPUJob"):
        for number, (_, text) in enumerate(re.findall(r"<<'(\w+)'\n(.*?)^\1$", job["spec"]["entrypoint"], re.M | re.S)):
            files[f"entrypoint {number}"] = text
    return files


@pytest.mark.parametrize("manifest", [*EXAMPLES.values(), *DOCUMENTED.values()], ids=[*EXAMPLES, *DOCUMENTED])
def test_is_planned(manifest: Manifest) -> None:
    jobs = manifest.of_kind("TorchTPUJob")
    shapes = [(plan["shape"]["accelerator"], plan["shape"]["topology"]) for plan in manifest.plans()]
    assert shapes == [(job["spec"]["accelerator"], job["spec"]["topology"]) for job in jobs]


@pytest.mark.parametrize("manifest", EXAMPLES.values(), ids=EXAMPLES)
def test_programs_compile_and_are_the_ones_that_run(manifest: Manifest) -> None:
    [job] = manifest.of_kind("TorchTPUJob")
    for name, text in programs(manifest).items():
        compile(text, name, "exec", ast.PyCF_ONLY_AST)
    config_map = job["spec"].get("workingDir", {}).get("configMap", {}).get("name")
    given = {each["metadata"]["name"]: set(each["data"]) for each in manifest.of_kind("ConfigMap")}
    words = {word for line in job["spec"]["entrypoint"].splitlines()[:1] for word in shlex.split(line)}
    ran = {word for word in words if word.endswith(".py") and "/" not in word}
    assert given == ({config_map: ran} if config_map else {})


@pytest.mark.parametrize("name", EXAMPLES)
def test_says_what_it_shows_what_to_change_and_how_to_run_it(name: str) -> None:
    text = EXAMPLES[name].text
    comment = text[: text.index("apiVersion:")]
    run = RUN.search(comment)
    said = (
        "# Shows " in comment,
        "# Change " in comment,
        run and run["command"].rsplit(" ", 1)[1],
        [job["metadata"]["name"] for job in EXAMPLES[name].of_kind("TorchTPUJob")],
        max(map(len, text.splitlines())) <= 120,
    )
    assert said == (True, True, f"examples/{name}", [name.removesuffix(".yaml")], True)


def test_every_generation_offer_and_launcher_has_one() -> None:
    jobs = [job["spec"] for manifest in EXAMPLES.values() for job in manifest.of_kind("TorchTPUJob")]
    classes = [each for manifest in EXAMPLES.values() for each in manifest.of_kind("TPUSliceClass")]
    shown = (
        {job["accelerator"] for job in jobs},
        {offer["type"] for each in classes for offer in each["spec"]["offers"]},
        {job.get("launcher", "PerDevice") for job in jobs},
    )
    assert shown == (set(CATALOGUE), set(OfferType) - LATER, set(Launcher))


def test_every_class_is_used_by_the_job_beside_it() -> None:
    unused = [
        name
        for name, manifest in EXAMPLES.items()
        for each in manifest.of_kind("TPUSliceClass")
        if each["metadata"]["name"] != manifest.of_kind("TorchTPUJob")[0]["spec"].get("sliceClassName")
    ]
    assert unused == []


def test_readme_lists_every_example_with_its_generation_offer_and_launcher() -> None:
    rows = {}
    for line in README.splitlines():
        if line.startswith("| ["):
            file, generation, offer, launcher, *_ = (cell.strip() for cell in line.strip("|").split("|"))
            rows[re.findall(r"\]\((\S+)\)", file)[0]] = (generation, offer, launcher)
    want = {}
    for name, manifest in EXAMPLES.items():
        [job] = manifest.of_kind("TorchTPUJob")
        offers = [offer["type"] for each in manifest.of_kind("TPUSliceClass") for offer in each["spec"]["offers"]]
        want[name] = (
            job["spec"]["accelerator"],
            ", ".join(offers) or "any",
            job["spec"].get("launcher", "PerDevice"),
        )
    assert rows == want


def test_no_path_of_an_example_that_is_not_there() -> None:
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "examples").iterdir()]
    named = {
        path for page in pages for path in re.findall(r"examples/([-\w]+\.yaml)", Path(page).read_text("utf-8"))
    } | {name for manifest in EXAMPLES.values() for name in re.findall(r"[-\w]+\d\.yaml", manifest.text)}
    assert sorted(named - set(EXAMPLES)) == []
