"""Remember the columns of Parquet files that a local Spark reads, so that `check` and estimates start no Java.

The cache is in the state folder of the user who runs hubbub, readable by nobody else. An entry counts only while the
files are the same, and before every charge the engine compares what was read from it with what Spark says.

Tested in tests/engines/test_schema_cache.py.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, Field
from hubbub.private_files import create_folder, private_file

_FORMAT = 2


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    state: str


def cached_fields(source: DataSource) -> tuple[Field, ...] | None:
    """Return the columns of a source as Spark read them from the same files, or None."""
    entry = _entry(source)
    try:
        stored = json.loads(entry.path.read_text(encoding="utf-8")) if entry is not None else {}
        if entry is None or stored["state"] != entry.state:
            return None
        columns = stored["fields"]
        return tuple(
            Field(name, kind, _read(read), unfit, element=_read(element))
            for name, kind, read, unfit, element in columns
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store_fields(source: DataSource, fields: tuple[Field, ...], state: str | None) -> None:
    """Store the columns that Spark read while the files were in this state, unless they have changed since."""
    entry = _entry(source)
    if entry is None or entry.state != state:
        return
    listed = [(each.name, each.type, _written(each.kind), each.unfit, _written(each.element)) for each in fields]
    try:
        create_folder(entry.path.parent)
        new = entry.path.with_suffix(f".{os.getpid()}.new")
        with private_file(new, "w") as file:
            json.dump({"state": entry.state, "fields": listed}, file)
        new.replace(entry.path)
    except OSError:
        return  # the next start asks Spark again


def _read(kind: str | None) -> Kind | None:
    return None if kind is None else Kind(kind)


def _written(kind: Kind | None) -> str | None:
    return None if kind is None else kind.value


def forget_fields(source: DataSource) -> None:
    """Remove an entry that Spark contradicted."""
    entry = _entry(source)
    if entry is not None:
        entry.path.unlink(missing_ok=True)


def state_of(source: DataSource) -> str | None:
    """Return a hash of names, sizes and times of the files of a source on this machine; None for all others."""
    if source.address.startswith("sc://") or "/" not in (source.table or "") or "://" in (source.table or ""):
        return None
    state = sha256(f"{_FORMAT} {version('pyspark')} {os.environ.get('SPARK_CONF_DIR', '')}".encode())
    try:
        for path in _files(Path(source.table or "")):
            about = path.stat()
            facts = (str(path), about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
            state.update(repr(facts).encode())
    except OSError:
        return None
    return state.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir():
        for folder, folders, files in os.walk(path):
            folders.sort()
            yield from (Path(folder) / name for name in sorted(files))


def _entry(source: DataSource) -> _Entry | None:
    state = state_of(source)
    if state is None:
        return None
    home = Path(os.environ.get("XDG_STATE_HOME", ""))  # its specification says to ignore a relative path
    folder = home if home.is_absolute() else Path.home() / ".local" / "state"
    name = sha256(f"{source.address} {source.table}".encode()).hexdigest()[:32]
    return _Entry(folder / "hubbub" / "schemas" / f"{name}.json", state)
