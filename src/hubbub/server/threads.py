"""Settings by which the threads of a server share its cores.

Tested in tests/server/test_threads.py and tests/server/test_side_channels.py.
"""

import gc
import sys

from hubbub.core import matrix_threads

#: Thread switch interval in seconds. With Python's default of 5 ms, each step of a request would wait that long for
#: every other computing thread.
_TURN = 0.001


#: Objects that may be made before Python looks for cycles among the youngest. With its default of 700 it did so several
#: times for each request, which took a twelfth of the processor time; requests leave hardly any cycles.
_YOUNG = 20_000


def share_cores() -> None:
    """Shorten the thread switch interval, and limit linear algebra to one thread per request."""
    sys.setswitchinterval(_TURN)
    matrix_threads.limit()


def collect_seldom() -> None:
    """Look for cycles less often, and never among the objects that exist when the server starts."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)
