"""One form for each value: hashes, discovered keys and their matching are functions of equality, not of bytes."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import duckdb
import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.postgres_server import Server

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import system
from hubbub.sql import partition_selection as discover
from hubbub.sql.bind import bind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK
from hubbub.sql.expressions import Col
from hubbub.sql.keys import DiscoveredCells
from hubbub.sql.plan import plan
from hubbub.sql.query import Key

Ask = Callable[[str], tuple[object, ...]]
#: Doubles that engines call equal, each pair in two forms.
EQUAL = [("-0.0", "0.0"), ("NaN", "-NaN")]


@pytest.fixture
def asking(postgres_server: Server) -> Iterator[dict[str, Ask]]:
    with duckdb.connect() as local, psycopg.connect(postgres_server.dsn("postgres")) as server:
        yield {
            "duckdb": lambda text: local.execute(text).fetchall()[0],
            "postgres": lambda text: server.execute(text.encode()).fetchall()[0],
        }


def double(dialect: Dialect, text: str) -> str:
    kind = dialect.types[Kind.REAL]
    return f"(- CAST('NaN' AS {kind}))" if text == "-NaN" else f"CAST('{text}' AS {kind})"


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("forms", EQUAL)
def test_a_hash_is_a_function_of_the_equality_class(
    asking: dict[str, Ask], dialect: Dialect, forms: tuple[str, str]
) -> None:
    """Which rows a unit keeps is decided by the order of hashes: it must not depend on which of two equals was kept."""
    ask = asking[dialect.name]
    first, second = (double(dialect, form) for form in forms)
    rows = f"(SELECT {first} AS a, {second} AS b) AS t"
    for write in (dialect.own_hash, dialect.portable_hash):
        hashes = [write("salt", [(name, Kind.REAL)]) for name in ("a", "b")]
        same, equal = ask(f"SELECT {hashes[0]} = {hashes[1]}, a = b FROM {rows}")
        assert equal is True
        if write == dialect.own_hash or forms[0] != "NaN":  # no expression is NaN, and owners are hashed as engines do
            assert same is True
    # the same for a cell of discovered keys, as it is carried
    found = DiscoveredCells((Key("k", Col("k", Kind.REAL)), Key("m", Col("m", Kind.INTEGER))))
    keys = [(dialect.canonical(x, Kind.REAL), dialect.canonical(x, Kind.INTEGER)) for x in (first, second)]
    cells = [f"(SELECT {found.lookup(pair, dialect, grouped=False).cell}) AS t" for pair in keys]
    texts = dialect.own_hash("salt", found.hashed(dialect))
    assert ask(f"SELECT (SELECT {texts} FROM {cells[0]}) = (SELECT {texts} FROM {cells[1]})") == (True,)


@given(value=st.floats(allow_nan=False, width=64))
def test_a_canonical_number_is_the_number_and_has_one_zero(value: float) -> None:
    """Of every double: the same number, and of the two zeros the positive one. What is expected is IEEE's own sum."""
    text = DUCKDB.canonical(f"CAST('{value!r}' AS DOUBLE)", Kind.REAL)
    with duckdb.connect() as local:
        (found,) = local.execute(f"SELECT {text}").fetchall()[0]
    assert math.copysign(1, found) == math.copysign(1, value + 0.0)
    assert found == value


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SPARK], ids=lambda dialect: dialect.name)
def test_keys_without_two_forms_are_written_as_they_were(dialect: Dialect) -> None:
    """Whole numbers, texts and declared keys cost nothing more; a real key is looked at once more."""
    columns = (
        Column("n", Kind.INTEGER),
        Column("s", Kind.TEXT),
        Column("x", Kind.REAL),
        Column("v", Kind.REAL, Bounds(Fraction(0), Fraction(1)), values=(Fraction(0), Fraction(1))),
    )
    for unit in (PrivacyUnit(None), PrivacyUnit("n")):
        table = {"t": Table("t", (*columns, Column("m", Kind.INTEGER)), unit)}
        zero = f"= 0 THEN {dialect.number(0)}"
        for key, extra in (("m", False), ("s", False), ("v", False), ("x", True)):
            query = bind(f"SELECT {key}, count(*) FROM t GROUP BY {key}", tables=table)
            made = plan(query, epsilon=Fraction(1), delta=Fraction(1, 10**6), salt="s", dialect=dialect)
            assert any(zero in each.sql for each in made.statements) == extra, key


def test_groups_are_matched_and_shown_by_equality() -> None:
    """Whatever form an engine kept: −0 matches 0 and is shown as 0; whole numbers past 64 bits are not one."""
    found = DiscoveredCells((Key("x", Col("x", Kind.REAL)), Key("n", Col("n", Kind.INTEGER))))
    rule = PartitionSelection.least(
        keys=1,
        contribution=1,
        relation=Relation.ADD_REMOVE,
        noise=Laplace(sensitivity=1, scale=Fraction(1, 1000)),
        delta=Fraction(1, 10**6),
    )
    large = [1e19, 2e19, -0.0]
    first = {"k0": np.array([-0.0, -0.0, 0.0]), "k1": np.array(large), "m0": np.array([50, 60, 70])}
    shown = discover.sample(found, rule, first, "m0", system())
    assert [repr(value) for value in shown.columns[0].tolist()] == ["0.0"] * 3
    assert shown.counts.tolist() == [70, 50, 60]
    other = {"k0": np.array([0.0, 0.0, -0.0, 1.0]), "k1": np.array([2e19, 1e19, 0.0, 0.0])}
    assert shown.places(found, other).tolist() == [2, 1, 0, -1]
    assert discover.shown_key(shown.columns[1], Kind.INTEGER).tolist() == [0, 2**63 - 1, 2**63 - 1]
    assert discover.shown_key(np.array([-1e19, -3.0, 2.0**53]), Kind.INTEGER).tolist() == [-(2**63), -3, 2**53]
