"""What is said about a shape that does not exist, and what to write instead.

The CRDs say the same words (`api/shape_rules.py` turns these templates into CEL): no logic here that CEL cannot follow.
"""

import math
import re
from collections.abc import Sequence

from torchtpu_operator.tpu.catalogue import CATALOGUE, Generation

SIZED = "^.+-[0-9]+(x[0-9]+)*$"
SEPARATORS = ("_", " ", ":")  # people write these for the dash in a name
TOPOLOGY_FORM = "^[1-9][0-9]{0,3}x[1-9][0-9]{0,3}(x[1-9][0-9]{0,3})?$"
# spaces (also the one that web pages copy), and what looks like an x: the sign, and the Cyrillic and the wide letter
TOPOLOGY_TYPOS = (
    (" ", ""),
    ("\u00a0", ""),
    ("\t", ""),
    ("X", "x"),
    ("*", "x"),
    ("×", "x"),
    ("\u0445", "x"),
    ("\uff58", "x"),
    (",", "x"),
)

UNKNOWN_ACCELERATOR = 'accelerator "{accelerator}" is not known: use one of {known}'
MEANT_ACCELERATOR = 'accelerator "{accelerator}" is not known: did you mean "{meant}"?'
SIZED_ACCELERATOR = (
    'accelerator "{accelerator}" is not known: did you mean "{meant}"? Give the size as topology, for example {example}'
)
MALFORMED_TOPOLOGY = 'topology "{topology}" is not of the form AxB or AxBxC (digits and lower-case x, no spaces)'
TYPO_IN_TOPOLOGY = MALFORMED_TOPOLOGY + ': did you mean "{meant}"?'
MEANT_TOPOLOGY = 'accelerator {accelerator} has no topology "{topology}": did you mean "{meant}"?'
NO_SUCH_TOPOLOGY = 'accelerator {accelerator} has no topology "{topology}": {available}'
NO_CHOICE_OF_HOST = "{accelerator} {topology} has {only} chips per host: remove chipsPerHost or set it to {only}"
CHOICE_OF_HOST = "{accelerator} {topology} has a choice of chips per host: {choices}"


def _plain(accelerator: str) -> str:
    plain = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in accelerator).strip()
    for separator in SEPARATORS:
        plain = plain.replace(separator, "-")
    return plain


def accelerator_meant(accelerator: str) -> tuple[str | None, bool]:
    """The generation that a misspelt name stands for, and whether a size was stuck to it (`v6e-16`)."""
    plain, names = _plain(accelerator), spellings()
    if plain in names:
        return names[plain], False
    if re.fullmatch(SIZED, plain):
        return names.get(plain.rpartition("-")[0]), True
    return None, False


def spellings() -> dict[str, str]:
    """Every spelling that we recognise, the right ones included, in lower case, with the generation that it means."""
    return {spelling: name for name, generation in CATALOGUE.items() for spelling in _spellings(name, generation)}


def _spellings(name: str, generation: Generation) -> tuple[str, ...]:
    machines = [machine.machine_type for machine in generation.machines.values()]
    families = dict.fromkeys(machine.partition("-")[0] for machine in machines)
    return (
        name,
        *generation.misspellings,
        *machines,
        *(each for each in families if each not in generation.misspellings),
    )


def sizes() -> dict[str, str]:
    """`v6e-16` and `v6e-4x4` -> `4x4`: topologies by themselves and by the number that Cloud TPU's types count, which is
    of chips or (two per chip) of TensorCores."""
    return {
        f"{name}-{size}": topology
        for name, generation in CATALOGUE.items()
        for topology in generation.shapes
        for size in (_chips(topology) * generation.cores_per_chip, topology)
    }


def chip_counts() -> dict[str, str]:
    """The same for generations whose types count chips: there a bare number has one meaning."""
    return {
        f"{name}-{_chips(topology)}": topology
        for name, generation in CATALOGUE.items()
        if generation.cores_per_chip == 1
        for topology in generation.shapes
    }


def _chips(topology: str) -> int:
    return math.prod(int(edge) for edge in topology.split("x"))


def example_topology(generation: Generation) -> str:
    """The smallest topology with several hosts."""
    return "4x4" if generation.dimensions == 2 else "2x2x2"


def unknown_accelerator(accelerator: str) -> str:
    """For a name that is not in the catalogue."""
    meant, sized = accelerator_meant(accelerator)
    if meant is None:
        return UNKNOWN_ACCELERATOR.format(accelerator=accelerator, known=", ".join(CATALOGUE))
    if sized:
        size = _plain(accelerator).rpartition("-")[2]
        example = sizes().get(f"{meant}-{size}") or example_topology(CATALOGUE[meant])
        return SIZED_ACCELERATOR.format(accelerator=accelerator, meant=meant, example=example)
    return MEANT_ACCELERATOR.format(accelerator=accelerator, meant=meant)


def unknown_generation(accelerator: str) -> str:
    """The same where no size belongs, such as in the accelerators of an offer."""
    meant, _ = accelerator_meant(accelerator)
    if meant is None:
        return UNKNOWN_ACCELERATOR.format(accelerator=accelerator, known=", ".join(CATALOGUE))
    return MEANT_ACCELERATOR.format(accelerator=accelerator, meant=meant)


def available(generation: Generation) -> str:
    """The topologies of a generation, in words."""
    listed = ", ".join(generation.shapes)
    limit = generation.cube_max_chips
    if limit is None:
        return f"it has {listed}"
    return f"it has {listed} and larger AxBxC with A <= B <= C, each a multiple of 4, up to {limit} chips"


def unknown_topology(generation: Generation, topology: str) -> str:
    """For a topology that the generation does not have."""
    if not re.fullmatch(TOPOLOGY_FORM, topology):
        if meant := chip_counts().get(f"{generation.name}-{topology}"):
            return TYPO_IN_TOPOLOGY.format(topology=topology, meant=meant)
        tidy = topology
        for wrong, right in TOPOLOGY_TYPOS:
            tidy = tidy.replace(wrong, right)
        if not re.fullmatch(TOPOLOGY_FORM, tidy):
            return MALFORMED_TOPOLOGY.format(topology=topology)
        if generation.chips_per_host_choices(_ordered(tidy)):
            return TYPO_IN_TOPOLOGY.format(topology=topology, meant=_ordered(tidy))
    elif generation.chips_per_host_choices(_ordered(topology)):
        return MEANT_TOPOLOGY.format(accelerator=generation.name, topology=topology, meant=_ordered(topology))
    return NO_SUCH_TOPOLOGY.format(accelerator=generation.name, topology=topology, available=available(generation))


def _ordered(topology: str) -> str:
    return "x".join(map(str, sorted(map(int, topology.split("x")))))


def choices_in_words(topology: str, choices: Sequence[int]) -> str:
    """`8 (1 host) or 4 (2 hosts)`."""
    chips = _chips(topology)
    return " or ".join(f"{choice} ({chips // choice} host{'s' if choice < chips else ''})" for choice in choices)


def wrong_chips_per_host(generation: Generation, topology: str, *, choices: Sequence[int]) -> str:
    """For chips per host that the topology is not sold with."""
    if len(choices) == 1:
        return NO_CHOICE_OF_HOST.format(accelerator=generation.name, topology=topology, only=choices[0])
    words = choices_in_words(topology, choices)
    return CHOICE_OF_HOST.format(accelerator=generation.name, topology=topology, choices=words)
