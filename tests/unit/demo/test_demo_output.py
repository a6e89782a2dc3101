"""What the demo reads from the head's log."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.demo.output import TAIL_LINES, Output, Worker, read_line

WORKER = Worker(rank=0, slice_index=0, host=0, chip=0, address="10.244.0.7", pod="w-0", node="n-0")
WORLD = "TORCHTPU_WORLD " + json.dumps(
    {
        "launcher": "PerDevice",
        "order": "physical",
        "workers": [
            {
                "rank": 0,
                "slice": 0,
                "sliceName": "llama-s0",
                "host": 0,
                "workerId": 3,
                "chip": 0,
                "device": 0,
                "devices": [0],
                "nodeIp": "10.244.0.7",
                "pod": "w-0",
                "node": "n-0",
            }
        ],
    }
)


@dataclass(frozen=True)
class Case:
    lines: tuple[str, ...]
    want: Output


CASES: Mapping[str, Case] = {
    "Ray's own lines in the head's log are left out": Case(
        lines=("Local node IP: 10.244.0.2", "Ray runtime started.", "  ray stop"), want=Output()
    ),
    "the runner's and the ranks' lines are the tail": Case(
        lines=("[torchtpu] reserving 1 slice(s)", "[rank 3] hello", "[host 1] hello"),
        want=Output(tail=("[torchtpu] reserving 1 slice(s)", "[rank 3] hello", "[host 1] hello"), count=3),
    ),
    "a world line tells who is where and is not shown itself": Case(
        lines=(WORLD,), want=Output(workers=(WORKER,), order="physical")
    ),
    "Ray's prefix before the lines of its own processes hides nothing": Case(
        lines=(f"(TrainController pid=77) {WORLD}", "(TrainController pid=77) [torchtpu] order now"),
        want=Output(
            workers=(WORKER,), order="physical", tail=("(TrainController pid=77) [torchtpu] order now",), count=1
        ),
    ),
    "the loss of an epoch, as the examples print it": Case(
        lines=("[rank 0] epoch 0  loss 1.2345  0.10 s", "[rank 0] epoch 1  loss 9.5e-3  0.10 s"),
        want=Output(
            losses=((0, 1.2345), (1, 0.0095)),
            tail=("[rank 0] epoch 0  loss 1.2345  0.10 s", "[rank 0] epoch 1  loss 9.5e-3  0.10 s"),
            count=2,
        ),
    ),
    "the loss as a worker of Ray Train prints it, in Ray's colours": Case(
        lines=("\x1b[36m(RayTrainWorker pid=77, ip=10.244.1.3)\x1b[0m epoch 0  loss 0.5",) * 2,
        want=Output(
            losses=((0, 0.5),),
            tail=("\x1b[36m(RayTrainWorker pid=77, ip=10.244.1.3)\x1b[0m epoch 0  loss 0.5",) * 2,
            count=2,
        ),
    ),
    "the loss as others print it": Case(
        lines=("[rank 0] Epoch: 7, Loss=0.5",),
        want=Output(losses=((7, 0.5),), tail=("[rank 0] Epoch: 7, Loss=0.5",), count=1),
    ),
    "a loss that is not a number is no loss": Case(
        lines=("[rank 0] epoch 3 loss nan",), want=Output(tail=("[rank 0] epoch 3 loss nan",), count=1)
    ),
    "the result line is kept as it is": Case(
        lines=('TORCHTPU_RESULT {"reason": "Succeeded", "phases": {"run": 3.5}}',),
        want=Output(result={"reason": "Succeeded", "phases": {"run": 3.5}}),
    ),
    "a machine line that was cut tells nothing": Case(lines=(WORLD[:60], "TORCHTPU_RESULT {"), want=Output()),
    "Ray Train's own order, before it was put right": Case(
        lines=('TORCHTPU_ORDER {"before": ["2:1", "0:0"], "after": ["0:0", "2:1"]}',),
        want=Output(order_before=("2:1", "0:0")),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_read_line(case: Case) -> None:
    assert reduce(read_line, case.lines, Output()) == case.want


@given(st.lists(st.text(max_size=80), max_size=200))
def test_whatever_the_ranks_print_the_tail_stays_short_and_every_line_is_counted(lines: list[str]) -> None:
    output = reduce(read_line, (f"[rank 0] {line}" for line in lines), Output())
    machine = sum(1 for line in lines if "TORCHTPU_" in line)
    assert (len(output.tail), output.count) == (min(TAIL_LINES, len(lines) - machine), len(lines) - machine)
