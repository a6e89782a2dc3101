"""Entrypoints as people write them, as each rank runs them: output and exit code are the program's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import a_job
from tests.entrypoints import ENTRYPOINTS
from tests.unit.runner.test_runner_worker import Rank
from torchtpu_operator import runner
from torchtpu_operator.api.job import Launcher
from torchtpu_operator.plan.ray_cluster import ray_entrypoint
from torchtpu_operator.runner.constants import ENTRYPOINT_KEY, ENV_ENTRYPOINT_FILE, MOUNT_PATH, PACKAGE

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # `python` is the one that the image would have


@pytest.mark.parametrize(("text", "code", "lines"), ENTRYPOINTS.values(), ids=ENTRYPOINTS)
def test_a_rank_runs_it_as_it_is_written(tmp_path: Path, text: str, code: int, lines: list[str]) -> None:
    contract: dict[str, str | None] = {"PATH": PATH, "RANK": "0", "GREETING": "hello", "FOLDER": str(tmp_path)}
    rank = Rank(text, contract=contract)
    assert (rank.finish(), rank.lines) == ({"exit": code}, lines)


@pytest.mark.parametrize(("text", "code", "lines"), ENTRYPOINTS.values(), ids=ENTRYPOINTS)
def test_launcher_driver_runs_it_from_its_file(tmp_path: Path, text: str, code: int, lines: list[str]) -> None:
    """Neither Ray's JSON nor its shell ever sees the text."""
    command = ray_entrypoint(a_job(launcher=Launcher.DRIVER).build())
    file = tmp_path / ENTRYPOINT_KEY
    file.write_text(text)
    (tmp_path / PACKAGE).symlink_to(Path(runner.__path__[0]))
    changes = {"PATH": PATH, "RANK": "0", "GREETING": "hello", "FOLDER": str(tmp_path), ENV_ENTRYPOINT_FILE: str(file)}
    env = {**os.environ, **changes}
    done = subprocess.run(
        command.replace(MOUNT_PATH, str(tmp_path)), shell=True, env=env, capture_output=True, text=True, check=False
    )
    said = (done.stdout + done.stderr).replace(f"{file}: ", "bash: -c: ").splitlines()
    printed = [line for line in said if line != "Killed"]  # says the shell that Ray starts bash by
    assert (done.returncode if done.returncode >= 0 else 128 - done.returncode, printed) == (code, lines)
