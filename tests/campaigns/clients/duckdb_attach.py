"""DuckDB's own `postgres` extension; it runs with the Python that HUBBUB_DUCKDB names, and prints a line for each step.

The extension's version has to be that of DuckDB, and comes from PyPI: duckdb-extension-postgres-scanner.
"""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import duckdb

given = {name.removeprefix("HUBBUB_"): text for name, text in os.environ.items() if name.startswith("HUBBUB_")}
package = find_spec("duckdb_extension_postgres_scanner")
folders = [] if package is None else list(package.submodule_search_locations or ())
extension = next(Path(folders[0]).rglob("*.duckdb_extension"))
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{extension}'")
connection.execute("ATTACH 'options=''-c hubbub.epsilon=0.1''' AS hubbub (TYPE postgres, READ_ONLY)")


def ask(sql: str) -> str:
    """Run a query of DuckDB."""
    return ";".join("|".join(map(str, row)) for row in connection.execute(sql).fetchall())


def send(sql: str) -> str:
    """Send a query to hubbub as it is."""
    return ask("SELECT * FROM postgres_query('hubbub', '" + sql.replace("'", "''") + "')")


COLUMNS = "SELECT column_name FROM duckdb_columns() WHERE database_name = 'hubbub' AND table_name = 'visits'"
steps: dict[str, Callable[[], str]] = {
    "sign in": lambda: send(given["ONE"]),
    "tables": lambda: ask("SELECT table_name FROM duckdb_tables() WHERE database_name = 'hubbub'"),
    "columns": lambda: ask(f"{COLUMNS} ORDER BY column_index"),
    "explain": lambda: send(given["EXPLAIN"]),
    "priced": lambda: send(given["COUNTS"]),
    "again": lambda: send(given["COUNTS"]),
    "refused": lambda: ask("SELECT * FROM hubbub.public.visits"),
    "after": lambda: send(given["ONE"]),
    "types": lambda: ask("SELECT word, whole, part, day FROM hubbub.public.kinds ORDER BY whole"),
    "prepared": lambda: send(given["PREPARED"] + given["LIMIT"]),
}
print(f"version\t{duckdb.__version__}")
for name, step in steps.items():
    try:
        line = step()
    except duckdb.Error as error:
        line = f"error: {error}"
    print(f"{name}\t{' '.join(line.split())}")
