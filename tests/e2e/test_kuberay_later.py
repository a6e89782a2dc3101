"""KubeRay is not there yet: the job says so, nothing is spent, and it goes on by itself once KubeRay is installed."""

from pathlib import Path

from sim.bench import Bench, BenchOptions
from sim.images import IMAGE_PYTHONPATH
from tests.e2e.operated import Operated, a_job


def test_a_job_waits_for_kuberay_without_spending_and_then_runs(tmp_path: Path) -> None:
    with Bench(tmp_path / "bench", BenchOptions(kuberay=False)) as bench:
        cluster = Operated(bench)
        cluster.install()
        namespace = cluster.namespace("early")
        entrypoint = f"""python -c 'import sys; sys.exit("{IMAGE_PYTHONPATH}" not in sys.path)'"""
        cluster.apply(a_job("early", namespace=namespace, entrypoint=entrypoint))

        def message() -> str:
            return str(cluster.job(namespace, "early").get("status", {}).get("message", ""))

        cluster.until("the message names KubeRay", lambda: "KubeRay is not installed" in message(), seconds=30)
        assert (cluster.items("tpuslices"), cluster.pools()) == ([], [])
        bench.fault("kuberay-install")
        cluster.until_phase(namespace, "early", "Succeeded", seconds=240)
        cluster.until_clean()
        cluster.delete_job(namespace, "early")
        cluster.until("the job is gone", lambda: not cluster.items("torchtpujobs", namespace=namespace))
