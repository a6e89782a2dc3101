"""What names a build, and what a person reads when one is missing."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from sim import tools
from sim.tools.catalogue import OLDER_KUBERNETES, PROGRAMS, Program, ToolMissingError

PROGRAM = PROGRAMS[0]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCHTPU_CACHE", str(tmp_path))
    return tmp_path


def test_every_program_pins_the_version_that_the_project_supports() -> None:
    assert {program.name: program.version for program in PROGRAMS} == {
        "etcd": "v3.7.3",
        "kubernetes": "v1.36.3",
        "celcost": "v0.36.3",
        "coredns": "v1.14.6",
        "kuberay": "v1.5.0",
        "helm": "v4.3.1",
    }


STAGING = {"v1.34.4": 31, "v1.35.4": 31, "v1.36.3": 33}


@pytest.mark.parametrize("program", [*OLDER_KUBERNETES, PROGRAMS[1]], ids=lambda program: program.name)
def test_kubernetes_staging_modules_are_all_replaced_by_the_release_of_the_same_minor(program: Program) -> None:
    go_mod = (program.source / "go.mod").read_text()
    replaced = [line.split() for line in go_mod.splitlines() if "=>" in line]
    assert len(replaced) == STAGING[program.version]
    release = program.version.replace("v1.", "v0.")
    assert {(name == target, version) for name, _, target, version in replaced} == {(True, release)}


def test_the_last_three_minors_of_kubernetes_are_tested_on() -> None:
    assert tools.kubernetes_minors() == ("1.34", "1.35", "1.36")


def test_a_missing_older_apiserver_names_the_command_that_builds_it(cache: Path) -> None:
    with pytest.raises(ToolMissingError, match=r"run `make test-kubernetes-versions`$"):
        tools.kube_apiserver("1.34")


def test_another_minor_than_those_tested_on_is_refused(cache: Path) -> None:
    with pytest.raises(ToolMissingError, match=r"Kubernetes 1.20 is not among those tested on: 1.34, 1.35, 1.36"):
        tools.kube_apiserver("1.20")


CHANGES = {
    "another flag of the linker": {"version_variables": ("main.version",)},
    "another package": {"binaries": {"etcd": "go.etcd.io/etcd/server/v3/other"}},
    "another folder kept beside the binary": {"data": {"crds": "config/crd"}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_decides_the_outcome_changes_the_key(change: dict[str, Any]) -> None:
    assert dataclasses.replace(PROGRAM, **change).key != PROGRAM.key


def test_another_pin_changes_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "tools" / PROGRAM.name
    source.mkdir(parents=True)
    text = (PROGRAM.source / "go.mod").read_text()
    (source / "go.mod").write_text(text.replace("google.golang.org/grpc v", "google.golang.org/grpc v9"))
    before = PROGRAM.key
    monkeypatch.setattr("sim.tools.catalogue.REPOSITORY", tmp_path)
    assert PROGRAM.key != before


def test_another_line_in_our_own_go_changes_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    celcost = next(program for program in PROGRAMS if program.name == "celcost")
    source = tmp_path / "tools" / "celcost"
    source.mkdir(parents=True)
    (source / "go.mod").write_text((celcost.source / "go.mod").read_text())
    (source / "main.go").write_text((celcost.source / "main.go").read_text() + "// more\n")
    before = celcost.key
    monkeypatch.setattr("sim.tools.catalogue.REPOSITORY", tmp_path)
    assert celcost.key != before


def test_the_expected_time_does_not_change_the_key() -> None:
    assert dataclasses.replace(PROGRAM, seconds=1).key == PROGRAM.key


def test_a_missing_program_names_the_command_that_builds_it(cache: Path) -> None:
    with pytest.raises(ToolMissingError) as caught:
        tools.path("etcd")
    assert str(caught.value) == f"etcd v3.7.3 is not built (no {cache}/tools/{PROGRAM.key}); run `make tools`"


def test_an_unknown_program_names_those_that_there_are(cache: Path) -> None:
    with pytest.raises(
        ToolMissingError, match=r"no program 'kubelet'; it has celcost, coredns, etcd, helm, kube-apiserver"
    ):
        tools.path("kubelet")


def test_a_built_program_is_found(cache: Path) -> None:
    binary = PROGRAM.directory(cache) / "bin" / "etcd"
    binary.parent.mkdir(parents=True)
    assert tools.path("etcd") == binary


def test_a_program_without_its_requirement_says_where_it_looked(tmp_path: Path) -> None:
    program = Program(name="etcd", module="example.com/none", binaries={}, seconds=1)
    with pytest.raises(ValueError, match=r"tools/etcd/go.mod: no requirement of example.com/none"):
        _ = program.version
