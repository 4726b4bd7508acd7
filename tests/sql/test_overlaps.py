"""Releases that overlap: differences, marginals and conditions on either side, solved for together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.sql.test_derived import LEVEL, MOST_MISSES, ROW, data, exact, found, planned, source

from hubbub.noise.source import system
from hubbub.sql.derived import Derivation, derive, sums
from hubbub.sql.measured import describe
from hubbub.sql.noise import half_width, variance_of
from hubbub.sql.overlaps import MOST_ROWS

__all__ = ["data"]

TOTAL = "SELECT COUNT(*) FROM v"
#: Earlier releases, and a query that follows from them and from none alone.
FOLLOW: dict[tuple[str, ...], str] = {
    (TOTAL, "SELECT COUNT(*) FROM v WHERE site = 'a'", "SELECT COUNT(*) FROM v WHERE site IN ('b', 'c')"): (
        "SELECT COUNT(*) FROM v WHERE site <> 'a'"
    ),
    (TOTAL, "SELECT COUNT(*) FROM v WHERE age >= 4"): "SELECT COUNT(*) FROM v WHERE age < 4",
    ("SELECT COUNT(*) FROM v WHERE age < 7", "SELECT COUNT(*) FROM v WHERE age < 3"): (
        "SELECT COUNT(*) FROM v WHERE age BETWEEN 3 AND 6"
    ),
    ("SELECT COUNT(*) FROM v WHERE cost <= 50", "SELECT COUNT(*) FROM v WHERE cost <= 20"): (
        "SELECT COUNT(*) FROM v WHERE cost > 20 AND cost <= 50"
    ),
    (
        "SELECT COUNT(*) FROM v WHERE site = 'a' AND age < 4",
        "SELECT COUNT(*) FROM v WHERE site = 'a'",
        "SELECT COUNT(*) FROM v WHERE age < 4",
    ): "SELECT COUNT(*) FROM v WHERE site = 'a' OR age < 4",
    ("SELECT SUM(cost) FROM v", "SELECT female, SUM(cost) FROM v GROUP BY female"): (
        "SELECT SUM(cost) FROM v WHERE female IS NULL"
    ),
    ("SELECT site, COUNT(*) FROM v WHERE age < 4 GROUP BY site", "SELECT site, COUNT(*) FROM v GROUP BY site"): (
        "SELECT site, COUNT(*) FROM v WHERE age >= 4 GROUP BY site"
    ),
    ("SELECT ward, COUNT(*) FROM v GROUP BY ward", TOTAL): "SELECT COUNT(*) FROM v WHERE ward IS NULL",
}


@pytest.mark.parametrize(("earlier", "text"), list(FOLLOW.items()))
def test_what_overlapping_releases_determine_is_solved_for(earlier: Sequence[str], text: str, data: Any) -> None:
    """Without noise the weighted sums are the exact ones."""
    made = [planned(each) for each in earlier]
    derivation = found(text, made)
    assert derivation is not None
    (values,) = sums(derivation, {place: exact(each, data) for place, each in enumerate(made)})
    (expected,) = exact(planned(text), data)
    assert values == expected


#: What must not follow, because NULL or a row outside would be counted.
NOT: dict[tuple[str, ...], str] = {
    (TOTAL, "SELECT COUNT(*) FROM v WHERE cost > 20"): "SELECT COUNT(*) FROM v WHERE cost <= 20",
    (TOTAL, "SELECT COUNT(*) FROM v WHERE female"): "SELECT COUNT(*) FROM v WHERE NOT female",
    (TOTAL, "SELECT COUNT(cost) FROM v WHERE age < 4"): "SELECT COUNT(*) FROM v WHERE age >= 4",
    ("SELECT site, COUNT(*) FROM v GROUP BY site", "SELECT age, COUNT(*) FROM v GROUP BY age"): (
        "SELECT site, age, COUNT(*) FROM v GROUP BY site, age"
    ),
    (TOTAL, "SELECT COUNT(*) FROM v WHERE age < 4"): "SELECT COUNT(*) FROM v WHERE age < 5",
}


@pytest.mark.parametrize(("earlier", "text"), list(NOT.items()))
def test_what_overlapping_releases_leave_open_is_not_derived(earlier: Sequence[str], text: str) -> None:
    assert found(text, [planned(each) for each in earlier]) is None


def test_solved_sums_are_an_independent_least_squares_solution() -> None:
    """Three marginals over 3 × 3 × 10 cells at different prices, against the normal equations over all cells."""
    keys = (("site", "female"), ("female", "age"), ("site", "age"))
    made = [
        planned(f"SELECT {', '.join(k)}, COUNT(*) FROM v GROUP BY {', '.join(k)}", epsilon=e)
        for k, e in zip(keys, ("1", "0.5", "2"), strict=True)
    ]
    derivation = found("SELECT site, COUNT(*) FROM v GROUP BY site", made)
    assert derivation is not None
    assert derivation.solved[0] is not None
    shape = {"site": 3, "female": 3, "age": 10}
    index = dict(zip(shape, np.indices(tuple(shape.values())).reshape(3, -1), strict=True))
    rows, deviations = [], []
    for (one, other), each in zip(keys, made, strict=True):
        scale = float(each.measures[0].mechanism.scale)  # type: ignore[union-attr]
        q = np.exp(-1 / scale)
        for i in range(shape[one]):
            for j in range(shape[other]):
                rows.append((index[one] == i) & (index[other] == j))
                deviations.append(np.sqrt(2 * q / (1 - q) ** 2))
    chance = np.random.default_rng(4)
    released, start = {}, 0
    noisy = chance.integers(0, 500, len(rows))
    for place, (one, other) in enumerate(keys):
        size = shape[one] * shape[other]
        released[place] = [noisy[start : start + size].tolist()]
        start += size
    matrix = np.array(rows, dtype=float) / np.array(deviations)[:, None]
    cells = np.linalg.lstsq(matrix, noisy / np.array(deviations), rcond=1e-10)[0]
    expected = [cells[index["site"] == group].sum() for group in range(3)]
    assert [float(value) for value in sums(derivation, released)[0]] == pytest.approx(expected, abs=0.05)
    alone = found("SELECT site, COUNT(*) FROM v GROUP BY site", [made[2]])
    assert alone is not None
    assert derivation.expected[0].plus_minus < alone.expected[0].plus_minus


def _misses(derivation: Derivation, made: Sequence[Any], sizes: Sequence[int], draws: int) -> int:
    """Count how often the interval of the first group misses, over fresh noises around 0."""
    chance, misses = system(), 0
    half = half_width(derivation.plan.measures[0].mechanism, LEVEL)
    noises = [
        each.measures[0].mechanism.sample(np.zeros(size * draws, dtype=np.int64), chance).reshape(draws, size)
        for each, size in zip(made, sizes, strict=True)
    ]
    for draw in range(draws):
        released = {place: [each[draw].tolist()] for place, each in enumerate(noises)}
        misses += abs(float(sums(derivation, released)[0][0])) > half
    return misses


def test_intervals_of_solved_sums_cover_over_2000_draws() -> None:
    made = [planned("SELECT COUNT(*) FROM v WHERE age < 7"), planned("SELECT COUNT(*) FROM v WHERE age < 3")]
    made += [planned("SELECT age, COUNT(*) FROM v GROUP BY age", epsilon="0.5")]
    derivation = found("SELECT COUNT(*) FROM v WHERE age BETWEEN 3 AND 6", made)
    assert derivation is not None
    assert derivation.solved[0] is not None
    assert _misses(derivation, made, (1, 1, 10), 2000) <= MOST_MISSES


def test_a_forgotten_correlation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: copies of one release are taken for releases with noise of their own."""
    made = [planned("SELECT COUNT(*) FROM v WHERE age < 7"), planned("SELECT COUNT(*) FROM v WHERE age < 3")]
    described = describe(planned("SELECT COUNT(*) FROM v WHERE age BETWEEN 3 AND 6"), (None, None))
    assert described is not None
    derivation = derive(described, [source(each, n) for n, each in enumerate(made * 4, 1)])
    assert derivation is not None
    chance = system()
    half, misses = half_width(derivation.plan.measures[0].mechanism, LEVEL), 0
    drawn = [each.measures[0].mechanism.sample(np.zeros(2000, dtype=np.int64), chance) for each in made]
    for draw in range(2000):
        released = {place: [[int(drawn[place % 2][draw])]] for place in range(8)}
        misses += abs(float(sums(derivation, released)[0][0])) > half
    assert misses > MOST_MISSES


def test_an_average_of_views_is_kept_where_it_is_as_exact() -> None:
    derivation = found(
        "SELECT site, COUNT(*) FROM v GROUP BY site", [planned("SELECT site, COUNT(*) FROM v GROUP BY site")]
    )
    assert derivation is not None
    assert derivation.solved == (None,)


def test_large_releases_are_left_to_averages() -> None:
    wide = planned("SELECT age, site, female, COUNT(*) FROM v GROUP BY age, site, female")
    assert wide.size <= MOST_ROWS
    many = [wide] * 20
    derivation = found("SELECT COUNT(*) FROM v WHERE age < 4", many)
    assert derivation is not None
    single = found("SELECT COUNT(*) FROM v WHERE age < 4", [wide])
    assert single is not None
    ratio = float(variance_of(single.plan.measures[0].mechanism) / variance_of(derivation.plan.measures[0].mechanism))
    assert ratio == pytest.approx(20, rel=1e-3)


def test_people_with_several_rows_are_never_solved_for() -> None:
    from tests.sql.test_derived import PERSON

    made = [planned(TOTAL, PERSON), planned("SELECT COUNT(*) FROM v WHERE age >= 4", PERSON)]
    assert found("SELECT COUNT(*) FROM v WHERE age < 4", made, PERSON) is None
    assert found(
        "SELECT COUNT(*) FROM v WHERE age < 4",
        [planned(TOTAL, ROW), planned("SELECT COUNT(*) FROM v WHERE age >= 4", ROW)],
    )
