"""Aggregates of everybody's rows for each key, inside later queries: what is accepted, and which keys they have."""

from dataclasses import replace
from datetime import date
from fractions import Fraction

import duckdb
import pytest
from tests.fixtures.unit_tables import TABLES, VISITS

from hubbub.audit.replan import plan_again
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table, Value
from hubbub.curator.question import Question
from hubbub.engines.registry import ENGINES
from hubbub.errors import QueryError
from hubbub.sql.bind import bind_releases
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.plan import plan
from hubbub.sql.query import Queries, Query
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan
from hubbub.sql.released_tables import key_table, released_table, rows_of

#: A public table of parts, two of which are alike, and one without a key.
PARTS = Table(
    "parts",
    (Column("part", Kind.INTEGER), Column("maker", Kind.TEXT), Column("brand", Kind.TEXT), Column("size", Kind.REAL)),
    None,
    unique=None,
    size=6,
    repeats={"part": 2, "maker": 6, "brand": 6, "size": 6},
    rows={
        "part": (1, 2, 3, 3, 4, None),
        "maker": ("x", "x", "y", "y", "y", "z"),
        "brand": ("A", "B", "A", "A", None, "A"),
        "size": (Fraction(1), Fraction(2), Fraction(3), Fraction(4), Fraction(5), Fraction(6)),
    },
)
LARGE = Table("large", (Column("part", Kind.INTEGER),), None, unique=("part",), size=10**6)
LINES = Table(
    "lines",
    (
        Column("id", Kind.INTEGER),
        Column("part", Kind.INTEGER),
        Column("mode", Kind.TEXT, values=("air", "sea")),
        Column("quantity", Kind.INTEGER, Bounds(Fraction(0), Fraction(50))),
        Column("stock", Kind.INTEGER, Bounds(Fraction(1), Fraction(20_000))),
    ),
    PrivacyUnit("id", groups=3, rows=4, entity="person"),
)
SHOP = {table.name: table for table in (PARTS, LARGE, LINES, replace(LINES, name="more"))}
OWN = "(SELECT 0.2 * AVG(quantity) FROM lines l WHERE l.part = parts.part)"


def of_parts(conditions: str) -> str:
    """Compare each line with the average of its part."""
    return f"SELECT COUNT(*) FROM lines JOIN parts ON lines.part = parts.part WHERE {conditions} AND quantity < {OWN}"


#: Statements with the keys of their first release.
KEYS: dict[str, list[tuple[Value | None, ...]]] = {
    of_parts("size > 0"): [(1,), (2,), (3,), (4,)],
    of_parts("brand = 'A'"): [(1,), (3,)],
    of_parts("brand = 'A' AND size > 1"): [(3,)],
    of_parts("(brand = 'A' OR size = 2) AND mode = 'air'"): [(1,), (2,), (3,)],
    of_parts("maker IN (SELECT maker FROM parts p WHERE p.size = 1)"): [(1,), (2,)],
    of_parts("brand = 'none'"): [(1,)],  # no part: the release has one key all the same
    of_parts("brand || mode = 'Aair'"): [
        (1,),
        (2,),
        (3,),
        (4,),
    ],
    "SELECT COUNT(*) FROM lines JOIN parts ON lines.part = parts.part WHERE quantity < "
    "(SELECT COUNT(*) FROM more WHERE more.part = lines.part) / 2": [(1,), (2,), (3,), (4,)],
    "SELECT COUNT(*) FROM lines o WHERE quantity > (SELECT AVG(quantity) FROM lines WHERE mode = o.mode)": [
        ("air",),
        ("sea",),
    ],
    "SELECT SUM(CASE WHEN quantity > (SELECT AVG(quantity) FROM lines WHERE mode = o.mode) THEN 1 ELSE 0 END) "
    "FROM lines o": [("air",), ("sea",)],
    "SELECT mode, COUNT(*) FROM lines o JOIN parts p ON o.part = p.part WHERE quantity > (SELECT AVG(quantity) FROM "
    "lines i WHERE i.part = p.part AND i.mode = o.mode AND i.stock > 3) AND brand = 'B' GROUP BY mode": [
        (2, "air"),
        (2, "sea"),
    ],
    "SELECT COUNT(*) FROM lines JOIN parts p ON lines.part = p.part WHERE quantity < (SELECT SUM(quantity) FROM lines "
    "l JOIN parts q ON l.part = q.part WHERE q.maker = p.maker AND q.brand = p.brand)": [
        ("x", "A"),
        ("x", "B"),
        ("y", "A"),
        ("z", "A"),
    ],
}
REFUSED = {
    # the keys are not known
    "SELECT COUNT(*) FROM lines o WHERE quantity > (SELECT AVG(quantity) FROM lines i WHERE i.part = o.part)": "HB740",
    "SELECT COUNT(*) FROM lines JOIN large ON lines.part = large.part WHERE quantity > "
    "(SELECT AVG(quantity) FROM more WHERE more.part = large.part)": "HB740",
    # too many
    "SELECT COUNT(*) FROM lines o WHERE quantity > (SELECT AVG(quantity) FROM more WHERE stock = o.stock)": "HB785",
    # another comparison, another value
    of_parts("size > 0").replace("l.part = parts.part", "l.part > parts.part"): "HB740",
    of_parts("size > 0").replace("AVG(quantity)", "AVG(quantity) + COUNT(*)"): "HB785",
    "SELECT COUNT(*) FROM lines o WHERE mode = (SELECT MODE(mode) FROM lines i WHERE i.mode = o.mode)": "HB785",
    "SELECT COUNT(*) FROM lines o WHERE quantity > (SELECT AVG(quantity) OVER () FROM lines i WHERE i.mode = o.mode)": (
        "HB740"
    ),
    "SELECT COUNT(*) FROM lines o WHERE mode IN (SELECT mode FROM lines i WHERE i.mode = o.mode)": "HB740",
    "SELECT COUNT(*) FROM lines o WHERE EXISTS (SELECT 1 FROM lines i WHERE i.mode = o.mode)": "HB740",
    of_parts("size > 0").replace("(SELECT 0.2", "(WITH x AS (SELECT 1 AS a FROM parts) SELECT 0.2"): "HB785",
    # sums need bounds, which noisy numbers do not have
    "SELECT SUM(quantity - (SELECT AVG(quantity) FROM lines i WHERE i.mode = o.mode)) FROM lines o": "HB515",
}
NUMBERS = (None, Fraction(0), Fraction(-1, 3), Fraction(10) ** 300, -(Fraction(10) ** 300))


def releases(text: str) -> Queries:
    """Bind a statement that has several releases."""
    queries = bind_releases(text, tables=SHOP)
    assert isinstance(queries, Queries)
    return queries


def written(rel: Rel) -> list[Table]:
    """List the tables whose rows a statement writes itself."""
    match rel:
        case Scan():
            return [rel.table] if rel.table.name.startswith("$") else []
        case Join():
            return written(rel.left) + written(rel.right)
        case Filter() | Project() | PerUnit():
            return written(rel.input)
        case _:
            raise TypeError("not in these queries")


def size_of(query: Query) -> int:
    return plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s").size


@pytest.mark.parametrize(("text", "keys"), KEYS.items())
def test_the_keys_are_those_of_public_rows_that_meet_the_conditions(
    text: str, keys: list[tuple[Value | None, ...]]
) -> None:
    queries = releases(text)
    assert queries.values == 1
    (table,) = written(queries.parts[-1].relation)
    *names, _ = table.columns
    assert list(zip(*(table.rows[column.name] for column in names), strict=True)) == keys
    assert size_of(queries.parts[0]) == len(keys)
    assert all(not each.name.startswith("$") for part in queries.parts for each in part.tables)
    assert {each.name for each in queries.parts[0].tables} <= SHOP.keys()


@pytest.mark.parametrize(("text", "code"), REFUSED.items())
def test_other_subqueries_are_refused_before_the_charge(text: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        plan_again(Question(text, epsilon=1), SHOP, salt="", hashing="engine")
    assert caught.value.code == code


def test_a_subquery_about_the_same_unit_is_no_release() -> None:
    """It compares privacy IDs, in one condition among others, and costs nothing more."""
    text = "SELECT COUNT(*) FROM p WHERE age > (SELECT AVG(n) FROM v WHERE v.id = p.id AND v.code = p.sex)"
    assert isinstance(bind_releases(text, tables=TABLES), Query)


def test_rows_that_are_units_are_compared_with_the_average_of_their_group() -> None:
    text = "SELECT COUNT(*) FROM r o WHERE n > (SELECT AVG(n) FROM r i WHERE i.code = o.code)"
    queries = bind_releases(text, tables=TABLES)
    assert isinstance(queries, Queries)
    assert size_of(queries.parts[0]) == len(VISITS.columns[1].values or ()) == 3


def test_the_same_subquery_is_released_once() -> None:
    text = of_parts("brand = 'A'") + f" AND stock > {OWN}"
    assert releases(text).values == 1
    other = of_parts("brand = 'A'") + f" AND stock > {OWN.replace('0.2', '0.3')}"
    assert releases(other).values == 2


@pytest.mark.parametrize("text", KEYS)
def test_the_plan_is_the_same_for_all_numbers(text: str) -> None:
    queries = releases(text)
    count = len(KEYS[text])
    for entry in ENGINES:
        dialect = entry.load_dialect()
        seen = [
            plan(
                queries.parts[-1],
                epsilon=Fraction(1),
                delta=Fraction(0),
                salt="s",
                dialect=dialect.reading([(number,) * count]),
            )
            for number in NUMBERS
        ]
        facts = [(each.event, each.limits, each.groups, each.measures, each.derivation, each.outputs) for each in seen]
        lengths = [[len(sql) for sql in each.sql.values()] for each in seen]
        assert all(each == lengths[0] for each in lengths)
        assert all(each == facts[0] for each in facts)
        assert len({sql for each in seen for sql in each.sql.values()}) == len(NUMBERS)


def test_written_rows_have_their_values_and_kinds() -> None:
    keys: list[tuple[Kind, tuple[Value | None, ...]]] = [
        (Kind.TEXT, ("it's", "ü", None)),
        (Kind.INTEGER, (-3, 2**53, None)),
        (Kind.DATE, (date(2024, 2, 29), date(1, 1, 1), None)),
        (Kind.BOOLEAN, (True, False, None)),
    ]
    table = released_table("$released0", keys, Kind.REAL)
    dialect = DUCKDB.reading([(Fraction(1, 3), None, Fraction(10) ** 300)])
    found = duckdb.execute(f"SELECT * FROM {rows_of(table, dialect)}").fetchall()
    assert found == [
        ("it's", -3.0, date(2024, 2, 29), True, 1 / 3),
        ("ü", 2.0**53, date(1, 1, 1), False, None),
        (None, None, None, None, 1e300),
    ]
    with pytest.raises(AssertionError, match="one number for each"):
        rows_of(table, DUCKDB.reading([(Fraction(1),)]))
    with pytest.raises(AssertionError, match="single number"):
        rows_of(table, DUCKDB.reading([Fraction(1)]))
    plain = key_table("$keys0", keys[:1])
    assert duckdb.execute(f"SELECT * FROM {rows_of(plain, DUCKDB)}").fetchall() == [("it's",), ("ü",), (None,)]
