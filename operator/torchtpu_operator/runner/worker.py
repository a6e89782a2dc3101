"""What runs as a Ray actor: one per TPU device or host. Answers in plain dicts, lists and numbers.

Ray ships this code by value, so that worker pods need neither the package nor its PYTHONPATH.
"""

import contextlib
import importlib.util
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from .constants import ENV_HEARTBEAT_FILE
from .contract import apply_env
from .output import LineSplitter, OutputBuffer

PARTIAL_LINE_SECONDS = 1.0
"""An unfinished line (prompt, progress bar) is shown after this."""
COORDS_MODULE = "torch_tpu._internal.distributed.distributed"
COORDS_FLAG = "--print_local_device_coords"
COORDS_PREFIX = "TORCH_TPU_LOCAL_DEVICE_COORDS="
_RAY_CHIP_ENV = ("TPU_VISIBLE_CHIPS", "TPU_CHIPS_PER_HOST_BOUNDS", "TPU_HOST_BOUNDS")


def original_env(environ: dict[str, str], at_exec: bytes) -> dict[str, str]:
    """`environ` with Ray's one-chip view of the host taken back: those variables as the pod had them.

    `at_exec` is /proc/self/environ, which Ray's later writes do not reach.
    """
    pod = dict(item.split("=", 1) for item in os.fsdecode(at_exec).split("\0") if "=" in item)
    env = {name: value for name, value in environ.items() if name not in _RAY_CHIP_ENV}
    return env | {name: pod[name] for name in _RAY_CHIP_ENV[1:] if name in pod}


def parse_coords(stdout: str) -> list[int] | None:
    """Coordinates of a chip from the output of torch_tpu's query, None if it tells none."""
    for line in reversed(stdout.splitlines()):
        if line.startswith(COORDS_PREFIX):
            try:
                coords = json.loads(line.removeprefix(COORDS_PREFIX))
            except ValueError:
                return None
            if isinstance(coords, list) and len(coords) >= 2 and all(isinstance(c, int) for c in coords):
                return coords
    return None


def has_coords_query() -> bool:
    """Whether the installed torch_tpu has the (private) query, found without importing it: that costs seconds."""
    spec = importlib.util.find_spec("torch_tpu")
    relative = Path(*COORDS_MODULE.split(".")[1:]).with_suffix(".py")
    return (
        any((Path(folder) / relative).is_file() for folder in (spec.submodule_search_locations or ()))
        if spec
        else False
    )


def describe_worker() -> dict[str, Any]:
    """Where the calling Ray worker is: the fields of world.Report but `index`; `worker_id` as the pod has it."""
    import ray

    context = ray.get_runtime_context()
    env = os.environ
    return {
        "slice_name": env.get("TPU_NAME", ""),
        "worker_id": env.get("TPU_WORKER_ID", ""),
        "devices": sorted(int(device) for device in context.get_accelerator_ids().get("TPU", [])),
        "node_ip": ray.util.get_node_ip_address(),
        "node_id": context.get_node_id(),
        "pod": env.get("TORCHTPU_POD_NAME") or env.get("RAY_CLOUD_INSTANCE_ID") or socket.gethostname(),
        "node": env.get("TORCHTPU_NODE_NAME", ""),
    }


def query_coords(contract: dict[str, str], timeout: float) -> list[int] | None:
    """Coordinates of one of this host's chips, None if they cannot be had. Claims the host's chips meanwhile.

    `contract` goes over the pod's env: what the runtime must know of the slice before ranks exist.
    """
    if not has_coords_query():
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-m", COORDS_MODULE, COORDS_FLAG],
            env=original_env(dict(os.environ), Path("/proc/self/environ").read_bytes()) | contract,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_coords(done.stdout.decode(errors="replace")) if done.returncode == 0 else None


class RankWorker:
    """One process of the job on its host."""

    def __init__(self, guard_source: str) -> None:
        self._guard_source = guard_source
        self._guard: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._buffer: OutputBuffer | None = None
        self._end: dict[str, Any] = {}
        self._ended = threading.Event()
        self._heartbeat: Path | None = None

    def report(self) -> dict[str, Any]:
        """See describe_worker()."""
        return describe_worker()

    def coords(self, contract: dict[str, str], timeout: float) -> list[int] | None:
        """See query_coords()."""
        return query_coords(contract, timeout)

    def busy_ports(self, ports: list[int]) -> list[int]:
        """Those of `ports` that something else listens on already."""
        busy = []
        for port in ports:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("", port))
                except OSError:
                    busy.append(port)
        return busy

    def start(
        self, entrypoint: str, *, contract: dict[str, str | None], cwd: str | None, rate: float, burst: int
    ) -> None:
        """Run the entrypoint by bash; `contract` goes over this worker's env (None: unset)."""
        env = apply_env(os.environ, contract)
        # Into a pipe Python would hold back lines until it has 8 KiB.
        env.setdefault("PYTHONUNBUFFERED", "1")
        # A program that hangs is ended by SIGABRT, and one that crashes ends by its own signal: both tell where they were.
        env.setdefault("PYTHONFAULTHANDLER", "1")
        self._heartbeat = Path(env[ENV_HEARTBEAT_FILE]) if ENV_HEARTBEAT_FILE in env else None
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        with theirs:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", self._guard_source, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        os.close(write_end)
        self._control = ours
        self._buffer = OutputBuffer(rate=rate, burst=burst, clock=time.monotonic)
        spec = {"argv": ["bash", "-c", entrypoint], "env": env, "cwd": cwd}
        ours.sendall(json.dumps(spec).encode() + b"\n")
        threading.Thread(target=self._watch, args=(ours, self._buffer), daemon=True).start()
        threading.Thread(target=self._pump, args=(read_end, self._buffer), daemon=True).start()

    def poll(self, *, wait: float, linger: float, limit: int) -> dict[str, Any]:
        """`lines` since the last call; `beat`, when its heartbeat file was touched last (unix time, 0: never); `end` (exit
        and at, or error) and `tail` once the process ended; `finished` with the last lines, when no process of it is
        left. Waits up to `wait` seconds for something to tell.
        """
        if self._buffer is None:
            raise RuntimeError("poll() before start()")
        lines, last = self._buffer.take(wait=wait, linger=linger, limit=limit)
        answer: dict[str, Any] = {"lines": lines, "beat": self._beat(), "finished": last, "end": dict(self._end)}
        if self._end:
            answer["tail"] = self._buffer.tail()
        return answer

    def dump(self) -> None:
        """Have the processes print their stacks, and so end."""
        self._tell({"dump": True})

    def stop(self, grace: float) -> None:
        """SIGTERM now, SIGKILL after `grace` seconds. A second call can only shorten the time."""
        self._tell({"stop": grace})

    def _tell(self, message: dict[str, Any]) -> None:
        if self._control is not None:
            with contextlib.suppress(OSError):  # the guard is gone, and the command with it
                self._control.sendall(json.dumps(message).encode() + b"\n")

    def _beat(self) -> float:
        try:
            return self._heartbeat.stat().st_mtime if self._heartbeat is not None else 0.0
        except OSError:
            return 0.0

    def _watch(self, control: socket.socket, buffer: OutputBuffer) -> None:
        """Waits for the guard's one message."""
        with control.makefile("rb") as stream:
            line = stream.readline()
        # Without a message the guard itself was killed, and the kernel the command with it.
        self._end = json.loads(line) if line else {"exit": 137, "at": time.time()}
        self._ended.set()
        buffer.nudge()

    def _pump(self, fd: int, buffer: OutputBuffer) -> None:
        splitter = LineSplitter()
        while True:
            if splitter.has_partial and not select.select([fd], [], [], PARTIAL_LINE_SECONDS)[0]:
                buffer.put(splitter.flush())
                continue
            data = os.read(fd, 1 << 16)
            if not data:
                break
            lines = splitter.feed(data)
            if lines:
                buffer.put(lines)
        os.close(fd)
        buffer.put(splitter.flush())
        self._ended.wait()
        if self._guard is not None:
            self._guard.wait()
        buffer.close()
