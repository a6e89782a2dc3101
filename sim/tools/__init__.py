"""The bench's programs: built once from their published Go modules into a cache that every checkout shares.

Only the standard library is used here: `python3 -m sim.tools build` runs before any venv exists.
"""

from sim.tools.catalogue import (
    OLDER_KUBERNETES,
    PROGRAMS,
    Program,
    ToolMissingError,
    cache_dir,
    kube_apiserver,
    kuberay_crds,
    kuberay_role,
    kubernetes_minors,
    path,
    search_path,
)

__all__ = [
    "OLDER_KUBERNETES",
    "PROGRAMS",
    "Program",
    "ToolMissingError",
    "cache_dir",
    "kube_apiserver",
    "kuberay_crds",
    "kuberay_role",
    "kubernetes_minors",
    "path",
    "search_path",
]
