"""Rules about accelerator, topology, chips per host and number of slices, generated from the TPU catalogue."""

from typing import Final, Protocol

from torchtpu_operator.api.constants import MAX_SLICES
from torchtpu_operator.api.job import JobSpec, Launcher
from torchtpu_operator.api.rule import REQUIRED, Rule, cel_list, cel_map, cel_string, cel_text
from torchtpu_operator.tpu import CATALOGUE, messages

NO_ACCELERATOR: Final = f"accelerator is required: one of {', '.join(CATALOGUE)}"
NO_TOPOLOGY: Final = "topology is required: the chips of one slice, for example 4x4 (v5e, v6e) or 2x2x2 (v4, v5p, v7x)"
NUM_SLICES: Final = f"numSlices is {{count}}: a job takes 1 to {MAX_SLICES} slices"
SINGLE_HOSTS: Final = (
    "numSlices is {count}, but a slice {accelerator} {topology} is a single host, and {launcher} cannot join those: "
    "choose a topology of several hosts such as {example}, or launcher Driver"
)

# Guards are spelt with has(): an optional's orValue() hides maxLength from the cost estimate.
_A = "self.accelerator"
_T = "self.topology"
_GIVEN = "has(self.accelerator) && has(self.topology)"
_SPELLINGS = cel_map(messages.spellings())
_EXPLICIT = {
    f"{name} {topology}": choices for name, gen in CATALOGUE.items() for topology, choices in gen.shapes.items()
}
_CUBES = {name: gen.cube_max_chips for name, gen in CATALOGUE.items() if gen.cube_max_chips is not None}
_KEY = f"({_A} + ' ' + {_T})"
_EDGES = f"{_T}.split('x').map(e, int(e))"
_FORM = cel_string(messages.TOPOLOGY_FORM)
_IS_CUBE = (
    f"({_A} in {cel_map(_CUBES)} && {_T}.matches('^[1-9][0-9]{{0,3}}x[1-9][0-9]{{0,3}}x[1-9][0-9]{{0,3}}$')"
    f" && [{_EDGES}].all(d, d[0] <= d[1] && d[1] <= d[2] && d[0] % 4 == 0 && d[1] % 4 == 0 && d[2] % 4 == 0"
    f" && d[0] * d[1] * d[2] > 64 && d[0] * d[1] * d[2] <= {cel_map(_CUBES)}[{_A}]))"
)
_EXISTS = f"({_KEY} in {cel_map(_EXPLICIT)} || {_IS_CUBE})"


class HasShape(Protocol):
    """Specs with the three fields that make a shape: of jobs and of slices."""

    @property
    def accelerator(self) -> str: ...
    @property
    def topology(self) -> str: ...
    @property
    def chips_per_host(self) -> int | None: ...


def _accelerator_given(spec: HasShape) -> str | None:
    return None if spec.accelerator else NO_ACCELERATOR


def _accelerator_known(spec: HasShape) -> str | None:
    if not spec.accelerator or spec.accelerator in CATALOGUE:
        return None
    return messages.unknown_accelerator(spec.accelerator)


def generation_message(name: str) -> str:
    """As CEL, what messages.unknown_generation says about the name that this expression yields."""
    plain = _plain(name)
    base = f"{plain}.substring(0, {plain}.lastIndexOf('-'))"
    return (
        f"{plain} in {_SPELLINGS} ? "
        + cel_text(messages.MEANT_ACCELERATOR, accelerator=name, meant=f"{_SPELLINGS}[{plain}]")
        + f" : {plain}.matches({cel_string(messages.SIZED)}) && {base} in {_SPELLINGS} ? "
        + cel_text(messages.MEANT_ACCELERATOR, accelerator=name, meant=f"{_SPELLINGS}[{base}]")
        + f" : {cel_text(messages.UNKNOWN_ACCELERATOR, accelerator=name, known=cel_string(', '.join(CATALOGUE)))}"
    )


def _plain(name: str) -> str:
    plain = f"{name}.lowerAscii().trim()"
    for separator in messages.SEPARATORS:
        plain += f".replace({cel_string(separator)}, '-')"
    return plain


def _accelerator_message() -> str:
    plain = _plain(_A)
    base = f"{plain}.substring(0, {plain}.lastIndexOf('-'))"
    flat = cel_list(name for name, gen in CATALOGUE.items() if gen.dimensions == 2)
    meant = f"{_SPELLINGS}[{plain}]"
    sized = f"{_SPELLINGS}[{base}]"
    size = f"({sized} + {plain}.substring({plain}.lastIndexOf('-')))"
    sizes = cel_map(messages.sizes())
    return (
        f"{plain} in {_SPELLINGS} ? {cel_text(messages.MEANT_ACCELERATOR, accelerator=_A, meant=meant)}"
        f" : {plain}.matches({cel_string(messages.SIZED)}) && {base} in {_SPELLINGS} ? "
        + cel_text(
            messages.SIZED_ACCELERATOR,
            accelerator=_A,
            meant=sized,
            example=f"({size} in {sizes} ? {sizes}[{size}] : {sized} in {flat} ? '4x4' : '2x2x2')",
        )
        + f" : {cel_text(messages.UNKNOWN_ACCELERATOR, accelerator=_A, known=cel_string(', '.join(CATALOGUE)))}"
    )


def _topology_given(spec: HasShape) -> str | None:
    return None if spec.topology else NO_TOPOLOGY


def _choices(spec: HasShape) -> tuple[int, ...]:
    generation = CATALOGUE.get(spec.accelerator)
    return generation.chips_per_host_choices(spec.topology) if generation else ()


def _topology_exists(spec: HasShape) -> str | None:
    if spec.accelerator not in CATALOGUE or not spec.topology or _choices(spec):
        return None
    return messages.unknown_topology(CATALOGUE[spec.accelerator], spec.topology)


def _topology_message() -> str:
    tidy = _T
    for wrong, right in messages.TOPOLOGY_TYPOS:
        tidy += f".replace({cel_string(wrong)}, {cel_string(right)})"
    words = cel_map({name: messages.available(gen) for name, gen in CATALOGUE.items()})
    none = cel_text(messages.NO_SUCH_TOPOLOGY, accelerator=_A, topology=_T, available=f"{words}[{_A}]")
    count, counts = f"({_A} + '-' + {_T})", cel_map(messages.chip_counts())
    return (
        f"!{_T}.matches({_FORM}) ? ({count} in {counts}"
        f" ? {cel_text(messages.TYPO_IN_TOPOLOGY, topology=_T, meant=f'{counts}[{count}]')}"
        f" : !{tidy}.matches({_FORM}) ? {cel_text(messages.MALFORMED_TOPOLOGY, topology=_T)}"
        f" : {_is_sold(tidy)}"
        f" ? {cel_text(messages.TYPO_IN_TOPOLOGY, topology=_T, meant=_ordered(tidy))} : {none})"
        f" : {_is_sold(_T)}"
        f" ? {cel_text(messages.MEANT_TOPOLOGY, accelerator=_A, topology=_T, meant=_ordered(_T))} : {none}"
    )


def _edges(topology: str) -> str:
    return f"{topology}.split('x').map(e, int(e))"


def _ordered(topology: str) -> str:
    """As CEL, the topology with the smaller edges first: of three, the middle one is what the others leave."""
    low, high, total = (f"{_edges(topology)}.{function}()" for function in ("min", "max", "sum"))
    pair = f"'%dx%d'.format([{low}, {high}])"
    return f"({_edges(topology)}.size() == 2 ? {pair} : '%dx%dx%d'.format([{low}, {total} - {low} - {high}, {high}]))"


def _is_sold(topology: str) -> str:
    """As CEL, whether the generation has it in whatever order."""
    cube = (
        f"({_A} in {cel_map(_CUBES)} && {_edges(topology)}.size() == 3 && {_edges(topology)}.all(e, e % 4 == 0)"
        f" && [{_edges(topology)}].all(d, d[0] * d[1] * d[2] > 64 && d[0] * d[1] * d[2] <= {cel_map(_CUBES)}[{_A}]))"
    )
    return f"('%s %s'.format([{_A}, {_ordered(topology)}]) in {cel_map(_EXPLICIT)} || {cube})"


def _chips_per_host(spec: HasShape) -> str | None:
    choices = _choices(spec)
    if spec.chips_per_host is None or not choices or spec.chips_per_host in choices:
        return None
    return messages.wrong_chips_per_host(CATALOGUE[spec.accelerator], spec.topology, choices=choices)


def _chips_per_host_message() -> str:
    words = cel_map(
        {
            key: messages.choices_in_words(key.split(" ")[1], choices)
            for key, choices in _EXPLICIT.items()
            if len(choices) > 1
        }
    )
    only = cel_map({key: str(choices[0]) for key, choices in _EXPLICIT.items()})
    return (
        f"{_KEY} in {words} ? "
        + cel_text(messages.CHOICE_OF_HOST, accelerator=_A, topology=_T, choices=f"{words}[{_KEY}]")
        + " : "
        + cel_text(
            messages.NO_CHOICE_OF_HOST, accelerator=_A, topology=_T, only=f"({_KEY} in {only} ? {only}[{_KEY}] : '4')"
        )
    )


def _num_slices(spec: JobSpec) -> str | None:
    return None if 1 <= spec.num_slices <= MAX_SLICES else NUM_SLICES.format(count=spec.num_slices)


def _several_single_hosts(spec: JobSpec) -> str | None:
    choices = _choices(spec)
    if spec.num_slices <= 1 or spec.launcher is Launcher.DRIVER or not choices:
        return None
    per_host = choices[0] if spec.chips_per_host is None else spec.chips_per_host
    if per_host not in choices or per_host != _chips(spec.topology):
        return None
    return SINGLE_HOSTS.format(
        count=spec.num_slices,
        accelerator=spec.accelerator,
        topology=spec.topology,
        launcher=spec.launcher,
        example=messages.example_topology(CATALOGUE[spec.accelerator]),
    )


def _chips(topology: str) -> int:
    chips = 1
    for edge in topology.split("x"):
        chips *= int(edge)
    return chips


def _single_host_rule() -> Rule:
    single = {key: choices[0] for key, choices in _EXPLICIT.items() if choices[0] == _chips(key.split(" ")[1])}
    examples = cel_map({name: messages.example_topology(gen) for name, gen in CATALOGUE.items()})
    per_host = f"{cel_map(single)}[{_KEY}]"
    return Rule(
        id="several-single-hosts",
        at=("spec",),
        field=".numSlices",
        cel=(
            f"self.numSlices <= 1 || self.launcher == 'Driver' || !({_GIVEN}) || !({_KEY} in {cel_map(single)})"
            f" || (has(self.chipsPerHost) && self.chipsPerHost != {per_host})"
        ),
        message="several slices need a topology of several hosts, or launcher Driver",
        message_expression=cel_text(
            SINGLE_HOSTS,
            count="self.numSlices",
            accelerator=_A,
            topology=_T,
            launcher="self.launcher",
            example=f"{examples}[{_A}]",
        ),
        check=_several_single_hosts,
    )


SHAPE_EXISTS: Final = (
    Rule(
        id="accelerator-given",
        at=("spec",),
        field=".accelerator",
        cel="has(self.accelerator) && self.accelerator != ''",
        message=NO_ACCELERATOR,
        check=_accelerator_given,
        reason=REQUIRED,
    ),
    Rule(
        id="topology-given",
        at=("spec",),
        field=".topology",
        cel="has(self.topology) && self.topology != ''",
        message=NO_TOPOLOGY,
        check=_topology_given,
        reason=REQUIRED,
    ),
    Rule(
        id="accelerator-known",
        at=("spec",),
        field=".accelerator",
        cel=f"!has(self.accelerator) || {_A} in {cel_list(['', *CATALOGUE])}",
        message=f"accelerator is not known: use one of {', '.join(CATALOGUE)}",
        message_expression=_accelerator_message(),
        check=_accelerator_known,
    ),
    Rule(
        id="topology-exists",
        at=("spec",),
        field=".topology",
        cel=f"!({_GIVEN}) || !({_A} in {cel_list(CATALOGUE)}) || {_T} == '' || {_EXISTS}",
        message="topology is not of the form AxB or AxBxC (digits and lower-case x, no spaces)",
        message_expression=_topology_message(),
        check=_topology_exists,
    ),
    Rule(
        id="chips-per-host",
        at=("spec",),
        field=".chipsPerHost",
        cel=(
            f"!has(self.chipsPerHost) || !({_GIVEN}) || ({_KEY} in {cel_map(_EXPLICIT)}"
            f" ? self.chipsPerHost in {cel_map(_EXPLICIT)}[{_KEY}] : self.chipsPerHost == 4 || !{_IS_CUBE})"
        ),
        message="chipsPerHost does not fit the topology: remove it",
        message_expression=_chips_per_host_message(),
        check=_chips_per_host,
    ),
)

SHAPE_RULES: Final = (
    *SHAPE_EXISTS,
    Rule(
        id="num-slices",
        at=("spec",),
        field=".numSlices",
        cel=f"self.numSlices >= 1 && self.numSlices <= {MAX_SLICES}",
        message=f"a job takes 1 to {MAX_SLICES} slices",
        message_expression=cel_text(NUM_SLICES, count="self.numSlices"),
        check=_num_slices,
    ),
    _single_host_rule(),
)
