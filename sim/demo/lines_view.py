"""The demo for logs: what has changed since the last look, one line each."""

from collections.abc import Iterator

from sim.demo.output import is_telling, without_colours
from sim.demo.story import Story


def describe_changes(before: Story | None, after: Story) -> Iterator[str]:
    """Lines without time, for people who read a CI log."""
    yield from _job(before, after)
    yield from _slices(before, after)
    yield from _pods(before, after)
    for event in after.news(before):
        yield f"{'warning' if event.warning else 'event':8} {event.kind} {event.name}: {event.reason}: {event.message}"
    yield from _output(before, after)


def _job(before: Story | None, after: Story) -> Iterator[str]:
    old, new = _job_line(before), _job_line(after)
    if new and new != old:
        yield new


def _job_line(story: Story | None) -> str:
    if story is None or story.job is None:
        return ""
    status = story.job.status
    return f"{'job':8} {status.phase or 'new'}: {status.message or 'not seen by the operator yet'}"


def _slices(before: Story | None, after: Story) -> Iterator[str]:
    old, new = _slice_lines(before), _slice_lines(after)
    yield from (line for name, line in new.items() if old.get(name) != line)
    yield from (f"{'slice':8} {name}: gone" for name in old if name not in new)
    pools_before = (before.now.pools if before is not None else None) or {}
    pools = after.now.pools
    if pools is not None:
        yield from (
            f"{'pool':8} {name}: {status}" for name, status in pools.items() if pools_before.get(name) != status
        )
        yield from (f"{'pool':8} {name}: gone" for name in pools_before if name not in pools)


def _slice_lines(story: Story | None) -> dict[str, str]:
    lines = {}
    for each in story.now.slices if story is not None else ():
        status = each.status
        phase = "Deleting" if each.metadata.deleting else (status.phase or "Pending")
        lines[each.metadata.name] = f"{'slice':8} {each.metadata.name}: {phase}, {status.nodes.summary or '0/?'} nodes"
    return lines


def _pods(before: Story | None, after: Story) -> Iterator[str]:
    old = {pod.name: (pod.state, pod.ready) for pod in before.now.pods} if before is not None else {}
    for pod in after.now.pods:
        if old.get(pod.name) != (pod.state, pod.ready):
            ready = "ready" if pod.ready else "not ready"
            state = f"{pod.state}, {ready}" if pod.state == "Running" else pod.state
            yield f"{pod.role:8} {pod.name}: {state}" + (f" on {pod.node}" if pod.node else "")
    gone = old.keys() - {pod.name for pod in after.now.pods}
    yield from (f"{'pod':8} {name}: gone" for name in sorted(gone))


def _output(before: Story | None, after: Story) -> Iterator[str]:
    seen = before.output.count if before is not None else 0
    new = after.output.count - seen if after.output.count >= seen else after.output.count
    for line in after.output.tail[-new:] if new else ():
        if is_telling(line):
            yield f"{'output':8} {without_colours(line)}"
