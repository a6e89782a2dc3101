"""Faults by name."""

import pytest

from sim.faults import FaultError, FaultRegistry


async def vanish(node: str, after: str = "0") -> str:
    return f"{node} vanishes after {after} s"


@pytest.fixture
def registry() -> FaultRegistry:
    made = FaultRegistry()
    made.register("node-vanish", "A host dies.", vanish)
    return made


async def test_a_fault_gets_its_parameters(registry: FaultRegistry) -> None:
    assert await registry.inject("node-vanish", {"node": "n1", "after": "2"}) == "n1 vanishes after 2 s"


def test_the_usage_shows_what_is_needed_and_what_is_assumed(registry: FaultRegistry) -> None:
    assert [fault.usage for fault in registry.list()] == ["node-vanish node=... [after=0]"]


REFUSED = {
    "an unknown fault": ("node-vanishes", {}, "no fault 'node-vanishes'; there are node-vanish"),
    "a missing parameter": (
        "node-vanish",
        {},
        "node-vanish: missing a required argument: 'node'; usage: node-vanish node=... [after=0]",
    ),
    "an unknown parameter": (
        "node-vanish",
        {"node": "n1", "pod": "p"},
        "node-vanish: got an unexpected keyword argument 'pod'; usage: node-vanish node=... [after=0]",
    ),
}


@pytest.mark.parametrize(("name", "parameters", "want"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_meant_is_refused_with_the_fix(
    name: str, parameters: dict[str, str], want: str, registry: FaultRegistry
) -> None:
    with pytest.raises(FaultError) as caught:
        await registry.inject(name, parameters)
    assert str(caught.value) == want


def test_a_name_is_given_once(registry: FaultRegistry) -> None:
    with pytest.raises(ValueError, match="'node-vanish' is registered twice"):
        registry.register("node-vanish", "", vanish)
