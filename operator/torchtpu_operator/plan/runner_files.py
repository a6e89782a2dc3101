"""The runner's modules as they travel to the Ray pods."""

from functools import cache
from importlib import resources
from typing import Final

from torchtpu_operator.runner import constants as runner

ENTRYPOINT_ITEM: Final = {"key": runner.ENTRYPOINT_KEY, "path": runner.ENTRYPOINT_KEY}


@cache
def runner_modules() -> dict[str, str]:
    """File name -> source of every module of the runner in this release."""
    folder = resources.files("torchtpu_operator.runner")
    return {
        entry.name: entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    }
