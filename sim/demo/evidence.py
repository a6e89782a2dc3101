"""What is kept of a demo that failed: its bench is gone a moment later."""

import json
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

from sim import tools
from sim.bench import Bench, BenchError
from sim.demo import installation

_TAIL = 40
_KEPT = 5
_LEADING = ("time", "level", "logger", "message", "exc_info")


def new_folder(now: datetime) -> Path:
    """Where the evidence of a demo at that time goes; of the ones before only the youngest stay."""
    parent = tools.cache_dir() / "demo-logs"
    for old in sorted(parent.glob("*"))[: -(_KEPT - 1)]:
        shutil.rmtree(old)
    return parent / now.strftime("%Y%m%d-%H%M%S")


def save(bench: Bench, folder: Path, *, namespace: str) -> None:
    """Objects and pod logs, each into a file; what cannot be had leaves its reason there instead."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = "torchtpujobs,tpuslices,tpusliceclasses,rayclusters,pods,nodes,events"
    _save(bench, folder / "objects.yaml", "get", kinds, "--all-namespaces", "--output=yaml")
    _save(bench, folder / "objects.txt", "get", kinds, "--all-namespaces", "--output=wide")
    _save(bench, folder / "operator.log", *_operator_logs("--tail=-1"))
    _save(
        bench,
        folder / "head.log",
        "logs",
        f"--namespace={namespace}",
        "--selector=ray.io/node-type=head",
        "--tail=-1",
        "--prefix",
        "--all-containers",
    )


def operator_tail(bench: Bench) -> str:
    """The last lines of the operator's log, or why there are none."""
    lines = _kubectl(bench, *_operator_logs(f"--tail={_TAIL}")).splitlines()
    return "\n".join(readable(line) for line in lines)


def readable(line: str) -> str:
    """A JSON line of the operator's log as people read logs; any other line as it is."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict) or "message" not in record:
        return line
    fields = [f"{key}={value}" for key, value in record.items() if key not in _LEADING]
    lead = str(record.get("time", ""))[11:19], f"{record.get('level', ''):7}", str(record["message"])
    return " ".join((*lead, *fields)).strip() + (f"\n{record['exc_info']}" if record.get("exc_info") else "")


def _operator_logs(tail: str) -> tuple[str, ...]:
    selector = f"--selector=app.kubernetes.io/instance={installation.RELEASE}"
    return "logs", f"--namespace={installation.NAMESPACE}", selector, tail, "--all-containers"


def _save(bench: Bench, path: Path, *arguments: str) -> None:
    path.write_text(_kubectl(bench, *arguments))


def _kubectl(bench: Bench, *arguments: str) -> str:
    try:
        return bench.kubectl(*arguments)
    except subprocess.CalledProcessError as error:
        return f"kubectl {' '.join(arguments)} failed: {error.stderr}"
    except BenchError as error:
        return f"not to be had: {error}"
