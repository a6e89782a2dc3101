"""The live picture: from the steps and the story to something rich can draw."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sim.demo.phases import NAMES, PhaseTime
from sim.demo.steps import Step
from sim.demo.story import Host, Story
from sim.demo.theme import (
    ACCENT,
    BAD,
    GOOD,
    QUIET,
    WAITING,
    chips,
    coloured,
    duration,
    ranks,
    short_duration,
    shorten_middle,
    sparkline,
)
from torchtpu_operator.api import TorchTPUJob, TPUSlice

_CONDITIONS = ("SlicesReady", "RayClusterReady", "Complete", "Failed")
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_NODE_WIDTH, _POD_WIDTH = 30, 34


@dataclass(frozen=True, kw_only=True)
class Frame:
    """All that one picture shows."""

    title: str
    steps: Sequence[Step]
    now: float
    """The steps' clock."""
    story: Story | None = None
    phases: Sequence[PhaseTime] = ()
    trouble: str = ""
    """Why the last look at the cluster failed."""
    height: int = 40
    """Lines of the terminal."""


def build_live_view(frame: Frame) -> RenderableType:
    parts: list[RenderableType] = [_steps(frame)]
    story = frame.story
    if story is not None and story.job is not None:
        parts.append(_job(story.job, frame.phases))
        slices = [each for each in story.slices.values() if each in story.now.slices]
        parts += [_slice(story, each) for each in slices]
        # Borders and headings take what is left out here: output and events share the rest of the screen.
        used = 12 + sum(4 + len(story.hosts(each.metadata.name)) for each in slices)
        lines = max(4, min(14, (frame.height - used) // 2 - 2))
        parts += [_output(story, lines), _events(story, lines)]
    if frame.trouble:
        parts.append(Text(frame.trouble, style=BAD))
    return Group(*parts)


def _steps(frame: Frame) -> RenderableType:
    row: list[RenderableType] = [Text(frame.title, style="bold")]
    for step in frame.steps:
        seconds = step.seconds if step.seconds is not None else frame.now - step.began
        if step.seconds is None:
            dot = _SPINNER[int(frame.now * 2) % len(_SPINNER)]
            row.append(Text(f"{dot} ", style=ACCENT) + Text(f"{step.name} {duration(seconds)} {step.detail}".rstrip()))
        else:
            mark = Text("✘", style=BAD) if step.failed else Text("✔", style=GOOD)
            row.append(mark + Text(f" {step.name} ") + Text(duration(seconds), style=QUIET))
    return Columns(row, padding=(0, 3))


def _job(job: TorchTPUJob, phases: Sequence[PhaseTime]) -> Panel:
    status = job.status
    shape = status.resolved
    facts = [f"attempt {status.attempt.number}"] if status.attempt is not None else []
    if shape is not None:
        facts = [
            shape.shape,
            shape.machine_type,
            f"{shape.hosts_per_slice} hosts",
            f"{shape.chips} chips",
            f"{shape.workers} workers",
            *facts,
        ]
    body = Group(
        _chain(phases),
        Text(status.message or "not seen by the operator yet", no_wrap=True, overflow="ellipsis"),
        Text(" · ".join(facts), style=QUIET, no_wrap=True, overflow="ellipsis"),
        Text("   ").join(_condition(job, each) for each in _CONDITIONS),
    )
    phase = status.phase.value if status.phase is not None else "new"
    title = Text.assemble(("TorchTPUJob ", "bold"), f"{job.metadata.namespace}/{job.metadata.name}  ", coloured(phase))
    return Panel(body, title=title, title_align="left", border_style=QUIET)


def _chain(phases: Sequence[PhaseTime]) -> Text:
    """Every phase, with its seconds once it was reached."""
    known = {phase.name: phase for phase in phases}
    chain = Text()
    for name in NAMES:
        phase = known.get(name)
        if chain:
            chain.append(" › ", style=QUIET)
        if phase is None:
            chain.append(name, style=QUIET)
        else:
            chain.append(name, style=GOOD if phase.over else f"bold {WAITING}")
            chain.append(f" {short_duration(phase.seconds)}", style=QUIET)
    return chain


def _condition(job: TorchTPUJob, type_: str) -> Text:
    found = next((each for each in job.status.conditions if each.type == type_), None)
    if found is None or found.status != "True":
        return Text(f"○ {type_}", style=QUIET)
    return Text("● ", style=BAD if type_ == "Failed" else GOOD) + Text(type_)


def _slice(story: Story, slice_: TPUSlice) -> Panel:
    name, status, offer = slice_.metadata.name, slice_.status, slice_.spec.offer
    phase = "Deleting" if slice_.metadata.deleting else (status.phase.value if status.phase is not None else "Pending")
    title = Text.assemble(
        ("TPUSlice ", "bold"), f"{name}  ", coloured(phase), f"  {status.nodes.summary or '0/?'} nodes", style=""
    )
    pool = (story.now.pools or {}).get(name)
    where = Text(f"offer {offer.name} · {offer.type} · {offer.zone} · node pool ", style=QUIET)
    where += coloured(pool) if pool else Text("none in GKE", style=QUIET)
    table = Table(box=None, header_style=QUIET, padding=(0, 2, 0, 0), expand=False)
    for column in ("ranks", "node", "state", "chips", "pod", "pod state"):
        table.add_column(column, no_wrap=True)
    for host in story.hosts(name):
        _add_host(table, host)
    for pod in story.now.pods:
        if not pod.node:
            table.add_row(
                "", Text("not bound yet", style=QUIET), "", "", shorten_middle(pod.name, _POD_WIDTH), pod.state
            )
    head = story.now.head()
    if head is not None and head.node:
        table.add_row(
            Text("head", style=QUIET),
            Text(shorten_middle(head.node, _NODE_WIDTH), style=QUIET),
            "",
            Text("CPU", style=QUIET),
            Text(shorten_middle(head.name, _POD_WIDTH), style=QUIET),
            coloured(head.state if head.ready or head.state != "Running" else "Starting"),
        )
    parts: list[RenderableType] = [where]
    if table.row_count:
        parts.append(table)
    else:
        parts.append(Text(status.message, style=WAITING))
    return Panel(Group(*parts), title=title, title_align="left", border_style=QUIET)


def _add_host(table: Table, host: Host) -> None:
    table.add_row(
        Text(ranks(host.ranks), style=f"bold {ACCENT}"),
        shorten_middle(host.node, _NODE_WIDTH),
        coloured("Ready" if host.ready else "NotReady"),
        chips(host.chips),
        shorten_middle(host.pod, _POD_WIDTH),
        coloured(host.pod_state),
    )


def _output(story: Story, lines: int) -> RenderableType:
    losses = [loss for _, loss in story.output.losses]
    title = Text("Output", style="bold")
    if losses:
        title += Text(f"  loss {losses[0]:.4f} → {losses[-1]:.4f}  ") + Text(sparkline(losses), style=ACCENT)
    tail = [Text.from_ansi(line) for line in story.output.tail[-lines:]]
    for line in tail:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Panel(
        Group(*tail) if tail else Text("nothing yet", style=QUIET),
        title=title,
        title_align="left",
        border_style=QUIET,
    )


def _events(story: Story, lines: int) -> RenderableType:
    events = story.now.events[-lines:]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    # Only the message gives way where the terminal is narrow.
    table.add_column(style=QUIET, no_wrap=True, min_width=8)
    table.add_column(no_wrap=True, min_width=max((len(event.reason) for event in events), default=0))
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for event in events:
        again = f" (x{event.count})" if event.count > 1 else ""
        table.add_row(
            event.at.astimezone().strftime("%H:%M:%S"),
            Text(event.reason, style=WAITING if event.warning else GOOD),
            event.message + again,
        )
    return Panel(table, title=Text("Events", style="bold"), title_align="left", border_style=QUIET)
