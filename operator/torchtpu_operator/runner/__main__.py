"""`python -m torchtpu_runner`: the entrypoint that the operator gives to Ray."""

import sys

from .driver import main

sys.exit(main())
