"""Waits between restarts of a container and between pulls of an image."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class BackOff:
    """Doubles from `base` to `limit` seconds; the first restart is immediate, as a kubelet's is."""

    base: float
    limit: float
    reset: float
    delay: float = 0.0

    def next(self, *, ran: float) -> float:
        """Seconds from the end of a run that lasted `ran` seconds until the next start."""
        if ran >= self.reset:
            self.delay = 0.0
        current, self.delay = self.delay, min(self.delay * 2, self.limit) if self.delay else self.base
        return current


def format_delay(seconds: float) -> str:
    """As Go prints a duration: 10s, 1m20s, 5m0s."""
    whole, rest = divmod(round(seconds, 3), 60)
    return f"{int(whole)}m{rest:g}s" if whole else f"{rest:g}s"
