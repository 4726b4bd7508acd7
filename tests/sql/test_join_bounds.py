"""The bounds of a join are those of its tables multiplied: a table with one row a person does not cut the others."""

from fractions import Fraction
from typing import Any

import duckdb
import pytest
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.curator.left_out import describe
from hubbub.sql.bind import bind
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.finish import exact_results
from hubbub.sql.plan import Plan, plan

CUSTOMER = (Column("c", Kind.INTEGER), Column("segment", Kind.TEXT, values=("auto", "home")))
ORDERS = (Column("c", Kind.INTEGER), Column("o", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(99))))
ITEMS = (*ORDERS, Column("price", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(100))))


def tables(customer: int = 1, orders: int = 10, items: int = 50, *, auto: bool = False) -> dict[str, Table]:
    def unit(rows: int) -> PrivacyUnit:
        return PrivacyUnit("c", rows if auto else 1, rows, "customer", auto=auto)

    return {
        "customer": Table("customer", CUSTOMER, PrivacyUnit("c", 1, customer, "customer")),
        "orders": Table("orders", ORDERS, unit(orders)),
        "items": Table("items", ITEMS, unit(items)),
    }


def planned(text: str, known: dict[str, Table], **options: Any) -> Plan:
    return plan(bind(text, tables=known), epsilon=Fraction(1), delta=Fraction(0), salt="s", **options)


@pytest.fixture(scope="module")
def shop() -> duckdb.DuckDBPyConnection:
    """Five customers with eight orders each, and four items in each order."""
    made = duckdb.connect(config={"threads": 1})
    made.execute("CREATE TABLE customer AS SELECT i AS c, ['auto', 'home'][1 + i % 2] AS segment FROM range(5) r(i)")
    made.execute("CREATE TABLE orders AS SELECT i % 5 AS c, i AS o FROM range(40) r(i)")
    made.execute("CREATE TABLE items AS SELECT i % 40 % 5 AS c, i % 40 AS o, 2.0 AS price FROM range(160) r(i)")
    return made


def count(made: Plan, shop: duckdb.DuckDBPyConnection) -> int:
    found = {each.name: arrays(shop, each.sql) for each in made.statements}
    return int(exact_results(made, found)[0][0].sum())


TWO = "SELECT count(*) FROM customer JOIN orders ON customer.c = orders.c"
THREE = f"{TWO} JOIN items ON orders.c = items.c AND orders.o = items.o"


@pytest.mark.parametrize("text", [TWO, TWO.replace("customer JOIN orders", "orders JOIN customer")])
def test_a_table_with_one_row_a_person_does_not_cut_a_join(shop: duckdb.DuckDBPyConnection, text: str) -> None:
    made = planned(text, tables())
    assert made.limits == ContributionBounds(1, 10)
    assert made.measures[0].sensitivity.l1 == 10
    assert count(made, shop) == 40


def test_bounds_of_several_tables_multiply(shop: duckdb.DuckDBPyConnection) -> None:
    made = planned(THREE, tables())
    assert made.limits == ContributionBounds(1, 500)
    assert count(made, shop) == 160
    assert planned(THREE, tables(), rows=7).limits == ContributionBounds(1, 7)


def test_bounds_of_a_join_are_enforced(shop: duckdb.DuckDBPyConnection) -> None:
    assert count(planned(TWO, tables(orders=3)), shop) == 5 * 3
    assert count(planned(THREE, tables(orders=2, items=4)), shop) <= 5 * 8


def test_a_join_with_a_bound_that_is_found_finds_one() -> None:
    made = planned(TWO, tables(auto=True))
    assert made.limits == ContributionBounds(10, 10, auto=True)
    assert [each.contribution for each in made.levels] == ["rows"]
    assert planned(THREE, tables(auto=True)).limits == ContributionBounds(50, 50, auto=True)


def test_given_bounds_of_a_query_hold_for_each_table_of_its_join(shop: duckdb.DuckDBPyConnection) -> None:
    """Rows are those of one group, so a table keeps groups times rows."""
    known = tables(auto=True)
    wide = planned(THREE, known, groups=2, rows=3)
    assert wide.limits == ContributionBounds(2, 3)
    assert any("at most 6 rows" in line for line in wide.derivation)
    assert count(wide, shop) <= 5 * 3


def test_a_join_says_that_it_cuts_tables_without_declared_bounds() -> None:
    """Orders and items multiply, so each is cut first; a customer table of one row multiplies nothing."""
    joined = "SELECT count(*) FROM orders JOIN items ON orders.c = items.c"
    for text, cut in ((joined, 10), (TWO, None), ("SELECT count(*) FROM items", None)):
        assert describe(planned(text, tables(auto=True))).joined == cut
    assert describe(planned(joined, tables())).joined is None, "declared bounds are stated as such"
    stated = describe(planned(joined, tables(orders=5000, items=9000, auto=True))).sentence()
    assert "Before the join, a table keeps at most 1,024 rows of each c." in stated
