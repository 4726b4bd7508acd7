"""Settings by which the threads of a server share its cores.

Tested in tests/server/test_side_channels.py.
"""

import sys

from hubbub.core import matrix_threads

#: Thread switch interval in seconds. With Python's default of 5 ms, each step of a request would wait that long for
#: every other computing thread.
_TURN = 0.001


def share_cores() -> None:
    """Shorten the thread switch interval, and limit linear algebra to one thread per request."""
    sys.setswitchinterval(_TURN)
    matrix_threads.limit()
