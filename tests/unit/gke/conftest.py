from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from sim.gke import Settings
from tests.unit.gke.gke_bench import GkeBench


@pytest.fixture
async def make_bench() -> AsyncIterator[Callable[..., GkeBench]]:
    """A simulated GKE by its settings."""
    made: list[GkeBench] = []

    def make(**settings: Any) -> GkeBench:
        made.append(GkeBench(Settings(**settings)))
        return made[-1]

    yield make
    for bench in made:
        await bench.manager.stop()
