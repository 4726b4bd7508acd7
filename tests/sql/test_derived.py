"""Sums of a query that follow from earlier releases: which do, with what weights, and how exact they are."""

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures.visits_table import arrays

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.derived import Derivation, derive, sums
from hubbub.sql.finish import exact_results
from hubbub.sql.measured import describe, measured
from hubbub.sql.noise import LinearNoise, half_width
from hubbub.sql.plan import Plan, plan
from hubbub.sql.terms import Source

ROW, PERSON = PrivacyUnit(None), PrivacyUnit("person", groups=9, rows=2)
LEVEL = Fraction(95, 100)
#: (person, site, female, age, cost)
NAMES = ("person", "site", "female", "age", "cost")


def table(unit: PrivacyUnit) -> Table:
    cost = Bounds(Fraction(0), Fraction(100))
    columns = (
        Column("person", Kind.INTEGER),
        Column("site", Kind.TEXT, values=("a", "b", "c"), required=True),
        Column("female", Kind.BOOLEAN, nullable=True),
        Column("ward", Kind.TEXT, values=("x", "y")),
        Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9)), required=True),
        Column("cost", Kind.REAL, bounds=cost, step=Fraction(1, 2)),
    )
    return Table("v", columns, unit)


@pytest.fixture(scope="module")
def data() -> Iterator[duckdb.DuckDBPyConnection]:
    """Rows with NULL in every column that may have it, unlisted values, and people with many rows in a group."""
    chance = random.Random(5)
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE v (person INTEGER, site VARCHAR, female BOOLEAN, ward VARCHAR, age INTEGER, cost DOUBLE)"
        )
        for _ in range(400):
            row = (
                chance.randrange(40),
                chance.choice("abc"),
                chance.choice([True, False, None]),
                chance.choice(["x", "y", "unlisted", None]),
                chance.randrange(10),
                chance.choice([None, chance.randrange(200) / 2]),
            )
            connection.execute("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)", row)
        yield connection


def planned(text: str, unit: PrivacyUnit = ROW, epsilon: int | str | Fraction = 1, **options: Any) -> Plan:
    return plan(
        bind(text, tables={"v": table(unit)}), epsilon=Fraction(epsilon), delta=Fraction(0), salt="s", **options
    )


def source(made: Plan, number: int = 1, given: tuple[int | None, int | None] = (None, None)) -> Source:
    facts = measured(describe(made, given))
    assert facts is not None
    sets = len(facts["sets"])
    return Source(number, facts, tuple((each.mechanism,) * sets for each in made.measures))


def found(
    text: str, sources: Sequence[Plan], unit: PrivacyUnit = ROW, given: tuple[int | None, int | None] = (None, None)
) -> Derivation | None:
    described = describe(planned(text, unit), given)
    if described is None:
        return None
    return derive(described, [source(each, number) for number, each in enumerate(sources, 1)])


def exact(made: Plan, connection: duckdb.DuckDBPyConnection) -> list[list[int]]:
    tables = {each.name: arrays(connection, each.sql) for each in made.statements}
    return [vector.tolist() for vector in exact_results(made, tables)[0]]


SITES = "SELECT site, COUNT(*), SUM(cost), COUNT(cost) FROM v GROUP BY site"
BOTH = "SELECT site, female, COUNT(*), SUM(cost), COUNT(cost), AVG(age) FROM v GROUP BY site, female"
AGES = "SELECT age, site, COUNT(*), SUM(cost) FROM v GROUP BY age, site"

#: Queries that follow from a source, as rows are units, and the same by plain SQL.
FOLLOW = {
    (BOTH, "SELECT site, COUNT(*) FROM v GROUP BY site"): "SELECT count(*) FROM v GROUP BY site ORDER BY site",
    (BOTH, "SELECT COUNT(*) FROM v"): "SELECT count(*) FROM v",
    (BOTH, "SELECT COUNT(*) FROM v WHERE 'a' = site"): "SELECT count(*) FROM v WHERE site = 'a'",
    (BOTH, "SELECT SUM(cost) FROM v WHERE site <> 'a' AND female"): (
        "SELECT 2 * sum(cost) FROM v WHERE site <> 'a' AND female"
    ),
    (BOTH, "SELECT COUNT(*) FROM v WHERE female IS NULL"): "SELECT count(*) FROM v WHERE female IS NULL",
    (BOTH, "SELECT SUM(age) FROM v WHERE NOT female"): "SELECT sum(age) FROM v WHERE NOT female",
    (AGES, "SELECT COUNT(*) FROM v WHERE age BETWEEN 3 AND 5"): "SELECT count(*) FROM v WHERE age BETWEEN 3 AND 5",
    (AGES, "SELECT CASE WHEN age < 4 THEN 'young' ELSE 'old' END AS z, COUNT(*) FROM v GROUP BY z"): (
        "SELECT count(*) FROM v GROUP BY age < 4 ORDER BY age < 4 DESC"
    ),
    (AGES, "SELECT age // 5 AS z, SUM(cost) FROM v GROUP BY z"): (
        "SELECT 2 * sum(cost) FROM v GROUP BY age // 5 ORDER BY age // 5"
    ),
    ("SELECT ward, COUNT(*) FROM v GROUP BY ward", "SELECT COUNT(*) FROM v WHERE ward = 'y'"): (
        "SELECT count(*) FROM v WHERE ward = 'y'"
    ),
    ("SELECT ward, COUNT(*) FROM v GROUP BY ward", "SELECT COUNT(*) FROM v WHERE ward IN ('x', 'y')"): (
        "SELECT count(*) FROM v WHERE ward IN ('x', 'y')"
    ),
}


@pytest.mark.parametrize(("asked", "plain"), FOLLOW.items())
def test_sums_of_cells_are_the_groups_by_enumeration(
    asked: tuple[str, str], plain: str, data: duckdb.DuckDBPyConnection
) -> None:
    earlier = planned(asked[0])
    derivation = found(asked[1], [earlier])
    assert derivation is not None
    results = sums(derivation, {0: exact(earlier, data)})
    expected = [value for (value,) in data.execute(plain).fetchall()]
    name = derivation.plan.formulas[derivation.plan.query.aggregates[0].name]
    values = name.value([np.array([float(v) for v in vector]) for vector in results])
    scale = 2 if "cost" in plain else 1
    assert (values * scale).tolist() == pytest.approx(expected)


#: What does not follow, and why.
NOT = {
    (BOTH, "SELECT COUNT(*) FROM v WHERE age > 3"): "a condition on no key",
    (BOTH, "SELECT COUNT(*) FROM v WHERE site = 'a' OR age > 3"): "a condition on more than keys",
    (BOTH, "SELECT age, COUNT(*) FROM v GROUP BY age"): "another key",
    (BOTH, "SELECT COUNT(*) FILTER (WHERE female) FROM v"): "a filter inside the aggregate",
    (BOTH, "SELECT SUM(LEAST(cost, 50)) FROM v"): "other bounds of the values",
    (BOTH, "SELECT STDDEV(cost) FROM v"): "a second moment that was not measured",
    (BOTH, "SELECT MEDIAN(age) FROM v"): "a selected value",
    ("SELECT ward, COUNT(*) FROM v GROUP BY ward", "SELECT COUNT(*) FROM v"): "rows with NULL or unlisted keys",
    ("SELECT ward, COUNT(*) FROM v GROUP BY ward", "SELECT COUNT(*) FROM v WHERE ward = 'x' OR ward IS NULL"): "NULL",
    ("SELECT ward, site, COUNT(*) FROM v GROUP BY ward, site", "SELECT site, COUNT(*) FROM v GROUP BY site"): "NULL",
    ("SELECT site, COUNT(*) FROM v WHERE age > 3 GROUP BY site", "SELECT COUNT(*) FROM v"): "fewer rows",
    ("SELECT site, COUNT(*) FROM v WHERE site <> 'a' GROUP BY site", SITES): "fewer groups",
    (SITES, "SELECT COUNT(DISTINCT age) FROM v"): "other values in other groups",
    ("SELECT site, COUNT(DISTINCT age) FROM v GROUP BY site", "SELECT COUNT(DISTINCT age) FROM v"): "values twice",
}


@pytest.mark.parametrize(("earlier", "text"), list(NOT))
def test_groups_are_sums_only_where_every_row_is_in_a_cell(earlier: str, text: str) -> None:
    assert found(text, [planned(earlier)]) is None, NOT[earlier, text]


def test_without_the_check_of_null_a_total_would_lack_rows(
    data: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted error: a key whose cells leave rows out."""
    monkeypatch.setattr("hubbub.sql.coarser._covered", lambda *_: True)
    earlier = planned("SELECT ward, COUNT(*) FROM v GROUP BY ward")
    derivation = found("SELECT COUNT(*) FROM v", [earlier])
    assert derivation is not None
    ((value,),) = sums(derivation, {0: exact(earlier, data)})
    assert value < 400


def test_a_unit_in_several_cells_is_not_counted_twice(data: duckdb.DuckDBPyConnection) -> None:
    earlier = planned("SELECT site, COUNT(DISTINCT person) AS u, COUNT(*) FROM v GROUP BY site", PERSON)
    assert found("SELECT COUNT(DISTINCT person) FROM v", [earlier], PERSON) is None
    single = found("SELECT COUNT(DISTINCT person) FROM v WHERE site = 'b'", [earlier], PERSON)
    assert single is not None
    ((value,),) = sums(single, {0: exact(earlier, data)})
    assert [(value,)] == data.execute("SELECT count(DISTINCT person) FROM v WHERE site = 'b'").fetchall()


def test_derived_counts_of_people_with_many_rows_count_at_least_as_many(data: duckdb.DuckDBPyConnection) -> None:
    earlier = planned(BOTH, PERSON)
    for text in ("SELECT COUNT(*) FROM v", "SELECT site, COUNT(*) FROM v GROUP BY site"):
        derivation = found(text, [earlier], PERSON)
        assert derivation is not None
        assert not derivation.exact
        (derived,) = sums(derivation, {0: exact(earlier, data)})
        (alone,) = exact(planned(text, PERSON), data)
        whole = exact(planned(text), data)[0]
        assert all(a <= d <= w for a, d, w in zip(alone, derived, whole, strict=True))
        assert alone != derived


@pytest.mark.parametrize(
    ("unit", "earlier", "text"),
    [
        (PrivacyUnit("person", groups=2, rows=2), SITES, "SELECT COUNT(*) FROM v"),
        (PrivacyUnit("person", groups=2, rows=2), SITES, "SELECT COUNT(*) FROM v WHERE site = 'a'"),
        (PrivacyUnit("person", groups=9, rows=9, rows_total=5), SITES, "SELECT COUNT(*) FROM v WHERE site = 'a'"),
        (PrivacyUnit("person", groups=9, rows=2, rows_total=5), SITES, "SELECT COUNT(*) FROM v"),
        (PrivacyUnit("person", groups=9, rows=9, auto=True), SITES, "SELECT COUNT(*) FROM v"),
    ],
)
def test_sources_that_leave_out_more_than_the_query_are_not_used(unit: PrivacyUnit, earlier: str, text: str) -> None:
    made = planned(earlier, unit)
    described = describe(planned(text, unit), (None, None))
    sums_of = measured(describe(made, (None, None)))
    if sums_of is None or described is None:
        assert unit.auto
        return
    assert derive(described, [source(made)]) is None


def test_with_a_bound_on_all_rows_totals_are_those_of_the_query(data: duckdb.DuckDBPyConnection) -> None:
    unit = PrivacyUnit("person", groups=9, rows=9, rows_total=4)
    earlier = planned("SELECT site, female, COUNT(*) FROM v GROUP BY site, female", unit)
    derivation = found("SELECT COUNT(*) FROM v", [earlier], unit)
    assert derivation is not None
    assert [sums(derivation, {0: exact(earlier, data)})[0]] == exact(planned("SELECT COUNT(*) FROM v", unit), data)


def test_the_same_question_with_other_bounds_is_another_one() -> None:
    earlier = planned(SITES, PERSON, rows=1)
    described = describe(planned(SITES, PERSON), (None, None))
    assert described is not None
    assert derive(described, [source(earlier, given=(None, 1))]) is None
    assert derive(described, [source(planned(SITES, PERSON))]) is not None


def test_groups_that_were_selected_have_no_description() -> None:
    query = bind("SELECT person, COUNT(*) FROM v GROUP BY person", tables={"v": table(ROW)})
    made = plan(query, epsilon=Fraction(1), delta=Fraction(1, 10**6), salt="s")
    assert made.threshold is not None
    assert describe(made, (None, None)) is None


def test_derived_sums_are_least_squares() -> None:
    """Several releases of one total, of other groups and prices: the weights are those of numpy's least squares."""
    earlier = [planned(BOTH, epsilon=1), planned(SITES, epsilon="0.5"), planned(BOTH, epsilon=2)]
    derivation = found("SELECT site, SUM(cost), COUNT(cost) FROM v GROUP BY site", earlier)
    assert derivation is not None
    chance = np.random.default_rng(3)
    sizes = [9, 3, 9]
    released = {
        place: [chance.integers(0, 1000, size).tolist() for _ in made.measures]
        for place, (made, size) in enumerate(zip(earlier, sizes, strict=True))
    }
    results = sums(derivation, released)
    for wanted, values in zip(derivation.plan.measures, results, strict=True):
        for group in range(3):
            rows, target, weights = [], [], []
            for place, made in enumerate(earlier):
                at = next(i for i, each in enumerate(made.measures) if each.measure == wanted.measure)
                per = sizes[place] // 3
                rows.append(1.0)
                target.append(float(sum(released[place][at][group * per : (group + 1) * per])))
                scale = float(made.measures[at].mechanism.scale)  # type: ignore[union-attr]
                q = np.exp(-1 / scale)
                weights.append(1 / sqrt(per * 2 * q / (1 - q) ** 2))
            matrix = np.array(rows)[:, None] * np.array(weights)[:, None]
            solution, *_ = np.linalg.lstsq(matrix, np.array(target) * weights, rcond=None)
            assert float(values[group]) == pytest.approx(solution[0], rel=1e-5, abs=0.01)


def test_a_mean_follows_from_a_sum_and_a_count_of_separate_releases(data: duckdb.DuckDBPyConnection) -> None:
    earlier = [planned("SELECT SUM(cost) FROM v"), planned("SELECT COUNT(cost) FROM v")]
    derivation = found("SELECT AVG(cost) FROM v", earlier)
    assert derivation is not None
    results = sums(derivation, {place: exact(made, data) for place, made in enumerate(earlier)})
    (formula,) = derivation.plan.formulas.values()
    value = formula.value([np.array([float(v) for v in vector]) for vector in results])
    assert [(pytest.approx(value[0]),)] == data.execute("SELECT avg(cost) FROM v").fetchall()


def test_a_sum_follows_from_a_mean_and_never_shares_a_draw_with_a_count(data: duckdb.DuckDBPyConnection) -> None:
    earlier = planned("SELECT AVG(cost) FROM v")
    derivation = found("SELECT SUM(cost) FROM v", [earlier])
    assert derivation is not None
    assert len(derivation.terms[0]) == 2
    results = sums(derivation, {0: exact(earlier, data)})
    assert [(float(results[0][0]) / 2,)] == data.execute("SELECT sum(cost) FROM v").fetchall()
    for text in ("SELECT SUM(cost), COUNT(cost) FROM v", "SELECT SUM(cost) / COUNT(cost) FROM v"):
        both = found(text, [earlier])
        assert both is not None
        draws = [(term.view, term.place) for terms in both.terms for term in terms]
        assert len(set(draws)) == len(draws)


def test_intervals_of_sums_cover_by_exact_convolution() -> None:
    """The exact chance that a sum of discrete noises lies beyond its half width, by discrete Fourier transform."""
    size = 1 << 12
    turns = 2 * np.pi * np.arange(size) / size
    places = np.arange(size)
    places = np.where(places < size // 2, places, places - size)

    def transform(scale: float, weight: int) -> Any:
        q = np.exp(-1 / scale)
        return (1 - q) ** 2 / (1 - 2 * q * np.cos(weight * turns) + q * q)

    def gauss(variance: float, weight: int) -> Any:
        mass = np.exp(-(places.astype(float) ** 2) / (2 * variance))
        return np.real(np.fft.fft(mass / mass.sum()))[(weight * np.arange(size)) % size]

    worst = 0.0
    for scale, other, count, more in product((0.06, 0.3, 1.0, 4.0, 12.0), (0.3, 2.0, 12.0), (1, 2, 9), (0, 1, 4)):
        for weight in (1, 2):
            one, two = (Laplace(sensitivity=1, scale=Fraction(str(each))) for each in (scale, other))
            noise = LinearNoise(((one, Fraction(weight), count), (two, Fraction(1), max(1, more))))
            chances = np.real(np.fft.ifft(transform(scale, weight) ** count * transform(other, 1) ** max(1, more)))
            worst = max(worst, float(chances[np.abs(places) > half_width(noise, LEVEL) + 1e-9].sum()))
    for variance, scale, count in product((0.5, 4.0, 40.0), (0.3, 3.0, 12.0), (1, 3)):
        mixed = (Gaussian(sensitivity_squared=1, variance=Fraction(str(variance))), Fraction(1), count)
        noise = LinearNoise((mixed, (Laplace(sensitivity=1, scale=Fraction(str(scale))), Fraction(1), 1)))
        chances = np.real(np.fft.ifft(gauss(variance, 1) ** count * transform(scale, 1)))
        worst = max(worst, float(chances[np.abs(places) > half_width(noise, LEVEL) + 1e-9].sum()))
    assert 0.03 < worst <= 0.05
    # a planted error: noises of one draw as if they were independent
    same = LinearNoise(((Laplace(sensitivity=1, scale=Fraction(12)), Fraction(1), 4),))
    q = np.exp(-1 / 12)
    fourfold = 2 * q ** (np.floor(half_width(same, LEVEL) / 4) + 1) / (1 + q)
    assert fourfold > 0.15


def missed(derivation: Derivation, earlier: Sequence[Plan], draws: int) -> int:
    """Count how often the interval of the first group misses 0, the exact value, over fresh noises."""
    chance, misses = system(), 0
    (noised,) = derivation.plan.measures
    half = half_width(noised.mechanism, LEVEL)
    nothing = {
        (place, at): np.zeros((9 if "female" in str(made.query.keys) else 3) * draws, dtype=np.int64)
        for place, made in enumerate(earlier)
        for at in range(len(made.measures))
    }
    noises = {key: earlier[key[0]].measures[key[1]].mechanism.sample(zeros, chance) for key, zeros in nothing.items()}
    for draw in range(draws):
        released = {
            place: [noises[place, at].reshape(draws, -1)[draw].tolist() for at in range(len(made.measures))]
            for place, made in enumerate(earlier)
        }
        misses += abs(float(sums(derivation, released)[0][0])) > half
    return misses


#: More misses than this among 2,000 at 5% happen once in a million times (binomial tail).
MOST_MISSES = 150


def test_derived_intervals_cover_over_2000_draws() -> None:
    earlier = [planned("SELECT site, female, COUNT(*) FROM v GROUP BY site, female", epsilon=1)]
    earlier.append(planned("SELECT site, COUNT(*) FROM v GROUP BY site", epsilon="0.5"))
    text = "SELECT site, COUNT(*) FROM v GROUP BY site"
    derivation = found(text, earlier)
    assert derivation is not None
    assert len(derivation.used) == 2
    assert missed(derivation, earlier, 2000) <= MOST_MISSES


def test_a_source_counted_twice_would_be_found() -> None:
    """A planted error: one release is given four times, as if its copies had noises of their own."""
    earlier = [planned("SELECT site, COUNT(*) FROM v GROUP BY site", epsilon="0.5")]
    text = "SELECT site, COUNT(*) FROM v GROUP BY site"
    described = describe(planned(text), (None, None))
    assert described is not None
    copies = [source(earlier[0]) for _ in range(4)]
    derivation = derive(described, copies)
    assert derivation is not None
    chance, (noised,) = system(), derivation.plan.measures
    drawn = earlier[0].measures[0].mechanism.sample(np.zeros(6000, dtype=np.int64), chance)
    half, misses = half_width(noised.mechanism, LEVEL), 0
    for each in drawn.reshape(2000, 3).tolist():
        released = {place: [each] for place in range(4)}
        misses += abs(float(sums(derivation, released)[0][0])) > half
    assert misses > MOST_MISSES
