"""`python -m advisor`: the command `advisor`."""

import sys

from advisor.cli import main

sys.exit(main())
