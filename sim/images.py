"""Container images of the bench: a table from a reference to what a container of that image sees.

No layer is pulled: every image is this machine's own root file system with home folders and the checkout masked, and
with the Python installation that runs the bench. They differ in environment, user, default command and folders.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

REPO: Final = Path(__file__).resolve().parent.parent

OPERATOR_VERSION: Final = "0.1.0"
OPERATOR_IMAGE: Final = f"ghcr.io/torchtpu/torchtpu-operator:{OPERATOR_VERSION}"
RAY_IMAGE: Final = "us-docker.pkg.dev/acme/ml/ray-torchtpu:2.60.0"
STAND_IN_VARIABLE: Final = "TORCHTPU_BENCH_STAND_IN"
"""Names the folder that Python searches last, by a .pth file of `make venv`: the stand-in lies among the site packages, as
the real torch_tpu does, and a pod's own PYTHONPATH does not hide it."""
PAUSE_IMAGE: Final = "registry.k8s.io/pause:3.10"
BUSYBOX_IMAGE: Final = "busybox"

_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class Image:
    """What a container of one image sees."""

    reference: str
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()
    """Runs unless the container has `command`."""
    command: Sequence[str] = ()
    """Arguments of the entrypoint unless the container has `command` or `args`."""
    user: int = 0
    working_dir: str = "/"
    home: str = "/root"
    folders: Sequence[Path] = ()
    """Folders of this machine that the image holds, read-only, at their own paths, beside the system's own."""
    links: Mapping[Path, Path] = field(default_factory=dict)
    """Symbolic links to make: name -> target."""

    @cached_property
    def id(self) -> str:
        """A digest reference as `imageID` shows it."""
        repository = self.reference.rsplit(":", 1)[0] if ":" in self.reference.rsplit("/", 1)[-1] else self.reference
        return f"{repository}@sha256:{sha256(self.reference.encode()).hexdigest()}"


class ImageTable:
    """Known references. Anything else does not exist in the registry."""

    def __init__(self, images: Sequence[Image]) -> None:
        self._images = {_normal(image.reference): image for image in images}

    def find(self, reference: str) -> Image | None:
        """The image, or None if the registry has none of that name."""
        return self._images.get(_normal(reference))


IMAGE_PYTHONPATH = "/home/ray/lib"
"""The Ray image has a PYTHONPATH of its own, as many of users' images do: it must survive."""


def default_images(*, operator_tags: Sequence[str] = (OPERATOR_VERSION,)) -> ImageTable:
    """The images of the bench: operator, Ray with the stand-in of torch_tpu, busybox and pause."""
    operator_repository = OPERATOR_IMAGE.rsplit(":", 1)[0]
    return ImageTable(
        [
            *(build_operator_image(f"{operator_repository}:{tag}") for tag in operator_tags),
            build_ray_image(RAY_IMAGE),
            Image(reference=BUSYBOX_IMAGE, env={"PATH": _SYSTEM_PATH}, command=["sh"]),
            Image(reference=PAUSE_IMAGE, env={"PATH": _SYSTEM_PATH}, entrypoint=["sleep", "infinity"], user=65535),
        ]
    )


def build_operator_image(reference: str) -> Image:
    """The operator as its Dockerfile makes it: non-root, the package and its dependencies, no stand-in."""
    python = python_installation()
    return Image(
        reference=reference,
        env={"PATH": f"{python.bin}:{_SYSTEM_PATH}", "PYTHONPATH": str(REPO / "operator"), **_PYTHON_ENV},
        command=["python", "-m", "torchtpu_operator"],
        user=65532,
        home="/tmp",
        folders=[*python.folders, REPO / "operator"],
        links=python.links,
    )


def build_ray_image(reference: str) -> Image:
    """Ray, torch and the stand-in of torch_tpu; nothing of the operator."""
    python = python_installation()
    stand_in = REPO / "sim" / "standin"
    return Image(
        reference=reference,
        env={
            "PATH": f"{python.bin}:{_SYSTEM_PATH}",
            STAND_IN_VARIABLE: str(stand_in),
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": IMAGE_PYTHONPATH,
            **_PYTHON_ENV,
        },
        command=["bash"],
        working_dir="/home/ray",
        home="/home/ray",
        folders=[*python.folders, stand_in],
        links=python.links,
    )


_PYTHON_ENV: Final = {"PYTHONUNBUFFERED": "1", "LANG": "C.UTF-8"}


@dataclass(frozen=True, kw_only=True)
class PythonInstallation:
    bin: Path
    folders: Sequence[Path]
    links: Mapping[Path, Path]


def python_installation() -> PythonInstallation:
    """The environment that holds the dependencies: its folder, its base installation, and links where a path is one.

    `make venv` keeps them apart from the checkout's own thin environment; ray tells where they are.
    """
    found = find_spec("ray")
    prefix = Path(found.origin).parents[4] if found is not None and found.origin else Path(sys.prefix)
    base = Path(sys.base_prefix)
    folders = [path for path in dict.fromkeys((prefix.resolve(), base.resolve())) if not _is_system(path)]
    links = {path: path.resolve() for path in (prefix, base) if path.resolve() != path and not _is_system(path)}
    return PythonInstallation(bin=prefix / "bin", folders=folders, links=links)


def _is_system(path: Path) -> bool:
    """Whether every image has it already, as part of the system."""
    return path == Path("/usr") or Path("/usr") in path.parents


def _normal(reference: str) -> str:
    """Docker's short names: no registry means docker.io/library, no tag means latest."""
    for prefix in ("docker.io/library/", "docker.io/"):
        reference = reference.removeprefix(prefix)
    return reference.removesuffix(":latest")
