"""RFC 3339 in UTC and whole seconds, as Kubernetes writes metav1.Time; datetime inside, a string in the object."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema


def format_time(moment: datetime) -> str:
    """`2026-11-30T12:00:00Z`. Raises ValueError for a moment without a zone."""
    return to_second(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """A moment in UTC and whole seconds; takes every RFC 3339 form, metav1.MicroTime too."""
    return to_second(datetime.fromisoformat(text))


def to_second(moment: datetime) -> datetime:
    """The moment in UTC without its fraction, so that what is kept in memory equals what is read back."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).replace(microsecond=0)


def _load(value: object) -> object:
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, datetime):
        return to_second(value)
    return value


Timestamp = Annotated[
    datetime,
    BeforeValidator(_load),
    PlainSerializer(format_time, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
