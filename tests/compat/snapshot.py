"""Keep the CRDs of the version in pyproject.toml: `make snapshot`. A released version's are never written again."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

from torchtpu_operator.api.crd import crd_files

COMPAT: Final = Path(__file__).parent
REPOSITORY: Final = COMPAT.parents[1]


def versions() -> list[Path]:
    """The folder of each version, oldest first."""
    return sorted(COMPAT.glob("v*"), key=lambda path: tuple(map(int, path.name[1:].split("."))))


def is_released(version: str, *, changelog: str) -> bool:
    """Whether the changelog has a heading of its own for the version."""
    return re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE) is not None


def main() -> int:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    folder = COMPAT / f"v{version}"
    if folder.exists() and is_released(version, changelog=(REPOSITORY / "CHANGELOG.md").read_text("utf-8")):
        print(f"{version} is released: its snapshot stays. Raise the version in pyproject.toml first", file=sys.stderr)
        return 1
    folder.mkdir(exist_ok=True)
    for name, text in crd_files().items():
        (folder / name).write_text(text, "utf-8")
        print(f"wrote {(folder / name).relative_to(REPOSITORY)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
