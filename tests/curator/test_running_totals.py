"""Running totals in SQL: the sums behind them, what they are charged, and when they are used."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.contract.subjects import every

from hubbub.accounting.cost import blocks_of_facts
from hubbub.accounting.store import EntryFilter
from hubbub.analyses.tables import running_sums
from hubbub.analyses.tables.strategies import Strategy, strategy
from hubbub.audit.receipt import check_receipt
from hubbub.audit.release import audit
from hubbub.audit.replan import plan_again
from hubbub.audit.replay import replay
from hubbub.config import load
from hubbub.core.unit import Relation
from hubbub.curator import Curator, planner
from hubbub.curator import receipt as receipts
from hubbub.curator.opening import open_curator, tables_of
from hubbub.curator.query import PreparedQuery
from hubbub.curator.question import Question
from hubbub.curator.running_totals import PreparedRunningTotals
from hubbub.sql.measures import Sensitivity

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: person, groups: 1, rows: 2}
    columns:
      day: {type: date, bounds: [2026-01-01, 2026-02-28]}
      ward: {values: [30, 7, 12]}
      region: {values: [South, North]}
      cost: {values: [0, 1, 2]}
      amount: {bounds: [-2, 17.5], step: 0.5}
    BLOCKS
    budget: {epsilon: 20}
analysts: {ana: {visits: {epsilon: 5}}}
"""
BLOCKS = "blocks: {column: day, by: month, from: 2026-01, until: 2026-02, budget: {epsilon: 5}}"
DAYS = "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day) AS n FROM visits GROUP BY day"
REGIONS = (
    "SELECT region, day, SUM(COUNT(*)) OVER (PARTITION BY region ORDER BY day ROWS UNBOUNDED PRECEDING) AS n"
    " FROM visits WHERE cost > 0 AND day < '2026-02-14' GROUP BY region, day ORDER BY day DESC, region"
)
WINDOWS = DAYS.replace("ORDER BY day)", "ORDER BY day ROWS BETWEEN 29 PRECEDING AND CURRENT ROW)")
REGION_WINDOWS = REGIONS.replace("UNBOUNDED PRECEDING", "25 PRECEDING").replace(" AND day < '2026-02-14'", "")
SUMS = DAYS.replace("COUNT(*)", "SUM(amount)")
REGION_SUMS = REGIONS.replace("COUNT(*)", "SUM(cost * 2) FILTER (WHERE ward <> 7)").replace("cost > 0", "amount > 3.25")
WINDOW_SUMS = WINDOWS.replace("COUNT(*)", "SUM(amount)")
#: The width of a sliding window.
WIDTHS = {WINDOWS: 30, REGION_WINDOWS: 26, WINDOW_SUMS: 30}
COUNTS = {
    DAYS: "SELECT day, count(*) FROM visits GROUP BY day",
    REGIONS: "SELECT region, day, count(*) FROM visits WHERE cost > 0 AND day < '2026-02-14' GROUP BY region, day",
    WINDOWS: "SELECT day, count(*) FROM visits GROUP BY day",
    REGION_WINDOWS: "SELECT region, day, count(*) FROM visits WHERE cost > 0 GROUP BY region, day",
    SUMS: "SELECT day, coalesce(sum(amount), 0) FROM visits GROUP BY day",
    REGION_SUMS: "SELECT region, day, coalesce(sum(cost * 2) FILTER (ward <> 7), 0) FROM visits"
    " WHERE amount > 3.25 AND day < '2026-02-14' GROUP BY region, day",
    WINDOW_SUMS: "SELECT day, coalesce(sum(amount), 0) FROM visits GROUP BY day",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows on 58 of 59 days, two of them outside of the bounds and without a day; nobody has more than one row."""
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    rows = (
        "SELECT 'p' || i AS person, DATE '2026-01-01' + CAST(i * i % 58 AS INTEGER) AS day,"
        " [7, 12, 30][1 + i % 3] AS ward, ['North', 'South'][1 + i % 2] AS region, i % 3 AS cost,"
        " CASE WHEN i % 9 > 0 THEN (i % 40) / 2 - 2 END AS amount FROM range(700) t(i)"
    )
    duckdb.sql(f"COPY ({rows} UNION ALL SELECT 'x', NULL, 7, 'North', 1, 4) TO '{path}'")
    return path


def opened(folder: Path, data: Path, blocks: str = "") -> Curator:
    text = YAML.replace("visits.parquet", str(data)).replace("    BLOCKS\n", f"    {blocks}\n" if blocks else "")
    (folder / "hubbub.yaml").write_text(text)
    return open_curator(load(folder / "hubbub.yaml"))


@pytest.fixture
def curator(tmp_path: Path, data: Path) -> Iterator[Curator]:
    with opened(tmp_path, data) as found:
        yield found


def plan(curator: Curator, sql: str, epsilon: str = "0.5", **options: Any) -> Any:
    return curator.planner.plan("ana", Question(sql, epsilon=epsilon, **options), salt="s")


def truth(data: Path, sql: str) -> dict[tuple[Any, ...], float]:
    """Add up the exact counts and sums in Python."""
    with duckdb.connect() as database:
        rows = database.execute(COUNTS[sql].replace("FROM visits", f"FROM '{data}'")).fetchall()
    counted = {row[:-1]: row[-1] for row in rows if row[-2] is not None}
    last = timedelta(days=WIDTHS.get(sql, 1000))
    return {
        (*rest, day): sum(n for (*other, each), n in counted.items() if other == rest and day - last < each <= day)
        for *rest, day in counted
    }


# ── the theorem ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["root", "groups", "identity"])
@pytest.mark.parametrize("values", [(1,), (-2, 1), (0, 1, 2), (-2, -1)], ids=str)
@pytest.mark.parametrize("relation", Relation)
def test_no_unit_moves_the_measured_sums_by_more_than_was_charged_for(
    name: str, values: tuple[int, ...], relation: Relation
) -> None:
    """All contributions of one unit, at most two rows over 2 × 3 cells, and all pairs of them where one is replaced."""
    chosen = strategy(name, 3, "prefixes")
    most, signed = max(map(abs, values)), min(values) < 0 < max(values)
    stated = chosen.sensitivity(contribution=2 * most, relation=relation, signed=signed)
    rows = list(product(range(6), values))
    vectors = np.zeros((1 + len(rows) + len(rows) * (len(rows) + 1) // 2, 6), dtype=np.int64)
    units = [(), *combinations_with_replacement(rows, 1), *combinations_with_replacement(rows, 2)]
    for place, unit in enumerate(units):
        for cell, value in unit:
            vectors[place, cell] += value
    measured = np.unique(vectors, axis=0) @ np.kron(np.eye(2, dtype=np.int64), chosen.matrix).T
    others = np.zeros((1, measured.shape[1]), dtype=np.int64) if relation is Relation.ADD_REMOVE else measured
    moves = measured[:, None, :] - others[None, :, :]
    assert int(np.abs(moves).sum(axis=2).max()) <= stated.l1
    assert int((moves * moves).sum(axis=2).max()) <= stated.l2_squared
    if relation is Relation.ADD_REMOVE:  # nothing is charged that cannot happen
        assert int(np.abs(moves).sum(axis=2).max()) == stated.l1
        assert int((moves * moves).sum(axis=2).max()) == stated.l2_squared


class Silent:
    """A mechanism without noise."""

    def sample(self, value: Any, source: object) -> Any:
        del source
        return value


@pytest.mark.parametrize("sql", COUNTS)
def test_totals_without_noise_are_exact(curator: Curator, data: Path, sql: str) -> None:
    planned = plan(curator, sql)
    assert isinstance(planned, PreparedRunningTotals)
    silent = replace(planned.sums, mechanism=Silent())  # type: ignore[arg-type]

    class Run:
        source = None

    found = curator.engine.run(planned.statements[0]).through(
        lambda table: silent.totals(table, Run())  # type: ignore[arg-type]
    )
    columns, _ = receipts.outputs(planned._answer(found))
    told = {row[:-1]: row[-1] for row in zip(*(each.values for each in columns), strict=True)}
    expected = truth(data, sql)
    assert {key: round(told[key], 6) for key in expected} == expected
    assert len(told) == planned.cells


@pytest.mark.parametrize("sql", [REGIONS, REGION_WINDOWS, REGION_SUMS])
def test_the_stated_variances_are_those_of_the_factorization(curator: Curator, sql: str) -> None:
    """Computed again from the whole matrices: W (AᵀA)⁻¹ Wᵀ, where W adds up the bins of each region."""
    sums = plan(curator, sql).sums
    whole = np.kron(np.eye(2), sums.strategy.matrix.astype(float))  # regions, then days
    shape = (2, len(sums.strategy.matrix))
    columns = [sums.estimated((whole @ row).reshape(shape)) for row in np.eye(whole.shape[1])]
    workload = np.array(columns).T
    scale = float(sums.mechanism.scale)
    expected = np.diag(workload @ np.linalg.inv(whole.T @ whole) @ workload.T) * 2 * scale**2
    np.testing.assert_allclose(sums.variances, expected, rtol=1e-6)


@pytest.mark.parametrize("sql", [DAYS, WINDOW_SUMS])
def test_intervals_hold_in_19_of_20_draws(curator: Curator, sql: str) -> None:
    """With noise of another sampler. A share of .93 in 4,000 draws is 5.8 deviations below .95: below 1e-8 a cell."""
    sums = plan(curator, sql).sums
    noise = np.random.default_rng(7).laplace(scale=float(sums.mechanism.scale), size=(4000, sums.sums))
    moved = np.array([sums.estimated(row) for row in noise])
    assert (np.abs(moved) <= sums.half_widths()).mean(axis=0).min() >= 0.93
    assert (np.abs(moved) <= sums.half_widths() / 1.5).mean(axis=0).max() < 0.93  # too narrow ones are noticed


@pytest.mark.parametrize("relation", Relation)
def test_neighbors_stay_within_the_sensitivity_of_running_sums(relation: Relation) -> None:
    """The worst neighbors that a search finds use the noise, and no more; a bound that is half as large is noticed."""
    tried = [each for each in every() if each.name == "running totals" and each.subject.relation is relation]
    assert len(tried) == 8
    for each in tried:
        assert list(each.complaints()) == []


def test_whole_numbers_are_not_rounded_where_the_noise_allows_it(tmp_path: Path) -> None:
    """No interval allows for rounding, which may go one way in every row; adding up noisy sums would not round."""
    duckdb.sql(
        "COPY (SELECT 'p' || i AS person, DATE '2026-01-01' AS day, 1 AS ward, 'North' AS region, 1 AS cost,"
        f" 351 AS amount FROM range(9) t(i)) TO '{tmp_path}/visits.parquet'"
    )
    text = YAML.replace("    BLOCKS\n", "").replace("[-2, 17.5], step: 0.5", "[0, 2000000]")
    (tmp_path / "hubbub.yaml").write_text(text)
    with open_curator(load(tmp_path / "hubbub.yaml")) as curator:
        for epsilon in ("0.5", "4"):
            assert plan(curator, SUMS, epsilon).sums.counted.measure.step == 1


def test_large_sums_are_measured_exactly(curator: Curator) -> None:
    """Weighted sums of 2⁶¹ do not fit into 64 bits: compared with Python's integers."""
    sums: Any = replace(plan(curator, SUMS).sums, mechanism=Silent())
    size = sums.counted.cells.size
    values = np.array([(-1) ** i * ((1 << 61) - i**3) for i in range(size)], dtype=np.int64)
    matrix = [[int(weight) for weight in row] for row in sums.strategy.matrix]
    expected = [sum(w * int(x) for w, x in zip(row, values, strict=True)) for row in matrix]
    measured = sums.noisy({"cell": np.arange(size), "m0": values}, None)
    assert measured.tolist() == [float(each) for each in expected]
    assert max(map(abs, expected)) > 1 << 64


# ── the query ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sql", COUNTS)
def test_an_answer_is_near_the_truth_and_says_how_it_was_made(curator: Curator, data: Path, sql: str) -> None:
    """Ten half widths are 21 deviations: a false alarm has a probability below 1e-8."""
    estimate = curator.estimate("ana", Question(sql, epsilon="0.5"))
    release = curator.query("ana", Question(sql, epsilon="0.5"))
    keys = [output.values for output in release.outputs[:-1]]
    total = release.outputs[-1]
    assert total.low is not None
    assert total.high is not None
    numbers = zip(total.values, total.low, total.high, strict=True)
    told: dict[Any, Any] = dict(zip(zip(*keys, strict=True), numbers, strict=True))
    half = estimate.expected[0].plus_minus
    for key, exact in truth(data, sql).items():
        value, low, high = told[key]
        assert abs(value - exact) <= 10 * half
        assert low <= value <= high
    what = "running totals" if sql not in WIDTHS else f"sums of the last {WIDTHS[sql]} values"
    assert any(f"{what} along day" in line for line in release.receipt["derivation"])
    assert release.receipt["analysis"] == "running_totals"
    assert release.left_out is not None
    assert (release.left_out.rows, release.left_out.groups, release.left_out.rows_total) == (2, None, None)
    lists = (release.left_out.unlisted, release.left_out.ungrouped)
    by_region = sql in (REGIONS, REGION_WINDOWS, REGION_SUMS)
    unlisted = ("cost", "ward") if sql == REGION_SUMS else ("cost",)
    assert lists == ((unlisted, ("region",)) if by_region else ((), ()))
    assert check_receipt(release.document()).sound
    days = release.outputs[-2].values if by_region else release.outputs[0].values
    assert list(days) == sorted(days, reverse=by_region)  # type: ignore[type-var]


def test_totals_have_less_noise_than_added_counts(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(curator, DAYS)
    monkeypatch.setattr(planner, "running_totals", lambda planned, *_, **__: planned)
    added = plan(curator, DAYS, "0.500001")
    assert isinstance(added, PreparedQuery)
    deviation = added.plan.measures[0].deviation
    assert planned.sums.variances.mean() < 0.6 * deviation**2 * np.mean(np.arange(1, 60))
    assert planned.epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, SUM(COUNT(*)) OVER (ORDER BY ward) AS n FROM visits GROUP BY ward",  # three values gain nothing
        DAYS.replace("OVER (ORDER BY day)", "OVER (ORDER BY day DESC)"),
        DAYS.replace("OVER (ORDER BY day)", "OVER ()"),
        DAYS.replace("SUM(COUNT(*))", "AVG(COUNT(*))"),
        DAYS.replace("ORDER BY day)", "ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)"),  # no gain
        WINDOWS.replace("CURRENT ROW", "1 FOLLOWING"),
        WINDOWS.replace("29 PRECEDING", "29 FOLLOWING").replace("CURRENT ROW", "UNBOUNDED FOLLOWING"),
        WINDOWS.replace("CURRENT ROW", "1 PRECEDING"),
        WINDOWS.replace("ROWS BETWEEN 29", "RANGE BETWEEN 29"),
        DAYS.replace("AS n", "AS n, COUNT(*) AS c"),
        DAYS.replace("COUNT(*)", "COUNT(DISTINCT person)"),
        f"{DAYS} HAVING COUNT(*) > 3",
        f"{DAYS} ORDER BY n LIMIT 3",
        "SELECT region, day, SUM(COUNT(*)) OVER (ORDER BY day) AS n FROM visits GROUP BY region, day",
    ],
)
def test_other_queries_are_answered_as_before(curator: Curator, sql: str) -> None:
    assert not isinstance(plan(curator, sql), PreparedRunningTotals)


@pytest.mark.parametrize("options", [{"rows": 1}, {"groups": 1}, {"raw": True}])
def test_what_is_asked_about_counts_is_answered_from_counts(curator: Curator, options: dict[str, Any]) -> None:
    assert isinstance(plan(curator, DAYS), PreparedRunningTotals)
    assert not isinstance(plan(curator, DAYS, **options), PreparedRunningTotals)
    exact = curator.planner.plan("ana", Question(DAYS, within=40), salt="s")
    assert not isinstance(exact, PreparedRunningTotals)


def test_an_order_by_windows_is_that_of_the_shown_ones(curator: Curator) -> None:
    release = curator.query("ana", Question(f"{WINDOWS} ORDER BY n DESC", epsilon="0.5"))
    values: Any = list(release.outputs[1].values)
    assert "analysis" in release.receipt
    assert values == sorted(values, reverse=True)


def test_windows_of_many_values_are_not_searched(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(plan(curator, WINDOWS), PreparedRunningTotals)
    monkeypatch.setattr(running_sums, "MAX_WINDOW_BINS", 58)
    assert not isinstance(plan(curator, WINDOWS, "0.50001"), PreparedRunningTotals)
    assert isinstance(plan(curator, DAYS, "0.50001"), PreparedRunningTotals)


def test_answers_from_before_stay_free(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that was charged with noise on every count is found again, and so is one with chosen sums.

    The deployment is opened again in between, as plans are remembered.
    """
    with opened(tmp_path, data) as curator, monkeypatch.context() as patched:
        patched.setattr(planner, "running_totals", lambda planned, *_, **__: planned)
        first = curator.query("ana", Question(DAYS, epsilon="0.25"))
        assert "after" in first.receipt
    with opened(tmp_path, data) as curator:
        assert isinstance(plan(curator, DAYS, "0.25"), PreparedRunningTotals)
        again = curator.query("ana", Question(DAYS, epsilon="0.25"))
        assert (again.replayed, again.outputs) == (True, first.outputs)
        new = curator.query("ana", Question(DAYS, epsilon="0.5"))
        assert (new.replayed, "analysis" in new.receipt) == (False, True)
    with opened(tmp_path, data) as curator:
        assert curator.query("ana", Question(DAYS, epsilon="0.5")).replayed
        assert curator.ledger.verify().sound


def test_a_total_is_charged_to_the_blocks_that_it_reads(tmp_path: Path, data: Path) -> None:
    """Without a condition to all blocks, and with one to January alone, whose rows are those that are counted."""
    january = DAYS.replace("GROUP BY", "WHERE day < '2026-02-01' GROUP BY")
    with opened(tmp_path, data, BLOCKS) as curator:
        for sql, last in ((DAYS, date(2026, 2, 28)), (january, date(2026, 1, 31))):
            (statement,) = plan(curator, sql).statements
            counted = curator.engine.run(statement).through(lambda found: int(found["m0"].sum()))
            assert counted == max(n for (day,), n in truth(data, DAYS).items() if day <= last)
            release = curator.query("ana", Question(sql, epsilon="1"))
            value = dict(zip(release.outputs[0].values, release.outputs[1].values, strict=True))[date(2026, 1, 31)]
            exact = truth(data, DAYS)[date(2026, 1, 31),]
            assert isinstance(value, int)
            assert abs(value - exact) <= 10 * curator.estimate("ana", Question(sql, epsilon="1")).expected[0].plus_minus
        with curator.ledger.snapshot() as snapshot:
            charged = [blocks_of_facts(entry.facts) for entry in snapshot.entries(EntryFilter(kind="charge"))]
        assert [each.text() for each in charged if each is not None] == ["2026-01 to 2026-02", "2026-01"]


@pytest.mark.parametrize("sql", [DAYS, SUMS])
def test_a_release_is_planned_again_and_replayed_on_neighbors(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """The audit runs the plan on simulated neighbors, and notices a bound on rows that the statement does not have."""
    with opened(tmp_path, data) as curator:
        release = curator.query("ana", Question(sql, epsilon="0.5"))
        config, number = curator.config, release.receipt["ledger"][0]["sequence"]
    found = audit(config, number, worlds=1, chance=random.Random(1))
    assert (found.problems, found.left_out) == ([], [])
    assert any(line.startswith("replayed on simulated data") for line in found.lines)
    monkeypatch.setattr(Strategy, "sensitivity", _halved(Strategy.sensitivity))
    planned = plan_again(Question(sql, epsilon="0.5"), tables_of(config), salt="s", hashing=config.hashing, totals=True)
    replayed = replay(planned, tables_of(config), worlds=6, chance=random.Random(1))
    assert replayed.problems


def _halved(stated: Callable[..., Sensitivity]) -> Callable[..., Sensitivity]:
    def half(*args: Any, **options: Any) -> Sensitivity:
        whole = stated(*args, **options)
        return Sensitivity(whole.l1 // 2, whole.l2_squared // 4)

    return half
