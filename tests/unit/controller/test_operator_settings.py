"""The operator's settings out of its environment, and its probes."""

import json
import logging
from io import StringIO

import aiohttp
import pytest

from torchtpu_operator.clients.gke import GkeCluster
from torchtpu_operator.controller import logs
from torchtpu_operator.controller.health import Health, served
from torchtpu_operator.controller.metrics import Metrics
from torchtpu_operator.controller.process import runner_files
from torchtpu_operator.settings import OperatorSettings, SettingsError

GKE = {"TORCHTPU_GKE_PROJECT": "p", "TORCHTPU_GKE_LOCATION": "l", "TORCHTPU_GKE_CLUSTER": "c"}


def settings(**changes: str) -> OperatorSettings:
    return OperatorSettings.from_environment(GKE | changes, hostname="host")


def test_three_variables_are_enough() -> None:
    want = OperatorSettings(
        gke=GkeCluster(project="p", location="l", cluster="c"), namespace="torchtpu-system", identity="host"
    )
    assert settings() == want


def test_everything_set() -> None:
    got = settings(
        TORCHTPU_GKE_ENDPOINT="10.96.0.20:443",
        TORCHTPU_GKE_INSECURE="true",
        TORCHTPU_LOG_LEVEL="debug",
        POD_NAMESPACE="ns",
        POD_NAME="pod-1",
        TORCHTPU_HEALTH_PORT="1",
        TORCHTPU_METRICS_PORT="2",
        TORCHTPU_WORKERS="3",
        TORCHTPU_RESYNC_SECONDS="60",
        TORCHTPU_RAY_BASE_URL="http://127.0.0.1:1/{head_service}",
        KUBECONFIG="/must/not/be/read",
    )
    want = OperatorSettings(
        gke=GkeCluster(project="p", location="l", cluster="c", endpoint="10.96.0.20:443", insecure=True),
        namespace="ns",
        identity="pod-1",
        log_level="DEBUG",
        health_port=1,
        metrics_port=2,
        workers=3,
        resync_seconds=60.0,
        ray_base_url="http://127.0.0.1:1/{head_service}",
        kubeconfig=None,
    )
    assert got == want


WRONG = {
    "TORCHTPU_GKE_INSECURE": "maybe",
    "TORCHTPU_LOG_LEVEL": "loud",
    "TORCHTPU_HEALTH_PORT": "70000",
    "TORCHTPU_WORKERS": "none",
    "TORCHTPU_RAY_BASE_URL": "http://{host}",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        settings(**{name: WRONG[name]})


def test_insecure_needs_an_endpoint() -> None:
    with pytest.raises(SettingsError, match="TORCHTPU_GKE_ENDPOINT"):
        settings(TORCHTPU_GKE_INSECURE="true")


async def test_probes_tell_what_is_wrong_and_metrics_are_served() -> None:
    broken = ""
    health, metrics = Health(alive=lambda: broken), Metrics()
    metrics.called(target="gke", verb="GetNodePool", code="OK")

    async def get(port: int, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, await answer.text()

    async with served(health, metrics=metrics.text, health_port=0, metrics_port=0) as ports:
        well = [await get(ports.health, path) for path in ("/healthz", "/readyz")]
        broken = "the watch of pods is silent"
        health.set("crds", "tpuslices.torchtpu.dev is missing")
        ill = [await get(ports.health, path) for path in ("/healthz", "/readyz")]
        health.set("crds")
        again = await get(ports.health, "/readyz")
        figures = (await get(ports.metrics, "/metrics"))[1]
    line = 'torchtpu_api_calls_total{code="OK",target="gke",verb="GetNodePool"} 1.0'
    got = (well, ill, again, line in figures)
    assert got == (
        [(200, "ok"), (200, "ok")],
        [(503, "the watch of pods is silent"), (503, "crds: tpuslices.torchtpu.dev is missing")],
        (200, "ok"),
        True,
    )


def test_log_lines_are_json_with_the_fields_of_what_is_worked_on() -> None:
    root = logging.getLogger()
    handlers, level, stream = root.handlers[:], root.level, StringIO()
    try:
        logs.configure("INFO", stream=stream)
        with logs.about(job="ml/a", attempt=""), logs.about(slice="s"):
            logging.getLogger("torchtpu_operator.x").info("done %d", 1, extra={"operation": "op-1"})
    finally:
        root.handlers[:], root.level = handlers, level
    line = json.loads(stream.getvalue())
    del line["time"]
    assert line == {
        "level": "INFO",
        "logger": "torchtpu_operator.x",
        "message": "done 1",
        "operation": "op-1",
        "job": "ml/a",
        "slice": "s",
    }


def test_the_runner_goes_along_whole() -> None:
    files = runner_files()
    assert {"__init__.py", "constants.py", "result.py"} <= files.keys()
