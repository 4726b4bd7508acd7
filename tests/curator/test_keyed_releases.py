"""Queries that read noisy numbers of a release, one for each key: answers, charges, receipts, and the composed loss."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hubbub
from hubbub.analyses.base import EngineRun
from hubbub.audit.receipt import check_receipt
from hubbub.audit.replan import plan_again
from hubbub.core.events import Composed
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.curator.queries import PreparedQueries
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system
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
      ward: {type: integer}
      age: {type: integer, bounds: [0, 110]}
    budget: {epsilon: 100000, delta: 1e-6}
  wards:
    source: wards.csv
    public: true
    columns: {ward: {type: integer}, floor: {type: integer}, beds: {type: integer}}
analysts:
  ana: {visits: {epsilon: 100000, delta: 1e-6}}
  ben: {visits: {epsilon: 3, delta: 1e-6}}
"""
#: By region, which is declared, and by ward, which a public table lists.
OLDER = "SELECT COUNT(*) AS n FROM visits v WHERE age > (SELECT AVG(age) FROM visits w WHERE w.region = v.region)"
WARDS = (
    "SELECT COUNT(*) AS n FROM visits v JOIN wards ON v.ward = wards.ward WHERE floor = 2 "
    "AND age > (SELECT AVG(age) FROM visits w WHERE w.ward = wards.ward)"
)
#: All that is not in the subquery is public: the answer is computed from the release.
BUSY = (
    "SELECT ward, floor FROM wards WHERE beds < (SELECT COUNT(*) FROM visits v WHERE v.ward = wards.ward) ORDER BY ward"
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Patients i of age i % 100, in region i % 3 > 0 and ward i % 4; ward 9 has nobody."""
    rows = [f"p{i},{('North', 'South', 'South')[i % 3]},{i % 4},{i % 100}" for i in range(300)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,region,ward,age", *rows]) + "\n")
    (tmp_path / "wards.csv").write_text("ward,floor,beds\n0,1,70\n1,2,80\n2,2,70\n3,1,80\n9,2,0\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def exact(text: str, folder: Path) -> list[tuple[Any, ...]]:
    """Answer a query in plain DuckDB."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in ("visits", "wards"):
            connection.execute(f"CREATE TABLE {name} AS FROM read_csv('{folder}/{name}.csv')")
        return connection.execute(text).fetchall()


@pytest.mark.parametrize(("text", "keys"), [(OLDER, 2), (WARDS, 3)])
def test_rows_above_the_noisy_average_of_their_group_are_counted_for_one_charge(
    session: Session, tmp_path: Path, text: str, keys: int
) -> None:
    """At this ε the averages are within 0.1 of the exact ones, which are not within 0.4 of any age."""
    estimate = session.estimate(text, epsilon=2_000)
    assert [each.name for each in estimate.expected] == ["avg(age)", "n"]
    assert any("about these numbers" in line for line in estimate.derivation)
    assert any(f"noisy numbers of release 1, for {keys} keys" in line for line in estimate.derivation)
    assert any('"$released0"' in sql for sql in estimate.sql)
    release = session.query(text, epsilon=2_000)
    assert release.rows == exact(text, tmp_path)
    *_, averages = release.model["released"][0]["columns"]
    assert len(averages["values"]) == keys
    (note,) = release.notes
    assert note.endswith(f"avg(age) for each of {keys} keys.")
    (charge,) = session.releases()
    assert charge.epsilon == release.epsilon == 2_000
    assert [Fraction(part["charge"]["epsilon"]) for part in release.receipt["queries"]] == [1_000, 1_000]
    assert session.query(text, epsilon=2_000).replayed
    assert len(session.releases()) == 1


def test_public_rows_are_compared_with_noisy_counts(session: Session, tmp_path: Path) -> None:
    release = session.query(BUSY, epsilon=2_000)
    assert release.rows == exact(BUSY, tmp_path) == [(0, 1), (2, 2)]
    assert check_receipt(json.loads(json.dumps(release.document()))).sound


#: What may stand after the WHERE of a subquery, with whether it is answered where there is one number for each key.
CLAUSES = {
    "HAVING COUNT(*) > 150": False,
    "HAVING COUNT(*) > 9999": False,
    "ORDER BY COUNT(*) DESC": False,
    "ORDER BY 1": False,
    "LIMIT 1": False,
    "LIMIT 0": False,
    "AND {key} = {other}": True,
    "AND {other} = {key}": True,
    "AND {name} = {other}": True,  # the same key by another name
}
PARTS_OF = {
    "SELECT COUNT(*) AS n FROM visits v WHERE age > (SELECT COUNT(*) / 4 FROM visits w WHERE w.region = v.region ": (
        ("w.region", "v.region", "region")
    ),
    "SELECT COUNT(*) AS n FROM visits v JOIN wards ON v.ward = wards.ward WHERE floor = 2 AND age > "
    "(SELECT COUNT(*) / 2 FROM visits w WHERE w.ward = wards.ward ": ("w.ward", "v.ward", "w.ward"),
    "SELECT ward FROM wards WHERE beds < (SELECT COUNT(*) FROM visits v WHERE v.ward = wards.ward ": (
        ("v.ward", "wards.ward", "v.ward")
    ),
}


@pytest.mark.parametrize(("clause", "answered"), CLAUSES.items())
@pytest.mark.parametrize("text", PARTS_OF)
def test_no_clause_drops_or_orders_the_numbers_of_keys(
    session: Session, tmp_path: Path, text: str, clause: str, *, answered: bool
) -> None:
    """Each key has its own number, or the query is refused before the charge."""
    key, other, name = PARTS_OF[text]
    text += clause.format(key=key, other=other, name=name) + ")"
    if not answered:
        with pytest.raises(hubbub.errors.QueryError, match="HB785"):
            session.query(text, epsilon=20_000)
        assert session.releases() == ()
        return
    assert sorted(session.query(text, epsilon=20_000).rows) == sorted(exact(text, tmp_path))


@pytest.mark.parametrize(
    "clause", ["HAVING COUNT(*) > 9999", "HAVING COUNT(*) > 9", "LIMIT 0", "LIMIT 1", "ORDER BY 1"]
)
def test_one_number_that_a_clause_drops_is_null(session: Session, tmp_path: Path, clause: str) -> None:
    text = f"SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits {clause})"
    assert session.query(text, epsilon=2_000).rows == exact(text, tmp_path)


@pytest.mark.parametrize("text", [OLDER, WARDS])
def test_the_receipt_covers_both_releases(session: Session, text: str) -> None:
    document = json.loads(json.dumps(session.query(text, epsilon=2).document()))
    assert check_receipt(document).sound
    forged = json.loads(json.dumps(document))
    forged["receipt"]["queries"].pop(0)  # planted error: the release of the averages is not charged
    assert not check_receipt(forged).sound
    fewer = json.loads(json.dumps(document))
    fewer["receipt"]["queries"][0]["draws"][0]["sensitivity"] = "1/1000"
    assert not check_receipt(fewer).sound
    changed = json.loads(json.dumps(document))
    changed["answer"]["model"]["released"][0]["columns"][-1]["values"][0] += 1
    assert not check_receipt(changed).sound


def test_the_budget_covers_the_first_release_too(session: Session, tmp_path: Path) -> None:
    assert session.releases() == ()
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ben") as poor:
        with pytest.raises(hubbub.errors.HubbubError, match="HB201"):
            poor.query(OLDER, epsilon=4)
        poor.query(OLDER, epsilon=3)
        assert not poor.estimate(WARDS, epsilon="0.01").admitted


# --- what the second query reads -----------------------------------------------------------------------------------

EPSILON = Fraction(1)
KEYS = tuple("abcdefghijklmnopqrst")
COUNTS = "SELECT COUNT(*) AS n FROM t o WHERE age > (SELECT COUNT(*) FROM t i WHERE i.k = o.k)"
Data = Sequence[tuple[int, str, int]]


def table(relation: Relation, keys: Sequence[str]) -> Table:
    columns = (
        Column("id", Kind.INTEGER),
        Column("k", Kind.TEXT, values=tuple(keys)),
        Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(9))),
    )
    return Table("t", columns, PrivacyUnit("id", 2, 1), relation)


def planned(relation: Relation, keys: Sequence[str], epsilon: Fraction = EPSILON) -> PreparedQueries:
    """Plan the query over a table with these keys."""
    prepared = plan_again(Question(COUNTS, epsilon=epsilon), {"t": table(relation, keys)}, salt="s", hashing="engine")
    assert isinstance(prepared, PreparedQueries)
    return prepared


def test_the_second_query_reads_the_published_noisy_numbers() -> None:
    """Planted error: exact numbers instead. False alarms: 20 noises that are all 0, each with less than 1/2: 1e-6."""
    prepared = planned(Relation.ADD_REMOVE, KEYS, Fraction(1, 10))
    asked = list[str]()
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t (id BIGINT, k VARCHAR, age BIGINT)")

        def ask(sql: str) -> Secret[Any]:
            asked.append(sql)
            return Secret(connection.execute(sql).fetchnumpy())

        published = prepared.run(EngineRun(ask, system(), lambda _, __: None))
    keys, numbers = (column["values"] for column in published.model["released"][0]["columns"])
    assert tuple(keys) == KEYS
    assert any(numbers), "the exact counts are all 0"
    read = re.findall(r"\('([a-z])', \((\S+)\)", asked[-1])
    assert [key for key, _ in read] == list(KEYS)
    assert [float(number.strip("()")) for _, number in read] == numbers


def test_both_releases_are_charged() -> None:
    prepared = planned(Relation.ADD_REMOVE, KEYS)
    assert [part.epsilon for part in prepared.parts] == [EPSILON / 2, EPSILON / 2]
    charged = prepared.event
    assert isinstance(charged, Composed)
    events = [part.event for part in prepared.parts]
    assert charged.parts == tuple(each for event in events if isinstance(event, Composed) for each in event.parts)
    assert len(charged.parts) == 2


def counts(plans: Sequence[Plan], data: Data) -> list[list[int]]:
    """Return the exact counts of some plans on the same data, cell by cell."""
    with duckdb.connect(config={"threads": 1}) as connection:
        written = ", ".join(map(str, data)) or "(NULL, NULL, NULL)"
        connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {written}) AS rows(id, k, age)")
        tables: list[Any] = [{name: connection.execute(sql).fetchnumpy() for name, sql in p.sql.items()} for p in plans]
    return [[int(n) for n in exact_results(p, each)[0][0]] for p, each in zip(plans, tables, strict=True)]


#: What one unit may have: nothing, a row, or rows of both keys (of two rows with one key, one is kept).
ROWS: list[list[tuple[str, int]]] = [[], [("a", 1)], [("a", 3), ("b", 3), ("b", 3)]]
VALUES = list(itertools.product(map(Fraction, (0, 2, 3)), repeat=2))


@pytest.mark.parametrize("relation", Relation)
def test_the_composed_distribution_keeps_the_charged_loss(relation: Relation) -> None:
    """Over all pairs of neighbors, and all pairs of outputs: the log of the ratio of their probabilities is at most ε.

    P(v, w, n) is proportional to exp(−|v − a|/s − |w − b|/s − |n − c(v, w)|/s'), where a and b are the exact counts of
    the keys and c the exact answer, given the noisy v and w. Ages are 1 and 3, so that each value acts as 0, 2 or 3.
    """
    prepared = planned(relation, "ab")
    mechanisms = [measure.mechanism for part in prepared.parts for measure in part.plan.measures]
    first, second = [each.scale for each in mechanisms if isinstance(each, Laplace)]
    plans = [prepared.parts[0].plan, *(prepared.parts[1].reading([pair]) for pair in VALUES)]
    worlds = itertools.combinations_with_replacement(range(len(ROWS)), 3)
    found = {
        chosen: counts(plans, [(i, key, age) for i, place in enumerate(chosen) for key, age in ROWS[place]])
        for chosen in worlds
    }
    losses, planted = set[Fraction](), set[Fraction]()
    for one, two in itertools.combinations(found, 2):
        gone, new = Counter(one) - Counter(two), Counter(two) - Counter(one)
        if gone.total() > 1 or (relation is Relation.ADD_REMOVE and 0 not in gone | new):
            continue
        (cells, *answers), (others, *changed) = found[one], found[two]
        keys = sum(abs(a - b) for a, b in zip(cells, others, strict=True)) / first
        losses |= {keys + abs(a - b) / second for (a,), (b,) in zip(answers, changed, strict=True)}
        # planted error: the second query reads the exact counts instead of the noisy ones
        exactly = [tuple(map(Fraction, each)) for each in (cells, others)]
        if all(each in VALUES for each in exactly):
            (a,), (b,) = answers[VALUES.index(exactly[0])], changed[VALUES.index(exactly[1])]
            planted.add(keys + abs(a - b) / second)
    assert EPSILON / 2 < max(losses) <= EPSILON
    assert max(planted) > EPSILON
