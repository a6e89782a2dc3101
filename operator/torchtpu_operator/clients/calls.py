"""What every client tells the metrics about its calls."""

from typing import Protocol


class CallSeen(Protocol):
    """Called once per call, when its answer (or its failure) is known."""

    def __call__(self, *, target: str, verb: str, code: str) -> None:
        """`target` is kubernetes, gke or ray; `verb` the method's name; `code` the target's own status word."""


def unseen(*, target: str, verb: str, code: str) -> None:
    """For callers without metrics (the CLI, tests)."""
    del target, verb, code


def shortened(text: str, limit: int = 1024) -> str:
    """`text` cut in the middle to `limit` characters: both the call and its last words stay readable."""
    if len(text) <= limit:
        return text
    head = (limit - 5) * 2 // 3
    return f"{text[:head]} ... {text[len(text) - (limit - 5 - head) :]}"
