"""What is left to say at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sim.demo.output import Worker
from sim.demo.phases import PhaseTime
from sim.demo.steps import Step
from sim.demo.story import Story, is_complete
from sim.demo.theme import ACCENT, BAD, GOOD, QUIET, WAITING, duration, ranks, shorten_middle, sparkline
from sim.demo.writes import Calls

_ORDERS = {"physical": "physical order", "workerId": "the order of worker ids (the chips told no coordinates)"}
_NAME_WIDTH = 40


@dataclass(frozen=True, kw_only=True)
class Summary:
    story: Story
    steps: Sequence[Step]
    phases: Sequence[PhaseTime]
    calls: Calls | None
    """The operator's, from apply to end; None: its metrics could not be read."""
    gke: Mapping[str, Any]
    """The GKE API's own count, as the bench keeps it."""
    pools_left: Sequence[str]
    seconds: float
    """From the first step."""


def build_summary(summary: Summary) -> RenderableType:
    parts: list[RenderableType] = [_verdict(summary), _reserved(summary)]
    workers = summary.story.output.workers
    if workers:
        parts.append(_ranks(workers, summary.story.output.order))
    if summary.story.output.order_before:
        parts.append(_order(summary.story))
    if summary.story.output.losses:
        parts.append(_losses(summary.story.output.losses))
    parts += [_times(summary), _calls(summary)]
    spaced: list[RenderableType] = []
    for part in parts:
        # A table without a caption brings its own line below.
        spaced += [part] if isinstance(part, Table) and not part.caption else [part, Text()]
    return Group(*spaced)


def _verdict(summary: Summary) -> Text:
    job = summary.story.job
    if job is None:
        return Text("The job was never seen.", style=BAD)
    name = f"{job.metadata.namespace}/{job.metadata.name}"
    if not is_complete(job):
        phase = job.status.phase or "new"
        return Text(f"✘ TorchTPUJob {name} is {phase}: {job.status.message}", style=f"bold {BAD}")
    if summary.pools_left:
        left = ", ".join(summary.pools_left)
        return Text(f"✘ TorchTPUJob {name} is Complete, but node pools are left: {left}", style=f"bold {BAD}")
    text = f"✔ TorchTPUJob {name} is Complete and no node pool is left, after {duration(summary.seconds)} in all"
    return Text(text, style=f"bold {GOOD}")


def _reserved(summary: Summary) -> Table:
    table = _table("Reserved", "slice = node pool", "shape", "hosts", "chips", "offer", "zone", "now")
    job, left = summary.story.job, summary.pools_left
    shape = job.status.resolved if job is not None else None
    for each in summary.story.slices.values():
        name, spec = each.metadata.name, each.spec
        table.add_row(
            name,
            f"{spec.accelerator} {spec.topology}",
            str(each.status.nodes.desired),
            str(shape.chips_per_host * shape.hosts_per_slice) if shape is not None else "",
            f"{spec.offer.name} ({spec.offer.type})",
            spec.offer.zone,
            Text("left", style=BAD) if name in left else Text("deleted", style=GOOD),
        )
    if job is not None and job.status.usage.chip_seconds:
        table.caption = f"{job.status.usage.chip_seconds} chip-seconds, from each slice's first node to its release"
        table.caption_justify = "left"
    return table


def _ranks(workers: Sequence[Worker], order: str) -> Table:
    title = _ORDERS.get(order, f"{order} order")
    table = _table(f"Ranks, hosts in {title}", "ranks", "slice", "host", "chips", "address", "pod", "node")
    hosts: dict[tuple[int, int], list[Worker]] = {}
    for worker in workers:
        hosts.setdefault((worker.slice_index, worker.host), []).append(worker)
    for (slice_index, host), members in hosts.items():
        first = members[0]
        table.add_row(
            Text(ranks([each.rank for each in members]), style=f"bold {ACCENT}"),
            str(slice_index),
            str(host),
            ranks([each.chip for each in members]),
            first.address,
            shorten_middle(first.pod, _NAME_WIDTH),
            shorten_middle(first.node, _NAME_WIDTH),
        )
    return table


def _order(story: Story) -> Text:
    before = " ".join(story.output.order_before)
    return Text.assemble(("Ray Train's own order of ranks, as host:device  ", "bold"), (before, WAITING))


def _losses(losses: Sequence[tuple[int, float]]) -> Text:
    values = [loss for _, loss in losses]
    listed = "  ".join(f"{epoch}: {loss:.4f}" for epoch, loss in losses)
    return Text.assemble(("Loss per epoch  ", "bold"), (sparkline(values), ACCENT), f"  {listed}")


def _times(summary: Summary) -> Table:
    """Phases have whole seconds, since the API's timestamps have."""
    table = _table("Time", "phase", "seconds", "of which")
    for step in summary.steps:
        if step.name != "job":
            table.add_row(step.name, f"{step.seconds or 0.0:.1f}", "")
            continue
        for phase in summary.phases:
            parts = ", ".join(f"{part.what} {part.seconds:.3g}" for part in phase.parts if part.seconds)
            table.add_row(f"  {phase.name}", f"{phase.seconds:.0f}", Text(parts, style=QUIET))
    return table


def _calls(summary: Summary) -> RenderableType:
    table = _table("API calls of the operator for this job", "API", "writes", "which", "reads")
    calls = summary.calls
    if calls is None:
        return Text("The operator's metrics could not be read: its API writes are not known.", style=WAITING)
    for target in ("kubernetes", "gke", "ray"):
        writes = calls.writes(target)
        which = ", ".join(f"{verb} {count}" for verb, count in writes.items())
        if target == "kubernetes" and calls.events:
            which += f" (of these, events: {calls.events})"
        table.add_row(target, str(sum(writes.values())), which, str(calls.reads(target)))
    notes = ["The operator was restarted: these are its calls since then."] if calls.restarted else []
    # That a pool is not there is an answer, not a refusal.
    refused = {call: n for call, n in summary.gke.get("refused", {}).items() if not call.endswith(" NOT_FOUND")}
    if refused:
        notes.append("GKE refused: " + ", ".join(f"{call} x{count}" for call, count in refused.items()))
    if notes:
        table.caption, table.caption_justify = "\n".join(notes), "left"
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, header_style=QUIET)
    for column in columns:
        numeric = column in ("seconds", "writes", "reads", "hosts", "chips", "slice", "host")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return table
