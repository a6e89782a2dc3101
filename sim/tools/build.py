"""Builds the programs, one after another, each whole or not at all."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sim.tools.catalogue import Program
from sim.tools.go_toolchain import ToolchainError, find_or_install, needed_version
from sim.tools.progress import Progress, duration

_NEEDED_BYTES = 1 << 30
"""Free space asked for before a program is built; the largest takes about this much, Go's caches included."""

_TAIL_LINES = 25
"""How much of a failed command's output is shown."""

_PACKAGE = re.compile(r"[\w.~+-]+(/[\w.~+-]+)+")
"""What `go build -v` says of a package that it begins with; what is wrong stands somewhere among hundreds of these."""


class BuildError(Exception):
    """A program could not be built; the message says which, why, and what to do."""


def build_all(programs: Sequence[Program], *, cache: Path) -> None:
    """Build those programs that the cache lacks. Raises BuildError.

    Safe to break off and to run twice at once: a finished program appears by one rename, Go's own build cache keeps
    the packages of an unfinished one, and a lock makes the second builder wait for the first.
    """
    missing = [program for program in programs if not program.directory(cache).is_dir()]
    if not missing:
        _say(f"all {len(programs)} programs are built ({cache / 'tools'})")
        return
    seconds = sum(program.seconds for program in missing)
    _say(f"building {', '.join(program.name for program in missing)} into {cache / 'tools'}")
    _say(f"that takes about {duration(seconds)} on 2 cores with empty caches")
    try:
        (cache / "tools").mkdir(parents=True, exist_ok=True)
        with _lock(cache / "tools" / ".lock"):
            _remove_leftovers(cache / "tools")
            go = find_or_install(needed=needed_version(p.source / "go.mod" for p in missing), cache=cache, say=_say)
            started = time.monotonic()
            for program in missing:
                if not program.directory(cache).is_dir():
                    _build(program, go=go, cache=cache)
    except ToolchainError as error:
        raise BuildError(str(error)) from error
    except OSError as error:
        raise BuildError(f"{error.filename or cache}: {error.strerror}. {_space(cache)}") from error
    _say(f"done in {duration(time.monotonic() - started)}")


def go_environment() -> dict[str, str]:
    """The caller's environment with what decides the outcome of a build fixed."""
    return {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def _build(program: Program, *, go: Path, cache: Path) -> None:
    _check_space(program, go=go, cache=cache)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=cache / "tools") as scratch:
        result = Path(scratch) / program.key
        (result / "bin").mkdir(parents=True)
        with Progress(f"{program.name} {program.version}", expected_seconds=program.seconds) as progress:
            progress.stage("loading modules")
            packages = sorted(program.binaries.values())
            listed = _go(
                program, go, ["list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", *packages], progress
            )
            progress.stage("compiling", steps=len(listed))
            out = result / "bin"
            if len(packages) == 1:
                out /= next(iter(program.binaries))
            # Several binaries in one call, named after their packages: their common packages compile once, in parallel.
            _go(program, go, ["build", "-v", "-ldflags", program.ldflags, "-o", str(out), *packages], progress)
            for folder, inside in program.data.items():
                (module,) = _go(program, go, ["list", "-m", "-f", "{{.Dir}}", program.module], progress)
                shutil.copytree(Path(module) / inside, result / folder)
                # The module cache is read-only, and a copy that nobody may remove is a nuisance.
                for file in (result / folder, *(result / folder).rglob("*")):
                    file.chmod(0o755 if file.is_dir() else 0o644)
        result.replace(program.directory(cache))


def _go(program: Program, go: Path, arguments: list[str], progress: Progress) -> list[str]:
    """Run go in the program's module, show its progress, return its output's lines. Raises BuildError."""
    process = subprocess.Popen(
        [go, *arguments],
        cwd=program.source,
        env=go_environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            progress.step(lines[-1])
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code != 0:
        raise BuildError(_explain(program, arguments, code, lines, go))
    return [line for line in lines if line and not line.startswith("go: ")]


def _explain(program: Program, arguments: Sequence[str], code: int, lines: Sequence[str], go: Path) -> str:
    said = [line for line in lines if not _PACKAGE.fullmatch(line)] or lines
    output = "\n".join(f"  {line}" for line in said[-_TAIL_LINES:])
    text = "\n".join(lines)
    if "no space left on device" in text:
        hint = "The disk is full. " + " ".join(_space(path) for path in _go_caches(go))
    elif any(
        sign in text for sign in ("dial tcp", "no such host", "i/o timeout", "connection refused", "proxyconnect")
    ):
        proxy = os.environ.get("GOPROXY", "https://proxy.golang.org")
        hint = (
            f"The Go module proxy cannot be reached ({proxy}); set GOPROXY to one that can, and run `make tools` again."
        )
    elif code < 0 or "signal: killed" in text:
        hint = "go or its compiler was killed: most often too little memory (2 GiB free are enough)."
    else:
        hint = f"Run the same in {program.source} to look closer."
    what = f"building {program.name} {program.version} failed: go {' '.join(arguments)} ended with {code}"
    return f"{what}\n{output}\n{hint}"


def _check_space(program: Program, *, go: Path, cache: Path) -> None:
    for path in (cache, *_go_caches(go)):
        if shutil.disk_usage(_nearest(path)).free < _NEEDED_BYTES:
            raise BuildError(
                f"too little disk space to build {program.name}: {_space(path)} "
                f"At least 1 GB is needed; free some, or set TORCHTPU_CACHE, GOCACHE and GOMODCACHE to a larger disk."
            )


def _go_caches(go: Path) -> list[Path]:
    done = subprocess.run(
        [go, "env", "GOCACHE", "GOMODCACHE"], capture_output=True, text=True, check=False, env=go_environment()
    )
    return [Path(line) for line in done.stdout.split() if line.startswith("/")]


def _space(path: Path) -> str:
    return f"{path} has {shutil.disk_usage(_nearest(path)).free / 1e9:.1f} GB free."


def _nearest(path: Path) -> Path:
    """The path itself or its closest parent that exists."""
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another build is going on; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_leftovers(tools: Path) -> None:
    """What a killed builder left; nobody else builds while the lock is held."""
    for leftover in tools.glob(".building-*"):
        shutil.rmtree(leftover)


def _say(message: str) -> None:
    print(f"tools: {message}", flush=True)
