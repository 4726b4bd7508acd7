"""Queries over earlier releases: free, and only over what the analyst may see."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import hubbub
from hubbub.accounting.store import EntryFilter
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.errors import ParameterError, QueryError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 3}
    columns:
      patient: {}
      region: {values: [North, South]}
      age: {type: integer, bounds: [0, 110]}
      day: {type: date, values: [2020-01-01, 2020-02-01]}
    budget: {epsilon: 100000}
  regions: {source: regions.csv, public: true, columns: {region: {}, people: {type: integer}}}
analysts:
  ana: {visits: {epsilon: 100000}}
  ben: {visits: {epsilon: 100000}}
"""
COUNTS = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    rows = [f"p{i},{('North', 'South', 'South')[i % 3]},{i % 100},2020-0{1 + i % 2}-01" for i in range(300)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,region,age,day", *rows]) + "\n")
    (tmp_path / "regions.csv").write_text("region,people\nNorth,1000\nSouth,2000\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def number(session: Session, sql: str) -> int:
    return int(session.query(sql, epsilon=1000).receipt["ledger"][0]["sequence"])


def test_releases_are_tables(session: Session) -> None:
    counts = number(session, COUNTS)
    days = number(session, "SELECT day, AVG(age) AS a, COUNT(*) AS n FROM visits GROUP BY day")
    spent = session.budget()
    assert session.query(f"SELECT SUM(n) AS s, MIN(n_low) AS low FROM release({counts})").rows == [(300, 100.0)]
    joined = session.query(
        f"SELECT a.region, a.n * 1.0 / people AS rate FROM release({counts}) AS a JOIN regions USING (region)"
    )
    assert joined.rows == [("North", 0.1), ("South", 0.1)]
    sql = f"SELECT MAX(d.day) AS last, COUNT(*) AS c FROM release({days}) d, release('{counts}') WHERE d.n > ?"
    both = session.query(sql, parameters=[10])
    assert str(both.rows[0][0]) == "2020-02-01"
    assert both.rows[0][1] == 4
    assert (joined.epsilon, joined.delta, joined.left) == (Fraction(0), Fraction(0), None)
    assert "earlier releases" in repr(joined)
    assert session.estimate(f"SELECT n FROM release({counts})").epsilon == 0
    assert session.budget() == spent
    assert len(session.releases()) == 2


def test_the_noisy_tables_behind_an_answer_can_be_read(session: Session) -> None:
    share = number(session, f"SELECT region, n * 1.0 / SUM(n) OVER () AS share FROM ({COUNTS}) AS t")
    assert session.query(f"SELECT n FROM release({share}, 1)").rows == [(100,), (200,)]
    assert session.query(f"SELECT ROUND(SUM(share), 9) AS one FROM release({share})").rows == [(1.0,)]
    for text in (f"release({share}, 2)", "release()", "release(n)", "release(-1)", "release(1, 2, 3)", "release(1.5)"):
        with pytest.raises(QueryError, match="HB758"):
            session.query(f"SELECT * FROM {text} AS r")


def test_only_releases_that_the_analyst_may_see_are_read(session: Session) -> None:
    mine = number(session, COUNTS)
    curator, question = session._curator, Question(f"SELECT * FROM release({mine})")
    with pytest.raises(ParameterError, match="HB146"):
        curator.query("ben", question)
    with pytest.raises(ParameterError, match="HB146"):
        curator.estimate("ben", Question(f"SELECT 1 FROM release({mine + 1})"))
    with curator.ledger.snapshot() as snapshot:
        (charge,) = snapshot.entries(EntryFilter(kind="charge"))
    hidden = frozenset({("ana", charge.key.removesuffix(f" {charge.dataset}"))})
    for ask in (curator.query, curator.estimate):
        with pytest.raises(ParameterError, match="HB146"):
            ask("ana", question, unseen=hidden)
    assert len(curator.query("ana", question).rows) == 2


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM release({0}), visits", "HB758"),
        ("SELECT n FROM release({0}) WHERE region IN (SELECT region FROM visits)", "HB758"),
        ("SELECT now() AS t FROM release({0})", "HB504"),
        ("SELECT nothing FROM release({0})", "HB756"),
        ("SELECT * FROM release({0}), read_csv('hubbub.yaml')", "HB50"),
        ("SELECT a.n FROM " + ", ".join(f"release({{0}}) AS {c}" for c in "abcdefghijklmnopqrstuv"), "HB549"),
    ],
)
def test_nothing_else_is_read(session: Session, sql: str, code: str) -> None:
    with pytest.raises(QueryError, match=code):
        session.query(sql.format(number(session, COUNTS)))
