"""Detectors of errors in the owners of rows; both are exact."""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from tests.campaigns.neighbors import DuckDBTarget, Tally, fuzz_schema
from tests.campaigns.rig.random_schema import WARD_ROWS
from tests.campaigns.rig.random_schema_sql import FAMILIES

from hubbub.curator.session import open_session
from hubbub.errors import LedgerError


def schemas() -> list[str]:
    """Random schemas and queries of every operator: without a unit, the rows of a query are those of all others."""
    return list(islice(_compared(), 1))


def _compared() -> Iterator[str]:
    rng = random.Random(42)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE wards AS FROM ({WARD_ROWS}) AS w(code, zone, beds)")
        for family in FAMILIES * 2:
            yield from fuzz_schema(rng, DuckDBTarget(connection), Tally(), family, queries=3, share=0.0)
        for _ in range(6):  # rows with two owners are bounded outside of the engine, so their results are compared
            yield from fuzz_schema(rng, DuckDBTarget(connection), Tally(), "two owners", queries=3, share=1.0)


#: Two tables with keys; an order belongs to the house of its person.
YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: {column: house, rows: 9}
    key: id
    columns: {id: {type: integer}, house: {type: integer}}
    budget: {epsilon: 1000}
  orders:
    source: orders.csv
    unit: {via: person, of: people, rows: 9}
    columns: {person: {type: integer}}
    budget: {epsilon: 1000}
analysts: {ana: {people: {epsilon: 1000}, orders: {epsilon: 1000}}}
"""


def repeated_keys() -> list[str]:
    """A repeated key, in a table or on the way to its owners, stops the tables that depend on it, and no others."""
    return [
        f"{table} {'is' if stopped else 'is not'} stopped where people are {people!r}"
        for people, expected in (("1,1\n2,1\n2,2", True), ("1,1\n2,1\n3,2", False))
        for table in ("people", "orders")
        for stopped in [_is_stopped(table, people)]
        if stopped is not expected
    ]


def _is_stopped(table: str, people: str) -> bool:
    with TemporaryDirectory(prefix="hubbub-keys-") as folder:
        place = Path(folder)
        (place / "people.csv").write_text(f"id,house\n{people}\n")
        (place / "orders.csv").write_text("person\n1\n2\n9\n")
        (place / "hubbub.yaml").write_text(YAML)
        with open_session(place / "hubbub.yaml", analyst="ana") as session:
            try:
                session.query(f"SELECT count(*) FROM {table}", epsilon=1)
            except LedgerError as error:
                if error.code != "HB735":
                    raise
                return True
            return False


CHECKS: dict[str, Callable[[], list[str]]] = {"schemas": schemas, "keys": repeated_keys}
