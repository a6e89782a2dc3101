"""Kubernetes quantities: `500m`, `64Gi`, `1e9`."""

import re
from decimal import Decimal
from typing import Final

_FORM: Final = re.compile(r"([+-]?[0-9]*\.?[0-9]+|[+-]?[0-9]+\.)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")
_UNITS: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


def quantity(value: int | float | str) -> Decimal | None:
    """The amount in base units (cores, bytes); None if it is no quantity, which the apiserver will say."""
    match = _FORM.fullmatch(str(value).strip())
    if match is None:
        return None
    number, unit, exponent = match.groups()
    return Decimal(number) * (_UNITS[unit] if unit else Decimal(10) ** int(exponent or 0))
