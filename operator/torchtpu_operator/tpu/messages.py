"""What is said about a shape that does not exist, and what to write instead.

The CRDs say the same words (`api/rules.py` turns these templates into CEL): no logic here that CEL cannot follow.
"""

import math
import re

from torchtpu_operator.tpu.catalogue import CATALOGUE, Generation

SIZE_SUFFIX = "^(.+)-[0-9]+$"
TOPOLOGY_FORM = "^[1-9][0-9]{0,3}x[1-9][0-9]{0,3}(x[1-9][0-9]{0,3})?$"

UNKNOWN_ACCELERATOR = 'accelerator "{accelerator}" is not known: use one of {known}'
MEANT_ACCELERATOR = 'accelerator "{accelerator}" is not known: did you mean "{meant}"?'
SIZED_ACCELERATOR = (
    'accelerator "{accelerator}" carries a size: write accelerator "{meant}" and give the size as topology, '
    "for example {example}"
)
MALFORMED_TOPOLOGY = 'topology "{topology}" is not of the form AxB or AxBxC (digits and lower-case x, no spaces)'
MEANT_TOPOLOGY = MALFORMED_TOPOLOGY + ': did you mean "{meant}"?'
NO_SUCH_TOPOLOGY = 'accelerator {accelerator} has no topology "{topology}": {available}'
NO_CHOICE_OF_HOST = "{accelerator} {topology} has {only} chips per host: remove chipsPerHost or set it to {only}"
CHOICE_OF_HOST = "{accelerator} {topology} has a choice of chips per host: {choices}"


def accelerator_meant(accelerator: str) -> tuple[str | None, bool]:
    """The generation that a misspelt name stands for, and whether a size was stuck to it (`v6e-16`)."""
    plain = accelerator.strip().lower()
    sized = re.match(SIZE_SUFFIX, plain)
    for candidate in (plain, sized.group(1) if sized else plain):
        for name, generation in CATALOGUE.items():
            if candidate == name or candidate in generation.misspellings:
                return name, candidate != plain
    return None, False


def unknown_accelerator(accelerator: str) -> str:
    meant, sized = accelerator_meant(accelerator)
    if meant is None:
        return UNKNOWN_ACCELERATOR.format(accelerator=accelerator, known=", ".join(CATALOGUE))
    if sized:
        example = "4x4" if CATALOGUE[meant].dimensions == 2 else "2x2x2"
        return SIZED_ACCELERATOR.format(accelerator=accelerator, meant=meant, example=example)
    return MEANT_ACCELERATOR.format(accelerator=accelerator, meant=meant)


def tidy_topology(topology: str) -> str:
    """The topology as it was probably meant: `2X4`, ` 4x4`, `4*4`, `4×4` and `4,4` in the form that GKE knows."""
    return re.sub("[X*×,]", "x", topology.replace(" ", ""))


def available(generation: Generation) -> str:
    """The topologies of a generation, in words."""
    listed = ", ".join(generation.shapes)
    limit = generation.cube_max_chips
    if limit is None:
        return f"it has {listed}"
    return f"it has {listed} and larger AxBxC with A <= B <= C, each a multiple of 4, up to {limit} chips"


def unknown_topology(generation: Generation, topology: str) -> str:
    if not re.match(TOPOLOGY_FORM, topology):
        tidy = tidy_topology(topology)
        if re.match(TOPOLOGY_FORM, tidy):
            return MEANT_TOPOLOGY.format(topology=topology, meant=tidy)
        return MALFORMED_TOPOLOGY.format(topology=topology)
    return NO_SUCH_TOPOLOGY.format(accelerator=generation.name, topology=topology, available=available(generation))


def wrong_chips_per_host(generation: Generation, topology: str, *, choices: tuple[int, ...], given: int) -> str:  # noqa: ARG001
    if len(choices) == 1:
        return NO_CHOICE_OF_HOST.format(accelerator=generation.name, topology=topology, only=choices[0])
    chips = math.prod(int(edge) for edge in topology.split("x"))
    words = " or ".join(f"{choice} ({chips // choice} host{'s' if choice < chips else ''})" for choice in choices)
    return CHOICE_OF_HOST.format(accelerator=generation.name, topology=topology, choices=words)
