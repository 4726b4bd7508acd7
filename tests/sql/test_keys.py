from fractions import Fraction

import duckdb
import numpy as np
import pytest
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.visits_table import FLAG, REGION, connect, query, visits

from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.errors import QueryError
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Col, Facts
from hubbub.sql.keys import MAX_CELLS, Cells, Domain, cells, domains_of
from hubbub.sql.query import Aggregate, Key

KEYS = [Key("region", REGION), Key("flag", FLAG)]
COUNT = [Aggregate("n", "count")]


def test_cells_are_the_product_of_declared_values_in_their_order() -> None:
    (one,) = cells(query(visits(PrivacyUnit(None)), COUNT, keys=KEYS))
    assert one.size == 8
    assert one.strides == (2, 1)
    assert one.codes(0).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert one.codes(1).tolist() == [0, 1] * 4


def test_a_set_without_a_key_has_none_of_its_values() -> None:
    both, region, nothing = cells(query(visits(PrivacyUnit(None)), COUNT, keys=KEYS, sets=[(0, 1), (0,), ()]))
    assert (both.size, region.size, nothing.size) == (8, 4, 1)
    assert region.codes(1).tolist() == [-1] * 4
    assert (
        domains_of(query(visits(PrivacyUnit(None)), COUNT, keys=KEYS))[1].shown(region.codes(1)).tolist() == [None] * 4
    )


def test_too_many_cells_are_refused() -> None:
    wide = Key("a", Col("age", Kind.INTEGER, Facts(values=range(1001))))
    long = Key("b", Col("age", Kind.INTEGER, Facts(values=range(10_000))))
    with pytest.raises(QueryError, match="HB550"):
        cells(query(visits(PrivacyUnit(None)), COUNT, keys=[wide, long]))
    most = Key("a", Col("age", Kind.INTEGER, Facts(values=tuple(range(1000)))))
    (one,) = cells(query(visits(PrivacyUnit(None)), COUNT, keys=[most, long]))
    assert one.size == MAX_CELLS


def test_keys_that_nobody_declared_are_refused() -> None:
    with pytest.raises(QueryError, match="HB551"):
        cells(query(visits(PrivacyUnit(None)), COUNT, keys=[Key("r", Col("region", Kind.TEXT))]))


def test_every_kind_of_value_finds_its_number_in_the_engine() -> None:
    odd = ("", " ", "'", '"', "Ça", "Ca\u0327", "\u200b", "a\nb", "🙂", "null")
    domain = Domain(Key("k", Col("k", Kind.TEXT)), odd)
    cell = Cells((0,), (domain,))
    connection = connect()
    connection.execute("CREATE TABLE words (w VARCHAR)")
    insert_rows(connection, "words", [[word] for word in (*odd, "other", None)])
    for grouped in (True, False):
        placed = cell.lookup(("w",), DUCKDB, grouped=grouped)
        sql = f"SELECT w, {placed.cell} FROM words{placed.joins} WHERE {placed.where} ORDER BY c"
        found = connection.execute(f"SELECT * FROM ({sql}) WHERE c IS NOT NULL").fetchall()
        assert found == [(word, i) for i, word in enumerate(odd)]


def test_reals_are_shown_as_numbers() -> None:
    domain = Domain(Key("k", Col("k", Kind.REAL)), (Fraction(1, 2), 3))
    assert domain.shown(np.array([0, 1, 2])).tolist() == [0.5, 3, None]
    assert np.isnan(domain.typed(np.array([-1]))[0])


@pytest.mark.parametrize("null", [False, True])
def test_a_range_finds_the_cells_of_the_same_list(null: bool) -> None:  # noqa: FBT001
    """Numbers inside and outside, at the ends, between integers, infinite, NaN and NULL; searched and joined."""
    key = Key("k", Col("k", Kind.INTEGER))
    numbers = [-2000, -3, -2.5, -2, -1, 0, 0.5, 7, 997, 998, 998.5, 1e300]
    texts = [*(f"({number}::DOUBLE)" for number in numbers), "('nan'::DOUBLE)", "('-inf'::DOUBLE)", "(NULL)"]
    found = []
    for values in (range(-2, 999), tuple(range(-2, 999))):
        cell = Cells((0,), (Domain(key, values, null),))
        for grouped in (True, False):
            placed = cell.lookup(("w",), DUCKDB, grouped=grouped)
            sql = f"SELECT w, {placed.cell} FROM (VALUES {', '.join(texts)}) t(w){placed.joins} WHERE {placed.where}"
            rows = duckdb.connect().execute(f"SELECT * FROM ({sql}) WHERE c IS NOT NULL ORDER BY c").fetchall()
            found.append(rows)
        assert np.array_equal(cell.codes(0), np.arange(1001 + null))
    assert found[0] == [(-2, 0), (-1, 1), (0, 2), (7, 9), (997, 999), (998, 1000), *([(None, 1001)] if null else [])]
    assert found[1:] == [found[0]] * 3
