"""`python -m sim`: see `sim --help`."""

import sys

from sim.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
