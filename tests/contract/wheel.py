"""The real torch_tpu wheel, unpacked into the cache on first use; not a dependency, since it needs TPUs to do anything."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGES = (
    "torch_tpu==0.2.0",
    "libtpu==0.0.52",
    # What importing it takes beyond torch and numpy.
    "absl-py==2.5.1",
    "frozendict==2.5.1",
    "immutabledict==4.3.1",
    "portpicker==1.6.0",
    "psutil==7.2.2",
    "pyzmq==27.3.0",
)


def cache_folder() -> Path:
    return Path(os.environ.get("TORCHTPU_CACHE") or Path.home() / ".cache" / "torchtpu")


def unpacked() -> Path:
    """Folder to put on PYTHONPATH. Downloads 230 MB once; an unfinished download is never taken for a whole one."""
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    target = cache_folder() / "wheels" / f"{PACKAGES[0].replace('==', '-')}-{python}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unfinished-") as folder:
        # A pip of its own: the project's environment has none.
        venv.create(Path(folder) / "venv", with_pip=True)
        pip = [str(Path(folder) / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--target", str(Path(folder) / "wheel"), *PACKAGES], check=True)
        try:
            (Path(folder) / "wheel").rename(target)
        except OSError:
            # Another run was first.
            if not target.is_dir():
                raise
    return target
