"""Make the project's Python environment: `python3 tools/make_venv.py` (standard library only; `make venv`).

Two layers: the locked dependencies in `$TORCHTPU_CACHE/venvs/<hash of lock and interpreter>`, shared by all checkouts, and a
thin `.venv` in the checkout that adds the project itself. A broken-off run goes on where it stopped; a second one does nothing.
The index is pip's own setting; TORCHTPU_TORCH_INDEX names another one for torch (a CPU build is a tenth of PyPI's).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("TORCHTPU_CACHE") or Path.home() / ".cache" / "torchtpu").resolve()
LOCK = REPO / "requirements.lock"
UV = "uv==0.13.9"
# Where the bench's Ray image says so, the stand-in of torch_tpu is found as the real one would be: after all packages.
STAND_IN = "import os, sys; sys.path += filter(None, [os.environ.get('TORCHTPU_BENCH_STAND_IN')])\n"
NEEDED_GIB = 8  # torch's CUDA build with its libraries, once in uv's cache and hard-linked from there


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - run by whatever python3 is there
        print(
            f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: run `make PYTHON=python3.11 ...`",
            file=sys.stderr,
        )
        return 1
    try:
        if sys.argv[1:] == ["lock"]:
            return lock()
        prefix = dependencies()
        checkout(prefix)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"making the Python environment failed: {error}", file=sys.stderr)
        return 1
    return 0


def key() -> str:
    """What decides the content of the shared layer: lock, interpreter, torch's index."""
    parts = (
        LOCK.read_bytes(),
        STAND_IN.encode(),
        sys.version.encode(),
        os.environ.get("TORCHTPU_TORCH_INDEX", "").encode(),
    )
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def lock() -> int:
    """Renew requirements.lock from pyproject.toml."""
    run(bootstrap_uv(), "pip", "compile", "--quiet", "--upgrade", "--extra", "dev", "--python-version", "3.11",
        "--output-file", str(LOCK), str(REPO / "pyproject.toml"))  # fmt: skip
    return 0


def dependencies() -> Path:
    """The shared layer's folder, made if it is not there whole."""
    prefix = CACHE / "venvs" / key()
    done = prefix / ".complete"
    if done.exists():
        return prefix
    CACHE.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(CACHE).free / 2**30
    if free < NEEDED_GIB:
        raise OSError(
            f"{CACHE} has {free:.1f} GiB free, {NEEDED_GIB} are needed: free some, or set TORCHTPU_CACHE to another disk"
        )
    began = time.monotonic()
    count = sum(1 for line in LOCK.read_text().splitlines() if "==" in line and not line.startswith((" ", "#")))
    print(f"python: installing {count} locked packages into {prefix} (about 1 minute, 5 GB)", flush=True)
    uv = bootstrap_uv()
    run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(prefix))
    index = os.environ.get("TORCHTPU_TORCH_INDEX")
    extra = ["--extra-index-url", index, "--index-strategy", "unsafe-best-match"] if index else []
    # compiled once here, not by each of the processes that Ray starts on five "hosts": containers see it read-only
    run(uv, "pip", "sync", "--compile-bytecode", "--python", str(prefix / "bin" / "python"), *extra, str(LOCK))
    _site_packages(prefix).joinpath("_bench_stand_in.pth").write_text(STAND_IN)
    done.touch()
    print(f"python: done in {time.monotonic() - began:.0f} s", flush=True)
    return prefix


def _site_packages(prefix: Path) -> Path:
    return prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def bootstrap_uv() -> str:
    """uv from PyPI in an environment of its own."""
    home = CACHE / "uv" / UV.replace("==", "-")
    uv = home / "bin" / "uv"
    if not uv.exists():
        run(sys.executable, "-m", "venv", str(home))
        run(str(home / "bin" / "pip"), "install", "--quiet", UV)
    return str(uv)


def checkout(prefix: Path) -> None:
    """`.venv`: the project, editable, over the shared layer."""
    venv = REPO / ".venv"
    stamp = venv / ".layer"
    want = f"{prefix}\n{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}\n{hashlib.sha256((REPO / 'pyproject.toml').read_bytes()).hexdigest()}\n{REPO}\n"
    if stamp.exists() and stamp.read_text() == want:
        return
    if venv.is_symlink():
        venv.unlink()
    elif venv.exists():
        shutil.rmtree(venv)
    uv = bootstrap_uv()
    run(uv, "venv", "--quiet", "--python", sys.executable, str(venv))
    layer = f"import site; site.addsitedir({str(_site_packages(prefix))!r})\n"
    _site_packages(venv).joinpath("_dependencies.pth").write_text(layer)
    build = [
        uv, "pip", "install", "--quiet", "--no-deps", "--python", str(venv / "bin" / "python"), "--editable", str(REPO),
    ]  # fmt: skip
    run(*build)
    for tool in ("pytest", "mypy", "lint-imports", "ruff"):
        target = prefix / "bin" / tool
        script = target.read_bytes()
        if script.startswith(b"#!"):  # by this environment's interpreter: the shared layer does not know the project
            _, _, body = script.partition(b"\n")
            _script(venv / "bin" / tool, f"#!{venv / 'bin' / 'python'}\n{body.decode()}")
        else:
            venv.joinpath("bin", tool).symlink_to(target)
    # not among the project's scripts: the bench is of the checkout, and no wheel has it
    _script(
        venv / "bin" / "sim",
        f"#!{venv / 'bin' / 'python'}\nimport sys\n\nfrom sim.__main__ import main\n\nsys.exit(main())\n",
    )
    stamp.write_text(want)


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def run(*argv: str) -> None:
    """Run one command with uv's cache beside ours, so that the packages are hard-linked; a failure raises."""
    env = os.environ | {"UV_CACHE_DIR": str(CACHE / "uv" / "cache"), "VIRTUAL_ENV": ""}
    subprocess.run(argv, check=True, env=env)


if __name__ == "__main__":
    sys.exit(main())
