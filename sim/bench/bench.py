"""A bench as its user sees it: bring it up, look at it, run things in it, break it, take it down."""

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sim import tools
from sim.bench.client import AdminClient
from sim.bench.folder import BenchError, BenchFolder, BenchState
from sim.bench.options import BenchOptions
from sim.control_plane.api_client import ApiClient
from sim.control_plane.pki import KeyPair
from sim.tools.catalogue import REPOSITORY

UP_SECONDS = 300.0
"""Until everything answers; ten are usual, a loaded machine gets time."""

DOWN_SECONDS = 10.0
"""Until every process is gone; under two are usual."""


def default_folder(name: str) -> Path:
    """Where the bench of that name lies."""
    return tools.cache_dir() / "benches" / name


class Bench:
    """A Kubernetes cluster with TPU hosts on this machine, in namespaces of its own.

    Everything lies in `folder` (absent, empty, or a former bench's). As a context manager it is up within the
    context, and it dies with this process, however that ends; `detached` lets it live on.
    """

    def __init__(self, folder: Path, options: BenchOptions | None = None, *, detached: bool = False) -> None:
        self._folder, self._options, self._detached = BenchFolder(folder), options or BenchOptions(), detached
        self._admin = AdminClient(self._folder)
        self._lifeline = -1
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, for use outside the bench."""
        return self._folder.kubeconfig

    @property
    def inside_kubeconfig(self) -> Path:
        """The administrator's, for use by `exec_inside`."""
        return self._folder.inside_kubeconfig

    @property
    def logs(self) -> Path:
        """Folder with a log of every program."""
        return self._folder.logs

    @property
    def state(self) -> BenchState:
        """Raises BenchError if the bench is not up."""
        return self._folder.read_state()

    def up(self, *, say: Callable[[str], None] | None = None) -> None:
        """Start it and wait until everything in it answers; `say` gets lines of progress.

        Raises BenchError with the reason and the log's end, ToolMissingError when the tools are not built. A bench
        that does not come up is taken down again; its logs stay.
        """
        tools.search_path()
        if self._folder.is_alive():
            raise BenchError(f"a bench already runs in {self.folder}; stop it with `sim down`, or choose another name")
        self._write_options()
        try:
            self._start()
            self._wait_until_ready(say or _ignore)
        except BaseException:
            self._stop()
            raise

    def down(self, *, keep_logs: Path | None = None) -> None:
        """Stop it and remove its folder; `keep_logs` gets a copy of its logs first. Not up is not an error."""
        self._stop()
        if keep_logs is not None and self.logs.exists():
            self._folder.copy_logs(keep_logs)
        self._folder.remove()

    def wait(self) -> int:
        """Until the first process ends, which this object has started; its exit code."""
        assert self._process is not None
        return self._process.wait()

    @property
    def api(self) -> ApiClient:
        """The apiserver as the administrator, by path: for polling, a hundredth of a kubectl's price."""
        pki = self.folder / "pki"
        admin = KeyPair(certificate=pki / "admin.crt", key=pki / "admin.key")
        return ApiClient(f"https://127.0.0.1:{self.state.api_port}", ca=pki / "ca.crt", pair=admin)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """kubectl's output, as the administrator. Raises CalledProcessError; its stderr is added as a note."""
        return self._tool("kubectl", arguments, input)

    def helm(self, *arguments: str, input: str | None = None) -> str:
        """helm's output, as the administrator. Raises CalledProcessError; its stderr is added as a note."""
        return self._tool("helm", arguments, input)

    def exec_inside(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float | None = None,
    ) -> str:
        """Output of a program that runs in the bench's namespaces. Raises CalledProcessError with stderr as a note."""
        return _run(
            [*self.inside_argv(), *argv], env={**self.inside_environment(), **(env or {})}, input=input, timeout=timeout
        )

    def inside_argv(self) -> list[str]:
        """Put it before a command line to run that in the bench's namespaces. Raises BenchError if it is not up."""
        state = self.state
        nsenter = shutil.which("nsenter")
        if nsenter is None:
            raise BenchError("nsenter is not on PATH; it comes with util-linux")
        user = ["--user", "--preserve-credentials"] if state.user_namespace else []
        kinds = ["--mount", "--uts", "--ipc", "--net", "--pid"]
        # The shell changes the folder inside: with nsenter's --wd it would be the host's, mounts of the host included.
        go_on = ["sh", "-c", 'cd "$0"; exec "$@"', str(Path.cwd())]
        return [nsenter, f"--target={state.init_pid}", *user, *kinds, "--", *go_on]

    def inside_environment(self) -> dict[str, str]:
        """The caller's environment with the tools, this Python, and the administrator's kubeconfig for the inside."""
        own = {"KUBECONFIG": str(self.inside_kubeconfig), "TMPDIR": str(self._folder.tmp)}
        return {**os.environ, **self.tool_environment(), **own}

    def outside_environment(self) -> dict[str, str]:
        """The same for programs outside."""
        return {**os.environ, **self.tool_environment(), "KUBECONFIG": str(self.kubeconfig)}

    def tool_environment(self) -> dict[str, str]:
        """PATH with the tools and this Python; kubectl's and helm's caches in the bench's folder, not in $HOME."""
        path = [tools.search_path(), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        helm = {f"HELM_{kind}_HOME": str(self.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        return {"PATH": os.pathsep.join(path), "KUBECACHEDIR": str(self.folder / "kubectl"), **helm}

    def status(self) -> dict[str, Any]:
        """phase, programs, pools, forwards. Raises BenchError if it is not up."""
        return self._admin.get("/status")

    def faults(self) -> list[dict[str, str]]:
        """name, help and usage of every fault."""
        found: list[dict[str, str]] = self._admin.get("/faults")["faults"]
        return found

    def fault(self, fault: str, /, **parameters: str) -> str:
        """Inject a fault; returns a line that says what happened. Raises BenchError with the fix named."""
        return str(self._admin.post(f"/faults/{fault}", dict(parameters))["message"])

    def gke_calls(self) -> dict[str, Any]:
        """What the GKE API was asked: counts, refused, mutating calls in order."""
        return self._admin.get("/gke/calls")

    def forward(self, host: str, port: int, *, host_port: int = 0) -> int:
        """A port on this machine's loopback that leads to host:port inside (a pod, the GKE API at 10.96.0.20:443)."""
        answer = self._admin.post("/forward", {"host": host, "port": port, "host_port": host_port})
        return int(answer["port"])

    def service_account_kubeconfig(self, namespace: str, name: str, *, outside: bool = True) -> Path:
        """A kubeconfig with exactly the rights of a ServiceAccount that exists, valid for a day."""
        body = {"namespace": namespace, "name": name, "outside": outside}
        return Path(self._admin.post("/account-kubeconfig", body)["path"])

    def _tool(self, name: str, arguments: Sequence[str], input: str | None) -> str:
        return _run([str(tools.path(name)), *arguments], env=self.outside_environment(), input=input)

    def _write_options(self) -> None:
        # Marked first: the first process refuses a folder that holds what is not a bench's.
        self._folder.mark()
        # A former bench's last words would be taken for this one's.
        self._folder.progress.unlink(missing_ok=True)
        self._folder.options.write_bytes(pickle.dumps(self._options))

    def _start(self) -> None:
        argv = [sys.executable, "-m", "sim.bench.first_process", str(self.folder), f"--port={self._options.port}"]
        passed: list[int] = []
        if not self._detached:
            read_end, self._lifeline = os.pipe()
            argv.append(f"--lifeline={read_end}")
            passed.append(read_end)
        try:
            with self._folder.log.open("wb") as log:
                self._process = subprocess.Popen(
                    argv,
                    cwd=REPOSITORY,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=passed,
                    start_new_session=True,
                )
        finally:
            for descriptor in passed:
                os.close(descriptor)

    def _wait_until_ready(self, say: Callable[[str], None]) -> None:
        assert self._process is not None
        deadline = time.monotonic() + UP_SECONDS
        seen = 0
        while True:
            ended = self._process.poll() is not None
            lines = self._folder.progress.read_text().splitlines() if self._folder.progress.exists() else []
            for line in lines[seen:]:
                if line == "READY":
                    return
                if line.startswith("FAILED "):
                    reason = line.removeprefix("FAILED ").replace("\\n", "\n")
                    raise BenchError(f"the bench did not come up: {reason}")
                say(line)
            seen = len(lines)
            if ended:
                raise BenchError(f"the bench ended while it started; its log:\n{self._log_tail()}")
            if time.monotonic() > deadline:
                raise BenchError(f"the bench is not ready after {UP_SECONDS:.0f} s; see {self.logs}")
            time.sleep(0.05)

    def _log_tail(self) -> str:
        log = self._folder.log
        return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.exists() else "(none)"

    def _stop(self) -> None:
        """Ask the first process, then kill it; wait for the lock, which the last process of the bench lets go of."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if self._process is None:
            # The first process holds the lock a moment before it writes down its number.
            self._wait_until(lambda: self._recorded_pid() is not None or not self._folder.is_alive())
        pid = self._process.pid if self._process is not None else self._recorded_pid()
        if pid is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self._is_gone(pid):
                _signal(pid, number)
                self._wait_until(lambda: self._is_gone(pid))
        if not self._is_gone(pid):
            raise BenchError(f"process {pid} of the bench in {self.folder} does not die")
        self._process = None

    def _is_gone(self, pid: int) -> bool:
        """The first process and with it all others; the lock may be another bench's by now."""
        ended = self._process is None or self._process.poll() is not None
        return ended and self._recorded_pid() != pid

    def _recorded_pid(self) -> int | None:
        try:
            return self._folder.read_state().pid
        except BenchError:
            return None

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """True or DOWN_SECONDS later."""
        deadline = time.monotonic() + DOWN_SECONDS
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _ignore(_: str) -> None:
    """For those who do not want progress."""


def _run(argv: Sequence[str], *, env: Mapping[str, str], input: str | None, timeout: float | None = None) -> str:
    done = subprocess.run(argv, env=env, input=input, timeout=timeout, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        error = subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
        error.add_note(done.stderr)
        raise error
    return done.stdout
