"""One study in a process of its own: `python -m hubbub.attacks.study_worker`, started by the server's Attack lab.

It reads one order from standard input, runs the attack or the study of a crowd sanitizer, and writes lines of JSON: its
progress, and finally the study or the error. Its order and environment contain no configuration, ledger, address or
secret of the server. It exits and deletes its folder when the server goes away.

Tested in tests/server/test_attack_lab.py.
"""

import ctypes
import json
import os
import resource
import shutil
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hubbub.attacks import table as tables
from hubbub.attacks import upload
from hubbub.attacks.base import AttackStudy
from hubbub.attacks.catalogue import find_attack
from hubbub.attacks.table import AttackTable
from hubbub.crowd.studies.base import CrowdStudy
from hubbub.crowd.studies.catalogue import find_study
from hubbub.errors import HubbubError

#: Public tables that ship with hubbub, by name, with their path in the package.
BUNDLED: Mapping[str, str] = {"health": "demo/health.csv"}
UPLOAD = "upload"
MADE_UP = "made up"

_NOT_DUMPABLE = 4
_FILE = 256 << 20  # maximum bytes per file, for a temporary ledger and table


def bundled(name: str) -> AttackTable:
    """Read a table that ships with hubbub."""
    return tables.read(Path(str(files("hubbub"))) / BUNDLED[name])


def confine(*, memory: int, seconds: int) -> None:
    """Limit the resources of this process, and make it the first candidate of the out-of-memory killer."""
    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, _FILE),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (bound, bound))
    with suppress(OSError):
        os.nice(10)  # queries come first
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_NOT_DUMPABLE, 0, 0, 0, 0)  # no core dump, and other processes cannot read its memory


def study(order: Mapping[str, Any], report: Any) -> AttackStudy | CrowdStudy:
    """Run an order: a study of a crowd sanitizer, or an attack."""
    if "crowd" in order:
        entry = find_study(order["crowd"])
        return entry.run(rng=np.random.default_rng(), settings=order["settings"], progress=report)
    attack, chosen = find_attack(order["attack"]), order["table"]
    given = None if chosen == MADE_UP else upload.table(order["csv"]) if chosen == UPLOAD else bundled(chosen)
    return attack.run(
        given,
        epsilons=order["epsilons"],
        settings=order["settings"],
        generator=np.random.default_rng(),
        progress=report,
    )


def main(inlet: BinaryIO, outlet: BinaryIO) -> None:
    """Read an order, run it, and write the result."""
    order = json.loads(inlet.readline())
    confine(memory=order["memory"], seconds=order["seconds"])
    threading.Thread(target=_watch, args=[inlet], daemon=True).start()
    lock = threading.Lock()

    def send(**message: object) -> None:
        with lock:
            outlet.write(json.dumps(message).encode() + b"\n")
            outlet.flush()

    try:
        result = study(order, lambda done, step: send(progress=[done, step]))
        send(study=result.to_json())
    except HubbubError as error:
        send(problem=[error.code, error.message, error.remedy])
    except MemoryError:
        send(problem=["HB648", "The study exceeded its memory limit.", "Use smaller settings."])


def _watch(inlet: BinaryIO) -> None:
    """Exit at once when the other end is closed."""
    inlet.read()
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    out = os.dup(1)
    os.dup2(2, 1)  # output of libraries must not mix with messages
    main(sys.stdin.buffer, os.fdopen(out, "wb"))
