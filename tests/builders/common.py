"""The moment and the installation that all objects of tests belong to."""

from datetime import UTC, datetime, timedelta

from torchtpu_operator.plan.observed import (
    Settings,
)

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
SETTINGS = Settings(
    installation="0123456789abcdef",
    namespace="torchtpu-system",
    gke_parent="projects/demo/locations/us-east5/clusters/bench",
)
JOB_UID = "11111111-2222-3333-4444-555555555555"
SESSION = "session_2026-11-30_12-00-00_000000_1"


def at(seconds: float) -> datetime:
    """A moment so many seconds after NOW (before it, if negative)."""
    return NOW + timedelta(seconds=seconds)
