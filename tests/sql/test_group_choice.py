"""Wide ranges of keys: groups are selected privately where δ is available."""

from fractions import Fraction

import duckdb
import pytest
from tests.fixtures.visits_table import run
from tests.sql.corpus.queries import quiet

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.finish import finish
from hubbub.sql.group_choice import MANY
from hubbub.sql.keys import DiscoveredCells
from hubbub.sql.plan import Plan, plan

TABLE = Table(
    "t",
    (
        Column("u", Kind.INTEGER),
        Column("wide", Kind.INTEGER, Bounds(Fraction(0), Fraction(MANY))),
        Column("narrow", Kind.INTEGER, Bounds(Fraction(0), Fraction(MANY - 1))),
        Column("word", Kind.TEXT, values=tuple(f"w{i}" for i in range(MANY + 1))),
        Column("k", Kind.TEXT, values=("a", "b")),
    ),
    PrivacyUnit("u", groups=1, rows=1),
)
DELTA = Fraction(1, 10**6)


def planned(key: str, delta: Fraction = DELTA) -> Plan:
    query = bind(f"SELECT {key}, count(*) AS n FROM t GROUP BY {key}", tables={"t": TABLE})
    return plan(query, epsilon=Fraction(1), delta=delta, salt="s")


def test_wide_ranges_are_selected_and_the_plan_says_why() -> None:
    made = planned("wide")
    assert isinstance(made.groups[0], DiscoveredCells)
    assert any("10,001 possible groups" in line for line in made.derivation)


@pytest.mark.parametrize("key", ["narrow", "word", "k"])
def test_narrow_ranges_and_declared_lists_keep_all_groups(key: str) -> None:
    made = planned(key)
    assert made.size == {"narrow": MANY, "word": MANY + 1, "k": 2}[key]
    assert not any("possible groups" in line for line in made.derivation)


def test_without_delta_all_groups_are_kept_or_refused() -> None:
    assert planned("wide", Fraction(0)).size == MANY + 1
    with pytest.raises(QueryError, match="HB550"):
        planned("word, narrow", Fraction(0))
    assert isinstance(planned("word, narrow").groups[0], DiscoveredCells)


def test_unlisted_values_do_not_become_groups_beside_a_key_that_is_selected() -> None:
    """The scan applies the declared list: cells would drop such rows, and selected groups would show them."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS u, i % 2 AS wide, 0 AS narrow, 'w0' AS word, "
            "['a', 'secret'][1 + i % 2] AS k FROM range(100) AS r(i)"
        )
        query = bind("SELECT k, wide, count(*) FROM t GROUP BY k, wide", tables={"t": TABLE})
        made = quiet(plan(query, epsilon=Fraction(10**6), delta=DELTA, salt="s"))
        assert finish(made, run(connection, made), system()).rows == [("a", 0, 50)]
