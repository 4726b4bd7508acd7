"""Where streams lie. A name belongs to its analyst: each has a folder, and two analysts may both have "visits".

hubbub-streams/of-<hash of the analyst>/visits.stream    a state
                                        visits.bought    a purchase on its way: see `buying`
hubbub-streams/visits.stream                             of nobody's dataset, or of before names had an owner
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.terms import Terms
from hubbub.errors import StreamError
from hubbub.private_files import make_folder, open_private

#: Streams that one analyst has at most, with those that are being bought.
MOST = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A stream as it is listed: whose it is, and where its state lies."""

    name: str
    folder: Path
    terms: Terms
    paid: dict[str, Any] | None

    @property
    def analyst(self) -> str | None:
        """Who paid for it."""
        return None if self.paid is None else str(self.paid["analyst"])

    @property
    def dataset(self) -> str | None:
        """What its arrivals belong to."""
        return None if self.paid is None else str(self.paid["dataset"])


def own_folder(root: Path, analyst: str) -> Path:
    """Say where an analyst's streams lie. The name is hashed: it may be longer than a file's, or hold dots."""
    return root / f"of-{sha256(analyst.encode()).hexdigest()[:32]}"


def entries(root: Path, name: str = "*") -> list[Entry]:
    """List all streams, or those of one name. A damaged state is left out: it must not hide the others."""
    return _listed([root, *root.glob("of-*")], name)


def of_analyst(root: Path, analyst: str, name: str = "*") -> list[Entry]:
    """List the streams of one analyst."""
    return [each for each in _listed([own_folder(root, analyst), root], name) if each.analyst == analyst]


def _listed(folders: list[Path], name: str) -> list[Entry]:
    seen = []
    for path in (path for folder in folders for path in folder.glob(f"{name}.stream")):
        with suppress(StreamError):
            seen.append(_entry(path))
    return sorted(seen, key=lambda each: (each.name, each.analyst or ""))


def find(root: Path, analyst: str, name: str) -> Entry | None:
    """Find an analyst's stream."""
    for folder in (own_folder(root, analyst), root):
        path = states.path_of(folder, name)
        if path.exists() and (entry := _entry(path)).analyst == analyst:
            return entry
    return None


@contextmanager
def held_by(root: Path, analyst: str) -> Iterator[Path]:
    """Hold an analyst's folder: of two who buy or end at once, one waits for the other."""
    folder = own_folder(root, analyst)
    try:
        make_folder(folder)
        turn = os.fdopen(open_private(folder / "lock", os.O_WRONLY | os.O_CREAT), "w")
    except OSError as error:
        raise states.unwritable(error) from None
    with turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield folder


def refuse_many(root: Path, folder: Path, analyst: str, name: str) -> None:
    """Refuse one more stream where there are as many as there may be; for whoever holds the folder."""
    mine = {path.stem for suffix in ("stream", "bought") for path in folder.glob(f"*.{suffix}")}
    there = mine | {each.name for each in of_analyst(root, analyst)}
    if len(there - {name}) >= MOST:
        raise StreamError("HB661", f"you have {MOST} streams already.", "End one: hubbub stream end NAME.")


def _entry(path: Path) -> Entry:
    facts = states.head(path)
    return Entry(path.stem, path.parent, Terms.read(facts["terms"]), facts["paid"])


@dataclass(frozen=True, slots=True)
class Pending:
    """A purchase on its way: for which terms, on which dataset, under which key of the ledger."""

    terms: Terms
    dataset: str
    key: str

    @classmethod
    def read(cls, path: Path) -> "Pending | None":
        """Read one, if there is any."""
        try:
            form = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise states.damaged() from error
        return cls(Terms.read(form["terms"]), form["dataset"], form["key"])

    def write(self, path: Path) -> None:
        """Keep it: it is on the disk when this returns."""
        form = {"terms": self.terms.form(), "dataset": self.dataset, "key": self.key}
        states.replace_text(path, json.dumps(form))
