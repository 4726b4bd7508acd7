"""A stream's state on the disk: replaced whole, durable before anything is said, one holder at a time.

The file is a line of JSON, the bytes of its arrays, and a hash of both. A new state is written beside the old one and
takes its name in one step, so that a kill at any moment leaves the one or the other. Only after that may answers that
follow from it be shown. There is never a journal of arrivals, and never more than these two files.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import StreamError
from hubbub.private_files import make_folder, open_private, private_file

Arrays = dict[str, NDArray[np.generic]]
OnStep = Callable[[str], None]

_DIGEST = 32


def no_step(_: str) -> None:
    """Do nothing: only tests stop at a step."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a file holds: facts for JSON, and arrays."""

    facts: Mapping[str, Any]
    arrays: Arrays


def path_of(folder: Path, name: str) -> Path:
    """Say where a stream's state is."""
    return folder / f"{name}.stream"


@contextmanager
def held(folder: Path, name: str) -> Iterator[Path]:
    """Hold a stream, and wait for whoever holds it: two writers would draw twice for one arrival."""
    make_folder(folder)
    with private_file(folder / f"{name}.lock", "a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield path_of(folder, name)


def save(path: Path, stored: Stored, on_step: OnStep = no_step) -> None:
    """Replace the state; it is on the disk when this returns."""
    shapes = [[name, str(each.dtype), list(each.shape)] for name, each in stored.arrays.items()]
    head = json.dumps({**stored.facts, "arrays": shapes}, ensure_ascii=True, sort_keys=True).encode() + b"\n"
    parts = [head, *(np.ascontiguousarray(each).tobytes() for each in stored.arrays.values())]
    digest = sha256()
    new = path.with_suffix(".new")
    file = open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        with os.fdopen(file, "wb") as writer:
            for part in parts:
                digest.update(part)
                writer.write(part)
            writer.write(digest.digest())
            writer.flush()
            on_step("written")
            os.fsync(writer.fileno())
        on_step("synced")
        new.replace(path)
        on_step("renamed")
        _sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise unwritable(error) from error
    on_step("durable")


def load(path: Path) -> Stored:
    """Read a state, or refuse one that is not whole."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise StreamError(
            "HB531", f"there is no stream called {path.stem}.", "`hubbub stream list` names them."
        ) from None
    except OSError as error:
        raise StreamError(
            "HB532", f"the stream's state cannot be read ({error.strerror}).", "See to its rights."
        ) from None
    body = content[:-_DIGEST]
    if sha256(body).digest() != content[-_DIGEST:]:
        raise damaged()
    try:
        head, _, rest = body.partition(b"\n")
        facts = json.loads(head)
        arrays, place = {}, 0
        for name, kind, shape in facts.pop("arrays"):
            count = int(np.prod(shape))
            found = np.frombuffer(rest, dtype=np.dtype(kind), count=count, offset=place).reshape(shape)
            arrays[name], place = found, place + found.nbytes
    except (ValueError, KeyError, TypeError) as error:
        raise damaged() from error
    return Stored(facts, arrays)


def head(path: Path) -> Mapping[str, Any]:
    """Read the facts of a state and not its arrays, for a list; their hash is checked when the state is opened."""
    try:
        with path.open("rb") as file:
            facts: Mapping[str, Any] = json.loads(file.readline())
    except (OSError, ValueError) as error:
        raise damaged() from error
    return facts


def replace_text(path: Path, text: str) -> None:
    """Replace a small file in one step; it is on the disk when this returns."""
    new = path.with_name(f"{path.name}.new")
    try:
        with private_file(new, "w") as writer:
            writer.write(text)
            writer.flush()
            os.fsync(writer.fileno())
        new.replace(path)
        _sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise unwritable(error) from None


def erase(path: Path) -> None:
    """Take a state away: its bytes are overwritten, then the file is gone, durably."""
    try:
        path.with_suffix(".new").unlink(missing_ok=True)
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        _sync(path.parent)
    except OSError as error:
        raise unwritable(error) from None


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def unwritable(error: OSError) -> StreamError:
    """Make the refusal of a disk that takes nothing."""
    return StreamError(
        "HB532", f"the stream's state cannot be written ({error.strerror}).", "Make room, or give the right to."
    )


def missing(name: str) -> StreamError:
    """Make the refusal of a stream that is not there, or not for who asks."""
    return StreamError("HB531", f"there is no stream called {name}.", "`hubbub stream list` names them.")


def damaged() -> StreamError:
    """Make the refusal of a state that is not what was written."""
    return StreamError(
        "HB532",
        "the stream's state is damaged.",
        "It cannot be mended: what was drawn is lost with it. Make a new stream, at its price.",
    )
