"""One bench with the operator installed by its chart, for all end-to-end tests; each test has its own namespace."""

import re
from collections.abc import Iterator

import pytest

from sim.bench import Bench, BenchOptions
from sim.kubelet import KubeletSettings
from tests.e2e.operated import Operated


@pytest.fixture(scope="package")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """A failing bench keeps its logs in pytest's temporary folder."""
    folder = tmp_path_factory.mktemp("bench") / "bench"
    # the operator is killed seven times in a row: a real kubelet's back-off would make that an hour
    bench = Bench(folder, BenchOptions(kubelet_settings=KubeletSettings(back_off_base=1.0, back_off_limit=5.0)))
    with bench:
        cluster = Operated(bench)
        cluster.install()
        yield cluster


@pytest.fixture
def namespace(operated: Operated, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; what the test left in it must go, and with it every slice and pool."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].rstrip("-")
    yield operated.namespace(name)
    operated.bench.kubectl("delete", "torchtpujobs", "--all", "-n", name, "--wait=false")
    operated.until(f"the jobs of {name} are gone", lambda: not operated.items("torchtpujobs", namespace=name))
    operated.until_clean()
