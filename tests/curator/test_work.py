"""What a query takes is said before the charge, from the declared number of rows, and what cannot finish is refused."""

from pathlib import Path

import pytest
from tests.curator.conftest import YAML, Opener

from hubbub.errors import ConfigError, QueryError

SUM = "SELECT region, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY region"
DISCOVERED = "SELECT word, COUNT(*) AS n FROM visits GROUP BY word"


def sized(clinic: Path, rows: object, engine: str = "memory: 100, disk: 100, threads: 2, seconds: 300") -> None:
    """Declare a number of rows of visits, and what the engine may use."""
    text = YAML.replace("source: visits.parquet", f"source: visits.parquet\n    size: {{rows: {rows}}}")
    (clinic / "hubbub.yaml").write_text(f"engine: {{{engine}}}\n{text}")


def test_an_estimate_says_that_nothing_is_known_without_a_declared_size(opened: Opener) -> None:
    assert opened().estimate(SUM, epsilon="0.1").work.startswith("not predicted: ")
    assert "work:" not in repr(opened().estimate(SUM, epsilon="0.1"))


def test_an_estimate_predicts_memory_and_parts_from_the_declared_size(clinic: Path, opened: Opener) -> None:
    sized(clinic, 3_000_000)
    estimate = opened().estimate(SUM, epsilon="0.1")
    assert estimate.work.startswith("about ")
    assert " in 6 parts, one after the other, by the 3,000,000 rows that the owner declares" in estimate.work
    assert len(estimate.sql) == 6
    assert f"work: {estimate.work}" in repr(estimate)
    alone = opened().estimate("SELECT COUNT(DISTINCT word) AS d FROM visits", epsilon="0.1")
    assert len(alone.sql) == 1


@pytest.mark.parametrize("text", [SUM, DISCOVERED])
def test_a_query_runs_in_parts_and_an_answer_is_replayed_whatever_size_is_declared(
    clinic: Path, opened: Opener, text: str
) -> None:
    sized(clinic, 3_000_000)
    session = opened()
    split = session.query(text, epsilon="1")
    session.close()
    (clinic / "hubbub.yaml").write_text(YAML)
    again = opened().query(text, epsilon="1")
    assert again.replayed
    assert again.rows == split.rows
    # 300 patients, 3 groups of at most 4 rows: noise of a few rows
    place = split.columns.index("n")
    count = sum(float(str(row[place])) for row in split.rows)
    assert count == pytest.approx(1000, abs=400)


@pytest.mark.parametrize("rows", [10**12, 10**11])
def test_what_cannot_fit_is_refused_before_the_charge(clinic: Path, opened: Opener, rows: int) -> None:
    sized(clinic, rows)
    session = opened()
    with session._curator.ledger.snapshot() as snapshot:
        before = snapshot.head().sequence
    for ask in (session.estimate, session.query):
        with pytest.raises(QueryError, match="HB599"):
            ask(SUM, epsilon="0.1")
    with session._curator.ledger.snapshot() as snapshot:
        assert snapshot.head().sequence == before


def test_what_surely_takes_too_long_is_refused_before_the_charge(clinic: Path, opened: Opener) -> None:
    sized(clinic, 10**11, "memory: 10000000, disk: 10000000, threads: 2, seconds: 60")
    with pytest.raises(QueryError, match=r"HB599.*stops after 60 s"):
        opened().estimate(SUM, epsilon="0.1")


@pytest.mark.parametrize("wrong", ["0", "many", "true", "1.5", "2000000000000"])
def test_a_size_is_a_whole_number(clinic: Path, opened: Opener, wrong: str) -> None:
    sized(clinic, wrong)
    with pytest.raises(ConfigError, match=r"HB465.*size"):
        opened()


def test_a_size_is_only_for_private_datasets(clinic: Path, opened: Opener) -> None:
    text = YAML.replace("source: regions.csv,", "source: regions.csv, size: {rows: 3},")
    (clinic / "hubbub.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"HB466.*regions\.size"):
        opened()
