"""The demo: bench, chart, job, and whatever happens, nothing left behind."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.text import Text

from sim.bench import Bench, BenchError, default_folder
from sim.demo import evidence, installation
from sim.demo.cluster import ClusterError, ClusterReader
from sim.demo.example import Example, read_example
from sim.demo.head_log import HeadLog
from sim.demo.installation import InstallationError
from sim.demo.phases import PhaseTime, measure_phases
from sim.demo.pod_logs import PodLogs
from sim.demo.screens import Screen, open_screen
from sim.demo.steps import Steps
from sim.demo.story import Story, has_ended, is_complete
from sim.demo.summary_view import Summary, build_summary
from sim.demo.theme import BAD, QUIET
from sim.demo.writes import Calls
from sim.tools import ToolMissingError

LOOK_SECONDS = 1.0

INTERRUPTED = 130
_FOLDERS = 9


class DemoError(Exception):
    """The demo did not end as it should; the message says where it stood."""


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    example: Path
    keep: bool = False
    """Leave the bench up afterwards."""
    plain: bool = False
    """Lines, also on a terminal."""
    deadline: float = 600.0
    """Seconds from apply until the job has ended and its node pools are gone."""


def run_demo(options: DemoOptions, console: Console) -> int:
    """0: the job is Complete and no node pool is left; 1: anything else; 130: interrupted. Raises ExampleError."""
    demo = Demo(options, read_example(options.example), console)
    with _signals_as_interrupts():
        return demo.run()


class Demo:
    def __init__(self, options: DemoOptions, example: Example, console: Console) -> None:
        self._options, self._example, self._console = options, example, console
        self._steps = Steps()
        self._bench = Bench(_free_folder(), detached=options.keep)
        self._story: Story | None = None
        self._calls: Calls | None = None
        self._gke: dict[str, Any] = {}
        self._pools_left: list[str] | None = None
        self._operator_tail = ""
        self._evidence: Path | None = None

    def run(self) -> int:
        """See `run_demo`."""
        began = time.monotonic()
        problem, code = "", 1
        try:
            with open_screen(self._console, steps=self._steps.all, plain=self._options.plain) as screen:
                self._steps.changed = screen.step
                try:
                    self._play(screen)
                    code = 0 if self._succeeded() else 1
                except KeyboardInterrupt:
                    problem, code = "interrupted", INTERRUPTED
                except subprocess.CalledProcessError as error:
                    problem = f"{' '.join(map(str, error.cmd[:3]))} failed: {error.stderr or error.stdout}".strip()
                except (BenchError, ToolMissingError, ClusterError, InstallationError, DemoError, OSError) as error:
                    problem = str(error)
                finally:
                    with _signals_ignored():
                        self._clean_up(evidence_wanted=code == 1)
        except KeyboardInterrupt:  # between the steps, while the screen opens or closes
            problem, code = "interrupted", INTERRUPTED
            self._clean_up(evidence_wanted=False)
        self._report(problem, seconds=time.monotonic() - began)
        return code

    def _play(self, screen: Screen) -> None:
        steps, bench, example = self._steps, self._bench, self._example
        with steps.step("bench up") as tell:
            bench.up(say=tell)
        reader = ClusterReader(bench, namespace=example.namespace, job=example.job)
        with steps.step("helm install"):
            installation.install(bench)
        with steps.step("operator ready") as tell:
            installation.wait_until_ready(reader, say=tell)
        before = self._read_calls(reader)
        with steps.step("job"):
            _ensure_namespace(bench, example.namespace)
            bench.kubectl("apply", f"--namespace={example.namespace}", f"--filename={example.path}")
            self._watch(screen, reader)
        after = self._read_calls(reader)
        self._calls = after.since(before) if before is not None and after is not None else None

    def _watch(self, screen: Screen, reader: ClusterReader) -> None:
        """Until the job has ended and gave everything back. Raises DemoError at the deadline."""
        log = HeadLog(self._bench, reader, namespace=self._example.namespace)
        pod_logs = PodLogs(self._bench)
        deadline = time.monotonic() + self._options.deadline
        try:
            while self._story is None or not self._story.is_over():
                began, trouble = time.monotonic(), ""
                try:
                    snapshot = reader.read()
                    pod_logs.keep(snapshot)
                    story = self._story or Story(now=snapshot)
                    self._story = story.seen(snapshot).told(log.look(snapshot))
                except ClusterError as error:
                    trouble = str(error)
                screen.show(self._story, self._phases(), trouble=trouble)
                if time.monotonic() > deadline:
                    raise DemoError(self._late())
                time.sleep(max(0.0, began + LOOK_SECONDS - time.monotonic()))
        finally:
            log.stop()

    def _late(self) -> str:
        after = f"not over after {self._options.deadline:.0f} s"
        job = self._story.job if self._story is not None else None
        if self._story is None or job is None:
            return f"{after}: the job was never seen"
        if has_ended(job):
            left = [*self._story.now.pools] if self._story.now.pools else []
            slices = [each.metadata.name for each in self._story.now.slices]
            return f"{after}: the job is {job.status.phase}, but TPUSlices {slices} and node pools {left} are left"
        return f"{after}: the job is {job.status.phase or 'new'}: {job.status.message}"

    def _phases(self) -> Sequence[PhaseTime]:
        return measure_phases(self._story) if self._story is not None else ()

    def _read_calls(self, reader: ClusterReader) -> Calls | None:
        """The figures are worth a line in the summary, not the demo."""
        try:
            return installation.read_calls(self._bench, reader)
        except (OSError, InstallationError, ClusterError, BenchError):
            return None

    def _succeeded(self) -> bool:
        with contextlib.suppress(BenchError):
            self._pools_left = [pool["name"] for pool in self._bench.status()["pools"]]
            self._gke = self._bench.gke_calls()
        return self._story is not None and is_complete(self._story.job) and self._pools_left == []

    def _clean_up(self, *, evidence_wanted: bool) -> None:
        if evidence_wanted and self._bench.folder.exists():
            self._evidence = evidence.new_folder(datetime.now(UTC))
            if self._bench.kubeconfig.exists():
                evidence.save(self._bench, self._evidence, namespace=self._example.namespace)
                self._operator_tail = evidence.operator_tail(self._bench)
        if self._options.keep and self._bench.kubeconfig.exists():
            return
        with self._steps.step("bench down"):
            self._bench.down(keep_logs=self._evidence)

    def _report(self, problem: str, *, seconds: float) -> None:
        say = self._console.print
        if self._story is not None:
            say()
            say(
                build_summary(
                    Summary(
                        story=self._story,
                        steps=self._steps.all,
                        phases=self._phases(),
                        calls=self._calls,
                        gke=self._gke,
                        pools_left=self._pools_left or (),
                        seconds=seconds,
                    )
                )
            )
        if self._operator_tail:
            say(Text("The operator's last lines", style="bold"))
            say(Text(self._operator_tail.rstrip(), style=QUIET), soft_wrap=True)
            say()
        if problem:
            say(Text(f"error: {problem}", style=BAD), soft_wrap=True)
        if self._evidence is not None:
            say(f"logs and objects: {self._evidence}", soft_wrap=True)
        if self._bench.folder.exists() and self._options.keep:
            folder = f"--folder {self._bench.folder}"
            say(f"the bench stays up: sim kubectl {folder} get ttj -A · sim down {folder}", soft_wrap=True)


def _ensure_namespace(bench: Bench, name: str) -> None:
    bench.kubectl(
        "apply", "--filename=-", input=f'{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}'
    )


def _free_folder() -> Path:
    """Demos may run beside each other; what a killed one left in its folder is the next one's to remove."""
    for number in range(1, _FOLDERS + 1):
        bench = Bench(default_folder("demo" if number == 1 else f"demo-{number}"))
        try:
            _ = bench.state
        except BenchError:
            return bench.folder
    raise DemoError(f"{_FOLDERS} demos run already; take some down: sim down --name demo")


@contextlib.contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """A cancelled CI job (SIGTERM) or a closed terminal (SIGHUP) cleans up as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the shape of a handler
        raise KeyboardInterrupt

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def _signals_ignored() -> Iterator[None]:
    """While cleaning up, which takes seconds; the bench itself dies with this process anyway."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, signal.SIG_IGN) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
