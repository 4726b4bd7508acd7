"""The columns that an answer is said to have are those that it has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hubbub
from hubbub.curator.question import Question
from hubbub.curator.session import Session

YAML = """\
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: person, groups: 2, rows: 2}
    columns:
      person: {type: integer}
      region: {values: [North, South]}
      day:    {type: date, bounds: [2026-01-01, 2026-12-31]}
      cost:   {bounds: [0, 100], step: 0.01}
      age:    {type: integer, bounds: [0, 110]}
    budget: {epsilon: 100, delta: 1e-7}
  regions: {source: regions.csv, public: true}
analysts: {ana: {visits: {epsilon: 100}}}
"""
QUERIES = (
    "SELECT COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a, SUM(age) AS i, COUNT(DISTINCT person) AS p FROM visits",
    "SELECT region, COUNT(*) AS n, COUNT(*) > 5 AS many FROM visits GROUP BY region",
    "SELECT date_trunc('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT age >= 18 AS adult, MEDIAN(cost) AS m FROM visits GROUP BY 1",
    "SELECT region, n / SUM(n) OVER () AS share FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) AS t",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region UNION ALL SELECT 'all', COUNT(*) FROM visits",
    "SELECT COUNT(*) AS n, VARIANCE(cost) AS v, MAX(age) AS x, MIN(cost) AS y FROM visits",
    "SELECT COUNT(*) + 1 AS n, -SUM(age) AS s, COALESCE(SUM(age), 0) AS c, COUNT(*) / 2 AS h FROM visits",
    "SELECT CASE WHEN COUNT(*) > 5 THEN 1 ELSE 0 END AS x, ROUND(AVG(age)) AS r FROM visits",
    "SELECT name, COUNT(*) AS n FROM regions GROUP BY name",
    "SELECT * FROM release({number})",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("columns")
    rows = [f"{i % 40},{'North' if i % 3 else 'South'},2026-0{i % 9 + 1}-15,{i % 90}.25,{i % 99}" for i in range(400)]
    (folder / "visits.csv").write_text("person,region,day,cost,age\n" + "\n".join(rows) + "\n")
    (folder / "regions.csv").write_text("name\nNorth\nSouth\n")
    (folder / "hubbub.yaml").write_text(YAML)
    with hubbub.open(Path(folder / "hubbub.yaml"), analyst="ana") as opened:
        yield opened


@pytest.mark.parametrize("sql", QUERIES)
def test_the_columns_of_an_answer_are_known_before(session: Session, sql: str) -> None:
    session.query("SELECT COUNT(*) AS n FROM visits WHERE age > 1", epsilon=1)
    sql = sql.format(number=session.releases()[-1].id)
    stated = session._curator.columns("ana", Question(sql, epsilon=1))
    release = session.query(sql, epsilon=1)
    assert stated is not None
    assert list(stated) == [(output.name, output.kind) for output in release.outputs]


def test_the_columns_of_an_analysis_are_known_after_its_run(session: Session) -> None:
    question = Question("CALL median(table => 'visits', column => 'age')", epsilon=1)
    assert session._curator.columns("ana", question) is None
