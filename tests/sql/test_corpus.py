"""A corpus of queries over three worlds: each has the plan that is expected of it, and the answer that DuckDB gives."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pytest
from tests.fixtures.visits_table import arrays, run
from tests.sql.corpus.queries import HERE, SALT, Entry, entries, expected, quiet, shown
from tests.sql.corpus.worlds import WORLDS

from hubbub.noise.source import system
from hubbub.sql.expressions import Col, Expr, facts
from hubbub.sql.finish import finish
from hubbub.sql.measures import KeyWeight
from hubbub.sql.plan import Plan

CORPUS = entries()
NAMED = pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.id) for entry in CORPUS])
Row = tuple[Any, ...]


@cache
def engine(world: str) -> duckdb.DuckDBPyConnection:
    """Fill an engine once for all queries of a world."""
    return WORLDS[world]().connect()


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    engine.cache_clear()


@NAMED
def test_the_plan_is_the_one_beside_the_query(entry: Entry) -> None:
    plans = expected(HERE / entry.world / f"{entry.file}.plan")
    assert shown(entry.planned()) == plans[entry.name], "if this is meant: python -m tests.sql.corpus"


@NAMED
def test_without_noise_the_answer_is_duckdbs_on_bounded_data(entry: Entry) -> None:
    """Planned for a huge ε, with noise that is zero (but for e⁻⁹⁹⁹); DuckDB reads tables bounded by hand."""
    made = quiet(entry.planned(Fraction(10**6)))
    connection = engine(entry.world)
    ours = finish(made, run(connection, made), system()).rows
    differences = list(compared(made, ours, plain(connection, entry)))
    assert differences == []


def test_a_sketch_expects_charges_and_selects_what_the_plan_does() -> None:
    """At another price a plan is only compared by its errors, so its statements are not written."""
    for entry in CORPUS[::3]:
        made, sketch = entry.planned(Fraction(3)), entry.planned(Fraction(3), sketch=True)
        if made.top is None:  # planned as one piece
            assert (sketch.statements, sketch.derivation) == ((), ())
        for field in ("epsilon", "delta", "noise", "limits", "threshold", "keys", "event", "expected", "outputs"):
            assert getattr(sketch, field) == getattr(made, field), (entry.id, field)
        assert [each.mechanism for each in sketch.measures] == [each.mechanism for each in made.measures], entry.id


def plain(connection: duckdb.DuckDBPyConnection, entry: Entry) -> list[Row]:
    """Ask DuckDB itself, over the tables in which the declared facts were made true by hand."""
    cursor = connection.cursor()
    cursor.execute("SET schema = 'plain'")
    values = [float(value) if isinstance(value, Fraction) else value for value in entry.parameters]
    return cursor.execute(entry.oracle.replace("$salt", f"'{SALT}'"), values or None).fetchall()


def compared(made: Plan, ours: Sequence[Row], theirs: Sequence[Row]) -> Iterator[str]:
    """Say where answers differ: groups of nobody are only ours, groups of NULL theirs unless the key can be NULL."""
    names = {key.name: key.expr for key in made.query.keys}
    keys = [i for i, (_, expr) in enumerate(made.query.select) if isinstance(expr, Col) and expr.name in names]
    if len(made.query.sets) == 1:
        strict = [i for i in keys if not facts(names[made.query.select[i][1].name]).null]  # type: ignore[union-attr]
        theirs = [row for row in theirs if all(row[i] is not None for i in strict)]
    if made.query.limit is None and made.query.having is None and len(keys) == len(names):
        own, other = ({tuple(plainly(row[i]) for i in keys): row for row in rows} for rows in (ours, theirs))
        weighted = made.keys is not None and isinstance(made.measures[made.keys].measure, KeyWeight)
        # by weights, groups of one unit may be found as well
        yield from _groups_apart(own, {**own, **other} if weighted and other.keys() <= own.keys() else other, keys)
        if len(own) < len(ours) or len(other) < len(theirs):
            yield "two groups have the same keys"
        ours, theirs = [row for key, row in own.items() if key in other], list(other.values())
    if not made.query.order:
        ours, theirs = sorted(ours, key=_rounded), sorted(theirs, key=_rounded)
    if len(ours) != len(theirs):
        yield f"{len(ours)} rows instead of {len(theirs)}"
    steps = {name: float(each.choice.candidates.step) for each in made.choices for name in each.choice.names}
    near = [steps.get(expr.name) if isinstance(expr, Col) else None for _, expr in made.query.select]
    for mine, right in zip(ours, theirs, strict=False):
        for (name, expr), a, b, step in zip(made.query.select, mine, right, near, strict=True):
            if not alike(a, b, step) and not (b is None and _of_nothing(made, expr, a)):
                yield f"{name}: {a} instead of {b} in {right}"


def _of_nothing(made: Plan, expr: Expr, value: Any) -> bool:
    """Tell whether a value is what an average of no rows gives: the middle of its range, on its grid."""
    formula = made.formulas.get(expr.name) if isinstance(expr, Col) else None
    if formula is None or formula.low is None or formula.high is None:
        return False
    return bool(abs(2 * value - formula.low - formula.high) <= 1)


def _groups_apart(own: Mapping[Row, Row], other: Mapping[Row, Row], keys: Sequence[int]) -> Iterator[str]:
    if not other.keys() <= own.keys():
        yield f"missing: {sorted(map(str, other.keys() - own.keys()))}"
    for key in own.keys() - other.keys():
        if any(isinstance(cell, int) and cell > 0 for i, cell in enumerate(own[key]) if i not in keys):
            yield f"nobody is in {key}, and yet: {own[key]}"


def _rounded(row: Row) -> list[str]:
    """Sort by what is the same on both sides: lists, and what was chosen from candidates, come last in no order."""
    cells = [plainly(cell) for cell in row]
    return [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells if not isinstance(cell, list)]


def plainly(cell: Any) -> Any:
    """Give a key as both sides write it."""
    if isinstance(cell, bool) or cell is None:
        return cell
    if isinstance(cell, int | float | Decimal):
        return None if math.isnan(cell) else float(cell)
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return datetime(cell.year, cell.month, cell.day)
    return cell


def alike(a: Any, b: Any, step: float | None) -> bool:
    """Compare numbers to six digits; a chosen one to the step of its candidates, or with a list that holds it."""
    a = plainly(a)
    if isinstance(b, list):
        # the order statistics on either side of a quantile
        return bool(min(b) - (step or 0) / 2 <= a <= max(b) + (step or 0) / 2)
    b = plainly(b)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) or (step is not None and abs(a - b) <= step)
    return bool(a == b) or (b is None and a == 0)


def test_the_corpus_is_large_and_covers_all_aggregates() -> None:
    """At least 150 queries; names are unique; each aggregate is asked over real data, and no plan lies about idle."""
    assert len(CORPUS) >= 150
    assert min(Counter(entry.world for entry in CORPUS).values()) >= 40
    assert max(Counter(entry.id for entry in CORPUS).values()) == 1
    asked = {a.function for entry in CORPUS if entry.world != "made" for a in entry.bound().aggregates}
    assert asked >= {
        "count",
        "count_distinct",
        "count_units",
        "sum",
        "avg",
        "var_pop",
        "var_samp",
        "stddev_pop",
        "stddev_samp",
        "covar_pop",
        "covar_samp",
        "corr",
        "regr_slope",
        "regr_intercept",
        "regr_r2",
        "quantile",
        "min",
        "max",
        "mode",
    }
    for path in HERE.glob("*/*.plan"):
        written = [entry.name for entry in CORPUS if (entry.world, entry.file) == (path.parent.name, path.stem)]
        assert list(expected(path)) == written


def test_a_planted_error_is_seen_in_the_answers() -> None:
    """Bounds, groups and rows that differ a little: each changes an answer of the corpus."""
    entry = next(each for each in CORPUS if each.id == "health/bounded: rows of one person are bounded")
    made = quiet(entry.planned(Fraction(10**6)))
    connection = engine(entry.world)
    right = plain(connection, entry)
    for old, new in (("least(count(*), 2)", "least(count(*), 3)"),):
        texts = [each.sql.replace(old, new) for each in made.statements]
        assert texts != [each.sql for each in made.statements]
        tables = {each.name: arrays(connection, text) for each, text in zip(made.statements, texts, strict=True)}
        assert list(compared(made, finish(made, tables, system()).rows, right))
