"""How the threads of a server share its cores."""

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

#: Seconds after which a thread that computes lets another one run. Python's own 5 ms, times every thread that computes,
#: is what each step of every other request would wait.
_TURN = 0.001
_NAMES = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)


def share() -> None:
    """Let threads take short turns, and let each request compute on its own thread alone.

    numpy's OpenBLAS splits one product over all cores and spins until each part is done. Where several requests
    compute at once the parts wait for each other, and what takes 0.5 s of one core took 40 s.
    """
    sys.setswitchinterval(_TURN)
    import numpy  # noqa: F401 - its library must be there to be told

    with suppress(OSError):
        maps = Path("/proc/self/maps").read_text()
        for path in {line.split()[-1] for line in maps.splitlines() if "openblas" in line}:
            library = ctypes.CDLL(path)
            for name in _NAMES:
                if hasattr(library, name):
                    getattr(library, name)(1)
