"""`hubbub init`: write a hubbub.yaml for some data, with blanks to fill in.

Tested in tests/cli/test_cli.py.
"""

import argparse
import getpass
import os
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.config.template import BLANK, dataset_name, template
from hubbub.engines.base import locate
from hubbub.engines.duckdb.connection import guess_types
from hubbub.engines.multi_engine import read_schema
from hubbub.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "example:\n  hubbub init visits.parquet patients.csv"
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="CSV or Parquet; duckdb:file#table; sqlite:file#table; postgresql://…/schema.table",
    )
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
    tables = []
    for source in args.files:
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
