"""Numbers for the states of the data. A hash of the data would tell neighbours apart, so analysts see a number."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hubbub.accounting.store import Filter, Snapshot
from hubbub.core.private_files import open_private, private_file
from hubbub.core.secret import Secret
from hubbub.errors import LedgerError


class Versions:
    """Remembers, in a file beside the ledger that only its owner can read, which fingerprint has which number.

    Numbers only rise. Where the file was lost, `newest` (from the ledger) keeps an old number from being used again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def number(self, dataset: str, fingerprint: Secret[bytes], newest: Callable[[], int]) -> int:
        """Give the number of this state of a data set, a new one where it was never seen."""
        return fingerprint.through(lambda found: self._number(dataset, found.hex(), newest))

    def refresh(self, dataset: str, newest: Callable[[], int]) -> int:
        """Take the data for changed, whatever its fingerprint says; give the number that it will have."""
        with self._known() as known:
            # the numbers that were used stay used, under a name that is no fingerprint
            most = max([newest(), *known.get(dataset, {}).values()])
            known[dataset] = {"": most}
        return most + 1

    def _number(self, dataset: str, found: str, newest: Callable[[], int]) -> int:
        with self._known() as known:
            numbers = known.setdefault(dataset, {})
            if found not in numbers:
                numbers[found] = 1 + max([newest(), *numbers.values()])
            return numbers[found]

    @contextmanager
    def _known(self) -> Iterator[dict[str, dict[str, int]]]:
        """Lend the numbers of all data sets, and keep what was changed in them."""
        try:
            with private_file(self._path.with_suffix(".lock"), "a") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                text = self._path.read_text() if self._path.exists() else "{}"
                known: dict[str, dict[str, int]] = json.loads(text)
                yield known
                if (now := json.dumps(known)) != text:
                    self._write(now)
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise LedgerError(
                "HB317", f"the list of data versions {self._path} cannot be used. Nothing was charged.",
                "Give this user the right to write it; if it is damaged, remove it: numbers go on from the ledger's.",
            ) from error  # fmt: skip

    def _write(self, text: str) -> None:
        """Replace the file in one step, so that a crash leaves the old one or the new one."""
        new = self._path.with_suffix(".new")
        file = open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(file, text.encode())
            os.fsync(file)
        finally:
            os.close(file)
        new.replace(self._path)


def newest(snapshot: Snapshot, dataset: str) -> int:
    """Give the version that the last charge on a data set was made at; 0 where there is none."""
    entry = next(snapshot.entries(Filter(kind="charge", dataset=dataset), newest_first=True), None)
    return int(entry.version) if entry is not None else 0
