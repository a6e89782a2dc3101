"""A pod's volumes on this machine: made, kept up to date, mounted into containers, removed."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sim.kubelet import atomic_folder
from sim.kubelet.api import ApiClient, ApiError
from sim.kubelet.env import expand
from sim.kubelet.fields import quantity
from sim.kubelet.projection import VolumeError, project, token_requests
from sim.kubelet.sandbox import Mount
from sim.kubelet.sources import Tokens, fetch, volume_references

Json = dict[str, Any]

_WRITABLE_KINDS: Final = ("emptyDir", "hostPath")


class PodVolumes:
    """Volumes of one pod below `folder`."""

    def __init__(self, *, pod: Json, folder: Path, api: ApiClient, allocatable: Mapping[str, str]) -> None:
        self._folder, self._api, self._allocatable = folder, api, allocatable
        self._tokens = Tokens(api, pod)
        self._volumes: dict[str, Json] = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        self._group: int | None = (pod["spec"].get("securityContext") or {}).get("fsGroup")
        self._mounted: list[Path] = []

    async def prepare(self, pod: Json) -> None:
        """Make every volume. Raises VolumeError (say so and try again), ApiError or ApiUnreachableError."""
        for volume in self._volumes.values():
            await self._prepare(volume, pod=pod)

    async def refresh(self, pod: Json) -> None:
        """Bring projected files up to date; a source that has gone missing leaves the files as they are."""
        for volume in self._volumes.values():
            if _kind(volume) not in _WRITABLE_KINDS:
                try:
                    await self._prepare(volume, pod=pod)
                except VolumeError:
                    continue

    def mounts(self, container: Json, *, env: Mapping[str, str]) -> list[Mount]:
        """Where the container sees which volume. Raises VolumeError for a subPath that leads out of its volume."""
        mounts = []
        for spec in container.get("volumeMounts") or ():
            volume = self._volumes[spec["name"]]
            source = self._path(volume)
            if part := expand(spec.get("subPathExpr", ""), env) or spec.get("subPath"):
                source = self._sub_path(source, part, writable=_kind(volume) in _WRITABLE_KINDS)
            read_only = bool(spec.get("readOnly")) or _kind(volume) not in _WRITABLE_KINDS
            mounts.append(Mount(source=source, target=spec["mountPath"], read_only=read_only))
        return mounts

    async def close(self) -> None:
        """Take everything away."""
        for path in self._mounted:
            await asyncio.to_thread(subprocess.run, ["umount", "--lazy", str(path)], check=False, capture_output=True)
        self._mounted.clear()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _prepare(self, volume: Json, *, pod: Json) -> None:
        path = self._path(volume)
        kind = _kind(volume)
        if kind == "emptyDir":
            await asyncio.to_thread(self._make_empty, path, volume.get("emptyDir") or {})
            return
        if kind == "hostPath":
            raise VolumeError(f"volume {volume['name']}: the simulated hosts have no files of their own for hostPath")
        try:
            sources = await fetch(
                self._api, namespace=pod["metadata"]["namespace"], references=volume_references(volume)
            )
            tokens = {request: await self._tokens.get(request) for request in token_requests(volume)}
        except ApiError as error:
            raise VolumeError(error.message) from error
        files = project(volume, pod=pod, sources=sources, tokens=tokens, allocatable=self._allocatable)
        await asyncio.to_thread(atomic_folder.write, path, files, group=self._group)

    def _make_empty(self, path: Path, spec: Json) -> None:
        if path.exists():
            return
        path.mkdir(parents=True)
        if spec.get("medium") == "Memory":
            size = int(quantity(spec.get("sizeLimit")))
            options = f"mode=1777,size={size}" if size else "mode=1777"
            command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode != 0:
                path.rmdir()
                raise VolumeError(f"mount of an emptyDir in memory failed: {done.stderr.strip()}")
            self._mounted.append(path)
        path.chmod(0o777)
        if self._group is not None and os.geteuid() == 0:
            os.chown(path, -1, self._group)

    def _path(self, volume: Json) -> Path:
        return self._folder / str(volume["name"])

    def _sub_path(self, source: Path, part: str, *, writable: bool) -> Path:
        target = Path(os.path.realpath(source / part))
        if Path(part).is_absolute() or not target.is_relative_to(source.resolve()):
            raise VolumeError(f"subPath {part!r} leads out of its volume")
        if not target.exists():
            if not writable:
                raise VolumeError(f"subPath {part!r} does not exist in its volume")
            target.mkdir(parents=True)
            target.chmod(0o777)
        return target


def _kind(volume: Json) -> str:
    return next((key for key in volume if key != "name"), "emptyDir")
