"""The conversion guide names fields that exist, and TPU types by the shape that they are."""

import re

import pytest
import yaml

from tests.manifests import REPOSITORY
from torchtpu_operator.api.constants import MIN_RAY, MIN_RAY_SEVERAL_SLICES
from torchtpu_operator.api.name_rules import JOB_NAME
from torchtpu_operator.tpu import resolve

PAGE = (REPOSITORY / "docs" / "converting.md").read_text()
CRD = yaml.safe_load((REPOSITORY / "crds" / "torchtpu.dev_torchtpujobs.yaml").read_text())
SPEC = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
SECTIONS = ("RayJob", "JobSet", "xpk")


def rows(section: str) -> list[list[str]]:
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [row for row in cells if not set(row[0]) <= set("- ")]


def is_field(path: str) -> bool:
    node = SPEC
    for part in path.split("."):
        node = node.get("properties", {}).get(part)
        if node is None:
            return False
    return True


@pytest.mark.parametrize("section", SECTIONS)
def test_fields_exist(section: str) -> None:
    table = [row for row in rows(section) if len(row) == 3]
    named = {name.partition(":")[0] for _, ours, _ in table[1:] for name in re.findall(r"`([^`]+)`", ours)}
    assert sorted(name for name in named - {"metadata.name"} if not is_field(name)) == []
    assert len(table) > 15


def test_tpu_types_are_the_shapes_beside_them() -> None:
    told, true = [], []
    for types, accelerator, topology, size in (row for row in rows("xpk") if len(row) == 4 and row[0] != "type"):
        chips_per_host = re.search(r"`chipsPerHost: (\d)`", size)
        shape = resolve(accelerator, topology, chips_per_host=int(chips_per_host[1]) if chips_per_host else None)
        told.append((types.split("`")[1], *(int(number) for number in re.findall(r"(\d+) (?:chip|host)", size))))
        true.append((shape.tpu_accelerator_type_env, shape.chips, shape.hosts))
    assert told == true
    assert len(told) == 8


def test_limits_are_those_of_the_rules() -> None:
    (one, several), limit = (MIN_RAY, MIN_RAY_SEVERAL_SLICES), re.findall(r"at most (\d+) characters", JOB_NAME)[0]
    said = f"{one[0]}.{one[1]} or later, {several[0]}.{several[1]} for several slices", f"at most {limit} characters"
    assert [text for text in said if text not in PAGE] == []
