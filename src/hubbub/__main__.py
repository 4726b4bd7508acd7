"""`python -m hubbub`: the same as the command `hubbub`."""

import sys

from hubbub.cli import main

sys.exit(main())
