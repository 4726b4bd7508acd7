"""What reaches the engine: constants as they are, names quoted, facts made true, rows of one unit."""

import math
import random
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction

import duckdb
import pytest

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table, Value
from hubbub.sql import render
from hubbub.sql.bind import bind
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Col, Literal
from hubbub.sql.relations import Scan, UnitAggregate, columns, owned

Tables = Mapping[str, Table]


def fetch(text: str) -> object:
    with duckdb.connect() as connection:
        row = connection.execute(text).fetchone()
        assert row is not None
        return row[0]


def test_every_double_is_written_so_that_it_comes_back() -> None:
    chance = random.Random(1)
    doubles = [
        0.1,
        5e-324,
        1.7976931348623157e308,
        -2.2250738585072014e-308,
        2.0**53,
        1 / 3,
        123456.785,
        -0.5,
        1e16,
        1e15,
    ]
    doubles += [struct.unpack("d", struct.pack("Q", chance.getrandbits(64)))[0] for _ in range(3_000)]
    finite = [x for x in doubles if math.isfinite(x)]
    shown = ", ".join(f"({DUCKDB.number(Fraction(x))})" for x in finite)
    with duckdb.connect() as connection:
        back = connection.execute(f"SELECT v, typeof(v) FROM (VALUES {shown}) AS t(v)").fetchall()
    assert back == [(x, "DOUBLE") for x in finite]


@pytest.mark.parametrize(
    "value",
    [
        True,
        7,
        -7,
        0,
        Fraction(1, 3),
        "",
        "it's",
        'say "hi"',
        "a\nb\t\\n",
        "\u202e\u200b\x01",
        "日本🤦🏼‍♂️",
        "'; DROP TABLE x; --",
        "$1 ? :n {x}",
        "%_",
        date(1, 1, 1),
        date(9999, 12, 31),
        datetime(2024, 2, 29, 12, 30, 5, 7),
        datetime(1, 1, 1),
    ],
)
def test_a_constant_comes_back_as_it_was(value: Value) -> None:
    kinds = {bool: Kind.BOOLEAN, int: Kind.INTEGER, Fraction: Kind.REAL, str: Kind.TEXT, date: Kind.DATE}
    back = fetch(f"SELECT {DUCKDB.literal(value, kinds.get(type(value), Kind.TIMESTAMP))}")
    assert back == (float(value) if isinstance(value, Fraction) else value)


@pytest.mark.parametrize("kind", Kind)
def test_null_has_the_type_of_its_kind(kind: Kind) -> None:
    assert fetch(f"SELECT typeof({DUCKDB.literal(None, kind)})") == DUCKDB.types[kind]


@pytest.mark.parametrize("name", ["a", "A b", 'q"q', "select", "'x'", "é", "$unit", "a;b", "--"])
def test_a_name_is_quoted(name: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT 1 AS {DUCKDB.identifier(name)}")
        assert connection.execute("SELECT * FROM t").description[0][0] == name


def scan(column: Column, unit: PrivacyUnit | None = None, *, loose: bool = False) -> Scan:
    col = Col("c", column.kind, column_facts(column))
    names = frozenset({"c"}) if loose else frozenset[str]()
    return Scan(Table("t", (column, Column("u", Kind.TEXT)), unit), (col,), (column.name,), names)


def scanned(column: Column, sql_type: str, *values: str, unit: PrivacyUnit | None = None) -> list[object]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t(x {sql_type}, u VARCHAR)")
        for value in values:
            connection.execute(f"INSERT INTO t VALUES ({value}, 'u')")
        found = connection.execute(f"SELECT c FROM ({render.relation(scan(column, unit))})").fetchall()
        return [row[0] for row in found]


def test_numbers_are_clamped_nan_is_null_and_infinity_is_a_large_number() -> None:
    within = Column("x", Kind.REAL, Bounds(Fraction(0), Fraction(10)))
    values = ("NULL", "'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "5.5", "-1", "1e308")
    assert scanned(within, "DOUBLE", *values) == [None, None, 10, 0, 5.5, 0, 10]
    assert scanned(Column("x", Kind.REAL), "DOUBLE", *values) == [None, None, math.inf, -math.inf, 5.5, -1, 1e308]


def test_integers_of_any_size_become_doubles() -> None:
    found = scanned(Column("x", Kind.INTEGER), "HUGEINT", str(2**126), str(-(2**63)), "NULL", "7")
    assert found == [float(2**126), -float(2**63), None, 7.0]
    assert all(value is None or isinstance(value, float) for value in found)


def test_values_outside_a_list_are_the_other_or_null_and_null_stays_null() -> None:
    values = ("'a'", "'b'", "'zzz'", "NULL")
    assert scanned(Column("x", Kind.TEXT, values=("a", "b")), "VARCHAR", *values) == ["a", "b", None, None]
    with_other = Column("x", Kind.TEXT, values=("a", "b"), other="else")
    assert scanned(with_other, "VARCHAR", *values) == ["a", "b", "else", None]


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.REAL])
def test_a_number_beyond_a_list_is_not_taken_for_its_last_value(kind: Kind) -> None:
    ends = Bounds(Fraction(0), Fraction(100))
    values = ("0", "100", "150", "-3", "50", "1e300", "'inf'::DOUBLE", "NULL")
    listed = Column("x", kind, ends, values=(0, 100))
    assert scanned(listed, "DOUBLE", *values) == [0, 100, None, None, None, None, None, None]
    with_other = Column("x", kind, ends, values=(0, 100), other=999)
    assert scanned(with_other, "DOUBLE", *values) == [0, 100, 999, 999, 999, 999, 999, None]
    assert column_facts(with_other).bounds == Bounds(Fraction(0), Fraction(999))


def test_dates_outside_the_years_that_exist_are_clamped() -> None:
    values = ("'infinity'", "'-infinity'", "'5881580-07-10'", "'0044-03-15 (BC)'", "'2024-02-29'", "NULL")
    assert scanned(Column("x", Kind.DATE), "DATE", *values) == [
        date(9999, 12, 31),
        date(1, 1, 1),
        date(9999, 12, 31),
        date(1, 1, 1),
        date(2024, 2, 29),
        None,
    ]


def test_text_is_compared_byte_by_byte_whatever_collation_the_column_has() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t(x VARCHAR COLLATE NOCASE, u VARCHAR); INSERT INTO t VALUES ('a', 'u'), ('A', 'U')"
        )
        text = render.relation(scan(Column("x", Kind.TEXT)))
        found = connection.execute(f"SELECT c, count(*) FROM ({text}) GROUP BY c ORDER BY c").fetchall()
        assert found == [("A", 1), ("a", 1)]
        assert connection.execute(f"SELECT count(*) FROM ({text}) WHERE c = 'a'").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM t WHERE x = 'a'").fetchone() == (2,)


def test_a_row_without_a_unit_is_nobodys_and_left_out() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t(x INT, u VARCHAR); INSERT INTO t VALUES (1, NULL), (2, 'a')")
        text = render.relation(scan(Column("x", Kind.INTEGER), PrivacyUnit("u")))
        assert connection.execute(text).fetchall() == [("a", 2.0)]


def test_units_of_different_types_of_text_meet_without_a_cast_that_could_fail(clinic: Tables) -> None:
    """A UUID compared with a VARCHAR would be cast, and a text that is no UUID would raise."""
    a = Table("a", (Column("u", Kind.TEXT), Column("x", Kind.INTEGER)), PrivacyUnit("u", entity="someone"))
    b = Table("b", (Column("u", Kind.TEXT), Column("y", Kind.INTEGER)), PrivacyUnit("u", entity="someone"))
    text = render.relation(bind("SELECT count(*) FROM a JOIN b USING (u)", tables={"a": a, "b": b}).relation)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE a(u UUID, x INT); INSERT INTO a VALUES (uuid(), 1)")
        connection.execute("CREATE TABLE b(u VARCHAR, y INT); INSERT INTO b VALUES ('no uuid', 1)")
        assert connection.execute(text).fetchall() == []
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM a JOIN b ON a.u = b.u").fetchall()


def test_where_rows_are_units_a_public_key_that_is_there_twice_matches_nothing(clinic: Tables) -> None:
    """The owner said that it is unique; if it is not, or not as doubles, no row may become two."""
    query = bind("SELECT count(*) FROM logs JOIN sites USING (site)", tables=clinic)
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE logs(site BIGINT, page VARCHAR, x DOUBLE); CREATE TABLE sites(site BIGINT, city VARCHAR)"
        )
        connection.execute(f"INSERT INTO logs VALUES (1, 'p', 0), (2, 'p', 0), ({2**53}, 'p', 0)")
        connection.execute(f"INSERT INTO sites VALUES (1, 'A'), (2, 'A'), (2, 'B'), ({2**53}, 'A'), ({2**53 + 1}, 'A')")
        assert len(connection.execute(render.relation(query.relation)).fetchall()) == 1


def inner(text: str, clinic: Tables) -> UnitAggregate:
    rel = bind(text, tables=clinic).relation
    while not hasattr(rel, "aggregates"):
        rel = rel.input  # type: ignore[union-attr]
    found: UnitAggregate = rel.aggregates[0][1]
    return found


def test_a_sum_inside_a_unit_does_not_depend_on_the_order_of_its_rows(clinic: Tables) -> None:
    """A sum of doubles does: a neighbor's rows would change another unit's value in its last bit."""
    query = bind(
        "SELECT sum(s) FROM (SELECT person, least(sum(income), 1e6) AS s, avg(income) FROM people GROUP BY person)",
        tables=clinic,
    )
    chance = random.Random(2)
    incomes = [chance.uniform(0, 50000) * 10.0 ** chance.randint(-12, 0) for _ in range(5_000)]
    seen, plain = set(), set()
    for _ in range(4):
        chance.shuffle(incomes)
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE people AS SELECT 1 AS person, unnest(?) AS income", [incomes])
            seen.add(connection.execute(render.relation(query.relation)).fetchone())
            plain.add(connection.execute("SELECT sum(income) FROM people").fetchone())
    assert len(seen) == 1
    assert len(plain) > 1, "the engine's own sum has become exact; then this test shows nothing"


def test_a_sum_inside_a_unit_is_on_a_grid_that_holds_its_bounds(clinic: Tables) -> None:
    real = inner("SELECT avg(s) FROM (SELECT person, avg(income) AS s FROM people GROUP BY person)", clinic)
    assert render.inner_step(real) == Fraction(2) ** -46
    assert Fraction(50000) / render.inner_step(real) < 2**62
    whole = inner("SELECT avg(s) FROM (SELECT person, avg(age) AS s FROM people GROUP BY person)", clinic)
    assert render.inner_step(whole) == 1


def test_zero_has_one_form_inside_a_unit(clinic: Tables) -> None:
    """-0 equals 0; which of them MIN keeps depends on the order of rows, and text would show it."""
    query = bind(
        "SELECT count(t) FROM"
        " (SELECT person, min(spending)::VARCHAR AS t, -spending AS k FROM people GROUP BY person, k)",
        tables=clinic,
    )
    for order in ("ASC", "DESC"):
        with duckdb.connect() as connection:
            rows = "SELECT 1 AS person, -0.0::DOUBLE AS spending, 1 AS n UNION ALL SELECT 1, 0, 2"
            connection.execute(f"CREATE TABLE people AS SELECT * FROM ({rows}) ORDER BY n {order}")
            assert connection.execute(render.relation(query.relation)).fetchall() == [(1, "0.0")]


def test_a_mean_inside_a_unit_stays_within_its_bounds(clinic: Tables) -> None:
    query = bind("SELECT avg(s) FROM (SELECT person, avg(income) AS s FROM people GROUP BY person)", tables=clinic)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS person, 1e9 AS income UNION ALL SELECT 2, NULL")
        found = sorted(connection.execute(render.relation(query.relation)).fetchall())
    assert found == [(1, 50000.0), (2, None)]


def test_a_relation_gives_its_bound_names_and_the_unit(
    clinic: Tables, furnish: Callable[[duckdb.DuckDBPyConnection, int], None]
) -> None:
    with duckdb.connect() as connection:
        furnish(connection, 1)
        for text in (
            "SELECT health, sum(age) FROM people GROUP BY health",
            "SELECT city, avg(m) FROM sites JOIN"
            " (SELECT person, site, avg(age) m FROM people GROUP BY ALL) USING (site) GROUP BY city",
            "SELECT page, avg(x) FROM (SELECT page, x FROM logs) GROUP BY page",
        ):
            rel = bind(text, tables=clinic).relation
            names = {c[0] for c in connection.execute(render.relation(rel)).description or []}
            assert names == {c.name for c in columns(rel)} | ({"$unit"} if owned(rel) else set())


def test_no_word_of_the_analyst_but_constants_reaches_the_engine(clinic: Tables) -> None:
    text = (
        "WITH wicked AS (SELECT person AS evil, age AS bad FROM people AS vile) "
        "SELECT bad AS worse, count(DISTINCT evil) AS worst FROM wicked AS foul GROUP BY worse HAVING worst > 0"
    )
    query = bind(text, tables=clinic)
    shown = render.relation(query.relation) + "".join(render.expression(key.expr) for key in query.keys)
    assert not any(word in shown for word in ("wicked", "evil", "bad", "vile", "worse", "worst", "foul"))


def test_a_guard_is_left_out_where_bounds_tell(clinic: Tables) -> None:
    tight = bind("SELECT sum(age + income * 2) FROM people", tables=clinic).aggregates[0].arguments[0]
    loose = bind("SELECT count(spending + spending) FROM people", tables=clinic).aggregates[0].arguments[0]
    assert "isnan" not in render.expression(tight)
    assert render.expression(loose).count("isnan") == 1


def test_a_chain_of_arithmetic_is_guarded_once(clinic: Tables) -> None:
    """The guard repeats its text, so one at each step would double the text with every sign."""
    text = "SELECT count(" + " + ".join(["spending"] * 60) + ") FROM people"
    shown = render.expression(bind(text, tables=clinic).aggregates[0].arguments[0])
    assert shown.count("isnan") == 1
    assert render.expression(Literal(None, Kind.REAL)) == "CAST(NULL AS DOUBLE)"
