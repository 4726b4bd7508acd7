"""Queries that read noisy values of their own earlier releases: answers, charges, receipts, and the composed loss."""

import itertools
import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub
from hubbub.audit.receipt import check_receipt
from hubbub.audit.replan import plan_again
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.queries import PreparedQueries
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.finish import exact_results
from hubbub.sql.plan import Plan

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 1}
    columns:
      patient: {}
      region: {values: [North, South]}
      age: {type: integer, bounds: [0, 110]}
    budget: {epsilon: 100000, delta: 1e-6}
analysts:
  ana: {visits: {epsilon: 100000, delta: 1e-6}}
  ben: {visits: {epsilon: 3, delta: 1e-6}}
"""
OLDER = "SELECT region, COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(age) FROM visits) GROUP BY region"
SHARES = (
    "SELECT region, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits"
    " WHERE age > (SELECT AVG(age) FROM visits WHERE age > (SELECT COUNT(*) / 10 FROM visits)) GROUP BY region"
)
#: A query whose first release is a count, so that its law is that of one integer.
COUNTS = "SELECT COUNT(*) AS n FROM t WHERE age > (SELECT COUNT(*) FROM t WHERE age > 0)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    rows = [f"p{i},{('North', 'South', 'South')[i % 3]},{i % 100}" for i in range(300)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,region,age", *rows]) + "\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def test_rows_above_the_noisy_average_are_counted_for_one_charge(session: Session) -> None:
    estimate = session.estimate(OLDER, epsilon=2000)
    assert [each.name for each in estimate.expected] == ["avg(age)", "n"]
    assert any('"$released0"' in sql for sql in estimate.sql)
    release = session.query(OLDER, epsilon=2000)
    assert release.rows == [("North", 50), ("South", 100)]
    assert all(low is not None and low <= 50 + 50 * i for i, (_, (low, _)) in enumerate(release.intervals))
    value = release.model["released"][0]["columns"][0]["values"][0]
    assert value == pytest.approx(49.5, abs=0.4)
    (note,) = release.notes
    assert note.endswith(f"avg(age) = {value:.4g}.")
    assert f"Note: {note}" in repr(release).replace("\n", " ")
    (charge,) = session.releases()
    assert charge.epsilon == release.epsilon == 2000
    assert [Fraction(part["charge"]["epsilon"]) for part in release.receipt["queries"]] == [1000, 1000]
    assert "after" not in release.receipt
    assert session.query(OLDER, epsilon=2000).replayed
    assert len(session.releases()) == 1


def test_values_of_values_and_windows_have_one_receipt(session: Session) -> None:
    release = session.query(SHARES, epsilon=3000)
    assert [row[0] for row in release.rows] == ["North", "South"]
    assert [row[1] for row in release.rows] == pytest.approx([1 / 3, 2 / 3], abs=0.02)
    assert len(release.receipt["queries"]) == len(release.model["released"]) == 3
    document = json.loads(json.dumps(release.document()))
    checked = check_receipt(document)
    assert checked.sound, checked.problems
    forged = json.loads(json.dumps(document))
    forged["receipt"]["queries"].pop(0)
    assert not check_receipt(forged).sound
    changed = json.loads(json.dumps(document))
    changed["answer"]["model"]["released"][0]["columns"][0]["values"][0] += 1
    assert not check_receipt(changed).sound


def test_the_budget_covers_the_value_too(session: Session, tmp_path: Path) -> None:
    assert session.releases() == ()
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ben") as poor:
        with pytest.raises(hubbub.errors.HubbubError, match="HB201"):
            poor.query(OLDER, epsilon=4)
        poor.query(OLDER, epsilon=3)
        assert not poor.estimate(OLDER, epsilon="0.01").admitted


# --- the composed distribution ---------------------------------------------------------------------------------------

EPSILON = Fraction(1)
Data = Sequence[tuple[int, int]]


def table(relation: Relation) -> Table:
    columns = (Column("id", Kind.INTEGER), Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9))))
    return Table("t", columns, PrivacyUnit("id", 1, 2), relation)


def composed(relation: Relation) -> tuple[PreparedQueries, list[Fraction]]:
    """Plan the query, and return the scales of the noise of its two counts."""
    planned = plan_again(Question(COUNTS, epsilon=EPSILON), {"t": table(relation)}, salt="s", hashing="engine")
    assert isinstance(planned, PreparedQueries)
    mechanisms = [measure.mechanism for part in planned.parts for measure in part.plan.measures]
    assert len(mechanisms) == 2
    assert all(isinstance(each, Laplace) for each in mechanisms)
    return planned, [each.scale for each in mechanisms if isinstance(each, Laplace)]


def counts(plans: Sequence[Plan], data: Data) -> list[int]:
    """Return the exact counts of some plans on the same data."""
    with duckdb.connect(config={"threads": 1}) as connection:
        written = ", ".join(map(str, data)) or "(NULL, NULL)"
        connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {written}) AS rows(id, age)")
        tables: list[Any] = [
            {name: connection.execute(sql).fetchnumpy() for name, sql in plan.sql.items()} for plan in plans
        ]
    return [int(exact_results(plan, each)[0][0][0]) for plan, each in zip(plans, tables, strict=True)]


def worlds(rows: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """List data with up to three units, each with some of the given lists of ages (or without rows)."""
    places = itertools.product(range(len(rows)), repeat=3)
    return {chosen: [(i, age) for i, place in enumerate(chosen) for age in rows[place]] for chosen in places}


ROWS = [(), (1,), (5, 5, 5)]
VALUES = range(7)


@pytest.mark.parametrize("relation", Relation)
def test_the_composed_distribution_keeps_the_charged_loss(relation: Relation) -> None:
    """Over all pairs of neighbors, and all pairs of outputs: the log of the ratio of their probabilities is at most ε.

    P(v, n) is proportional to exp(−|v − a|/s − |n − b(v)|/s'), where a is the exact first count and b(v) the second
    one, given the noisy v. All values below 0 give the counts of 0, and all above 6 those of 6.
    """
    planned, scales = composed(relation)
    plans = [planned.parts[0].plan, *(planned.parts[1].reading([Fraction(value)]) for value in VALUES)]
    exact = {chosen: counts(plans, data) for chosen, data in worlds(ROWS).items()}
    losses, planted = set[Fraction](), set[Fraction]()
    for one, two in itertools.combinations(exact, 2):
        differing = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
        if len(differing) > 1 or (relation is Relation.ADD_REMOVE and 0 not in differing[0]):
            continue
        (first, *second), (other, *others) = exact[one], exact[two]
        losses |= {abs(first - other) / scales[0] + abs(second[v] - others[v]) / scales[1] for v in VALUES}
        # planted error: the second query reads the exact value instead of the noisy one
        planted.add(abs(first - other) / scales[0] + abs(second[first] - others[other]) / scales[1])
    assert EPSILON / 2 < max(losses) <= EPSILON
    assert max(planted) > EPSILON
