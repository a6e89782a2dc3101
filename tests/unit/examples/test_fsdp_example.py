"""The program of the FSDP example, on four processes of this machine: sharded, trained, saved and resumed."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.unit.runner.worlds import no_coords, reports_of, some_settings
from torchtpu_operator.runner.contract import apply_env, rank_env
from torchtpu_operator.runner.world import rank_workers

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = REPOSITORY / "examples" / "fsdp-two-slices-v6e-4x4.yaml"

pytestmark = pytest.mark.timeout(300)


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, all different."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def environments(folder: Path) -> list[dict[str, str]]:
    """Of the four ranks of a 2x2 host that is this machine; the program is told to take them for two slices."""
    settings = some_settings("v5p 2x2x1, one host")
    reports = [replace(report, node_ip="127.0.0.1") for report in reports_of(settings)]
    world = rank_workers(settings, reports, coords=no_coords(settings))
    master, *ports = free_ports(1 + len(reports))
    changes = {
        "MASTER_PORT": str(master),
        "TORCH_TPU_SLICEBUILDER_ADDRESSES": ",".join(f"127.0.0.1:{port}" for port in ports),
        "TORCHTPU_NUM_SLICES": "2",
        "TORCHTPU_CHECKPOINT_DIR": str(folder),
    }
    return [
        apply_env(
            {"TPU_VISIBLE_CHIPS": str(place.report.devices[0])},
            rank_env(settings, world, place, session_id="1") | changes,
        )
        for place in world.places
    ]


FORKED = """
import json, os, runpy, sys, traceback
import torch.distributed.checkpoint.state_dict, torch.distributed.fsdp  # once: it takes longer than all that follows
program, *runs = sys.argv[1:]
for run in map(json.loads, runs):
    children = []
    for rank, env in enumerate(run["envs"]):
        if child := os.fork():
            children.append(child)
            continue
        os.dup2(os.open(f"{run['output']}-{rank}", os.O_CREAT | os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.environ.update(env)
        sys.argv = [program, *run["arguments"]]
        try:
            runpy.run_path(program, run_name="__main__")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit(1)
"""


def train(program: Path, *, epochs: tuple[int, ...]) -> list[str]:
    """What rank 0 prints in runs one after the other, each to so many epochs."""
    folder = program.parent
    runs = [
        {
            "envs": environments(folder / "checkpoints"),
            "output": str(folder / f"output-{index}"),
            "arguments": ["--epochs", str(count), "--steps", "8", "--width", "32", "--layers", "1"],
        }
        for index, count in enumerate(epochs)
    ]
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(program), *map(json.dumps, runs)],
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY / "sim" / "standin")},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    said = {file.name: file.read_text() for file in sorted(folder.glob("output-*"))}
    assert done.returncode == 0, f"{done.stderr}\n{json.dumps(said, indent=1)}"
    return [said[f"output-{index}-0"] for index in range(len(epochs))]


def test_it_shards_within_a_slice_and_resumes_where_it_was(tmp_path: Path) -> None:
    code, _ = yaml.safe_load_all(EXAMPLE.read_text())
    program = tmp_path / "train.py"
    program.write_text(code["data"]["train.py"])
    (tmp_path / "checkpoints").mkdir()
    first, again = train(program, epochs=(2, 3))
    [(held, whole)] = re.findall(r"2 x 2 devices; rank 0 holds (\d+) of (\d+)", first)
    losses = {int(epoch): float(loss) for epoch, loss in re.findall(r"epoch (\d+)  loss (\S+)", first + again)}
    assert (int(held) * 2, re.findall(r"epoch (\d+)", again)) == (int(whole), ["3"])
    assert losses[1] > losses[2] > losses[3]
