"""A kube-apiserver with our CRDs, of the bench's own Kubernetes or of those that `--kubernetes` names."""

from collections.abc import Iterator

import pytest
from kubernetes import config

from sim import tools
from sim.control_plane import ApiServer
from tests.crd_api import Api


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kubernetes_minor" in metafunc.fixturenames:
        minors = metafunc.config.getoption("--kubernetes") or [tools.kubernetes_minors()[-1]]
        metafunc.parametrize("kubernetes_minor", minors, scope="package")


@pytest.fixture(scope="package")
def crd_server(kubernetes_minor: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """No controllers: a CRD is judged by the apiserver alone. Shared: tests leave no object of ours behind."""
    program = tools.kube_apiserver(kubernetes_minor)
    with ApiServer(tmp_path_factory.mktemp("crds") / "data", program=program) as started:
        yield started


@pytest.fixture(scope="package")
def crds(crd_server: ApiServer) -> Iterator[Api]:
    """Our CRDs in it, established and served."""
    with config.new_client_from_config(str(crd_server.kubeconfig)) as api_client:
        made = Api(api_client, crd_server)
        made.install()
        yield made
