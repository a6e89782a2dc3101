"""Layers point one way: the contracts of pyproject.toml hold."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_import_contracts_are_kept() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
