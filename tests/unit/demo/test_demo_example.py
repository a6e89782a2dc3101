"""Which files can be demonstrated."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from sim.demo.example import ExampleError, read_example

JOB = "apiVersion: torchtpu.dev/v1alpha1\nkind: TorchTPUJob\nmetadata: {name: a}\nspec: {topology: 4x4}\n"


@dataclass(frozen=True)
class Case:
    text: str
    want: str


REFUSED = {
    "no TorchTPUJob in it": Case(text="kind: ConfigMap", want="{} holds 0 TorchTPUJobs; the demo follows exactly one"),
    "two of them": Case(text=f"{JOB}---\n{JOB}", want="{} holds 2 TorchTPUJobs; the demo follows exactly one"),
    "one without a name": Case(text="kind: TorchTPUJob", want="{}: the TorchTPUJob has no metadata.name"),
    "a list instead of objects": Case(text="- a", want="{} holds something that is no Kubernetes object"),
    "objects in two namespaces": Case(
        text=f"kind: ConfigMap\nmetadata: {{name: c, namespace: x}}\n---\n{JOB.replace('{name: a}', '{name: a, namespace: y}')}",
        want="{} spreads over the namespaces x, y; use one",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(case.text)
    with pytest.raises(ExampleError) as refused:
        read_example(path)
    assert str(refused.value) == case.want.format(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"nowhere\.yaml: No such file or directory"):
        read_example(tmp_path / "nowhere.yaml")


ACCEPTED = {
    "a job without a namespace goes into the demo's": Case(text=JOB, want="ml/a"),
    "a job with a namespace keeps it": Case(text=JOB.replace("{name: a}", "{name: a, namespace: team}"), want="team/a"),
    "the namespace may be on a companion alone": Case(
        text=f"kind: ConfigMap\nmetadata: {{name: c, namespace: team}}\n---\n{JOB}---\n", want="team/a"
    ),
}


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(case.text)
    example = read_example(path)
    assert f"{example.namespace}/{example.job}" == case.want


def test_every_example_of_the_repository_can_be_demonstrated() -> None:
    found = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
    assert found
    assert [read_example(path).job for path in found]
