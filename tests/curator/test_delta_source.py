"""A table of Delta Lake behind the whole path: a commit is a new version of the data, and nothing else is."""

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hubbub.curator.session import Session
from hubbub.errors import RunError

Opener = Callable[..., Session]
QUERY = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


def spent(session: Session) -> Fraction | None:
    (visits,) = [each for each in session.budget() if each.dataset == "visits"]
    return next(cap.spent for cap in visits.caps if cap.scope == "analyst")


@pytest.fixture
def lake(clinic: Path) -> Path:
    """The visits as a table of Delta Lake, in three folders."""
    write_deltalake(clinic / "visits", pq.read_table(clinic / "visits.parquet"), partition_by=["region"])
    text = (clinic / "hubbub.yaml").read_text()
    (clinic / "hubbub.yaml").write_text(text.replace("visits.parquet", "delta:visits"))
    return clinic / "visits"


def test_answers_are_about_the_rows_and_cost_once_for_each_commit(lake: Path, opened: Opener) -> None:
    """One patient has at most four rows: the scale is at most 12/4, a count is off by 60 with a chance of e⁻²⁰."""
    session = opened()
    first = session.query(QUERY, epsilon=4)
    assert [273 < int(str(row[1])) < 394 for row in first.rows] == [True] * 3
    assert session.query(QUERY, epsilon=4).replayed
    write_deltalake(lake, pq.read_table(lake.with_name("visits.parquet")), mode="append")
    second = session.query(QUERY, epsilon=4)
    assert not second.replayed
    assert spent(session) == 8
    versions = [release.receipt["data"][0]["version"].split("-")[0] for release in (first, second)]
    assert versions == ["1", "2"]


def test_a_file_that_is_gone_fails_after_the_charge_and_says_nothing(lake: Path, opened: Opener) -> None:
    session = opened()
    for folder in lake.glob("region=*"):
        shutil.rmtree(folder)
    with pytest.raises(RunError) as failed:
        session.query(QUERY, epsilon=1)
    assert str(failed.value) == str(RunError())
    assert spent(session) == 1
