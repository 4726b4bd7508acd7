"""`hubbub init`: write a hubbub.yaml for some data, or for a whole database, with blanks to fill in.

Tested in tests/cli/test_cli.py and tests/cli/test_init_database.py.
"""

import argparse
import getpass
import os
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.cli.progress import working
from hubbub.config.database_template import database_template
from hubbub.config.proposal import propose
from hubbub.config.template import BLANK, dataset_name, template
from hubbub.engines.base import locate
from hubbub.engines.constraints import CatalogTable
from hubbub.engines.duckdb.connection import guess_types
from hubbub.engines.multi_engine import read_schema
from hubbub.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub init visits.parquet patients.csv
  hubbub init --database postgresql://reader@db.example/shop --person customers"""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="CSV or Parquet; folder/ of Parquet files; duckdb:file#table; sqlite:file#table; postgresql://…/schema.table",
    )
    parser.add_argument(
        "--database",
        metavar="URL",
        help="all tables of a PostgreSQL database, of a DuckDB file, or of a folder of files; keys are read",
    )
    parser.add_argument("--schema", metavar="NAME", help="with --database: only the tables of this schema")
    parser.add_argument("--person", metavar="TABLE", help="with --database: the table with one row for each person")
    parser.add_argument("--output", default="hubbub.yaml", metavar="PATH", help="file to write (default: %(default)s)")
    parser.add_argument(
        "--guess", action="store_true", help="guess the types of CSV columns from their values (reads the data)"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    target = Path(args.output)
    if target.exists() and not args.force:
        raise ConfigError(
            "HB419", f"{target} already exists.", "Choose another file with --output, or replace it with --force."
        )
    if args.database is not None and not Path(args.database).is_dir():
        return _init_database(args, target, console)
    if args.person is not None or args.schema is not None:
        raise ConfigError(
            "HB737",
            "--person and --schema are only for a database that declares its keys.",
            "Remove them, or pass --database with the address of a PostgreSQL database or a DuckDB file.",
        )
    sources = [*args.files, *([] if args.database is None else _files_in(Path(args.database)))]
    if not sources:
        raise ConfigError("HB737", "There is no table to start from.", "Name a file, or pass --database.")
    tables = []
    for source in sources:
        # a folder of Parquet files
        source = f"{source}/" if Path(source).is_dir() and not source.endswith("/") else source
        place = locate(source, "FILE", base=Path(), name="")
        if place.form in ("duckdb", "sqlite") and not place.table:
            raise ConfigError("HB410", f"{source} is a database.", f"Name the table: {source}#table")
        fields = guess_types(place) if place.form == "csv" and args.guess else read_schema(place)
        if place.engine.is_server:
            tables.append((dataset_name(place), source, fields))
            continue
        # a path is relative to the folder of hubbub.yaml
        shown = os.path.relpath(place.path, target.parent) if not place.path.is_absolute() else str(place.path)
        prefix, suffix = source.partition(":")[0] if ":" in source else "", f"#{place.table}" if place.table else ""
        suffix += "/" if place.form == "hive" and not prefix else ""
        tables.append((dataset_name(place), f"{prefix}:{shown}{suffix}" if prefix else f"{shown}{suffix}", fields))
    text = template(tables, analyst=getpass.getuser(), guessed=args.guess)
    target.write_text(text, encoding="utf-8")
    read = "CSV column types were guessed from values" if args.guess else "no values were read"
    console.print(f"Wrote [bold]{escape(str(target))}[/] for {len(tables)} table(s); {read}.")
    console.print(
        f"Fill in the {text.count(BLANK)} blanks marked “<- fill in”, and give bounds or values to the columns that"
        " queries may sum or group by. Then run: [bold]hubbub check[/]"
    )
    return 0


def _files_in(folder: Path) -> list[str]:
    """List the CSV and Parquet files of a folder. Files declare no keys, so their units stay blank."""
    return sorted(str(path) for path in folder.iterdir() if path.suffix.lower() in (".csv", ".tsv", ".parquet", ".pq"))


def _init_database(args: argparse.Namespace, target: Path, console: Console) -> int:
    """Write a hubbub.yaml for all tables of a database, from its catalog."""
    if args.files:
        raise ConfigError("HB737", "--database takes no other files.", "Run hubbub init once for each.")
    with working("reading the catalog"):
        located = _read_database(args.database, args.schema, target.parent)
    if not located:
        raise ConfigError("HB737", "The database has no table that can be read.", "Check the role and --schema.")
    schema = propose(located, person=args.person)
    target.write_text(database_template(schema, analyst=getpass.getuser()), encoding="utf-8")
    console.print(
        f"Wrote [bold]{escape(str(target))}[/] for {len(schema.owned)} of {len(located)} table(s), from the catalog; "
        "no values were read."
    )
    for line in schema.notes:
        console.print(escape(line), soft_wrap=True)
    console.print(f"Fill in the blanks marked “{BLANK.removeprefix('# ')}”, then run: [bold]hubbub check[/]")
    return 0


def _read_database(database: str, schema: str | None, base: Path) -> list[tuple[str, CatalogTable]]:
    """Return the source of each table as in hubbub.yaml, and what the catalog declares."""
    if database.startswith(("postgresql://", "postgres://")):
        # checks the address, with any name for the table
        address = locate(f"{database.partition('?')[0].rstrip('/')}/x", "--database", base=Path(), name="").address
        query = database.partition("?")[2]
        address += f"?{query}" if query else ""
        from hubbub.engines.postgres.tables import read_tables, table_source

        return [(table_source(address, table.name), table) for table in read_tables(address, schema)]
    place = locate(database, "--database", base=Path(), name="")
    if place.form != "duckdb" or schema is not None:
        raise ConfigError(
            "HB737",
            f"hubbub init cannot read the keys of {place.form} sources" + ("." if schema is None else " by schema."),
            "Pass a PostgreSQL address, a DuckDB file without --schema, or the names of single tables.",
        )
    from hubbub.engines.duckdb.tables import read_tables as read_file

    shown = str(place.path) if place.path.is_absolute() else os.path.relpath(place.path, base)
    return [(f"duckdb:{shown}#{table.name}", table) for table in read_file(place.path)]
