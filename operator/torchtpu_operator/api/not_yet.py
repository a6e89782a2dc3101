"""What the schema has and nobody keeps the promise of yet: refused by a rule, so that nothing is silently ignored.

It stays in the schema, since stored objects must stay valid when it comes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from torchtpu_operator.api import constants
from torchtpu_operator.api.rule import FORBIDDEN, Rule, cel_list, cel_text


@dataclass(frozen=True, kw_only=True)
class NotYet:
    """A field, or some of its values, that later work brings."""

    at: str
    """Schema node that has the field: "spec.offers[*]"."""
    field: str
    attribute: str
    """The field's name in the model."""
    instead: str
    """What to do meanwhile."""
    values: tuple[str, ...] = ()
    """Only these values; empty: the field at all."""

    def says(self, value: object) -> str:
        """The refusal."""
        what = f"{self.field} {value}" if self.values else self.field
        return f"{what} is not yet supported: {self.instead}"

    def rule(self) -> Rule:
        given = f"has(self.{self.field})"
        refused = f"{given} && self.{self.field} in {cel_list(self.values)}" if self.values else given
        return Rule(
            id=f"not-yet-{self.at}-{self.field}",
            at=(self.at,),
            field=f".{self.field}",
            cel=f"!({refused})",
            message=f"{self.field} is not yet supported: {self.instead}",
            message_expression=cel_text(self.says("{value}"), value=f"self.{self.field}") if self.values else None,
            check=self._check,
            reason=FORBIDDEN,
        )

    def _check(self, node: Any) -> str | None:
        value = getattr(node, self.attribute)
        if value is None or (self.values and value not in self.values):
            return None
        return self.says(value)


_OFFER: Final = (
    ("type", "type", ("FlexStart", "Existing"), "use OnDemand, Spot or Reservation"),
    ("provisioning", "provisioning", ("ScaleUp",), "use Create"),
)

NOT_YET: Final[Mapping[str, tuple[NotYet, ...]]] = {
    constants.JOB_KIND: (),
    constants.CLASS_KIND: tuple(
        NotYet(at="spec.offers[*]", field=field, attribute=attribute, values=values, instead=instead)
        for field, attribute, values, instead in _OFFER
    ),
    constants.SLICE_KIND: tuple(
        NotYet(
            at="spec.offer",
            field=field,
            attribute=attribute,
            values=tuple(
                value for value in values if value != "Existing"
            ),  # a pool of one's own, adopted by hand, works
            instead=instead,
        )
        for field, attribute, values, instead in _OFFER
    ),
}
