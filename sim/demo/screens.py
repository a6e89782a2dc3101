"""Where the demo shows what it sees: a live picture on a terminal, or lines."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from sim.demo.lines_view import describe_changes
from sim.demo.live_view import Frame, build_live_view
from sim.demo.phases import PhaseTime
from sim.demo.steps import Step
from sim.demo.story import Story
from sim.demo.theme import duration

TITLE = "torchtpu-operator"


class Screen(Protocol):
    def step(self, step: Step) -> None:
        """A step has begun, got another detail, or ended."""

    def show(self, story: Story | None, phases: Sequence[PhaseTime], *, trouble: str = "") -> None:
        """After each look at the cluster."""


@contextmanager
def open_screen(console: Console, *, steps: Sequence[Step], plain: bool) -> Iterator[Screen]:
    """Lines where nobody sits in front of a terminal."""
    if plain or not console.is_terminal:
        yield PlainScreen(console)
        return
    screen = LiveScreen(console, steps)
    with Live(
        get_renderable=screen.render,
        console=console,
        # The cores are the bench's: the clock and the spinner may jump.
        refresh_per_second=2,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield screen


class LiveScreen:
    def __init__(self, console: Console, steps: Sequence[Step]) -> None:
        self._console, self._steps = console, steps
        self._story: Story | None = None
        self._phases: Sequence[PhaseTime] = ()
        self._trouble = ""

    def step(self, step: Step) -> None:
        """The picture reads the steps themselves."""

    def show(self, story: Story | None, phases: Sequence[PhaseTime], *, trouble: str = "") -> None:
        self._story, self._phases, self._trouble = story, phases, trouble

    def render(self) -> RenderableType:
        return build_live_view(
            Frame(
                title=TITLE,
                steps=tuple(self._steps),
                now=time.monotonic(),
                story=self._story,
                phases=self._phases,
                trouble=self._trouble,
                height=self._console.size.height,
            )
        )


class PlainScreen:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._story: Story | None = None
        self._trouble = ""

    def step(self, step: Step) -> None:
        if step.seconds is None:
            self._say(f"{'step':8} {step.name}" + (f": {step.detail}" if step.detail else ""))
        else:
            end = "failed after" if step.failed else "done after"
            self._say(f"{'step':8} {step.name}: {end} {duration(step.seconds)}")

    def show(self, story: Story | None, phases: Sequence[PhaseTime], *, trouble: str = "") -> None:  # noqa: ARG002
        if story is not None:
            for line in describe_changes(self._story, story):
                self._say(line)
            self._story = story
        if trouble and trouble != self._trouble:
            self._say(f"{'trouble':8} {trouble}")
        self._trouble = trouble

    def _say(self, line: str) -> None:
        stamp = f"[{time.monotonic() - self._began:6.1f} s]"
        self._console.print(Text(f"{stamp} {line}"), soft_wrap=True)
