"""Folders whose files change all at once, as Kubernetes shows ConfigMaps and tokens to a running container.

Source: the layout of Kubernetes' pkg/volume/util/atomic_writer.go. Each visible name is a link through `..data`, which
is a link to a folder with the current contents; a change makes a new folder and renames one link.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from sim.kubelet.projection import File, Files

_DATA: Final = "..data"


def write(folder: Path, files: Files, *, group: int | None = None) -> bool:
    """Make `folder` show exactly `files`; returns whether anything changed.

    `group` is the pod's fsGroup: it owns the files and may read them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    current = folder / _DATA
    if current.exists() and _read(current) == _comparable(files, group=group):
        return False
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    fresh.chmod(0o755)
    for path, file in files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(_mode(file.mode, group=group))
        if group is not None and os.geteuid() == 0:
            os.chown(target, -1, group)
    old = current.resolve() if current.exists() else None
    link = folder / "..data_tmp"
    link.symlink_to(fresh.name)
    link.rename(current)
    wanted = {path.split("/", 1)[0] for path in files}
    for name in wanted:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path(_DATA) / name)
    for entry in folder.iterdir():
        if not entry.name.startswith("..") and entry.name not in wanted:
            entry.unlink()
    if old is not None:
        shutil.rmtree(old)
    return True


def _mode(mode: int, *, group: int | None) -> int:
    return (mode | 0o440 if group is not None else mode) & 0o7777


def _comparable(files: Files, *, group: int | None) -> Files:
    return {path: File(content=file.content, mode=_mode(file.mode, group=group)) for path, file in files.items()}


def _read(folder: Path) -> Files:
    return {
        str(path.relative_to(folder.resolve())): File(content=path.read_bytes(), mode=path.stat().st_mode & 0o7777)
        for path in folder.resolve().rglob("*")
        if path.is_file()
    }
