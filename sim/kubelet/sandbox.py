"""The arguments of bubblewrap for one container. Pure but for looking at which paths this machine has."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from sim.images import REPO, Image

CAPABILITIES: Final = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_AUDIT_WRITE",
    "CAP_NET_RAW",
]
"""What container runtimes leave to root in a container, but for making devices and file capabilities."""

DEFAULT_SHM_BYTES: Final = 64 * 1024 * 1024
"""What a container runtime gives /dev/shm without a volume there."""

_SCRATCH: Final = ("/tmp", "/var/tmp")
_OWN_FILE_SYSTEMS: Final = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/root", "/home")


class RootKind(Enum):
    """How a container gets the machine's root file system."""

    OVERLAY = "overlay"
    """A writable overlay; writes stay private and in memory. Needs root."""
    READ_ONLY = "read-only"
    """Read-only: what a user namespace allows. Only /tmp, /run, the home folder and volumes can be written."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """Everything that decides what a container sees."""

    image: Image
    root: RootKind
    hostname: str
    user: int
    group: int
    groups: Sequence[int] = ()
    """Supplementary ones (fsGroup)."""
    working_dir: str
    mounts: Sequence[Mount]
    read_only_root: bool = False
    drop_capabilities: bool = False


def build_bwrap_arguments(sandbox: Sandbox) -> list[str]:
    """Options for bwrap, without status descriptor, environment and command."""
    masks = _masks()
    targets = [resolve_target(mount.target) for mount in sandbox.mounts]
    inside = [*map(str, sandbox.image.folders), *map(str, sandbox.image.links), sandbox.image.home, *targets]
    hidden = [*masks, *_SCRATCH]  # a checkout may lie in /tmp
    inside = [path for path in inside if _is_under(path, hidden)]
    arguments = [*_root(sandbox.root, needed=[*targets, sandbox.image.home, sandbox.working_dir])]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]
    for folder in _SCRATCH:
        arguments += ["--perms", "1777", "--tmpfs", folder]
    # bwrap makes missing parents for its own user alone; a container's user must be able to walk through them.
    for folder in _parents(masks):
        if _is_under(folder, _SCRATCH) and folder not in _SCRATCH:
            arguments += ["--perms", "0755", "--dir", folder]
    for folder in masks:
        arguments += ["--perms", "0755", "--tmpfs", folder]
    for folder in _parents(inside):
        if _is_under(folder, hidden) and folder not in _SCRATCH:
            arguments += ["--perms", "0755", "--dir", folder]
    if sandbox.image.home not in _SCRATCH:
        arguments += ["--perms", "0777", "--tmpfs", sandbox.image.home]
    for path in sandbox.image.folders:
        arguments += ["--ro-bind", str(path), str(path)]
    for link, destination in sandbox.image.links.items():
        arguments += ["--symlink", str(destination), str(link)]
    if "/dev/shm" not in targets:
        arguments += ["--size", str(DEFAULT_SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"]
    # Shorter targets first: a mount may lie within another.
    for target, mount in sorted(zip(targets, sandbox.mounts, strict=True), key=lambda pair: pair[0].count("/")):
        arguments += ["--ro-bind" if mount.read_only else "--bind", str(mount.source), target]
    arguments += _uncover(sandbox.image.folders, targets)
    if sandbox.read_only_root:
        arguments += ["--remount-ro", "/"]
    arguments += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", sandbox.hostname]
    arguments += ["--die-with-parent", "--as-pid-1", "--chdir", sandbox.working_dir]
    if sandbox.root is RootKind.READ_ONLY and sandbox.user != 0:
        arguments += ["--unshare-user", "--uid", str(sandbox.user), "--gid", str(sandbox.group)]
    arguments += ["--cap-drop", "ALL"]
    if not sandbox.drop_capabilities or needs_setpriv(sandbox):
        for capability in CAPABILITIES:
            arguments += ["--cap-add", capability]
    return arguments


def _uncover(folders: Sequence[Path], targets: Sequence[str]) -> list[str]:
    """The image's folders that a volume lies over: a checkout below /tmp, in a pod with a volume there."""
    arguments: list[str] = []
    for path in folders:
        if not _is_under(str(path), targets):
            continue
        for folder in _parents([str(path)]):
            if _is_under(folder, targets) and folder not in targets:
                arguments += ["--perms", "0755", "--dir", folder]
        arguments += ["--ro-bind", str(path), str(path)]
    return arguments


def needs_setpriv(sandbox: Sandbox) -> bool:
    """Whether the user must be changed within the sandbox: bwrap itself does it only in a user namespace."""
    return sandbox.root is RootKind.OVERLAY and sandbox.user != 0


def build_user_prefix(sandbox: Sandbox) -> list[str]:
    """Words before the command that give it the container's user."""
    if not needs_setpriv(sandbox):
        return []
    return ["setpriv", *_identity(sandbox), "--"]


def build_nsenter_arguments(sandbox: Sandbox, *, pid: int) -> list[str]:
    """Words before a command that runs in the container whose main process is `pid`."""
    words = ["nsenter", "--target", str(pid), "--mount", "--uts", "--ipc", "--net", "--pid"]
    words += [f"--wdns={sandbox.working_dir}"]
    if sandbox.root is RootKind.READ_ONLY and sandbox.user != 0:
        return [*words, "--user", "--preserve-credentials", "--"]
    bounding = ",".join(f"+{name.removeprefix('CAP_').lower()}" for name in CAPABILITIES)
    words += ["--", "setpriv", "--bounding-set", f"-all,{bounding}"]
    if sandbox.user != 0:
        words += _identity(sandbox)
    return [*words, "--"]


def _identity(sandbox: Sandbox) -> list[str]:
    groups = ["--groups", ",".join(map(str, sandbox.groups))] if sandbox.groups else ["--clear-groups"]
    return ["--reuid", str(sandbox.user), "--regid", str(sandbox.group), *groups]


def resolve_target(path: str) -> str:
    """A mount target without symbolic links: bwrap refuses absolute ones in it (/var/run)."""
    return os.path.realpath(path) if not _is_under(path, _masks()) else os.path.normpath(path)


def _masks() -> list[str]:
    """Folders of this machine that no image holds: people's homes, this checkout, run-time state."""
    wanted = sorted({"/root", "/home", "/run", str(Path.home().resolve()), str(REPO)})
    present = [path for path in wanted if Path(path).is_dir()]
    return [path for path in present if not _is_under(path, [other for other in present if other != path])]


def _root(kind: RootKind, *, needed: Sequence[str]) -> Iterable[str]:
    if kind is RootKind.OVERLAY:
        yield from ("--overlay-src", "/", "--tmp-overlay", "/")
        # An overlay shows what lies on the root file system only.
        for folder in _further_file_systems():
            yield from ("--ro-bind", folder, folder)
    else:
        yield from _exploded_root(needed)


def _exploded_root(needed: Sequence[str]) -> Iterable[str]:
    """A root whose folders are bound read-only; those in which a mount target is missing are bound entry by entry,
    since nothing can be made in a read-only bind."""
    split = {"/"}
    for path in needed:
        parts = [*reversed(Path(path).parents), Path(path)]
        missing = next((index for index, part in enumerate(parts) if not part.exists()), None)
        if missing is not None:
            split |= {str(part) for part in parts[:missing]}
    yield from ("--perms", "0755", "--tmpfs", "/")
    for folder in sorted(split, key=lambda path: (path.count("/"), path)):
        if folder != "/" and _is_under(folder, _OWN_FILE_SYSTEMS):
            continue
        for entry in sorted(Path(folder).iterdir()):
            name = str(entry)
            if name in _OWN_FILE_SYSTEMS:
                continue
            if entry.is_symlink():
                yield from ("--symlink", str(entry.readlink()), name)
            elif name in split:
                yield from ("--perms", "0755", "--dir", name)
            elif os.access(entry, os.R_OK):
                yield from ("--ro-bind", name, name)


def _further_file_systems() -> list[str]:
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        target = line.split(" ", 5)[4]
        if target != "/" and not _is_under(target, [*_OWN_FILE_SYSTEMS, *_masks()]) and Path(target).is_dir():
            found.append(target)
    return found


def _is_under(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _parents(paths: Sequence[str]) -> list[str]:
    parents = {str(parent) for path in paths for parent in Path(path).parents if str(parent) != "/"}
    return sorted(parents, key=lambda path: (path.count("/"), path))
