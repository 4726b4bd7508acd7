"""Joins and subqueries: a free answer is the one that a new draw gives, or there is none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.curator.session import Session, open_session
from hubbub.errors import ParameterError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {unit}
    columns:
      person: {{}}
      site: {{values: [a, b, c]}}
      ward: {{values: [x, y], nullable: true}}
    budget: {{epsilon: 1000000, delta: 1e-6}}
  sites:
    source: sites.csv
    public: true
    columns:
      site: {{values: [a, b, c], required: true}}
      color: {{values: [red, blue], required: true}}
      size: {{type: integer, bounds: [0, 9], required: true}}
analysts:
  ana: {{visits: {{epsilon: 1000000}}}}
"""
#: A price at which all noise of counts is 0, up to odds of less than 10⁻⁹.
EXACT = 5_000
LEFT = "visits v LEFT JOIN sites p ON v.site = p.site"
COMPUTED = "visits v LEFT JOIN (SELECT site, coalesce(color, 'none') AS k, 1 AS one FROM sites) p ON v.site = p.site"
ALL, SOME, OTHERS = (
    f"(SELECT person, COUNT(*) AS c FROM visits {where} GROUP BY person)"
    for where in ("", "WHERE site = 'a'", "WHERE ward = 'x'")
)
THREE = f"{ALL} a LEFT JOIN {SOME} b ON a.person = b.person LEFT JOIN {OTHERS} e ON a.person = e.person"
BY_ROW = [
    (f"SELECT COUNT(*) AS n FROM {LEFT}", f"SELECT COUNT(p.color) AS n FROM {LEFT}"),
    (f"SELECT COUNT(*) AS n FROM {LEFT}", f"SELECT COUNT(p.one) AS n FROM {COMPUTED}"),
    (f"SELECT SUM(p.size) AS s, COUNT(*) AS n FROM {LEFT}", f"SELECT AVG(p.size) AS n FROM {LEFT}"),
    (f"SELECT p.color, COUNT(*) AS n FROM {LEFT} GROUP BY p.color", f"SELECT COUNT(*) AS n FROM {LEFT}"),
    (
        f"SELECT coalesce(p.color, 'none') AS c, COUNT(*) AS n FROM {LEFT} GROUP BY c",
        f"SELECT COUNT(*) AS n FROM {COMPUTED} WHERE p.k = 'none'",
    ),
]
BY_PERSON = [
    (
        f"SELECT SUM(least(a.c, 9)) AS n FROM {ALL} a JOIN {SOME} b USING (person)",
        f"SELECT SUM(least(b.c, 9)) AS n FROM {ALL} a JOIN {SOME} b USING (person)",
    ),
    (f"SELECT COUNT(*) AS n FROM {THREE} WHERE b.c IS NULL", f"SELECT COUNT(*) AS n FROM {THREE} WHERE e.c IS NULL"),
    (f"SELECT COUNT(b.person) AS n FROM {THREE}", f"SELECT COUNT(e.person) AS n FROM {THREE}"),
    (f"SELECT COUNT(b.c) AS n FROM {THREE}", f"SELECT COUNT(*) AS n FROM {THREE}"),
]


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    lines = [f"p{i % 9},{'abcz'[i % 4]},{('x', 'y', '')[i * 7 // 5 % 3]}" for i in range(60)]
    lines += ["q1,b,y", "q2,a,y", "q3,b,x", "q3,b,x", "q4,b,x"]
    (tmp_path / "visits.csv").write_text("\n".join(["person,site,ward", *lines]) + "\n")
    (tmp_path / "sites.csv").write_text("site,color,size\na,red,3\nb,blue,4\n")
    (tmp_path / "hubbub.yaml").write_text(YAML.format(unit=request.param))
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def agree(session: Session, source: str, query: str) -> bool | None:
    """Say whether a free answer is the one of a new draw; None if there is none."""
    session.query(source, epsilon=EXACT, raw=True)
    try:
        free = session.query(query, free=True, raw=True)
    except ParameterError:
        return None
    paid = session.query(query, epsilon=EXACT, raw=True, fresh=True)
    return [float(row[0]) for row in free.rows] == pytest.approx([float(row[0]) for row in paid.rows], abs=0.01)  # type: ignore[arg-type]


@pytest.mark.parametrize("session", ["row"], indirect=True)
@pytest.mark.parametrize(("source", "query"), BY_ROW)
def test_what_a_left_join_adds_is_null_where_nothing_matches(session: Session, source: str, query: str) -> None:
    assert agree(session, source, query) is None


@pytest.mark.parametrize("session", ["{column: person, groups: 9, rows: 20, entity: person}"], indirect=True)
@pytest.mark.parametrize(("source", "query"), BY_PERSON)
def test_columns_of_two_subqueries_are_told_apart(session: Session, source: str, query: str) -> None:
    assert agree(session, source, query) is None
