"""What the head's log tells: the ranks' places, the loss, the last lines, how the run ended."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchtpu_operator.runner.constants import MESSAGE_PREFIX, ORDER_PREFIX, RESULT_PREFIX, WORLD_PREFIX

TAIL_LINES = 40

_LOSS = re.compile(
    r"\bepoch\W{1,3}(?P<epoch>\d+)\b.*?\bloss\W{1,3}(?P<loss>\d+(?:\.\d+)?(?:e[+-]?\d+)?)", re.IGNORECASE
)
_CSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# `[rank 3] ` is the runner's prefix, `(RayTrainWorker pid=77, ip=10.244.1.3) ` Ray's for lines of its processes.
_WORKER_LINE = re.compile(r"(?:\(\w[^)]*pid=\d+[^)]*\)|\[(?:rank \d+|host \d+|torchtpu)\]) ")
_FIRST_RANK = ("[rank 0] ", "[host 0] ")


@dataclass(frozen=True, kw_only=True)
class Worker:
    """Where one rank runs."""

    rank: int
    slice_index: int
    host: int
    chip: int
    address: str
    pod: str
    node: str


@dataclass(frozen=True, kw_only=True)
class Output:
    """What was read so far of one attempt."""

    workers: tuple[Worker, ...] = ()
    """By rank; empty until the runner has ranked them."""
    order: str = ""
    """`physical` or `workerId`: where the order of hosts comes from."""
    order_before: tuple[str, ...] = ()
    """Launcher Driver: Ray Train's own order, as host:device, before it was put right."""
    losses: tuple[tuple[int, float], ...] = ()
    """(epoch, loss), in the order they were printed; of several lines for one epoch the last."""
    tail: tuple[str, ...] = ()
    """The last lines of ranks and runner."""
    result: Mapping[str, Any] | None = None
    """The runner's last word."""
    count: int = 0
    """Lines in `tail` and before it."""


def read_line(output: Output, line: str) -> Output:
    """The output with one more line of the head's log."""
    for prefix, read in ((WORLD_PREFIX, _read_world), (RESULT_PREFIX, _read_result), (ORDER_PREFIX, _read_order)):
        _, found, text = line.partition(prefix)
        if found:
            body = _parse(text)
            return read(output, body) if body is not None else output
    if _WORKER_LINE.match(_CSI.sub("", line)) is None:
        return output
    losses = output.losses
    if (found_loss := _LOSS.search(line)) is not None:
        # by epoch: Ray Train tells a worker's lines more than once
        losses = tuple({**dict(losses), int(found_loss["epoch"]): float(found_loss["loss"])}.items())
    return replace(output, losses=losses, tail=(*output.tail, line)[-TAIL_LINES:], count=output.count + 1)


def is_telling(line: str) -> bool:
    """Whether it belongs in a log: the runner's and the first rank's lines; the other ranks say the same."""
    return MESSAGE_PREFIX in line or any(mark in line for mark in _FIRST_RANK) or _LOSS.search(line) is not None


def without_colours(line: str) -> str:
    return _CSI.sub("", line)


def _parse(text: str) -> Mapping[str, Any] | None:
    """A cut line (the log was rotated) tells nothing."""
    try:
        body = json.loads(text)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _read_world(output: Output, body: Mapping[str, Any]) -> Output:
    workers = tuple(
        Worker(
            rank=each["rank"],
            slice_index=each["slice"],
            host=each["host"],
            chip=each["chip"],
            address=each["nodeIp"],
            pod=each["pod"],
            node=each["node"],
        )
        for each in body["workers"]
    )
    return replace(output, workers=workers, order=body["order"])


def _read_result(output: Output, body: Mapping[str, Any]) -> Output:
    return replace(output, result=body)


def _read_order(output: Output, body: Mapping[str, Any]) -> Output:
    return replace(output, order_before=tuple(body.get("before", ())))
