"""Colours, marks and words that all views share."""

from collections.abc import Sequence

from rich.text import Text

GOOD, WAITING, BAD, QUIET, ACCENT = "green", "yellow", "red", "bright_black", "cyan"

_COLOURS = {
    **dict.fromkeys(("Ready", "Running", "Succeeded", "RUNNING", "Complete"), GOOD),
    **dict.fromkeys(("Failed", "Degraded", "ERROR", "RUNNING_WITH_ERROR", "NotReady", "Error"), BAD),
    **dict.fromkeys(("Deleting", "Terminating", "STOPPING", "Completed", "gone", "Suspended"), QUIET),
}

_BARS = "▁▂▃▄▅▆▇█"


def colour(state: str) -> str:
    """Of a phase, status or pod state; what is neither good nor bad is on its way."""
    if state.startswith("Err") or "BackOff" in state:
        return BAD
    return _COLOURS.get(state, WAITING)


def coloured(state: str) -> Text:
    return Text(state, style=colour(state))


def duration(seconds: float) -> str:
    """`7 s`, `1 min 05 s`; tenths below ten seconds if there are any."""
    if seconds >= 60:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest:02d} s"
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s"


def short_duration(seconds: float) -> str:
    """`7s`, `1m05s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def ranks(numbers: Sequence[int]) -> str:
    """`4-7` for a run of neighbours, else `0 2 5`."""
    if len(numbers) > 1 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return " ".join(map(str, numbers))


def chips(count: int) -> Text:
    """One block per chip."""
    return Text("■" * count if count else "·", style=ACCENT if count else QUIET)


def sparkline(values: Sequence[float]) -> str:
    """One bar per value; the smallest has the lowest bar."""
    if not values:
        return ""
    low, high = min(values), max(values)
    top = len(_BARS) - 1
    return "".join(_BARS[round((value - low) / (high - low) * top)] if high > low else _BARS[0] for value in values)


def shorten_middle(text: str, width: int) -> str:
    """In at most `width` characters: names differ at their ends."""
    if len(text) <= width:
        return text
    head = (width - 1) // 3
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
