"""A stream's state on disk: replaced atomically, durable before an answer is shown, locked by one process at a time.

The file is a line of JSON, the bytes of its arrays, and a hash of both. A new state is written beside the old one and
renamed over it, so that a crash at any moment leaves one of the two. Answers that depend on it are shown only after
that. There is never a journal of arrivals, and never a third file.
"""

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

from hubbub import private_files
from hubbub.errors import StreamError
from hubbub.private_files import create_folder, locked, open_private, sync_folder

Arrays = dict[str, NDArray[np.generic]]
OnStep = Callable[[str], None]

_DIGEST = 32


def no_step(_: str) -> None:
    """Do nothing; tests pass a function that stops at a step."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """The content of a state file: facts for JSON, and arrays."""

    facts: Mapping[str, Any]
    arrays: Arrays


def path_of(folder: Path, name: str) -> Path:
    """Return the path of a stream's state."""
    return folder / f"{name}.stream"


@contextmanager
def lock_stream(folder: Path, name: str) -> Iterator[Path]:
    """Lock a stream, waiting for the current holder: two writers would sample noise twice for one arrival."""
    create_folder(folder)
    with locked(folder / f"{name}.lock"):
        yield path_of(folder, name)


def save(path: Path, stored: StoredState, on_step: OnStep = no_step) -> None:
    """Replace the state; it is on disk when this returns."""
    shapes = [[name, str(array.dtype), list(array.shape)] for name, array in stored.arrays.items()]
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
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise unwritable(error) from error
    on_step("durable")


def load(path: Path) -> StoredState:
    """Read a state; refuse an incomplete or changed one."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise missing(path.stem) from None
    except OSError as error:
        raise StreamError(
            "HB532", f"Cannot read the state of the stream ({error.strerror}).", "Check the permissions of the file."
        ) from None
    body = content[:-_DIGEST]
    if sha256(body).digest() != content[-_DIGEST:]:
        raise damaged()
    try:
        head, _, rest = body.partition(b"\n")
        facts = json.loads(head)
        arrays, offset = {}, 0
        for name, kind, shape in facts.pop("arrays"):
            count = int(np.prod(shape))
            array = np.frombuffer(rest, dtype=np.dtype(kind), count=count, offset=offset).reshape(shape)
            arrays[name], offset = array, offset + array.nbytes
    except (ValueError, KeyError, TypeError) as error:
        raise damaged() from error
    return StoredState(facts, arrays)


def head(path: Path) -> Mapping[str, Any]:
    """Read only the facts of a state, for listings; the hash is checked when the stream is loaded."""
    try:
        with path.open("rb") as file:
            facts: Mapping[str, Any] = json.loads(file.readline())
    except (OSError, ValueError) as error:
        raise damaged() from error
    return facts


def replace_text(path: Path, text: str) -> None:
    """Replace a small file atomically; it is on disk when this returns."""
    try:
        private_files.replace_text(path, text)
    except OSError as error:
        raise unwritable(error) from None


def erase(path: Path) -> None:
    """Overwrite the bytes of a state, then delete the file, durably."""
    try:
        path.with_suffix(".new").unlink(missing_ok=True)
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(error) from None


def unwritable(error: OSError) -> StreamError:
    """Return the error for a state that cannot be written."""
    return StreamError(
        "HB532",
        f"Cannot write the state of the stream ({error.strerror}).",
        "Free disk space or fix the permissions of the folder.",
    )


def missing(name: str) -> StreamError:
    """Return the error for a stream that does not exist or that the analyst cannot use."""
    return StreamError("HB531", f"No stream named {name} was found.", "Run `hubbub stream list` to see your streams.")


def damaged() -> StreamError:
    """Return the error for a state that is not what was written."""
    return StreamError(
        "HB532",
        "The state of the stream is corrupt.",
        "It cannot be recovered. Create a new stream, at its full privacy cost.",
    )
