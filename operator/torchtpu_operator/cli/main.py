"""Entry point of `torchtpu`: parse the command line, run the command, report what went wrong on stderr."""

import argparse
import sys
from collections.abc import Sequence

from torchtpu_operator.cli import plan
from torchtpu_operator.cli.errors import CommandError


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(prog="torchtpu", description="Run PyTorch on Cloud TPU slices with TorchTPUJob.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plan.add_command(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 with one line per problem on stderr; 2 for a wrong command line."""
    options = build_parser().parse_args(argv)
    try:
        text: str = options.run(options)
    except CommandError as error:
        for line in error.lines:
            print(line, file=sys.stderr)
        return 1
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough (| head): Python must not complain at exit
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
