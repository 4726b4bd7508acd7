"""Version names of the data. A hash would tell neighboring datasets apart, so a version has a random name.

A name is a counter and, after a dash, random digits: `4-9f2c66c1d0a87be3`. The random part makes names unique even if
this file is lost. Older versions of hubbub wrote the counter alone. A block has the name of the table in which it
last changed; several blocks have their common name, or a hash of their names instead of random digits.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from hubbub.core.secret import Secret
from hubbub.engines.base import UnreachableError
from hubbub.errors import LedgerError, RunError
from hubbub.private_files import locked, replace_text

#: Hashes the rows of a dataset, where that tells more than its fingerprint.
Content = Callable[[], Secret[bytes] | None]
#: The format of what is recorded of the blocks of a dataset.
BLOCKS_FORMAT = 1


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The hashes of the rows of a table's blocks, by block; None if there are none. A block without rows has none.

    `behind` hashes what else the rows of all blocks depend on.
    """

    behind: str
    hashes: Mapping[str, str] | None


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

    def name(self, dataset: str, fingerprint: Secret[bytes], content: Content = lambda: None) -> str:
        """Give the version name of this state of a dataset, a new one if the state is new.

        A fingerprint can change without need (VACUUM FULL, a crash of the server). So the `content` of a state with a
        new fingerprint is hashed once, and a state whose content is known keeps its name.
        """
        return fingerprint.through(lambda value: self._name(dataset, value.hex(), content))

    def current(self, dataset: str, read: Callable[[], Secret[bytes]], content: Content = lambda: None) -> str:
        """Give the version name of the data that there is now; `read` returns its fingerprint."""
        try:
            return self.name(dataset, read(), content)
        except UnreachableError as error:
            why, remedy = f": {error.why}", f"Contact the data owner. {error.remedy}"
        except (OSError, RunError):
            why, remedy = "", "Contact the data owner."
        raise LedgerError("HB318", f"The data of {dataset} cannot be read{why}. Nothing was run or charged.", remedy)

    def of_blocks(self, dataset: str, whole: str, read: Sequence[str], rows: Callable[[str], BlockRows]) -> str:
        """Give the version name of some blocks of a dataset whose version is `whole`; `rows` hashes with a salt.

        Rows are hashed once for each version of the dataset. Names of blocks are proved in `block_versions`.
        """
        own = _key_of_blocks(dataset)
        with self._known(changes=False) as known:
            before = known.get(own, {})
        if not _is_of(before, whole):
            salt = str(before.get("salt") or secrets.token_hex(32))
            # outside of the lock, because it reads the whole table
            hashed = rows(salt)
            with self._known() as known:
                before = known.get(own, {})
                if not _is_of(before, whole):
                    known[own] = before = _renamed(before, whole, salt, hashed)
        names = {block: str(before.get(block, before["others"])).rpartition(" ")[2] for block in read}
        if len(set(names.values())) == 1:
            return next(iter(names.values()))
        digest = blake2b(json.dumps(names, sort_keys=True).encode(), digest_size=8).hexdigest()
        return f"{_count({**names})}-{digest}"

    def verified(self, dataset: str, state: Secret[bytes]) -> bool:
        """Tell whether the key of a dataset was checked in this state of its data."""

        def known(value: bytes) -> bool:
            with self._known() as names:
                return value.hex() in names.get(_key_of(dataset), {})

        return state.through(known)

    def record_verified(self, dataset: str, state: Secret[bytes]) -> None:
        """Record that the key of a dataset is unique in this state of its data."""
        self.name(_key_of(dataset), state)

    def refresh(self, dataset: str) -> None:
        """Treat the data as changed whatever its fingerprint: it gets a new version when it is next used."""
        with self._known() as known:
            known.pop(_key_of(dataset), None)
            known.pop(_key_of_blocks(dataset), None)
            # keep the counter, under a name that is not a fingerprint
            known[dataset] = {"": _count(known.get(dataset, {}))}

    def _name(self, dataset: str, fingerprint: str, content: Content) -> str:
        with self._known(changes=False) as known:
            if fingerprint in known.get(dataset, {}):
                return str(known[dataset][fingerprint])
        # outside of the lock, because it may read the whole table
        hashed = content()
        rows = None if hashed is None else hashed.through(lambda value: f"rows {value.hex()}")
        with self._known() as known:
            names = known.setdefault(dataset, {})
            if fingerprint not in names:
                names[fingerprint] = names[rows] if rows in names else _new_name(_count(names) + 1)
            if rows is not None:
                names.setdefault(rows, names[fingerprint])
            return str(names[fingerprint])

    @contextmanager
    def _known(self, *, changes: bool = True) -> Iterator[dict[str, dict[str, int | str]]]:
        """Yield the version names of all datasets, and save changes."""
        try:
            with locked(self._path.with_suffix(".lock")):
                text = self._path.read_text() if self._path.exists() else "{}"
                known: dict[str, dict[str, int | str]] = json.loads(text)
                yield known
                if changes and (now := json.dumps(known)) != text:
                    replace_text(self._path, now)
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise LedgerError(
                "HB317",
                f"The list of data versions {self._path} cannot be used. Nothing was charged.",
                "Make it writable for this user. If it is corrupt, remove it; every dataset then gets a new version.",
            ) from error


def _key_of(dataset: str) -> str:
    """Return the name under which checked keys are listed; no dataset has a space in its name."""
    return f"{dataset} key"


def _key_of_blocks(dataset: str) -> str:
    return f"{dataset} blocks"


def _is_of(record: Mapping[str, int | str], whole: str) -> bool:
    """Tell whether the names of blocks are those of a version of the table."""
    return record.get("format") == BLOCKS_FORMAT and record.get("table") == whole


def _renamed(before: Mapping[str, int | str], whole: str, salt: str, rows: BlockRows) -> dict[str, int | str]:
    """Name the blocks of a new version of a table: those with the rows that they had before keep their names."""
    facts: dict[str, int | str] = {"format": BLOCKS_FORMAT, "table": whole, "salt": salt, "behind": rows.behind}
    if rows.hashes is None:  # nothing can be compared with the next version
        return facts | {"behind": "", "others": whole}
    comparable = before.get("format") == BLOCKS_FORMAT and (before["salt"], before["behind"]) == (salt, rows.behind)
    if not comparable:
        return facts | {"others": whole} | {block: f"{value} {whole}" for block, value in rows.hashes.items()}
    # a block that was never listed has no rows
    others = str(before["others"])
    names: dict[str, int | str] = {}
    for block in sorted(rows.hashes.keys() | {block for block in before if block[:1].isdigit()}):
        value, _, name = str(before.get(block, f" {others}")).rpartition(" ")
        now = rows.hashes.get(block, "")
        names[block] = f"{now} {name if now == value else whole}"
    return facts | {"others": others} | names


def _new_name(number: int) -> str:
    return f"{number}-{secrets.token_hex(8)}"


def _count(names: dict[str, int | str]) -> int:
    """Give the largest counter among these names; it is for people only."""
    return max((int(str(name).partition("-")[0]) for name in names.values()), default=0)
