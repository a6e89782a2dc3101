"""How much memory a process holds."""

import resource
from pathlib import Path

_PAGE = resource.getpagesize()


def resident_bytes(pid: int | None) -> int:
    """Resident set of a process; 0 when there is none."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
