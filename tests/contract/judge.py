"""Runs with the real wheel on its path: what does torch_tpu's own launch helper make of our environment?

Each line of stdin is one order `{"env": {...}, "nproc_per_node": n, "pci": [count, generation] | null}`, answered by one
line `JUDGED {...}` with the variables after `set_tpu_launch_env`, or the error. Each is judged in a process of its own
(torch_tpu memoizes variables at first use), forked after the import, which takes seconds.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from torch_tpu._internal.distributed import distributed
from torch_tpu._internal.utils import hardware

TOPOLOGIES = {"v6e": hardware._V6E_TOPOLOGY, "v5p": hardware._V5P_TOPOLOGY, "v7x": hardware._V7_TOPOLOGY}


def judge(env: Mapping[str, str], *, nproc_per_node: int, pci: tuple[int, str] | None) -> dict[str, Any]:
    os.environ.clear()
    os.environ.update(env)
    if pci is not None:
        count, generation = pci
        hardware._scan_pci_tpus = lambda: (count, TOPOLOGIES[generation])
        # With chips on the bus it would ask the (absent) runtime for their coordinates.
        distributed._query_local_device_coords = lambda: None
    try:
        distributed.set_tpu_launch_env(nproc_per_node=nproc_per_node)
    except (ValueError, RuntimeError) as e:
        return {"error": str(e)}
    return dict(os.environ)


def in_child(env: Mapping[str, str], **arguments: Any) -> str:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            out.write(json.dumps(judge(env, **arguments)))
        # No clean-up of what the parent's import has started.
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return text or json.dumps({"error": "the judge died"})


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        pci = tuple(order["pci"]) if order["pci"] else None
        print("JUDGED " + in_child(order["env"], nproc_per_node=order["nproc_per_node"], pci=pci), flush=True)


main()
