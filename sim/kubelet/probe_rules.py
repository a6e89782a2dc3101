"""When probes run and what their results mean. Pure."""

from dataclasses import dataclass
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ProbeTiming:
    """Numbers of a probe with Kubernetes' defaults. Durations in seconds."""

    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3
    grace: int | None = None
    """terminationGracePeriodSeconds of the probe; None means the pod's."""

    @classmethod
    def of(cls, probe: Json) -> Self:
        return cls(
            initial_delay=probe.get("initialDelaySeconds") or 0,
            period=probe.get("periodSeconds") or 10,
            timeout=probe.get("timeoutSeconds") or 1,
            successes=probe.get("successThreshold") or 1,
            failures=probe.get("failureThreshold") or 3,
            grace=probe.get("terminationGracePeriodSeconds"),
        )


@dataclass(kw_only=True)
class ProbeCounter:
    """Turns single results into verdicts: a verdict needs its threshold of equal results in a row."""

    successes: int
    failures: int
    _run: int = 0
    _last: bool | None = None

    def observe(self, success: bool) -> bool | None:
        """The verdict that this result completes (True, False) or None while the threshold is not reached."""
        self._run = self._run + 1 if success == self._last else 1
        self._last = success
        return success if self._run >= (self.successes if success else self.failures) else None

    def reset(self) -> None:
        """Start counting anew (after a container restart)."""
        self._run, self._last = 0, None
