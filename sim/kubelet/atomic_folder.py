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


def write(folder: Path, files: Files, *, owner: int | None = None) -> bool:
    """Make `folder` show exactly `files`; returns whether anything changed.

    `owner` is the uid that gets the files (Kubernetes does so for tokens); None leaves them to the writer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    current = folder / _DATA
    if current.exists() and _read(current) == _comparable(files):
        return False
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    fresh.chmod(0o755)
    for path, file in files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
        if owner is not None:
            os.chown(target, owner, owner)
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


def _comparable(files: Files) -> Files:
    return {path: File(content=file.content, mode=file.mode & 0o7777) for path, file in files.items()}


def _read(folder: Path) -> Files:
    return {
        str(path.relative_to(folder.resolve())): File(content=path.read_bytes(), mode=path.stat().st_mode & 0o7777)
        for path in folder.resolve().rglob("*")
        if path.is_file()
    }
