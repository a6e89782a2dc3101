"""Documentation that can be wrong is checked."""

import re
from pathlib import Path

import pytest

from sim.cli.parser import build_parser
from torchtpu_operator.api import Reason
from torchtpu_operator.api.conditions import ConditionType

REPOSITORY = Path(__file__).parents[3]
PAGES = {
    path.relative_to(REPOSITORY).as_posix(): path
    for path in (*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "examples" / "README.md")
}
TROUBLESHOOTING = (REPOSITORY / "docs" / "troubleshooting.md").read_text()


def test_every_reason_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)`", TROUBLESHOOTING))
    assert sorted(set(Reason) - explained) == []


def test_no_reason_is_explained_that_does_not_exist() -> None:
    first_cells = re.findall(r"^\| (`[^|]+) \|", TROUBLESHOOTING, re.MULTILINE)
    named = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    assert sorted(named - set(Reason) - set(ConditionType)) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[page].read_text())
    missing = [target for target in targets if not (PAGES[page].parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_the_bench_exist(page: str) -> None:
    known = set(build_parser()._subparsers._group_actions[0].choices)  # type: ignore[union-attr, arg-type]
    used = set(re.findall(r"(?:^|`)sim ([a-z]+)", PAGES[page].read_text(), re.MULTILINE))
    assert sorted(used - known) == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    used = set(re.findall(r"(?:^|`)make ([a-z][a-z0-9-]*)", PAGES[page].read_text(), re.MULTILINE))
    assert [target for target in sorted(used) if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
