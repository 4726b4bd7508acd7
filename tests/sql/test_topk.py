"""The most-liked page on real purchases: a bound on what each person likes, and noisy counts; or one selection.

CDNOW's 69,659 purchases of 23,570 customers, January 1997 to June 1998 (Fader and Hardie 2001), from the package
lifetimes. The pages are the 546 days; a customer likes the days on which they bought something, from one to 171 of
them. Which day did most customers like? (The best has 490, the next 471.)
"""

from datetime import date
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.fixtures.visits_table import run

from hubbub.accounting.cost import privacy_cost
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.noise.source import system
from hubbub.sql import dates
from hubbub.sql.bind import bind
from hubbub.sql.finish import exact_results, finish
from hubbub.sql.plan import Plan, plan

MOST_DAYS = 171
DRAWS = 2000
SINCE, UNTIL = date(1997, 1, 1), date(1998, 6, 30)
PURCHASES = Table(
    "purchases",
    (
        Column("customer", Kind.INTEGER),
        Column("day", Kind.DATE, Bounds(dates.number(SINCE), dates.number(UNTIL))),
        Column("cds", Kind.INTEGER, Bounds(Fraction(0), Fraction(99))),
    ),
    PrivacyUnit("customer", groups=MOST_DAYS, rows=1),
)
SELECTION = "SELECT day FROM purchases GROUP BY day ORDER BY COUNT(DISTINCT customer) DESC LIMIT 1"
COUNTS = "SELECT day, COUNT(DISTINCT customer) AS n FROM purchases GROUP BY day"


@pytest.fixture(scope="module")
def shop() -> duckdb.DuckDBPyConnection:
    found = find_spec("lifetimes")  # its data alone: the code of the package need not run
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / "datasets" / "CDNOW_master.txt"
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute(
        "CREATE TABLE purchases AS SELECT CAST(w[1] AS BIGINT) AS customer,"
        " CAST(strptime(w[2], '%Y%m%d') AS DATE) AS day, CAST(w[3] AS BIGINT) AS cds"
        " FROM (SELECT regexp_split_to_array(trim(line), ' +') AS w"
        f" FROM read_csv('{path}', columns={{'line': 'VARCHAR'}}, delim='\t', quote='', skip=1, header=false))"
    )
    return connection


def planned(text: str, *, epsilon: Fraction, groups: int | None = None) -> Plan:
    query = bind(text, tables={"purchases": PURCHASES})
    return plan(query, epsilon=epsilon, delta=Fraction(0), salt="s", groups=groups)


def regret_of_counts(made: Plan, shop: duckdb.DuckDBPyConnection, likes: np.ndarray) -> float:
    """Average how far below the best the day with the largest noisy count is; the noise is drawn 2,000 times."""
    (bounded,), _ = exact_results(made, run(shop, made))
    (noised,) = made.measures
    noisy = noised.mechanism.sample(np.tile(bounded, DRAWS), system()).reshape(DRAWS, -1)
    return float((likes.max() - likes[noisy.argmax(axis=1)]).mean())


def regret_of_selection(made: Plan, likes: np.ndarray) -> float:
    """Give the mean regret of the selection, from its exact distribution."""
    assert made.top is not None
    weights = np.exp(float(made.top.one.rate) * (likes - likes.max()))
    return float(((likes.max() - likes) * weights).sum() / weights.sum())


@pytest.fixture(scope="module")
def likes(shop: duckdb.DuckDBPyConnection) -> np.ndarray:
    """How many customers each day has, before noise and without a bound."""
    made = planned(SELECTION, epsilon=Fraction(1))
    (found,), _ = exact_results(made, run(shop, made))
    return found


def test_the_data_is_what_it_is_said_to_be(shop: duckdb.DuckDBPyConnection, likes: np.ndarray) -> None:
    facts = shop.execute("SELECT count(*), count(DISTINCT customer), min(day), max(day) FROM purchases").fetchall()
    assert facts == [(69_659, 23_570, SINCE, UNTIL)]
    per_customer = "SELECT count(*) AS n, count(DISTINCT day) AS d FROM purchases GROUP BY customer"
    assert shop.execute(f"SELECT max(n), max(d) FROM ({per_customer})").fetchall() == [(217, MOST_DAYS)]
    assert len(likes) == 546
    counted = "SELECT day, count(DISTINCT customer) AS n FROM purchases GROUP BY day"
    right = shop.execute(f"SELECT n FROM ({counted}) ORDER BY n DESC LIMIT 2").fetchall()
    assert sorted(likes.tolist(), reverse=True)[:2] == [n for (n,) in right]


@pytest.mark.row(43)
def test_one_selection_finds_the_day_that_bounded_counts_miss(
    shop: duckdb.DuckDBPyConnection, likes: np.ndarray
) -> None:
    """At the same ε = 0.1 the selection is off by 10 customers of 490; counts by 31, 53, 153 and 359.

    These are for at most 1, 3, 10 and all days of a customer. Means of 2,000 draws have standard errors below 4
    (below 1 for the first), and every margin is more than eight of them: false alarm below 1e-6.
    """
    epsilon = Fraction(1, 10)
    selection = planned(SELECTION, epsilon=epsilon)
    # nobody's number of days is bounded, and yet one customer moves each count by one at most, all of them one way
    assert selection.top is not None
    assert selection.top.one.sensitivity == 1
    assert privacy_cost(selection.event).pure == epsilon
    off = regret_of_selection(selection, likes)
    assert off < 30
    free = planned(COUNTS, epsilon=epsilon)
    assert free.measures[0].sensitivity.l1 == MOST_DAYS
    assert privacy_cost(free.event).pure == epsilon
    assert regret_of_counts(free, shop, likes) > 10 * off
    for groups in (1, 3, 10):
        bounded = planned(COUNTS, epsilon=epsilon, groups=groups)
        assert bounded.measures[0].sensitivity.l1 == groups
        assert privacy_cost(bounded.event).pure == epsilon
        assert regret_of_counts(bounded, shop, likes) > 2 * off


@pytest.mark.row(43)
def test_counts_as_good_as_the_selection_cost_many_times_as_much(
    shop: duckdb.DuckDBPyConnection, likes: np.ndarray
) -> None:
    """Without a bound on days, 171 times the ε for counts that are as good; in exchange all 546 of them are told."""
    epsilon = Fraction(1, 10)
    off = regret_of_selection(planned(SELECTION, epsilon=epsilon), likes)
    dear = planned(COUNTS, epsilon=MOST_DAYS * epsilon)
    spent, paid = privacy_cost(dear.event).pure, privacy_cost(planned(SELECTION, epsilon=epsilon).event).pure
    assert spent is not None
    assert paid is not None
    assert spent == MOST_DAYS * paid
    assert regret_of_counts(dear, shop, likes) < 2 * off
    assert regret_of_counts(planned(COUNTS, epsilon=20 * epsilon), shop, likes) > 2 * off


@pytest.mark.row(43)
def test_a_bound_on_days_costs_the_counts_of_those_who_come_often(
    shop: duckdb.DuckDBPyConnection, likes: np.ndarray
) -> None:
    """With one day each, 23,570 likes are left of 67,591: a bound trades noise for a bias that no ε mends."""
    made = planned(COUNTS, epsilon=Fraction(1), groups=1)
    (bounded,), _ = exact_results(made, run(shop, made))
    assert bounded.sum() == 23_570
    assert likes.sum() > 67_000
    assert bounded.max() < likes.max()


@pytest.mark.row(43)
def test_the_three_most_liked_days_are_real_answers(shop: duckdb.DuckDBPyConnection, likes: np.ndarray) -> None:
    """With ε = 1 each of three choices is within 60 customers of its rank, but for 1e-6 (ln(546·3·10⁶)/(1/3) < 64)."""
    made = planned(SELECTION.replace("LIMIT 1", "LIMIT 3"), epsilon=Fraction(1))
    rows = finish(made, run(shop, made), system()).rows
    best = sorted(likes.tolist(), reverse=True)
    places = [(day - SINCE).days for (day,) in rows]
    assert len(set(places)) == 3
    assert all(best[i] - likes[place] <= 64 for i, place in enumerate(places))
