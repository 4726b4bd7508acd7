"""Dates that are selected are dates: extremes, medians and keys that were found, in answers short and long."""

import json
from collections.abc import Iterator
from datetime import date, datetime

import numpy as np
import pytest

from hubbub.answers.release import Release, read_answer
from hubbub.curator.receipt import outputs
from hubbub.curator.session import Session, open_session
from hubbub.sql.presentation import Answer

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns:
      day: {type: date, bounds: [2020-01-01, 2020-12-31]}
      at: {type: timestamp, bounds: [2020-01-01 00:00:00, 2020-12-31 00:00:00]}
      found: {type: date}
    budget: {epsilon: 100000, delta: 1e-3}
analysts: {ana: {visits: {epsilon: 100000}}}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("dates")
    days = ("2021-02-03", "", "2021-03-04")
    rows = [f"2020-{1 + i % 12:02}-10,2020-01-0{1 + i % 3} 12:00:00,{days[i % 3]}" for i in range(360)]
    (folder / "visits.csv").write_text("\n".join(["day,at,found", *rows]) + "\n")
    (folder / "hubbub.yaml").write_text(YAML)
    with open_session(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def column(release: Release, name: str) -> tuple[str, list[object]]:
    (found,) = [each for each in release.outputs if each.name == name]
    return found.kind, list(found.values)


def test_extremes_and_medians_of_dates_are_dates(session: Session) -> None:
    sql = "SELECT MIN(day) AS a, MAX(day) AS b, MAX(day) + 1 AS c, MIN(at) AS t FROM visits"
    release = session.query(sql, epsilon=8000)
    assert column(release, "a") == ("date", [date(2020, 1, 10)])
    assert column(release, "b") == ("date", [date(2020, 12, 10)])
    assert column(release, "t")[0] == "timestamp"
    kind, (after,) = column(release, "c")
    assert (kind, type(after)) == ("date", date)


def test_found_keys_of_dates_are_dates_and_null_is_none(session: Session) -> None:
    sql = "SELECT found, MAX(day) AS m, COUNT(*) AS n FROM visits GROUP BY found ORDER BY found"
    release = session.query(sql, epsilon=8000)
    assert column(release, "found") == ("date", [date(2021, 2, 3), date(2021, 3, 4), None])
    assert column(release, "m")[0] == "date"
    stored = json.loads(json.dumps(release.document()))["answer"]
    read, *_ = read_answer(stored)
    assert (read[0].name, read[0].kind) == ("found", "date")
    number = release.receipt["ledger"][0]["sequence"]
    later = session.query(f"SELECT MAX(found) AS last FROM release({number})")
    assert column(later, "last") == ("date", [date(2021, 3, 4)])


def test_what_a_query_over_them_computes_has_their_kind(session: Session) -> None:
    inner = "SELECT found, COUNT(*) AS n FROM visits GROUP BY found"
    sql = f"SELECT found + 1 AS next, n FROM ({inner}) WHERE found IS NOT NULL"
    release = session.query(sql, epsilon=8000)
    kind, days = column(release, "next")
    assert (kind, sorted(map(str, days))) == ("date", ["2021-02-04", "2021-03-05"])


def test_answers_from_before_keep_their_timestamps() -> None:
    """They were stored as timestamps, and are read as such."""
    nothing, days = np.array([np.nan]), np.array(["2020-01-10"], dtype="datetime64[us]")
    before = Answer(("m",), (days,), (nothing,), (nothing,), nothing)
    columns, _ = outputs(before)
    assert (columns[0].kind, list(columns[0].values)) == ("timestamp", [datetime(2020, 1, 10)])
