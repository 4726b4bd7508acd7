"""Settings by which the threads of a server share its cores.

Tested in tests/server/test_side_channels.py.
"""

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

#: Thread switch interval in seconds. With Python's default of 5 ms, each step of a request would wait that long for
#: every other computing thread.
_TURN = 0.001
_NAMES = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


def share_cores() -> None:
    """Shorten the thread switch interval, and limit OpenBLAS to one thread per request.

    OpenBLAS splits each product over all cores and spins until all parts are done. With several concurrent requests
    the parts wait for each other: work of 0.5 s on one core took 40 s.
    """
    sys.setswitchinterval(_TURN)
    import numpy  # noqa: F401 - loads the library to be configured

    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text()
        for path in {line.split()[-1] for line in maps.splitlines() if "openblas" in line}:
            library = ctypes.CDLL(path)
            for name in _NAMES:
                if hasattr(library, name):
                    getattr(library, name)(1)
