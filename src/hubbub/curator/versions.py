"""Version names of the data. A hash would tell neighboring datasets apart, so a version has a random name.

A name is a counter and, after a dash, random digits: `4-9f2c66c1d0a87be3`. The random part makes names unique even if
this file is lost. Older versions of hubbub wrote the counter alone.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hubbub.core.secret import Secret
from hubbub.errors import LedgerError
from hubbub.private_files import open_private, private_file


class Versions:
    """The version name of each fingerprint, in a file beside the ledger that only its owner can read.

    Theorem (No name twice). However often the file is lost, restored from a backup, or split between servers, two
    states of a dataset never get the same name (but with probability 2⁻⁶⁴ a pair). So an answer is replayed only on
    the data that it was drawn from.
    Proof    A name is given to a fingerprint in one place, `_new_name`, with 64 bits drawn at that moment, and is never
             changed afterwards. A file that is lost gives new names to old states: they are paid for once more. Two
             files give one state two names: the same. A backup holds names of the fingerprints they were drawn for.
    Assumes  different states have different fingerprints: see the engines. Names that are bare numbers come from
             older versions of hubbub, which counted, and stay as they are in their file.
    Charges  nothing.
    Tested   tests/curator/test_versions.py::test_no_state_gets_the_name_of_another_whatever_becomes_of_the_file
             tests/curator/test_versions.py::test_a_lost_file_does_not_replay_another_states_answer
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def name(self, dataset: str, fingerprint: Secret[bytes]) -> str:
        """Give the version name of this state of a dataset, a new one if the state is new."""
        return fingerprint.through(lambda value: self._name(dataset, value.hex()))

    def refresh(self, dataset: str) -> None:
        """Treat the data as changed whatever its fingerprint: it gets a new version when it is next used."""
        with self._known() as known:
            # keep the counter, under a name that is not a fingerprint
            known[dataset] = {"": _count(known.get(dataset, {}))}

    def _name(self, dataset: str, fingerprint: str) -> str:
        with self._known() as known:
            names = known.setdefault(dataset, {})
            if fingerprint not in names:
                names[fingerprint] = _new_name(_count(names) + 1)
            return str(names[fingerprint])

    @contextmanager
    def _known(self) -> Iterator[dict[str, dict[str, int | str]]]:
        """Yield the version names of all datasets, and save changes."""
        try:
            with private_file(self._path.with_suffix(".lock"), "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                text = self._path.read_text() if self._path.exists() else "{}"
                known: dict[str, dict[str, int | str]] = json.loads(text)
                yield known
                if (now := json.dumps(known)) != text:
                    self._write(now)
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise LedgerError(
                "HB317",
                f"The list of data versions {self._path} cannot be used. Nothing was charged.",
                "Make it writable for this user. If it is corrupt, remove it; every dataset then gets a new version.",
            ) from error

    def _write(self, text: str) -> None:
        """Replace the file atomically, so that a crash leaves the old or the new one."""
        new = self._path.with_suffix(".new")
        file = open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(file, text.encode())
            os.fsync(file)
        finally:
            os.close(file)
        new.replace(self._path)


def _new_name(number: int) -> str:
    return f"{number}-{secrets.token_hex(8)}"


def _count(names: dict[str, int | str]) -> int:
    """Give the largest counter among these names; it is for people only."""
    return max((int(str(name).partition("-")[0]) for name in names.values()), default=0)
