"""Which programs there are, at which version, and where each one lies once it is built."""

import hashlib
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

_BUILD_RECIPE = "1"
"""Part of every key: raise it when the way of building changes what comes out."""


class ToolMissingError(Exception):
    """A program of the bench is not built yet; the message says which one and what to run."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One go.mod file and what is built from it."""

    name: str
    """Folder under tools/."""
    module: str
    """The Go module whose version names the build."""
    binaries: Mapping[str, str]
    """Binary name -> Go package. Where there are several, each is named after the last part of its package."""
    seconds: int
    """Building time measured on 2 cores with empty caches."""
    version_variables: tuple[str, ...] = ()
    """Go string variables that hold the program's own version; some programs fail on the v0.0.0 of an unset one."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Folder beside bin/ -> folder inside the module that is copied there."""

    @property
    def source(self) -> Path:
        return REPOSITORY / "tools" / self.name

    @property
    def version(self) -> str:
        """The module's version as go.mod pins it, with its leading v."""
        text = (self.source / "go.mod").read_text()
        found = re.search(rf"^(?:require)?\s*{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.source / 'go.mod'}: no requirement of {self.module}")
        return found[1]

    @property
    def ldflags(self) -> str:
        return " ".join(["-s", "-w", *(f"-X {variable}={self.version}" for variable in self.version_variables)])

    @property
    def key(self) -> str:
        """Names the build by everything that decides what comes out: pins, our own Go files, flags, platform."""
        digest = hashlib.sha256()
        for part in (
            _BUILD_RECIPE,
            f"{platform.system()}/{platform.machine()}",
            self.ldflags,
            *(f"{name}={package}" for name, package in sorted(self.binaries.items())),
            *(f"{folder}<{inside}" for folder, inside in sorted(self.data.items())),
            (self.source / "go.mod").read_text(),
            *(file.read_text() for file in sorted(self.source.glob("*.go"))),
        ):
            digest.update(part.encode() + b"\0")
        return f"{self.name}-{self.version}-{digest.hexdigest()[:12]}"

    def directory(self, cache: Path) -> Path:
        """Where the finished build lies; it exists if and only if the build is whole."""
        return cache / "tools" / self.key


PROGRAMS: tuple[Program, ...] = (
    Program(
        name="etcd",
        module="go.etcd.io/etcd/server/v3",
        binaries={"etcd": "go.etcd.io/etcd/server/v3"},
        seconds=25,
    ),
    Program(
        name="kubernetes",
        module="k8s.io/kubernetes",
        binaries={
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        },
        version_variables=("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"),
        seconds=200,
    ),
    Program(
        name="celcost",  # shares its packages with kubernetes, which is built before
        module="k8s.io/apiextensions-apiserver",
        binaries={"celcost": "torchtpu.dev/tools/celcost"},
        seconds=15,
    ),
    Program(
        name="coredns",
        module="github.com/coredns/coredns",
        binaries={"coredns": "github.com/coredns/coredns"},
        seconds=85,
    ),
    Program(
        name="kuberay",
        module="github.com/ray-project/kuberay/ray-operator",
        binaries={"kuberay-operator": "github.com/ray-project/kuberay/ray-operator"},
        data={"crds": "config/crd/bases", "rbac": "config/rbac"},
        seconds=80,
    ),
    Program(
        name="helm",
        module="helm.sh/helm/v4",
        binaries={"helm": "helm.sh/helm/v4/cmd/helm"},
        version_variables=("helm.sh/helm/v4/internal/version.version",),
        seconds=85,
    ),
)

"""What the bench and the tests need: `make tools`."""

OLDER_KUBERNETES: tuple[Program, ...] = tuple(
    Program(
        name=f"kubernetes-{minor}",
        module="k8s.io/kubernetes",
        binaries={"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver"},
        version_variables=("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"),
        seconds=150,
    )
    for minor in ("1.34", "1.35")
)
"""The minors before the bench's own whose apiserver has to take our CRDs: `make test-kubernetes-versions`."""


def cache_dir() -> Path:
    """Where tools, venvs and benches live: $TORCHTPU_CACHE, default ~/.cache/torchtpu."""
    return Path(os.environ.get("TORCHTPU_CACHE") or Path.home() / ".cache" / "torchtpu").expanduser().absolute()


def path(binary: str) -> Path:
    """The built program of that name. Raises ToolMissingError when it is not built."""
    return _built(_program_of(binary)) / "bin" / binary


def kubernetes_minors() -> tuple[str, ...]:
    """Kubernetes minors that the CRDs are tested on, oldest first; the last is the bench's own."""
    return tuple(_minor(program) for program in (*OLDER_KUBERNETES, _program_of("kube-apiserver")))


def kube_apiserver(minor: str) -> Path:
    """kube-apiserver of that minor, for example `1.35`. Raises ToolMissingError when it is not built or not known."""
    for program in (*OLDER_KUBERNETES, _program_of("kube-apiserver")):
        if _minor(program) == minor:
            return _built(program, "make test-kubernetes-versions") / "bin" / "kube-apiserver"
    raise ToolMissingError(f"Kubernetes {minor} is not among those tested on: {', '.join(kubernetes_minors())}")


def kuberay_crds() -> Path:
    """Folder with KubeRay's CRD manifests, one YAML file per kind."""
    return _built(_program_of("kuberay-operator")) / "crds"


def kuberay_role() -> Path:
    """The ClusterRole that KubeRay's operator asks for, as a YAML file."""
    return _built(_program_of("kuberay-operator")) / "rbac" / "role.yaml"


def search_path() -> str:
    """Every finished build's bin folder, joined as for $PATH."""
    return os.pathsep.join(str(_built(program) / "bin") for program in PROGRAMS)


def _program_of(binary: str) -> Program:
    for program in PROGRAMS:
        if binary in program.binaries:
            return program
    known = ", ".join(sorted(name for program in PROGRAMS for name in program.binaries))
    raise ToolMissingError(f"the bench has no program {binary!r}; it has {known}")


def _minor(program: Program) -> str:
    return program.version.removeprefix("v").rpartition(".")[0]


def _built(program: Program, builder: str = "make tools") -> Path:
    directory = program.directory(cache_dir())
    if not directory.is_dir():
        raise ToolMissingError(f"{program.name} {program.version} is not built (no {directory}); run `{builder}`")
    return directory
