"""What ends a command with exit code 1."""

from collections.abc import Sequence


class CommandError(Exception):
    """Problems that the user can mend, one line each: the field's path or the file, then what to do."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)
