"""The tables that the set-up page offers: files next to hubbub.yaml, or the tables of a PostgreSQL database.

A file is chosen from the list of the folder; no path comes from the browser.

Tested in tests/server/test_setup.py.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hubbub.config.addresses import has_password
from hubbub.config.template import dataset_name
from hubbub.engines.base import DataSource, Field, locate
from hubbub.engines.duckdb.connection import guess_types
from hubbub.engines.multi_engine import read_schema
from hubbub.errors import ConfigError

_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
#: Most files and tables on the page.
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class OfferedTable:
    """A table that was chosen: its name and source in hubbub.yaml, and its columns."""

    name: str
    source: str
    fields: tuple[Field, ...]

    @property
    def usable(self) -> tuple[Field, ...]:
        """The columns that queries can use."""
        return tuple(field for field in self.fields if field.kind is not None)


def files_in(folder: Path) -> list[str]:
    """List the tables in a folder; links that lead out of it are left out."""
    inside = folder.resolve()
    found = [
        path.name
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in _SUFFIXES and path.is_file() and path.resolve().parent == inside
    ]
    return found[:MAX_LISTED]


def choose_files(folder: Path, names: list[str]) -> list[OfferedTable]:
    """Read the columns of files that are in the list of the folder."""
    listed = files_in(folder)
    if not names or any(name not in listed for name in names):
        raise ConfigError(
            "HB384",
            "No table was chosen." if not names else "A chosen file is not in the folder of hubbub.yaml.",
            "Choose from the list. To use a file elsewhere, copy it into the folder, or run hubbub init FILE.",
        )
    tables = []
    for name in names:
        place = locate(name, "FILE", base=folder, name="")
        fields = guess_types(place) if place.form == "csv" else read_schema(place)
        tables.append(OfferedTable(dataset_name(place), name, fields))
    _distinct(tables)
    return tables


def tables_of(address: str) -> list[OfferedTable]:
    """List the tables of a PostgreSQL database that can be read. Only the catalog is read."""
    address = address.strip()
    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres"):
        raise ConfigError(
            "HB385", "This is not the address of a PostgreSQL database.", "Write postgresql://user@host/database."
        )
    if has_password(address):
        raise ConfigError(
            "HB386",
            "The address contains a password, and would be written to hubbub.yaml.",
            "Remove it, and put the password into the PostgreSQL password file (~/.pgpass, or PGPASSFILE).",
        )
    locate(f"{address.partition('?')[0].rstrip('/')}/x", "the address", base=Path(), name="")
    from hubbub.engines.postgres.tables import read_tables, table_source

    tables = []
    for table in read_tables(address, None):
        if not table.problem:
            name = dataset_name(DataSource("postgres", Path("/"), table.name))
            tables.append(OfferedTable(name, table_source(address, table.name), table.fields))
    return tables[:MAX_LISTED]


def choose_tables(offered: list[OfferedTable], sources: list[str]) -> list[OfferedTable]:
    """Return the chosen ones of the tables that were offered."""
    chosen = [table for table in offered if table.source in sources]
    if not chosen or len(chosen) < len(set(sources)):
        raise ConfigError("HB384", "No table was chosen, or one that was not offered.", "Choose from the list.")
    _distinct(chosen)
    return chosen


def _distinct(tables: list[OfferedTable]) -> None:
    if len({table.name for table in tables}) < len(tables):
        raise ConfigError("HB410", "Two of these tables would get the same dataset name.", "Choose one of them.")
