"""Files of a published release: its data, a data sheet as Markdown and HTML, and the receipt."""

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

#: The data files that are written unless others are chosen, and all that there are.
FORMATS = ("csv", "parquet")
DATA_FORMATS = (*FORMATS, "arrow", "json")
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
    """The files of a release, checked before its query is charged."""

    name: str
    paths: Mapping[str, Path]

    @classmethod
    def plan(
        cls, to: str | Path, name: str | None, what: str | Release, formats: Sequence[str], *, force: bool
    ) -> Self:
        """Plan the files of a query or a release, or raise."""
        chosen = name or _default(what)
        if not _NAME.fullmatch(chosen):
            raise ParameterError(
                "HB172", f"{chosen!r} is not a valid file name.", "Use letters, digits, dots and dashes."
            )
        if not formats or any(name not in DATA_FORMATS for name in formats):
            raise ParameterError("HB172", "Unknown data format.", f"Choose one or more of: {', '.join(DATA_FORMATS)}.")
        paths = {end: Path(to) / f"{chosen}.{end}" for end in (*formats, *_BESIDE)}
        existing = [path.name for path in paths.values() if path.exists()]
        if existing and not force:
            raise ParameterError(
                "HB172", f"{existing[0]} already exists.", "Choose another name or folder, or use force to replace it."
            )
        try:
            Path(to).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _write_error(error) from None
        return cls(chosen, paths)

    def write(self, release: Release, *, title: str | None, notes: str | None) -> tuple[Path, ...]:
        """Write the files."""
        paths = self.paths
        try:
            if "csv" in paths:
                paths["csv"].write_text(release.to_csv(), encoding="utf-8")
            if "parquet" in paths:
                _parquet(release, paths["parquet"])
            if "arrow" in paths:
                release.export(paths["arrow"])
            if "json" in paths:
                paths["json"].write_text(json.dumps(release.to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")
            document = json.dumps(release.document(), indent=1, ensure_ascii=False)
            paths["receipt.json"].write_text(document + "\n", encoding="utf-8")
            data = [path for end, path in paths.items() if end not in ("md", "html")]
            hashes = [(path.name, sha256(path.read_bytes()).hexdigest()) for path in data]
            document_sheet = sheet(release, title=title or self.name, files=hashes, notes=notes)
            paths["md"].write_text(document_sheet.markdown(), encoding="utf-8")
            paths["html"].write_text(document_sheet.page(), encoding="utf-8")
        except OSError as error:
            raise _write_error(error) from None
        return tuple(paths.values())


def _default(what: str | Release) -> str:
    if isinstance(what, Release):
        return str(what.receipt.get("analysis") or "release")
    return parse_call(what).name if is_call(what) else "release"


def _write_error(error: OSError) -> ParameterError:
    why = error.strerror or "unknown reason"
    return ParameterError("HB172", f"Could not write the files: {why}.", "Choose a folder that you can write to.")


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
    """Write a release into a folder. This is free: a release is public.

    name     name of the files without extension (default: the analysis)
    title    title of the data sheet
    notes    introduction of the data sheet, such as a contact or how to cite
    formats  one or more of csv, parquet, arrow and json
    force    replace existing files
    """
    return OutputFiles.plan(to, name, release, formats, force=force).write(release, title=title, notes=notes)


class Publisher:
    """A session that can publish its releases as files."""

    @abstractmethod
    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Run a query."""

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

        `what` is a release, or a query (SQL or a CALL) to run first, with its privacy cost in the options. The output
        files are checked before the query is charged. See `hubbub.answers.publish.publish`.
        """
        files = OutputFiles.plan(to, name, what, formats, force=force)
        release = what if isinstance(what, Release) else self.query(what, key=key, **options)
        return files.write(release, title=title, notes=notes)


class AsyncPublisher:
    """An asynchronous session that can publish its releases as files."""

    @abstractmethod
    async def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Run a query."""

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
        """Write a release, or the answer to a query, into a folder: see `Publisher.publish`."""
        files = OutputFiles.plan(to, name, what, formats, force=force)
        release = what if isinstance(what, Release) else await self.query(what, key=key, **options)
        return files.write(release, title=title, notes=notes)


def _parquet(release: Release, path: Path) -> None:
    """Write Parquet with the types of the columns, and with the receipt in the metadata of the file."""
    try:
        import duckdb
        import numpy as np
    except ImportError:
        raise ParameterError(
            "HB172", "Writing Parquet needs DuckDB, which is not installed.", "Install hubbub, or choose CSV only."
        ) from None
    columns = release.flat()
    # as text, so that DuckDB does not infer types and NULLs from the first values
    texts = {
        f"c{i}": np.array([_text(cell) for cell in column.values] or [None], dtype=object)
        for i, column in enumerate(columns)
    }
    selected = ", ".join(
        f'CAST(c{i} AS {_TYPES[column.kind]}) AS "{column.name.replace(chr(34), chr(34) * 2)}"'
        for i, column in enumerate(columns)
    )
    receipt = json.dumps(dict(release.receipt), ensure_ascii=False).replace("'", "''")
    target = str(path).replace("'", "''")
    with duckdb.connect() as connection:
        connection.register("cells", texts)
        connection.execute(
            f"COPY (SELECT {selected} FROM cells LIMIT {len(release.ratio)}) TO '{target}'"  # noqa: S608 - names are quoted
            f" (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{hubbub: '{receipt}'}})"
        )


def _text(cell: Any) -> str | None:
    if cell is None:
        return None
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
