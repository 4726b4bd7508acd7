"""The folders of streams. Each analyst has a folder, so two analysts may both have a stream named "visits".

hubbub-streams/of-<hash of the analyst>/visits.stream    a state
                                        visits.bought    a purchase in progress: see `hubbub.curator.streams`
hubbub-streams/visits.stream                             without a dataset, or made by an earlier version

Tested in tests/analyses/streams/test_lifecycle.py.
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
from hubbub.private_files import create_folder, open_private

#: Maximum number of streams per analyst, including purchases in progress.
MAX_STREAMS = 100


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A stream in a listing: its terms, its folder and its payment."""

    name: str
    folder: Path
    terms: Terms
    paid: dict[str, Any] | None

    @property
    def analyst(self) -> str | None:
        """The analyst who paid for it."""
        return None if self.paid is None else str(self.paid["analyst"])

    @property
    def dataset(self) -> str | None:
        """The dataset of its arrivals."""
        return None if self.paid is None else str(self.paid["dataset"])


def folder_of_analyst(root: Path, analyst: str) -> Path:
    """Return the folder of an analyst's streams; the name is hashed because it may be long or contain dots."""
    return root / f"of-{sha256(analyst.encode()).hexdigest()[:32]}"


def all_streams(root: Path, name: str = "*") -> list[StreamEntry]:
    """List all streams, or those of one name; a damaged state is skipped so that it cannot hide the others."""
    return _listed([root, *root.glob("of-*")], name)


def streams_of_analyst(root: Path, analyst: str, name: str = "*") -> list[StreamEntry]:
    """List the streams of one analyst."""
    return [each for each in _listed([folder_of_analyst(root, analyst), root], name) if each.analyst == analyst]


def _listed(folders: list[Path], name: str) -> list[StreamEntry]:
    entries = []
    for path in (path for folder in folders for path in folder.glob(f"{name}.stream")):
        with suppress(StreamError):
            entries.append(_entry(path))
    return sorted(entries, key=lambda entry: (entry.name, entry.analyst or ""))


def find_stream(root: Path, analyst: str, name: str) -> StreamEntry | None:
    """Find an analyst's stream by its name."""
    for folder in (folder_of_analyst(root, analyst), root):
        path = states.path_of(folder, name)
        if path.exists() and (entry := _entry(path)).analyst == analyst:
            return entry
    return None


@contextmanager
def lock_folder(root: Path, analyst: str) -> Iterator[Path]:
    """Lock an analyst's folder, so that purchases and ends happen one at a time."""
    folder = folder_of_analyst(root, analyst)
    try:
        create_folder(folder)
        lock = os.fdopen(open_private(folder / "lock", os.O_WRONLY | os.O_CREAT), "w")
    except OSError as error:
        raise states.unwritable(error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def check_stream_count(root: Path, folder: Path, analyst: str, name: str) -> None:
    """Refuse another stream if the analyst has the maximum number; the caller holds the lock of the folder."""
    names = {path.stem for suffix in ("stream", "bought") for path in folder.glob(f"*.{suffix}")}
    names |= {each.name for each in streams_of_analyst(root, analyst)}
    if len(names - {name}) >= MAX_STREAMS:
        raise StreamError(
            "HB661", f"You already have {MAX_STREAMS} streams, the maximum.", "End one with `hubbub stream end NAME`."
        )


def _entry(path: Path) -> StreamEntry:
    facts = states.head(path)
    return StreamEntry(path.stem, path.parent, Terms.read(facts["terms"]), facts["paid"])


@dataclass(frozen=True, slots=True)
class PendingPurchase:
    """A purchase in progress: its terms, its dataset and its request key."""

    terms: Terms
    dataset: str
    key: str

    @classmethod
    def read(cls, path: Path) -> "PendingPurchase | None":
        """Read a pending purchase; None if there is no file."""
        try:
            form = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise states.damaged() from error
        return cls(Terms.read(form["terms"]), form["dataset"], form["key"])

    def write(self, path: Path) -> None:
        """Write it; it is on disk when this returns."""
        form = {"terms": self.terms.to_json(), "dataset": self.dataset, "key": self.key}
        states.replace_text(path, json.dumps(form))
