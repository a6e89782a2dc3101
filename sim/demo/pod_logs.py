"""Keeps the logs of pods that are gone: KubeRay deletes a failed one before anybody could read why it failed."""

import os
from pathlib import Path

from sim.bench import Bench
from sim.demo.snapshot import Snapshot


class PodLogs:
    """Hard links beside the bench's own logs: they grow with the files and outlive them."""

    def __init__(self, bench: Bench) -> None:
        self._pods, self._kept = bench.folder / "pods", bench.logs / "pods"

    def keep(self, snapshot: Snapshot) -> None:
        """Of every pod that is there now."""
        for pod in snapshot.pods:
            for path in (self._pods / pod.uid / "logs").glob("*/*.log"):
                self._link(path, self._kept / f"{pod.name}.{path.parent.name}.{path.stem}.log")

    def _link(self, path: Path, kept: Path) -> None:
        if kept.exists():
            return
        kept.parent.mkdir(exist_ok=True)
        try:
            os.link(path, kept)
        except FileNotFoundError:
            return  # the pod went while we looked
