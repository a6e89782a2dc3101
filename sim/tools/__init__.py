"""The bench's programs: built once from their published Go modules into a cache that every checkout shares.

Only the standard library is used here: `python3 -m sim.tools build` runs before any venv exists.
"""

from sim.tools.catalogue import (
    PROGRAMS,
    Program,
    ToolMissingError,
    cache_dir,
    kuberay_crds,
    kuberay_role,
    path,
    search_path,
)

__all__ = [
    "PROGRAMS",
    "Program",
    "ToolMissingError",
    "cache_dir",
    "kuberay_crds",
    "kuberay_role",
    "path",
    "search_path",
]
