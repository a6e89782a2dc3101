"""`python3 -m sim.tools build | list | path BINARY`: the bench's programs, without any dependency."""

import argparse
import sys

from sim.tools.build import BuildError, build_all
from sim.tools.catalogue import OLDER_KUBERNETES, PROGRAMS, ToolMissingError, cache_dir, path

_ALL = (*PROGRAMS, *OLDER_KUBERNETES)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m sim.tools", description="The bench's programs, built from their Go modules."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build what is missing (what the bench needs, or those named)")
    build.add_argument("program", nargs="*", choices=[[], *(program.name for program in _ALL)], metavar="PROGRAM")
    commands.add_parser("list", help="programs, versions and where they lie")
    commands.add_parser("path", help="where one built program lies").add_argument("binary")
    arguments = parser.parse_args(argv)
    try:
        match arguments.command:
            case "build":
                chosen = [p for p in _ALL if p.name in arguments.program] or PROGRAMS
                build_all(chosen, cache=cache_dir())
            case "list":
                for program in _ALL:
                    directory = program.directory(cache_dir())
                    state = "built" if directory.is_dir() else "missing"
                    print(f"{program.name:<15} {program.version:<9} {state:<8} {directory}")
            case "path":
                print(path(arguments.binary))
    except (BuildError, ToolMissingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nbroken off; the next `make tools` goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
