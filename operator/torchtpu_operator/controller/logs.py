"""Structured logs: one JSON object a line, with the fields of what is being worked on. Never env, tokens or Secrets."""

import contextlib
import contextvars
import logging
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter

_fields: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar("log_fields", default=MappingProxyType({}))


@contextlib.contextmanager
def about(**fields: str) -> Iterator[None]:
    """Every line written inside carries these fields: job, slice, attempt, pool."""
    token = _fields.set({**_fields.get(), **{name: value for name, value in fields.items() if value}})
    try:
        yield
    finally:
        _fields.reset(token)


class _Fields(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in _fields.get().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def configure(level: str, *, stream: TextIO | None = None) -> None:
    """JSON on the root logger; the libraries speak from WARNING on."""
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.addFilter(_Fields())
    handler.setFormatter(
        JsonFormatter(
            "%(asctime)s %(levelname)s %(name)s %(message)s",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            datefmt="%Y-%m-%dT%H:%M:%S%z",
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in ("kopf", "aiohttp", "google", "urllib3", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # Its warning that KubeRay's kind is not there comes with every CRD that anybody installs; the jobs themselves say it.
    logging.getLogger("kopf._core.reactor.observation").setLevel(logging.ERROR)
