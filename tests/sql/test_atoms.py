"""Atoms: every row is in one, and the cells of an atom are those that the engine gives its rows."""

import random
from datetime import date
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.sql.atoms import MOST_ATOMS, Atoms, TooManyAtomsError, atoms, expression_columns, grouping
from hubbub.sql.bind import bind
from hubbub.sql.coarser import query_grouping
from hubbub.sql.measured import Described, describe, measured, parsed, text
from hubbub.sql.plan import plan

COLUMNS = (
    Column("site", Kind.TEXT, values=("a", "b", "c"), nullable=True),
    Column("name", Kind.TEXT),
    Column("female", Kind.BOOLEAN),
    Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(99)), required=True),
    Column("cost", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(1000))),
    Column("day", Kind.DATE, bounds=Bounds(Fraction(0), Fraction(30_000))),
)
TABLE = Table("v", COLUMNS, PrivacyUnit(None))

#: Each is a query whose groups are compared with those of the engine.
TEXTS = (
    "SELECT site, COUNT(*) FROM v GROUP BY site",
    "SELECT female, COUNT(*) FROM v WHERE age BETWEEN 20 AND 39 GROUP BY female",
    "SELECT CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'adult' ELSE 'old' END AS z, COUNT(*) FROM v GROUP BY z",
    "SELECT COUNT(*) FROM v WHERE cost > 100 AND cost <= 500.5",
    "SELECT COUNT(*) FROM v WHERE NOT (cost >= 250 OR site = 'a')",
    "SELECT COUNT(*) FROM v WHERE site <> 'b' OR female",
    "SELECT COUNT(*) FROM v WHERE name IN ('x', 'y') AND site IS NULL",
    "SELECT COUNT(*) FROM v WHERE name > 'x'",
    "SELECT COUNT(*) FROM v WHERE day >= DATE '2000-01-01' AND day < DATE '2010-06-15'",
)


def described(sql: str) -> Described:
    made = plan(bind(sql, tables={"v": TABLE}), epsilon=Fraction(1), delta=Fraction(0), salt="s")
    found = describe(made, (None, None))
    assert found is not None
    return found


def own(each: Described) -> Any:
    (groups,) = each.plan.cells
    return query_grouping(each.rows.where.values(), [each.keys[place] for place in groups.places], groups)


@pytest.fixture(scope="module")
def data() -> Any:
    """Rows with NULL, with values beyond declared ones, and with the literals of the conditions themselves."""
    chance = random.Random(11)
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE v (site VARCHAR, name VARCHAR, female BOOLEAN, age INTEGER, cost DOUBLE, day DATE)"
        )
        for _ in range(1500):
            row = (
                chance.choice(["a", "b", "c", None]),
                chance.choice(["w", "x", "y", "z", "xx", "", None]),
                chance.choice([True, False, None]),
                chance.choice([0, 17, 18, 19, 20, 39, 40, 64, 65, 99, chance.randrange(100)]),
                chance.choice([None, 100, 250, 500.5, 501, chance.random() * 1000]),
                chance.choice([None, date(2000, 1, 1), date(2010, 6, 15), date(1999, 12, 31), date(2005, 1, 1)]),
            )
            connection.execute("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)", row)
        yield connection


def test_every_row_is_in_one_atom_and_its_cells_are_those_of_the_engine(data: Any) -> None:
    """The atoms of all queries together: the number of rows of each cell is the sum of those of its atoms."""
    for some in (TEXTS[:4], TEXTS[2:6], TEXTS[4:8], (TEXTS[0], TEXTS[8])):
        all_of = [described(each) for each in some]
        whole = atoms([own(each) for each in all_of], expression_columns(COLUMNS))
        cells = [whole.cells(own(each)) for each in all_of]
        # the atom of each row, found by the cells of all queries: plain Python on the rows of the engine
        rows = data.execute("SELECT site, name, female, age, cost, day FROM v").fetchall()
        counted = [np.zeros(own(each).size, dtype=int) for each in all_of]
        expected = [_engine(data, each, query) for each, query in zip(some, all_of, strict=True)]
        for row in rows:
            place = _atom(whole, dict(zip(("site", "name", "female", "age", "cost", "day"), row, strict=True)), all_of)
            for number, code in enumerate(each[place] for each in cells):
                if code >= 0:
                    counted[number][code] += 1
        assert [each.tolist() for each in counted] == expected


def _atom(whole: Atoms, row: dict[str, Any], all_of: list[Described]) -> int:
    """Find the atom of a row: the class of each column whose value acts alike in all conditions and keys."""
    from hubbub.sql.evaluate import evaluate
    from hubbub.sql.expressions import Expr, FunctionCall
    from hubbub.sql.prune import names

    def parts(expr: Expr, name: str) -> list[Expr]:
        if names(expr) == {name}:
            return [expr]
        return [p for a in expr.args for p in parts(a, name)] if isinstance(expr, FunctionCall) else []

    exprs = [e for each in all_of for e in (*each.rows.where.values(), *each.keys)]
    place = 0
    for name, classes in whole.columns.items():
        value = row[name.removeprefix("0.")]
        value = float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        own_parts = [part for expr in exprs for part in parts(expr, name)]
        signature = [evaluate(part, {name: value}) for part in own_parts]
        fitting = [i for i, c in enumerate(classes) if [evaluate(part, {name: c}) for part in own_parts] == signature]
        assert len(fitting) == 1
        place = place * len(classes) + fitting[0]
    return place


def _engine(data: Any, sql: str, query: Described) -> list[int]:
    """Count by the engine, in the order of cells."""
    (groups,) = query.plan.cells
    if not groups.domains:
        return [row[0] for row in data.execute(sql).fetchall()]
    found = {row[0]: row[1] for row in data.execute(sql).fetchall()}
    (domain,) = groups.domains
    return [found.get(value, 0) for value in (*domain.values, *([None] if domain.null else []))]


def test_without_null_a_row_would_have_no_atom(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: NULL is forgotten. Rows with NULL then fit no class, and a complement would count them."""
    query = described("SELECT COUNT(*) FROM v WHERE cost > 100")
    whole = atoms([own(query)], expression_columns(COLUMNS))
    assert None in whole.columns["0.cost"]
    required = (Column("cost", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(1000)), required=True),)
    assert None not in atoms([own(query)], expression_columns(required)).columns["0.cost"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM v WHERE cost * 2 > 100",
        "SELECT COUNT(*) FROM v WHERE length(name) > 3",
        "SELECT COUNT(*) FROM v WHERE month(day) = 3",
        "SELECT COUNT(*) FROM v WHERE cost > age",
    ],
)
def test_what_is_more_than_a_comparison_of_a_long_column_has_no_atoms(sql: str) -> None:
    with pytest.raises(TooManyAtomsError):
        atoms([own(described(sql))], expression_columns(COLUMNS))


def test_the_number_of_atoms_is_bounded() -> None:
    sql = "SELECT COUNT(*) FROM v WHERE " + " AND ".join(f"cost <> {n}" for n in range(MOST_ATOMS // 2))
    many = [described(sql), described("SELECT age, site, COUNT(*) FROM v GROUP BY age, site")]
    with pytest.raises(TooManyAtomsError):
        atoms([own(each) for each in many], expression_columns(COLUMNS))


def test_a_description_is_read_as_it_was_written() -> None:
    for sql in TEXTS:
        query = described(sql)
        facts = measured(query)
        assert facts is not None
        for where in facts["where"]:
            assert text(parsed(where)) == where
        ours, read = own(query), grouping(map(parsed, facts["where"]), facts["sets"][0], parsed)
        whole = atoms([ours], expression_columns(COLUMNS))
        assert whole.cells(ours).tolist() == whole.cells(read).tolist()
