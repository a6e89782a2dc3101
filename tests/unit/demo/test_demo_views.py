"""What people see: lines in a log, a picture on a terminal, a summary."""

import io
import re
from dataclasses import replace

from rich.console import Console, RenderableType

from sim.demo.lines_view import describe_changes
from sim.demo.live_view import Frame, build_live_view
from sim.demo.phases import measure_phases
from sim.demo.snapshot import Snapshot
from sim.demo.steps import Step
from sim.demo.story import Story
from sim.demo.summary_view import Summary, build_summary
from sim.demo.writes import Calls
from tests.builders import a_slice, at
from tests.unit.demo.demo_scenes import (
    SLICE,
    a_node,
    a_ray_pod,
    an_event,
    failed_job,
    finished_story,
    running_output,
    running_snapshot,
)


def draw(renderable: RenderableType, *, width: int = 140) -> list[str]:
    drawn = io.StringIO()
    Console(width=width, file=drawn, color_system=None).print(renderable)
    return [line.rstrip() for line in drawn.getvalue().splitlines() if line.strip()]


def a_story() -> Story:
    snapshot = running_snapshot()
    return Story(now=snapshot).seen(snapshot).told(running_output())


def a_summary(story: Story, *, calls: Calls | None = None, pools_left: tuple[str, ...] = ()) -> Summary:
    phases = measure_phases(story)
    steps = [Step(name="bench up", began=0, seconds=8.25), Step(name="job", began=9, seconds=105.0)]
    return Summary(story=story, steps=steps, phases=phases, calls=calls, gke={}, pools_left=pools_left, seconds=125)


# --- lines


def test_the_first_look_tells_everything() -> None:
    assert list(describe_changes(None, a_story())) == [
        "job      Running: running on 16 TPU devices",
        f"slice    {SLICE}: Ready, 4/4 nodes",
        f"pool     {SLICE}: RUNNING",
        "head     head: Running, ready on cpu-0",
        "worker   worker-0: Running, ready on node-0",
        "worker   worker-1: Running, ready on node-1",
        "worker   worker-2: Running, ready on node-2",
        "worker   worker-3: Running, ready on node-3",
        "event    TorchTPUJob llama: AttemptStarted: AttemptStarted happened",
        "event    TorchTPUJob llama: JobRunning: JobRunning happened",
        "output   [torchtpu] 16 workers ready",
        "output   [rank 0] epoch 1  loss 0.2500",
    ]


def test_the_same_look_again_tells_nothing() -> None:
    assert list(describe_changes(a_story(), a_story())) == []


def test_only_what_changed_is_told() -> None:
    before = a_story()
    changed = running_snapshot(
        slices=(a_slice().ready().deleted().build(),),
        pods=(a_ray_pod("head", node="cpu-0", role="head"), a_ray_pod("worker-0", node="node-0", state="Terminating")),
        events=(*before.now.events, an_event("HostLost", warning=True)),
        pools={},
    )
    output = replace(before.output, tail=(*before.output.tail, "[rank 0] bye", "[rank 1] bye"), count=5)
    assert list(describe_changes(before, before.seen(changed).told(output))) == [
        f"slice    {SLICE}: Deleting, 4/4 nodes",
        f"pool     {SLICE}: gone",
        "worker   worker-0: Terminating on node-0",
        "pod      worker-1: gone",
        "pod      worker-2: gone",
        "pod      worker-3: gone",
        "warning  TorchTPUJob llama: HostLost: HostLost happened",
        "output   [rank 0] bye",
    ]


def test_pools_are_not_said_to_be_gone_while_gke_does_not_answer() -> None:
    before = a_story()
    assert list(describe_changes(before, before.seen(running_snapshot(pools=None)))) == []


def test_lines_have_no_colours_and_the_loss_of_whoever_prints_it() -> None:
    tail = ("\x1b[36m(RayTrainWorker pid=7)\x1b[0m epoch 0  loss 0.5", "\x1b[36m(RayTrainWorker pid=8)\x1b[0m hello")
    after = a_story()
    after = after.told(replace(after.output, tail=tail, count=5))
    assert list(describe_changes(a_story(), after)) == ["output   (RayTrainWorker pid=7) epoch 0  loss 0.5"]


# --- live


def test_the_picture_has_hosts_in_rank_order() -> None:
    story = a_story()
    frame = Frame(title="torchtpu-operator", steps=[], now=0, story=story)
    rows = [re.sub(r"[│\s]+", " ", line).strip() for line in draw(build_live_view(frame)) if "worker-" in line]
    assert rows == [
        "0-3 node-3 Ready ■■■■ worker-3 Running",
        "4-7 node-2 Ready ■■■■ worker-2 Running",
        "8-11 node-1 Ready ■■■■ worker-1 Running",
        "12-15 node-0 Ready ■■■■ worker-0 Running",
    ]


def test_the_picture_tells_phase_loss_events_and_trouble() -> None:
    story = a_story()
    phases = measure_phases(story)
    frame = Frame(title="t", steps=[], now=0, story=story, phases=phases, trouble="the apiserver is away")
    text = "\n".join(draw(build_live_view(frame)))
    wanted = [
        "TorchTPUJob ml/llama  Running",
        "Running 10s › Finishing › Clean-up",
        "running on 16 TPU devices",
        f"TPUSlice {SLICE}  Ready  4/4 nodes",
        "loss 1.0000 → 0.2500",
        "JobRunning happened",
        "the apiserver is away",
    ]
    assert [each for each in wanted if each not in text] == []


def test_the_picture_fits_a_small_terminal() -> None:
    output = replace(running_output(), tail=tuple(f"[rank 0] line {number}" for number in range(40)), count=40)
    events = tuple(an_event(f"Reason{number}") for number in range(30))
    snapshot = running_snapshot(events=events)
    story = Story(now=snapshot).seen(snapshot).told(output)
    frame = Frame(title="t", steps=[], now=0, story=story, height=34)
    assert len(draw(build_live_view(frame), width=110)) <= 34


def test_the_picture_before_the_job_has_the_steps() -> None:
    steps = [Step(name="bench up", began=0, seconds=8.2), Step(name="helm install", began=9, detail="Pending")]
    (line,) = draw(build_live_view(Frame(title="t", steps=steps, now=10, story=None)))
    assert " ".join(line.split()) == "t ✔ bench up 8.2 s ⠋ helm install 1 s Pending"


def test_output_cannot_draw_on_the_terminal() -> None:
    output = replace(running_output(), tail=("[rank 0] \x1b[31mred\x1b[0m [bold]text[/bold]",))
    frame = Frame(title="t", steps=[], now=0, story=a_story().told(output))
    assert any("red [bold]text[/bold]" in line for line in draw(build_live_view(frame)))


# --- summary


def test_a_good_end() -> None:
    calls = Calls(by_verb={("kubernetes", "create"): 12, ("kubernetes", "get"): 7, ("ray", "submit"): 1}, events=9)
    text = "\n".join(draw(build_summary(a_summary(finished_story(), calls=calls))))
    wanted = [
        "✔ TorchTPUJob ml/llama is Complete and no node pool is left, after 2 min 05 s in all",
        "640 chip-seconds",
        "Ranks, hosts in physical order",
        "0: 1.0000  1: 0.2500",
        "placement group 0.52",
        "create 12 (of these, events: 9)",
    ]
    assert [each for each in wanted if each not in text] == []


def test_a_pool_that_is_left_is_no_success() -> None:
    first, *_ = draw(build_summary(a_summary(finished_story(), pools_left=(SLICE,))))
    assert first == f"✘ TorchTPUJob ml/llama is Complete, but node pools are left: {SLICE}"


def test_a_failed_job_says_why() -> None:
    snapshot = Snapshot(at=at(0), job=failed_job(), pools={})
    first, *_ = draw(build_summary(a_summary(Story(now=snapshot).seen(snapshot))))
    assert first == "✘ TorchTPUJob ml/llama is Failed: rank 3 ended with exit code 1"


def test_a_node_that_is_not_ready_is_seen() -> None:
    snapshot = running_snapshot(nodes=(a_node(0, ready=False, chips=0),), pods=())
    frame = Frame(title="t", steps=[], now=0, story=Story(now=snapshot).seen(snapshot))
    rows = [re.sub(r"[│\s]+", " ", line).strip() for line in draw(build_live_view(frame)) if "node-0" in line]
    assert rows == ["node-0 NotReady ·"]
