"""A minimum frequency and rounding: kept on every path, and intervals stay true."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import hubbub
from hubbub.audit.receipt import check_receipt
from hubbub.errors import ParameterError
from hubbub.sql.disclosure import _step, _to

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {site: {values: [a, b, c, d]}, cost: {bounds: [0, 100]}}
    budget: {epsilon: 1000}
analysts: {ana: {visits: {epsilon: 1000}}}
"""
RULE = "    suppress_below: 11\n"
BY_SITE = "SELECT site, COUNT(*) AS n, AVG(cost) AS a FROM visits GROUP BY site"
#: Noise is another integer than 0 with a probability of 2e-17 or less.
SURE = 40


def opened(folder: Path, rule: str = RULE) -> "hubbub.Session":  # type: ignore[name-defined]
    (folder / "visits.csv").write_text("site,cost\n" + "a,50\n" * 400 + "b,50\n" * 11 + "c,50\n" * 10 + "d,50\n" * 3)
    (folder / "hubbub.yaml").write_text(YAML.replace("    unit: row\n", f"    unit: row\n{rule}"))
    return hubbub.open(folder / "hubbub.yaml")


def test_small_groups_are_suppressed_by_their_noisy_counts(tmp_path: Path) -> None:
    with opened(tmp_path) as h:
        release = h.query("SELECT site, COUNT(*) AS n FROM visits GROUP BY site", epsilon=SURE)
        assert release.rows == [("a", 400), ("b", 11), ("c", None), ("d", None)]
        assert [cell for _, cell in release.texts()] == ["400 ±0", "11 ±0", "suppressed (<11)", "suppressed (<11)"]
        assert release.to_csv().splitlines()[3:] == ["c,,,", "d,,,"]
        assert "2 of 4 rows are suppressed" in " ".join(release.notes)
        assert h.release(h.releases()[0].id).rows == release.rows
        assert check_receipt(release.document()).sound
        both = h.query(BY_SITE, epsilon=SURE)
        assert [row[1:] for row in both.rows[2:]] == [(None, None)] * 2
        assert both.intervals[2] == ((None, None),) * 3
        assert "measured" not in both.receipt
        assert both.receipt["disclosure"] == {"suppress_below": 11}


def test_it_is_the_noisy_count_that_decides(tmp_path: Path) -> None:
    with opened(tmp_path) as h:
        shown, hidden = [], 0
        for _ in range(6):
            counts = [row[1] for row in h.query(BY_SITE, epsilon=0.2, fresh=True).rows]
            shown += [count for count in counts if count is not None]
            hidden += counts.count(None)
        assert hidden
        assert min(shown) >= 11


def test_every_path_keeps_the_rule(tmp_path: Path) -> None:
    with opened(tmp_path) as h:
        doubled = "SELECT site, 2 * n AS m FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) AS t"
        assert [row[1] for row in h.query(doubled, epsilon=SURE).rows] == [800, 22, None, None]
        together = (
            "SELECT COUNT(*) AS n FROM visits WHERE site = 'a' UNION ALL SELECT COUNT(*) FROM visits WHERE site = 'd'"
        )
        assert [row[0] for row in h.query(together, epsilon=2 * SURE).rows] == [400, None]
        with h.batch(epsilon=4 * SURE) as b:
            first, second = b.query(BY_SITE), b.query("SELECT COUNT(*) AS n FROM visits WHERE site = 'd'")
        assert [row[1] for row in first.result().rows][2:] == [None, None]
        assert second.result().rows == [(None,)]
        summed = "SELECT SUM(n) AS t FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) AS t"
        total = h.query(summed, epsilon=SURE)
        assert total.rows[0][0] == 411  # of what is shown; the interval of all would not hold
        assert total.intervals == [((None, None),)]
        assert "leave suppressed ones out" in " ".join(total.notes)
        assert "10" not in json.dumps(total.model)
        number = h.releases()[0].id
        assert h.query(f"SELECT COUNT(*) FROM release({number})").rows == [(1,)]


def test_earlier_releases_stay_as_they_were_and_answer_nothing_else(tmp_path: Path) -> None:
    small = "SELECT COUNT(*) AS n FROM visits WHERE site = 'd'"
    with opened(tmp_path, rule="") as h:
        before = h.query("SELECT site, COUNT(*) AS n FROM visits GROUP BY site", epsilon=SURE)
        assert h.query(small, free=True).rows == [(3,)]  # derived, where there is no rule
        number = h.releases()[-1].id
        old = h.release(number).document()
    with opened(tmp_path) as h:
        assert h.release(number).document() == old
        again = h.query("SELECT site, COUNT(*) AS n FROM visits GROUP BY site", epsilon=SURE)
        assert (again.replayed, again.rows) == (True, before.rows)
        other = "SELECT COUNT(*) AS n FROM visits WHERE site IN ('c', 'd')"
        with pytest.raises(ParameterError, match=r"HB132|HB167"):
            h.query(other, free=True)
        assert h.estimate(small, epsilon=1).free is None
        assert "below 11 are suppressed" in h.estimate(small, epsilon=1).disclosure


def test_an_answer_without_a_count_or_of_an_analysis_says_so(tmp_path: Path) -> None:
    with opened(tmp_path) as h:
        total = h.query("SELECT site, SUM(cost) AS s FROM visits GROUP BY site", epsilon=SURE)
        assert None not in [row[1] for row in total.rows]
        assert "if the query has a count" in total.disclosure
        found = h.call("kmeans", {"table": "visits", "columns": ["cost"], "k": 2}, epsilon=1)
        assert "analyses do not follow them" in found.disclosure


def test_counts_are_rounded_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path, rule="    round_to: 5\n") as h:
        release = h.query(BY_SITE, epsilon=SURE)
        assert [row[1] for row in release.rows] == [400, 10, 10, 5]
        assert [ends[1] for ends in release.intervals] == [(400.0, 400.0), (10.0, 15.0), (10.0, 10.0), (0.0, 5.0)]
        assert check_receipt(release.document()).sound
        assert "multiples of 5" in release.disclosure


def test_rounding_by_noise_keeps_the_digits_that_mean_something(tmp_path: Path) -> None:
    with opened(tmp_path, rule="    round_to: noise\n") as h:
        release = h.query("SELECT site, SUM(cost) AS s FROM visits GROUP BY site", epsilon=0.1)
        for (_, value), (_, (low, high)) in zip(release.rows, release.intervals, strict=True):
            assert value % 100 == 0  # the margin is 3,000
            assert low <= value <= high


@pytest.mark.parametrize("step", [2, 5, 10])
def test_rounding_moves_ends_outwards(step: int) -> None:
    steps = np.full(81, float(step))
    values = np.arange(-40, 41)
    low, high = values - 3.5, values + 2.25
    moved, down, up = _to(steps, values, np.round), _to(steps, low, np.floor), _to(steps, high, np.ceil)
    assert (down <= low).all()
    assert (up >= high).all()
    assert (down <= moved).all()
    assert (moved <= up).all()
    assert (np.abs(moved - values) <= step / 2).all()
    assert moved.dtype == values.dtype


def test_the_step_is_a_power_of_ten_below_half_of_the_margin() -> None:
    half = np.array([0.003, 0.7, 1.0, 9.0, 75.0, 3000.0, 0.0, np.inf])
    steps = _step(-half, half)
    for margin, step in zip(half[:6].tolist(), steps.tolist(), strict=False):
        assert margin / 20 < step <= margin / 2
        assert math.isclose(math.log10(step), round(math.log10(step)), abs_tol=1e-9)
    assert steps[6:].tolist() == [0, 0]


@pytest.mark.parametrize(
    "computed",
    [
        "CAST(COUNT(*) AS TEXT)",
        "COUNT(*) = 3",
        "CASE WHEN COUNT(*) < 5 THEN 'few' ELSE 'many' END",
        "COUNT(*) + 0.5",
        "MEDIAN(cost)",
        "CAST(AVG(cost) AS TEXT)",
    ],
)
def test_nothing_that_is_computed_from_a_suppressed_number_is_shown(tmp_path: Path, computed: str) -> None:
    """Text, conditions and picks have no interval, and are suppressed like numbers; keys and labels stay."""
    with opened(tmp_path) as h:
        sql = f"SELECT site, 'here' AS place, {computed} AS k, COUNT(*) AS n FROM visits GROUP BY site"
        rows = h.query(sql, epsilon=2 * SURE).rows
        assert [row[:2] for row in rows] == [(site, "here") for site in "abcd"]
        assert None not in [cell for row in rows[:2] for cell in row]
        assert [row[2:] for row in rows[2:]] == [(None, None)] * 2
        inner = f"SELECT k, site FROM ({sql}) AS t"
        assert [row[0] for row in h.query(inner, epsilon=2 * SURE).rows[2:]] == [None, None]


@pytest.mark.parametrize(
    ("end", "sites"),
    [
        ("HAVING COUNT(*) = 3", ""),
        ("HAVING COUNT(*) < 11", ""),
        ("HAVING AVG(cost) > 1", "ab"),
        ("ORDER BY COUNT(*)", "bacd"),
        ("ORDER BY COUNT(*) DESC NULLS LAST", "abcd"),
        ("ORDER BY SUM(cost)", "bacd"),
    ],
)
def test_conditions_and_orders_read_what_is_shown(tmp_path: Path, end: str, sites: str) -> None:
    with opened(tmp_path) as h:
        release = h.query(f"SELECT site, COUNT(*) AS n FROM visits GROUP BY site {end}", epsilon=3 * SURE)
        assert [row[0] for row in release.rows] == list(sites)


def test_what_is_computed_from_a_rounded_count_reads_the_rounded_count(tmp_path: Path) -> None:
    with opened(tmp_path, rule="    round_to: 5\n") as h:
        computed = "COUNT(*) + 0 AS n, CAST(COUNT(*) AS TEXT) AS t, COUNT(*) = 11 AS e"
        sql = f"SELECT site, {computed} FROM visits GROUP BY site"
        release = h.query(sql, epsilon=SURE)
        assert release.rows[1:] == [("b", 10.0, "10", False), ("c", 10.0, "10", False), ("d", 5.0, "5", False)]
        assert release.intervals == [((None, None),) * 4] * 4
        inner = h.query("SELECT n + 0 AS m FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) t", epsilon=SURE)
        assert inner.rows == [(400.0,), (10.0,), (10.0,), (5.0,)]
        assert inner.intervals == [((None, None),)] * 4
        plain = h.query("SELECT site, COUNT(*) AS n FROM visits GROUP BY site", epsilon=SURE)
        assert set(plain.ratio) == {None}
        assert all(output.sampling is None for output in plain.outputs)
        only = "SELECT site, COUNT(*) AS n FROM visits GROUP BY site HAVING COUNT(*) = 11"
        assert h.query(only, epsilon=SURE).rows == []
