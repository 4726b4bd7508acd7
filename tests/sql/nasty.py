"""A table of edge-case values of every kind, and all ways to apply a function of the allow-list to its columns.

The tests of all engines use this table: every function must be total, satisfy its facts, and give equal results.
"""

import itertools
import random
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction

import duckdb

from hubbub.core.schema import Bounds, Column, Kind, Table, Value
from hubbub.sql import dates
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.expressions import Col, Expr, Literal
from hubbub.sql.functions import FUNCTIONS, build
from hubbub.sql.relations import Scan

BIG = 2**63
NASTY: dict[Kind, list[str]] = {
    Kind.BOOLEAN: ["NULL", "TRUE", "FALSE"],
    Kind.INTEGER: [
        "NULL",
        "0",
        "1",
        "-1",
        "2",
        "3",
        "-7",
        "10",
        "99",
        "100",
        "101",
        str(2**53),
        str(2**53 + 1),
        str(-(2**53) - 1),
        str(BIG - 1),
        str(-BIG),
        "-128",
        "128",
        "65536",
    ],
    Kind.REAL: [
        "NULL",
        "'nan'::DOUBLE",
        "'inf'::DOUBLE",
        "'-inf'::DOUBLE",
        "0",
        "-0.0::DOUBLE",
        "1",
        "-1",
        "0.5",
        "-0.5",
        "1.5",
        "2.5",
        "-2.5",
        "0.1",
        "0.49999999999999994::DOUBLE",
        "5e-324",
        "-5e-324",
        "2.2e-308",
        "1e308",
        "-1e308",
        "1.7976931348623157e308",
        "1e-300",
        "9007199254740993",
        "1e19",
        "-1e19",
        "3.4e38",
        "3.5e38",
        "709.8",
        "1e6",
        "123456.785",
    ],
    Kind.TEXT: [
        "NULL",
        "''",
        "' '",
        "'  a b '",
        "chr(160) || 'a' || chr(12288)",
        "'A'",
        "'É'",
        "'ß'",
        "'İ'",
        "'🤦🏼‍♂️'",
        "'e' || chr(769)",
        "chr(0)",
        "'nan'",
        "'inf'",
        "'1e999'",
        "'12'",
        "' 12 '",
        "'9223372036854775808'",
        "'true'",
        "'maybe'",
        "'2024-02-30'",
        "'2024-02-29'",
        "'infinity'",
        "'-infinity'",
        "'99999-01-01'",
        "'2024-02-29 25:00:00'",
        "'44-03-15 (BC)'",
        "'%'",
        "'_'",
        "'\\'",
        "repeat('x', 5000)",
        "'0x1F'",
        "'1_000'",
        "'x''y'",
        "chr(10)",
    ],
    Kind.DATE: [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'5877642-06-25 (BC)'",
        "'5881580-07-10'",
        "'0001-01-01'",
        "'0001-01-07'",
        "'9999-12-31'",
        "'1970-01-01'",
        "'1969-12-31'",
        "'2024-02-29'",
        "'2023-12-31'",
        "'2000-01-03'",
        "'1900-03-01'",
    ],
    Kind.TIMESTAMP: [
        "NULL",
        "'infinity'",
        "'-infinity'",
        "'290309-12-22 (BC) 00:00:00'",
        "'294247-01-10 04:00:54.775806'",
        "'0001-01-01 00:00:00'",
        "'9999-12-31 23:59:59.999999'",
        "'1970-01-01 00:00:00'",
        "'1969-12-31 23:59:59.999999'",
        "'2024-02-29 12:34:56.789'",
        "'2023-12-31 23:59:59'",
        "'2024-01-01 00:00:00'",
    ],
}
TYPES = {Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE", Kind.TEXT: "VARCHAR"}

#: Columns of the table: two of each kind without bounds, and some with bounds or values.
COLUMNS: tuple[Column, ...] = (
    *(Column(f"{kind.value}_{letter}", kind) for kind in Kind for letter in "ab"),
    Column("integer_in", Kind.INTEGER, Bounds(Fraction(-3), Fraction(12))),
    Column("integer_of", Kind.INTEGER, values=(2, 3, 100, -7)),
    Column("real_in", Kind.REAL, Bounds(Fraction(-1, 2), Fraction(10))),
    Column("real_up", Kind.REAL, Bounds(Fraction(1, 10), Fraction(10**6)), step=Fraction(1, 100)),
    Column("real_wide", Kind.REAL, Bounds(Fraction(-(10**300)), Fraction(10**300))),
    Column("text_of", Kind.TEXT, values=("A", "12", "  a b ", "É"), other="else"),
    Column("date_in", Kind.DATE, Bounds(dates.number(date(2023, 12, 1)), dates.number(date(2024, 3, 2)))),
    Column(
        "timestamp_in",
        Kind.TIMESTAMP,
        Bounds(dates.number(datetime(2023, 12, 31, 22)), dates.number(datetime(2024, 2, 29, 13))),
    ),
)
TABLE = Table("nasty", COLUMNS, None)
COLS = {column.name: Col(column.name, column.kind, column_facts(column)) for column in COLUMNS}
SCAN = Scan(TABLE, tuple(COLS.values()), tuple(COLS))

#: Values of the arguments that must be constants.
CONSTANTS: dict[str, list[tuple[Value, ...]]] = {
    "round": [(0,), (2,), (-2,), (15,), (-15,)],
    "width_bucket": [(0, 10, 5), (Fraction(-1, 10), Fraction(1, 3), 7), (-(10**300), 10**300, 1000)],
    "substr": [(1,), (2, 3), (1, 0), (10**6, 10**6)],
    "left": [(0,), (2,), (10**6,)],
    "right": [(0,), (2,), (10**6,)],
    "strpos": [("",), ("a",), ("É",)],
    "starts_with": [("",), ("A",)],
    "ends_with": [("",), ("A",)],
    "contains": [("",), ("🏼",)],
    "like": [("%",), ("_",), ("%a%b%",), ("",), ("É",), ("%%%%%%%%",)],
    "date_trunc": [(unit,) for unit in dates.UNITS],
    "date_diff": [(unit,) for unit in dates.UNITS],
    "date_shift": [(200, "year"), (-200, "year"), (1, "month"), (-10400, "week"), (10**9, "second"), (1, "day")],
    "day_shift": [(73_000,), (-73_000,), (1,)],
    "to_integer": [(8,), (16,), (32,), (64,), (128,)],
}


def literal(value: Value) -> Literal:
    match value:
        case bool():
            return Literal(value, Kind.BOOLEAN)
        case int():
            return Literal(value, Kind.INTEGER)
        case Fraction():
            return Literal(value, Kind.REAL)
        case str():
            return Literal(value, Kind.TEXT)
        case datetime():
            return Literal(value, Kind.TIMESTAMP)
        case _:
            return Literal(value, Kind.DATE)


LISTED: dict[Kind, tuple[Value, ...]] = {
    Kind.BOOLEAN: (True,),
    Kind.INTEGER: (2, -7, 100),
    Kind.REAL: (Fraction(1, 10), Fraction(5, 2)),
    Kind.TEXT: ("", "A", "É"),
    Kind.DATE: (date(2024, 2, 29),),
    Kind.TIMESTAMP: (datetime(2024, 2, 29, 12, 34, 56, 789000),),
}


def applications(name: str) -> list[Expr]:
    """Apply a function to columns of the table in every way that its kinds allow."""
    rows: list[tuple[Expr, ...]] = []
    if name == "in":
        rows = [(col, *(literal(value) for value in LISTED[col.kind])) for col in COLS.values()]
    elif name == "case":
        for kind in Kind:
            a, b = (COLS[f"{kind.value}_{letter}"] for letter in "ab")
            rows += [(COLS["boolean_a"], a, COLS["boolean_b"], b, last) for last in (b, Literal(None, kind))]
    else:
        first = 0 in FUNCTIONS[name].constant
        for count in (1, 2, 3):
            kinds = itertools.product(Kind, repeat=count) if count < 3 else ((kind,) * count for kind in Kind)
            for chosen in itertools.chain.from_iterable(columns_of(combination) for combination in kinds):
                for given in CONSTANTS.get(name, [()]):
                    fixed = tuple(literal(value) for value in given)
                    rows.append((*fixed, *chosen) if first else (*chosen, *fixed))
    return list(dict.fromkeys(call for args in rows if (call := build(name, args)) is not None))


def columns_of(kinds: tuple[Kind, ...]) -> Iterator[tuple[Col, ...]]:
    """Choose columns of these kinds: all single columns and pairs, and one longer combination."""
    pools = [[col for col in COLS.values() if col.kind is kind] for kind in kinds]
    if len(kinds) < 3:
        yield from (chosen for chosen in itertools.product(*pools) if len(set(chosen)) == len(kinds))
    else:
        yield tuple(pool[i % len(pool)] for i, pool in enumerate(pools))


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the table with a row for every pair of values of a kind, one in column _a and the other in column _b."""
    n = max(len(values) for values in NASTY.values())
    parts = []
    for column in COLUMNS:
        kind = TYPES.get(column.kind, column.kind.value.upper())
        values = [f"CAST({text} AS {kind})" for text in NASTY[column.kind]]
        index = "j" if column.name.endswith("_b") else "i"
        parts.append(f"([{', '.join(values)}])[{index} % {len(values)} + 1] AS {column.name}")
    rows = f"range({n}) AS a(i), range({n}) AS b(j)"
    connection.execute(f"CREATE OR REPLACE TABLE nasty AS SELECT {', '.join(parts)} FROM {rows}")


def random_expression(rng: random.Random, depth: int) -> Expr:
    """Build a random expression."""
    if depth == 0 or rng.random() < 0.2:
        kind = rng.choice(list(Kind))
        if rng.random() < 0.3:
            return literal(rng.choice(LISTED[kind]))
        return rng.choice([col for col in COLS.values() if col.kind is kind])
    while True:
        name = rng.choice(sorted(FUNCTIONS))
        fixed = tuple(literal(value) for value in rng.choice(CONSTANTS.get(name, [()])))
        count = 3 if name in ("case", "between") else rng.choice((1, 2, 2))
        args = tuple(random_expression(rng, depth - 1) for _ in range(count))
        if name == "in":
            fixed = tuple(literal(value) for value in LISTED[args[0].kind])
        first = FUNCTIONS[name].constant and min(FUNCTIONS[name].constant) == 0
        call = build(name, (*fixed, *args) if first else (*args, *fixed))
        if call is not None:
            return call
