"""Files to publish: the numbers as CSV and Parquet, a data sheet as Markdown and as a page, and the receipt."""

import json
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, Unpack

from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.answers.sheet import sheet
from hubbub.core.call import is_call, parse_call
from hubbub.errors import ParameterError

FORMATS = ("csv", "parquet")
_BESIDE = ("receipt.json", "md", "html")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", re.ASCII)
_TYPES = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


@dataclass(frozen=True)
class OutputFiles:
    """Where a release will be written: checked before anything is paid for it."""

    name: str
    paths: Mapping[str, Path]

    @classmethod
    def plan(
        cls, to: str | Path, name: str | None, what: str | Release, formats: Sequence[str], *, force: bool
    ) -> Self:
        """Plan the files for a question or a release, or refuse."""
        chosen = name or _default(what)
        if not _NAME.fullmatch(chosen):
            raise ParameterError("HB172", f"{chosen!r} cannot name files.", "Use letters, digits, dots, dashes.")
        if not formats or any(each not in FORMATS for each in formats):
            raise ParameterError("HB172", "data files are CSV or Parquet.", f"Choose of: {', '.join(FORMATS)}.")
        paths = {end: Path(to) / f"{chosen}.{end}" for end in (*formats, *_BESIDE)}
        there = [path.name for path in paths.values() if path.exists()]
        if there and not force:
            raise ParameterError("HB172", f"{there[0]} is there already.", "Choose another name or folder, or force.")
        try:
            Path(to).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritten(error) from None
        return cls(chosen, paths)

    def write(self, release: Release, *, title: str | None, notes: str | None) -> tuple[Path, ...]:
        """Write them."""
        paths = self.paths
        try:
            if "csv" in paths:
                paths["csv"].write_text(release.to_csv(), encoding="utf-8")
            if "parquet" in paths:
                _parquet(release, paths["parquet"])
            document = json.dumps(release.document(), indent=1, ensure_ascii=False)
            paths["receipt.json"].write_text(document + "\n", encoding="utf-8")
            data = [path for end, path in paths.items() if end not in ("md", "html")]
            hashes = [(path.name, sha256(path.read_bytes()).hexdigest()) for path in data]
            made = sheet(release, title=title or self.name, files=hashes, notes=notes)
            paths["md"].write_text(made.markdown(), encoding="utf-8")
            paths["html"].write_text(made.page(), encoding="utf-8")
        except OSError as error:
            raise _unwritten(error) from None
        return tuple(paths.values())


def _default(what: str | Release) -> str:
    if isinstance(what, Release):
        return str(what.receipt.get("analysis") or "release")
    return parse_call(what).name if is_call(what) else "release"


def _unwritten(error: OSError) -> ParameterError:
    why = error.strerror or "no reason is given"
    return ParameterError("HB172", f"the files cannot be written: {why}.", "Choose a folder of your own.")


def publish(
    release: Release,
    to: str | Path,
    *,
    name: str | None = None,
    title: str | None = None,
    notes: str | None = None,
    formats: Sequence[str] = FORMATS,
    force: bool = False,
) -> tuple[Path, ...]:
    """Write a release into a folder; what is written is public, and costs nothing.

    name     what the files are called (default: the analysis)
    title    of the data sheet; `notes` open it: whom to ask, how to cite
    formats  csv, parquet or both
    force    replace files that are there
    """
    return OutputFiles.plan(to, name, release, formats, force=force).write(release, title=title, notes=notes)


class Publisher:
    """A session that writes what it is answered into files to publish."""

    @abstractmethod
    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask."""

    def publish(
        self,
        what: str | Release,
        to: str | Path,
        *,
        name: str | None = None,
        title: str | None = None,
        notes: str | None = None,
        formats: Sequence[str] = FORMATS,
        force: bool = False,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> tuple[Path, ...]:
        """Write a release into a folder: CSV, Parquet, a data sheet (Markdown and HTML) and the receipt.

        `what` is a release, or a question (SQL or a CALL), which is asked first, for the price in the options. Whether
        the files can be written is looked at before anything is paid. See `hubbub.answers.publish.publish`.
        """
        files = OutputFiles.plan(to, name, what, formats, force=force)
        release = what if isinstance(what, Release) else self.query(what, key=key, **options)
        return files.write(release, title=title, notes=notes)


class AsyncPublisher:
    """The same for sessions that are awaited."""

    @abstractmethod
    async def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask."""

    async def publish(
        self,
        what: str | Release,
        to: str | Path,
        *,
        name: str | None = None,
        title: str | None = None,
        notes: str | None = None,
        formats: Sequence[str] = FORMATS,
        force: bool = False,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> tuple[Path, ...]:
        """Write a release, or the answer to a question, into a folder: see `Publisher.publish`."""
        files = OutputFiles.plan(to, name, what, formats, force=force)
        release = what if isinstance(what, Release) else await self.query(what, key=key, **options)
        return files.write(release, title=title, notes=notes)


def _parquet(release: Release, path: Path) -> None:
    """Write Parquet, with the types of the columns' kinds and the receipt among the file's metadata."""
    try:
        import duckdb
        import numpy as np
    except ImportError:
        raise ParameterError(
            "HB172", "Parquet is written by DuckDB, which is not installed.", "Install hubbub whole, or take CSV alone."
        ) from None
    columns: dict[str, tuple[str, Sequence[Any]]] = {}
    for each in release.outputs:
        columns[each.name] = (_TYPES[each.kind], each.values)
        if each.low is not None and each.high is not None:
            columns[f"{each.name}_low"] = ("DOUBLE", each.low)
            columns[f"{each.name}_high"] = ("DOUBLE", each.high)
    # as text, so that NULLs and types are what is said here and not what is guessed from the first values
    texts = {
        f"c{i}": np.array([_text(cell) for cell in values] or [None], dtype=object)
        for i, (_, values) in enumerate(columns.values())
    }
    picked = ", ".join(
        f'CAST(c{i} AS {kind}) AS "{name.replace(chr(34), chr(34) * 2)}"'
        for i, (name, (kind, _)) in enumerate(columns.items())
    )
    receipt = json.dumps(dict(release.receipt), ensure_ascii=False).replace("'", "''")
    where = str(path).replace("'", "''")
    with duckdb.connect() as connection:
        connection.register("cells", texts)
        connection.execute(
            f"COPY (SELECT {picked} FROM cells LIMIT {len(release.ratio)}) TO '{where}'"  # noqa: S608 - names are quoted
            f" (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{hubbub: '{receipt}'}})"
        )


def _text(cell: Any) -> str | None:
    if cell is None:
        return None
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
