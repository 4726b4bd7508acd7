"""Groups that nobody declared: which are shown, how many people they need, what is refused."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.fixtures.visits_table import (
    AGE,
    COST,
    COUNT,
    FLAG,
    ONE,
    ROW,
    connect,
    fill,
    of,
    query,
    run,
    visits,
)

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.audit.sensitivity import check_sensitivity
from hubbub.core.events import (
    LaplaceEvent,
    ThresholdEvent,
    WeightedThresholdEvent,
)
from hubbub.core.schema import Kind, PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql import allocation
from hubbub.sql.expressions import Col
from hubbub.sql.finish import finish
from hubbub.sql.keys import DiscoveredCells
from hubbub.sql.partition_selection import ReleasedGroups, _ranks, needed_people
from hubbub.sql.query import Aggregate, Key, Query
from hubbub.sql.split import rho_of_streams

#: What is counted or chosen in each group.
IN_EACH = (
    Aggregate("d", "count_distinct", (AGE,)),
    Aggregate("m", "quantile", (COST,), None, Fraction(1, 2)),
    Aggregate("mo", "mode", (FLAG,)),
)


def found_groups(
    relation: Relation = Relation.ADD_REMOVE,
    aggregates: Sequence[Aggregate] = (COUNT, Aggregate("a", "avg", (COST,))),
) -> Query:
    word = Key("word", Col("region", Kind.TEXT))
    table = visits(PrivacyUnit("patient", groups=2, rows=2), relation)
    columns = tuple(replace(column, values=None) if column.name == "region" else column for column in table.columns)
    return query(replace(table, columns=columns), aggregates, keys=[word])


@pytest.mark.parametrize("relation", list(Relation))
def test_discovered_groups_are_those_with_enough_people(relation: Relation) -> None:
    """500 people say "yes" or "no", and each has a word of their own, which is never shown (slip below 1e-9)."""
    connection = connect(2)
    connection.execute(
        "INSERT INTO visits SELECT u, CASE WHEN u % 2 = 0 THEN 'yes' ELSE 'no' END, u % 100, 1, TRUE "
        "FROM range(500) AS a(u)"
    )
    connection.execute("INSERT INTO visits SELECT u, 'secret ' || u, 1, 1, TRUE FROM range(500) AS a(u)")
    connection.execute("INSERT INTO visits SELECT u, NULL, 1, 1, TRUE FROM range(500) AS a(u)")
    made = of(found_groups(relation), Fraction(3), Fraction(1, 10**9))
    events = [event for event, _ in made.event.parts]  # type: ignore[union-attr]
    (hidden,) = [event for event in events if isinstance(event, ThresholdEvent | WeightedThresholdEvent)]
    assert privacy_cost(hidden).delta <= Fraction(1, 2 * 10**9)
    assert admits(Budget(Fraction(3), Fraction(1, 10**9)), ZERO, privacy_cost(made.event))
    answer = finish(made, run(connection, made), system())
    assert [row[0] for row in answer.rows] == ["no", "yes", None]
    for _, count, average in answer.rows:
        assert count == pytest.approx(250, abs=150)
        assert -50 <= average <= 200


def undeclared(groups: int, rows: int, *aggregates: Aggregate) -> Query:
    word = Key("word", Col("region", Kind.TEXT))
    table = visits(PrivacyUnit("patient", groups=groups, rows=rows))
    columns = tuple(replace(column, values=None) if column.name == "region" else column for column in table.columns)
    return query(replace(table, columns=columns), aggregates, keys=[word])


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(10)])
@pytest.mark.parametrize("groups", [12, 50])
def test_discovery_needs_no_more_people_than_a_threshold_on_rows(epsilon: Fraction, groups: int) -> None:
    """The peer adds one Laplace noise to the counts of rows, shows what reaches rows + groups·rows/ε·ln(groups/2δ).

    In its best case every person has all of the rows that count in each of their groups. Even then COUNT(*) here needs
    no more people in a group, although it also spends on the counts; in every other case it needs fewer still.
    """
    rows, delta = 60, Fraction(1, 10**6)
    made = of(undeclared(groups, rows, COUNT), epsilon, delta)
    peer = rows + groups * rows / float(epsilon) * math.log(groups / (2 * float(delta)))
    assert made.threshold is not None
    assert made.keys is not None
    measure = made.measures[made.keys].measure
    ours = [needed_people(made.threshold, measure, own) for own in range(1, groups + 1)]
    assert max(ours) * rows <= peer
    # half of the budget is for the keys, and the event states it
    assert made.measures[made.keys].portion == pytest.approx(sum(each.portion for each in made.measures) / 2)
    assert admits(Budget(epsilon, delta), ZERO, privacy_cost(made.event))


def test_weights_beside_laplace_noise_pass_the_filter_of_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bounds are found privately, or Laplace noise is asked for: keys by Gaussian weights, the rest pure."""

    def refused() -> int:
        count = 0
        for epsilon in (ONE, Fraction(3), Fraction(10)):
            for delta in (Fraction(1, 10**6), Fraction(1, 10**9)):
                made = of(undeclared(12, 60, COUNT, Aggregate("a", "avg", (COST,))), epsilon, delta, noise="laplace")
                kinds = [type(event) for event, _ in made.event.parts]  # type: ignore[union-attr]
                assert kinds.count(WeightedThresholdEvent) == 1
                assert kinds.count(LaplaceEvent) == len(kinds) - 1
                count += not admits(Budget(epsilon, delta), ZERO, privacy_cost(made.event))
        return count

    assert refused() == 0
    # planted: a quarter of δ at any order, which no filter converts
    monkeypatch.setattr(allocation, "rho_beside_pure_losses", rho_of_streams)
    assert refused() > 0


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize(("rows", "counted"), [(5, Aggregate("u", "count_units")), (1, COUNT)])
def test_a_count_of_units_selects_the_groups_itself_where_units_have_few(
    groups: int, rows: int, counted: Aggregate
) -> None:
    """One noise with the whole ε instead of two, where each unit adds at most 1 to at most two groups."""
    made = of(undeclared(groups, rows, counted), ONE, Fraction(1, 10**6))
    assert (len(made.measures) == 1) == (groups <= 2)
    both = of(undeclared(groups, 5, COUNT), ONE, Fraction(1, 10**6))
    assert len(both.measures) == 2


def test_discovered_groups_of_nobody_are_none() -> None:
    made = of(found_groups(), ONE, Fraction(1, 10**6))
    answer = finish(made, run(connect(), made), system())
    assert answer.rows == []
    assert answer.columns == ("word", "n", "a")


@pytest.mark.parametrize("relation", list(Relation))
def test_discovered_groups_move_no_further_than_stated(relation: Relation) -> None:
    """Sums, different values and histograms of every group that occurs, for every unit removed or replaced."""
    connection = connect(2)
    asked = found_groups(relation, (COUNT, Aggregate("a", "avg", (COST,)), *IN_EACH))
    words = ("a", "b", "c")
    rows = [
        (u, word, float(7 * u % 50 + i), u + i, True)
        for u in range(6)
        for word in (*words, f"own {u}")
        for i in range(3)
    ]
    made = of(asked, ONE, Fraction(1, 10**6))
    assert {each.fills for each in made.statements} == {"measures", "histogram"}
    fill(connection, rows)
    whole = run(connection, made)
    for gone in range(6):
        others = [(gone, "c", 3.0, 1, True), (gone, "new", 199.0, 99, True)] if relation is Relation.REPLACE else []
        fill(connection, [row for row in rows if row[0] != gone] + others)
        assert check_sensitivity(made, whole, run(connection, made)) == []
    # planted: every row counts
    spoiled = replace(
        made, statements=tuple(replace(each, sql=each.sql.replace("<= 2", "<= 9")) for each in made.statements)
    )
    fill(connection, rows)
    whole = run(connection, spoiled)
    fill(connection, [row for row in rows if row[0] != 0])
    assert check_sensitivity(spoiled, whole, run(connection, spoiled)) != []


def test_discovered_groups_have_different_values_quantiles_and_modes() -> None:
    """40 groups of 2,000 rows each at ε = 2,000: the noise is seen in no count but for one in e⁻⁹."""
    connection = connect(2)
    connection.execute(
        "INSERT INTO visits SELECT u, 'g' || (u % 40), u % 40 + (u // 40) % 11, (u // 40) % (1 + u % 40),"
        " (u // 40) % 3 > 0 FROM range(80000) AS a(u)"
    )
    made = of(found_groups(aggregates=IN_EACH), Fraction(2000), Fraction(1, 10**9))
    answer = finish(made, run(connection, made), system())
    assert len(answer.rows) == 40
    assert [row[0] for row in answer.rows] == sorted(f"g{i}" for i in range(40))
    right = connection.execute(
        "SELECT region, count(DISTINCT age), median(cost), mode(flag) FROM visits GROUP BY region ORDER BY region"
    ).fetchall()
    for (group, different, middle, mode), theirs in zip(answer.rows, right, strict=True):
        assert (group, mode) == (theirs[0], theirs[3])
        assert different == pytest.approx(theirs[1], abs=1)
        assert middle == pytest.approx(theirs[2], abs=1)


def test_found_groups_are_matched_by_all_their_keys() -> None:
    keys = (Key("a", Col("a", Kind.TEXT)), Key("b", Col("b", Kind.INTEGER)))
    shown = ReleasedGroups(
        (np.array(["x", "x", "y"], dtype=object), np.array([1, 2, 1])), np.array([4, 0, 2]), np.array([9, 9, 9])
    )
    other = {"k0": np.array(["y", "x", "z", "x", "y"], dtype=object), "k1": np.array([1.0, 2.0, 1.0, 1.0, 7.0])}
    assert shown.places(DiscoveredCells(keys), other).tolist() == [2, 1, -1, 0, -1]
    nobody = ReleasedGroups(
        (np.array([], dtype=object), np.array([], dtype=np.int64)), np.array([], int), np.array([], int)
    )
    assert nobody.places(DiscoveredCells(keys), other).tolist() == [-1] * 5


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (query(visits(ROW), [COUNT], keys=[Key("r", Col("region", Kind.TEXT))]), "HB551"),
        (
            query(visits(ROW), [Aggregate("d", "count_distinct", (AGE,))], keys=[Key("r", Col("region", Kind.TEXT))]),
            "HB551",
        ),
    ],
)
def test_groups_are_not_discovered_without_a_delta(asked: Query, code: str) -> None:
    with pytest.raises(QueryError, match=code):
        of(asked)


def test_discovery_refuses_several_grouping_sets() -> None:
    key = Key("r", Col("region", Kind.TEXT))
    with pytest.raises(QueryError, match="HB564"):
        of(query(visits(ROW), [COUNT], keys=[key], sets=[(0,), ()]), ONE, Fraction(1, 10**6))


#: Texts whose order depends on how they are compared: by code points, UTF-16, locale, or up to the first NUL.
TRICKY = ("", "Z", "a", "é", "e\u0301", "\ud7ff", "\ue000", "\uffff", "\U0001f600")


@pytest.mark.parametrize("copies", [1, 5], ids=["nearly all different", "many alike"])
@pytest.mark.parametrize(
    "more", [(), (None,), ("\0", "a\0b", "a\0c", "a"), ("\ud800",)], ids=["texts", "with NULL", "with NUL", "not UTF-8"]
)
def test_keys_are_ordered_by_code_points(copies: int, more: tuple[str | None, ...]) -> None:
    keys = [first + second for first in TRICKY for second in TRICKY] * copies
    column = np.array([*keys, *more], dtype=object)[np.random.default_rng(7).permutation(len(keys) + len(more))]
    order = sorted({key for key in column if key is not None})
    wanted = [len(order) if key is None else order.index(key) for key in column]
    assert _ranks(column).tolist() == wanted


def test_groups_that_are_not_shown_are_told_from_those_that_are() -> None:
    """Keys of two columns; NULL is a key like others, and so is a text that another shown group has."""
    shown = (np.array(["a", None, "b"], dtype=object), np.array([1.0, np.nan, 2.0]))
    groups = ReleasedGroups(shown, np.arange(3), np.ones(3, dtype=np.int64))
    cells = DiscoveredCells((Key("x", Col("x", Kind.TEXT)), Key("y", Col("y", Kind.INTEGER))))
    rows = [("b", 2.0), ("a", 2.0), (None, np.nan), ("a", np.nan), (None, 1.0), ("c", 1.0), ("a", 1.0), ("", 2.0)]
    table = {
        "k0": np.ma.MaskedArray([text or "" for text, _ in rows], [text is None for text, _ in rows], dtype=object),
        "k1": np.ma.masked_invalid([number for _, number in rows]),
    }
    assert groups.places(cells, table).tolist() == [2, -1, 1, -1, -1, -1, 0, -1]
