"""Fixtures for tests that need a real API or a whole bench; import them into a conftest.py.

from sim.testing import api_server, bench  # noqa: F401
"""

from collections.abc import Iterator

import pytest

from sim.control_plane import ApiServer


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """etcd and kube-apiserver on loopback with the namespace controller and the garbage collector, once per session.

    Tests share it: each makes its own namespace (`api_server.create_namespace`) and removes what is cluster-scoped.
    """
    controllers = ["namespace-controller", "garbage-collector-controller", "serviceaccount-controller"]
    with ApiServer(tmp_path_factory.mktemp("api-server") / "data", controllers=controllers) as server:
        yield server
