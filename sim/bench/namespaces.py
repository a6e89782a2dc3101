"""Linux namespaces by system call: Python 3.11 has neither unshare nor mount."""

import ctypes
import errno
import os
import signal
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x40000

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Raises OSError."""
    _check(_LIBC.unshare(flags), "unshare")


def mount(source: str, target: Path, *, kind: str = "none", flags: int = 0, data: str = "") -> None:
    """Raises OSError that names the target."""
    result = _LIBC.mount(source.encode(), bytes(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(result, f"mount on {target}")


def die_with_parent() -> None:
    """SIGKILL for this process when its parent thread dies; it reaches process 1 of a pid namespace, too."""
    _check(_LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")


def enter_user_namespace(extra_flags: int) -> None:
    """A user namespace in which this user is root, and with it the rights to make `extra_flags`' namespaces."""
    uid, gid = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER | extra_flags)
    # The kernel lets an ordinary user map its group only once setgroups is off.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def explain_refusal(error: OSError) -> str:
    """Why a system may refuse namespaces to an ordinary user, with what to do about it."""
    reasons = []
    for setting, wanted in (
        ("kernel.unprivileged_userns_clone", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "0"),
    ):
        path = Path("/proc/sys") / setting.replace(".", "/")
        if path.exists() and (value := path.read_text().strip()) != wanted:
            reasons.append(f"{setting} is {value}: `sudo sysctl {setting}={wanted}`")
    limit = Path("/proc/sys/user/max_user_namespaces")
    if limit.exists() and limit.read_text().strip() == "0":
        reasons.append("user.max_user_namespaces is 0: `sudo sysctl user.max_user_namespaces=10000`")
    if not reasons:
        reasons.append("a container without --privileged, or a seccomp or security module's profile, may forbid it")
    if os.getuid() == 0:
        who, otherwise = "root without CAP_SYS_ADMIN", "give the container CAP_SYS_ADMIN (docker run --privileged)"
    else:
        who, otherwise = "an ordinary user", "run as root"
    # The kernel's word for a reached limit would send people looking at their disks.
    why = "the limit is reached" if error.errno == errno.ENOSPC else error.strerror
    return f"this system does not let {who} make namespaces ({why}): {'; '.join(reasons)}; or {otherwise}"


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
