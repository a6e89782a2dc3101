"""From `kubectl apply` to RUNNING with the pool there: a TorchTPUJob against a RayCluster and RayJob written by hand.

`make benchmark`: one bench, alternating runs, the ratio of the medians. No limit is asserted: what a loaded machine says
of seconds is noise, the ratio of one run is not.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sim.bench import Bench, BenchOptions
from tests.e2e.bare_cluster import Cluster
from tests.e2e.operated import Operated, a_job
from tests.e2e.test_reference_rayjob import SCRIPT, build_ray_job

ROUNDS = 3
NAMESPACE = "speed"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="torchtpu-benchmark-") as folder:
        with Bench(Path(folder) / "bench", BenchOptions()) as bench:
            operated = Operated(bench)
            operated.install()
            operated.bench.kubectl(
                "patch", "tpusliceclass", "default", "--type=merge", "-p", '{"spec": {"reclaim": {"idleSeconds": 900}}}'
            )
            operated.namespace(NAMESPACE)
            bare = Cluster(bench, seconds=240)
            bare.make_pool()
            print("making a warm slice", flush=True)
            _ours(operated, "warm-up")
            ours, theirs = [], []
            for number in range(ROUNDS):
                theirs.append(_theirs(bare))
                print(f"RayCluster + RayJob by hand  {theirs[-1]:5.1f} s", flush=True)
                ours.append(_ours(operated, f"run-{number}"))
                print(f"TorchTPUJob                  {ours[-1]:5.1f} s", flush=True)
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(
        f"apply to RUNNING, median of {ROUNDS}: {statistics.median(ours):.1f} s / {statistics.median(theirs):.1f} s = {ratio:.2f}"
    )
    return 0


def _ours(operated: Operated, name: str) -> float:
    """Seconds until the job runs; it is ended and its slice is warm again afterwards."""
    job = a_job(name, namespace=NAMESPACE, topology="4x4", entrypoint="sleep 1", logRetentionSeconds=0)
    began = time.monotonic()
    operated.apply(job)
    seconds = _until(
        began, lambda: bool(operated.job(NAMESPACE, name).get("status", {}).get("attempt", {}).get("runningAt"))
    )
    operated.until_phase(NAMESPACE, name, "Succeeded", seconds=240)
    operated.delete_job(NAMESPACE, name)
    operated.until("its pods are gone", lambda: not operated.items("pods", namespace=NAMESPACE))
    return seconds


def _theirs(bare: Cluster) -> float:
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"job.py": SCRIPT}}
    began = time.monotonic()
    bare.apply(code, build_ray_job("reference"))

    def status() -> str:
        found = bare.get("rayjob", "reference") or {}
        return str(found.get("status", {}).get("jobStatus", ""))

    seconds = _until(began, lambda: status() in ("RUNNING", "SUCCEEDED", "FAILED"))
    bare.until("the reference ends", lambda: status() in ("SUCCEEDED", "FAILED"))
    bare.bench.kubectl("delete", "rayjob", "reference", "--timeout=60s")
    bare.until("no pod is left", lambda: not bare.all("pods"))
    return seconds


def _until(began: float, reached: Callable[[], bool], *, limit: float = 300.0) -> float:
    while not reached():
        if time.monotonic() - began > limit:
            raise SystemExit(f"not running after {limit:.0f} s")
        time.sleep(0.2)
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
