"""Nothing outlives a bench, however it ends; benches never meet; what cannot work says why."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from google.cloud import container_v1
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport

from sim.bench import Bench, BenchError, BenchOptions
from sim.control_plane import ApiError
from sim.tools import cache_dir
from sim.tools.catalogue import REPOSITORY

SMALL = BenchOptions(kuberay=False, cpu_nodes=1)
"""KubeRay's operator is one more process; that it dies like the others is shown by the whole bench of the other tests."""

BARE = BenchOptions(kuberay=False, kubelet=False, cpu_nodes=0)

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1000"]}]},
}
KINDS = ("mnt", "net", "pid", "uts", "ipc")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which whatever a bench writes outside its folder would be found."""
    monkeypatch.setenv("TORCHTPU_CACHE", str(cache_dir()))
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


@pytest.fixture
def make(tmp_path: Path, home: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def new(name: str = "bench", options: BenchOptions = SMALL, *, detached: bool = False) -> Bench:
        made.append(Bench(tmp_path / name, options, detached=detached))
        return made[-1]

    yield new
    for bench in made:
        bench.down()


class Traces:
    """Where the host could still see a bench."""

    def __init__(self, bench: Bench) -> None:
        self._folder = str(bench.folder)
        process = Path("/proc") / str(bench.state.init_pid)
        own = {kind: (Path("/proc/self/ns") / kind).readlink() for kind in KINDS}
        self._namespaces = {(process / "ns" / kind).readlink() for kind in KINDS} - set(own.values())
        assert len(self._namespaces) == len(KINDS), "the bench must not share a namespace with the host"

    def left(self) -> list[str]:
        """Processes in the bench's namespaces or with its folder on their command line, and mounts of it."""
        found = []
        for process in Path("/proc").iterdir():
            if not process.name.isdecimal() or int(process.name) == os.getpid():
                continue
            try:
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                inside = any((process / "ns" / kind).readlink() in self._namespaces for kind in KINDS)
            except OSError:
                continue
            if inside or self._folder in words:
                found.append(f"process {process.name}: {words}")
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return found + [line for line in mounts if self._folder in line]

    def wait_until_gone(self, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while left := self.left():
            assert time.monotonic() < deadline, "\n".join(left)
            time.sleep(0.05)


def _run_pod(bench: Bench) -> None:
    bench.kubectl("apply", "-f", "-", input=json.dumps(POD))
    bench.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=120s")


def _until_it_answers(bench: Bench, seconds: float = 180.0) -> str:
    """The name of the namespace `default`, as soon as the apiserver tells it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return str(bench.api.get("/api/v1/namespaces/default")["metadata"]["name"])
        except ApiError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def _run_again_in_its_folder(dead: Bench) -> None:
    with Bench(dead.folder, BARE) as bench:
        assert bench.kubectl("get", "pods", "-o", "name") == ""


def _interfaces() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


KILLED = {
    "the first process": lambda bench: bench.state.pid,
    "process 1 of the bench": lambda bench: bench.state.init_pid,
}


@pytest.mark.parametrize("victim", KILLED.values(), ids=KILLED)
def test_nothing_survives_a_sigkill(victim: Callable[[Bench], int], make: Callable[..., Bench], home: Path) -> None:
    interfaces = _interfaces()
    bench = make()
    bench.up()
    _run_pod(bench)
    traces = Traces(bench)
    os.kill(victim(bench), signal.SIGKILL)
    traces.wait_until_gone()
    if victim is KILLED["the first process"]:
        _run_again_in_its_folder(bench)
    bench.down()
    assert (bench.folder.exists(), list(home.rglob("*")), _interfaces() - interfaces) == (False, [], set())


def test_nothing_survives_down_and_the_logs_are_kept_when_asked(
    make: Callable[..., Bench], home: Path, tmp_path: Path
) -> None:
    bench = make()
    bench.up()
    _run_pod(bench)
    bench.helm("list")
    traces = Traces(bench)
    bench.down(keep_logs=tmp_path / "kept")
    assert (traces.left(), bench.folder.exists(), list(home.rglob("*"))) == ([], False, [])
    assert {"bench.log", "etcd.log", "kube-apiserver.log"} <= {path.name for path in (tmp_path / "kept").iterdir()}


def test_a_bench_dies_with_whoever_started_it(tmp_path: Path, make: Callable[..., Bench]) -> None:
    bench = make()
    code = (
        "import sys, time; from pathlib import Path; from sim.bench import Bench, BenchOptions;"
        "Bench(Path(sys.argv[1]), BenchOptions(kuberay=False, kubelet=False, gke=False)).up(); print('up', flush=True); time.sleep(600)"
    )  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", code, str(bench.folder)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        traces = Traces(bench)
        owner.kill()
    traces.wait_until_gone()


def test_two_benches_run_beside_each_other_and_never_meet(make: Callable[..., Bench]) -> None:
    first, second = make("first"), make("second")
    with ThreadPoolExecutor(max_workers=2) as pool:
        for done in [pool.submit(first.up), pool.submit(second.up)]:
            done.result()
    for bench in (first, second):
        _run_pod(bench)
    first.kubectl("create", "namespace", "of-the-first")
    uids = {
        bench.kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}") for bench in (first, second)
    }
    addresses = [bench.kubectl("get", "pod", "p", "-o", "jsonpath={.status.podIP}") for bench in (first, second)]
    # The same addresses in both: each has a network of its own.
    assert (len(uids), addresses[0], "of-the-first" in second.kubectl("get", "namespaces")) == (2, addresses[1], False)
    os.kill(first.state.pid, signal.SIGKILL)
    assert second.kubectl("get", "pod", "p", "-o", "jsonpath={.status.phase}") == "Running"
    assert second.exec_inside(["kubectl", "get", "nodes", "-o", "name"]) == "node/gke-bench-cpu-pool-0000\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench that tests share which leave it as it was."""
    with Bench(tmp_path_factory.mktemp("lifecycle") / "bench", BARE) as bench:
        yield bench


def test_a_second_bench_in_the_same_folder_is_refused(running: Bench) -> None:
    with pytest.raises(BenchError, match=r"a bench already runs in .*; stop it with `sim down`"):
        Bench(running.folder).up()
    assert running.kubectl("get", "namespace", "default", "-o", "name") == "namespace/default\n"


def test_a_taken_port_is_named(running: Bench, make: Callable[..., Bench]) -> None:
    taken = running.state.api_port
    with pytest.raises(BenchError, match=rf"port {taken} on 127\.0\.0\.1: Address already in use"):
        make(options=BenchOptions(port=taken)).up()
    with pytest.raises(BenchError, match=rf"port {taken} on 127\.0\.0\.1: Address already in use"):
        running.forward("10.96.0.20", 443, host_port=taken)


def test_a_program_that_dies_is_started_again(running: Bench) -> None:
    assert running.fault("program-kill", name="kube-apiserver") == "kube-apiserver is dead; it starts again after 0 s"
    found = _until_it_answers(running)
    (program,) = [each for each in running.status()["programs"] if each["name"] == "kube-apiserver"]
    assert (found, program["running"], program["restarts"]) == ("default", True, 1)


def test_a_port_of_this_machine_leads_into_the_bench(running: Bench) -> None:
    port = running.forward("10.96.0.20", 443)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        client = container_v1.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel))
        cluster = client.get_cluster(name="projects/demo/locations/us-east5/clusters/bench")
    assert (cluster.name, running.gke_calls()["counts"]) == ("bench", {"GetCluster": 1})


def test_kuberay_can_come_later(running: Bench) -> None:
    before = running.kubectl("api-resources", "--api-group=ray.io", "-o", "name")
    running.fault("kuberay-install")
    after = running.kubectl("api-resources", "--api-group=ray.io", "-o", "name")
    assert (before, sorted(after.split())) == ("", ["rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io"])


ORDINARY = {
    "an ordinary user": ["unshare", "--user", "--map-user=1000", "--map-group=1000"],
    "root without CAP_SYS_ADMIN": ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
}


@pytest.mark.parametrize("prefix", ORDINARY.values(), ids=ORDINARY)
def test_it_needs_no_root(prefix: list[str], make: Callable[..., Bench]) -> None:
    bench = make()
    up = [sys.executable, "-m", "sim", "up", "--folder", str(bench.folder), "--no-kuberay", "--cpu-nodes=1"]
    subprocess.run([*prefix, *up], cwd=REPOSITORY, check=True)
    _run_pod(bench)
    traces, state = Traces(bench), bench.state
    os.kill(state.pid, signal.SIGKILL)
    traces.wait_until_gone()
    assert state.user_namespace
