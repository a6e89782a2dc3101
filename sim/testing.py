"""Fixtures for tests that need a real API or a whole bench; import them into a conftest.py.

from sim.testing import api_server, bench  # noqa: F401
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.bench import Bench
from sim.control_plane import ApiServer


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """etcd and kube-apiserver on loopback with the namespace controller and the garbage collector, once per module.

    Tests share it: each makes its own namespace (`api_server.create_namespace`) and removes what is cluster-scoped. It
    ends with the module, since an idle control plane costs the tests after it a tenth of a core.
    """
    controllers = ["namespace-controller", "garbage-collector-controller", "serviceaccount-controller"]
    with ApiServer(tmp_path_factory.mktemp("api-server") / "data", controllers=controllers) as server:
        yield server


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A whole bench, once per module. Its logs go to the folder that TORCHTPU_KEEP_LOGS names, if it is set."""
    keep = os.environ.get("TORCHTPU_KEEP_LOGS")
    running = Bench(tmp_path_factory.mktemp("bench") / "data")
    try:
        running.up()
        yield running
    finally:
        running.down(keep_logs=Path(keep) / "bench" if keep else None)
