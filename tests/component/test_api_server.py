"""The bare apiserver is a normal cluster's: TLS, rights, admission."""

import json
import subprocess
from pathlib import Path

import pytest

from sim.control_plane import ApiError, ApiServer
from sim.tools import cache_dir


@pytest.fixture
def namespace(api_server: ApiServer, request: pytest.FixtureRequest) -> str:
    name = f"t-{abs(hash(request.node.name)) % 10**8}"
    api_server.create_namespace(name)
    return name


def _pod(name: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        }
    )


def test_it_calls_itself_by_the_pinned_version(api_server: ApiServer) -> None:
    assert json.loads(api_server.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"] == "v1.36.3"


def test_a_pod_gets_its_service_account_by_admission(api_server: ApiServer, namespace: str) -> None:
    api_server.kubectl("apply", "-n", namespace, "-f", "-", input=_pod("p"))
    pod = json.loads(api_server.kubectl("get", "pod", "p", "-n", namespace, "-o", "json"))
    assert (pod["spec"]["serviceAccountName"], pod["status"]["phase"]) == ("default", "Pending")


def test_a_service_account_may_do_only_what_it_was_granted(api_server: ApiServer, namespace: str) -> None:
    api_server.kubectl("create", "role", "reader", "-n", namespace, "--verb=list", "--resource=configmaps")
    granted = ["--role=reader", f"--serviceaccount={namespace}:default"]
    api_server.kubectl("create", "rolebinding", "reader", "-n", namespace, *granted)
    config = f"--kubeconfig={api_server.service_account_kubeconfig(namespace, 'default')}"
    who = json.loads(api_server.kubectl(config, "auth", "whoami", "-o", "json"))["status"]["userInfo"]["username"]
    api_server.kubectl(config, "get", "configmaps")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        api_server.kubectl(config, "get", "secrets")
    assert (who, "forbidden" in caught.value.stderr) == (f"system:serviceaccount:{namespace}:default", True)


def test_an_account_that_does_not_exist_has_no_kubeconfig(api_server: ApiServer, namespace: str) -> None:
    with pytest.raises(ApiError) as caught:
        api_server.service_account_kubeconfig(namespace, "nobody")
    assert caught.value.status == 404


def test_nothing_is_written_outside_its_folder(
    tmp_path: Path, api_server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHTPU_CACHE", str(cache_dir()))
    monkeypatch.setenv("HOME", str(tmp_path))
    api_server.kubectl("get", "namespaces")
    assert list(tmp_path.iterdir()) == []
