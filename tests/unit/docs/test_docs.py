"""Documentation that can be wrong is checked."""

import argparse
import re
from pathlib import Path

import pytest

from sim.cli.parser import build_parser
from tests.contract.wheel import PACKAGES

REPOSITORY = Path(__file__).parents[3]
PAGES = {
    path.relative_to(REPOSITORY).as_posix(): path
    for path in (
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *REPOSITORY.glob("charts/*/README.md"),
        REPOSITORY / "examples" / "README.md",
    )
}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"(?<!`)`[^`\n]+`(?!`)", "", PAGES[page].read_text())  # a pattern may look like a link
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if not (PAGES[page].parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_the_bench_exist(page: str) -> None:
    (commands,) = (each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction))
    known = set(commands.choices)
    used = set(re.findall(r"(?:^|`)sim ([a-z]+)", PAGES[page].read_text(), re.MULTILINE))
    assert sorted(used - known) == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    used = set(re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", PAGES[page].read_text(), re.MULTILINE))
    assert [target for target in sorted(used) if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_commands_exist(page: str) -> None:
    """Commands are typed at the root of a checkout, whatever page they stand on."""
    blocks = re.findall(r"^ *```(?:sh|console)\n(.*?)^ *```", PAGES[page].read_text(), re.MULTILINE | re.DOTALL)
    used = re.findall(r"(?<![\w/.-])(?:\./)?((?:tests|examples|charts|docs|tools|crds)/[\w./-]*)", "\n".join(blocks))
    assert [path for path in used if not (REPOSITORY / path).exists()] == []


def test_the_image_of_the_conversion_guide_has_the_versions_under_test() -> None:
    text = (REPOSITORY / "docs/converting.md").read_text()
    locked = dict(re.findall(r"^(ray|torch)==([\d.]+)", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE))
    found = re.findall(
        r"^FROM rayproject/ray:([\d.]+)-py311\nRUN pip .* torch==(\S+) (torch_tpu==\S+)", text, re.MULTILINE
    )
    assert found == [(locked["ray"], locked["torch"], PACKAGES[0])]
