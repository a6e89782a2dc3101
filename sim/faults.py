"""Named faults that a person or a test injects into a running bench: `sim fault NAME key=value ...`."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

FaultFunction = Callable[..., Awaitable[str]]
"""Keyword parameters are strings; returns the line that says what happened."""


class FaultError(Exception):
    """The fault cannot be injected: unknown, wrong parameters, or nothing there to break. The message says which."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    name: str
    help: str
    function: FaultFunction

    @property
    def usage(self) -> str:
        """`node-vanish node=... [after=0]`"""
        words = [self.name]
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.default is inspect.Parameter.empty:
                words.append(f"{parameter.name}=...")
            else:
                words.append(f"[{parameter.name}={parameter.default}]")
        return " ".join(words)


class FaultRegistry:
    """What can be broken. Every part of the bench registers its own."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}

    def register(self, name: str, help: str, function: FaultFunction) -> None:
        """Offer a fault. `function` is async, takes keyword strings and returns a line for the person.

        It raises FaultError when there is nothing to break. A name is given once.
        """
        if name in self._faults:
            raise ValueError(f"fault {name!r} is registered twice")
        self._faults[name] = Fault(name=name, help=help, function=function)

    def list(self) -> list[Fault]:
        """All faults by name."""
        return [self._faults[name] for name in sorted(self._faults)]

    async def inject(self, name: str, parameters: Mapping[str, str]) -> str:
        """Call the fault. Raises FaultError for an unknown name or parameters that it does not take."""
        fault = self._faults.get(name)
        if fault is None:
            raise FaultError(f"no fault {name!r}; there are {', '.join(sorted(self._faults)) or 'none'}")
        try:
            inspect.signature(fault.function).bind(**parameters)
        except TypeError as error:
            raise FaultError(f"{name}: {error}; usage: {fault.usage}") from error
        return await fault.function(**parameters)
