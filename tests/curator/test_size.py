"""A release that could be too large is refused before anything is charged; one that turns out so fails alone."""

from pathlib import Path

import pytest
from tests.curator.conftest import YAML, Opener

from hubbub.accounting import ledger as ledgers
from hubbub.config import examine
from hubbub.curator.session import Session
from hubbub.errors import QueryError, RunError

COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


def entries(session: Session) -> int:
    with session._curator.ledger.snapshot() as snapshot:
        return snapshot.head().sequence


def refused(session: Session, text: str) -> str:
    before = entries(session)
    with pytest.raises(QueryError) as refusal:
        session.query(text, epsilon="0.1")
    assert refusal.value.code == "HB549"
    assert entries(session) == before
    with pytest.raises(QueryError, match="HB549"):
        session.estimate(text, epsilon="0.1")
    return str(refusal.value)


@pytest.fixture
def small(clinic: Path, opened: Opener) -> Session:
    """An owner who lets releases have 50 values."""
    (clinic / "hubbub.yaml").write_text(f"max_cells: 50\n{YAML}")
    return opened("ana")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age",
        "CALL tabulate(table => 'visits', columns => ['region', {'column': 'age', 'bins': 11}])",
        "CALL synthetic(table => 'visits', columns => ['region'], size => 51)",
        "CALL mwem(table => 'visits', columns => ['region', {'column': 'age', 'bins': 2}], size => 26)",
        "CALL geography(table => 'visits', column => 'region', places => {'A': ['North', 'South'], 'B': ['East']},"
        " columns => [{'column': 'age', 'bins': 4}])",
    ],
)
def test_a_release_that_could_be_too_large_costs_nothing(small: Session, text: str) -> None:
    assert "max_cells" in refused(small, text)


def test_what_fits_is_answered(small: Session) -> None:
    assert len(small.query(COUNT, epsilon="0.1").rows) == 3
    # sixty ages have 16 rows each: at this ε at least 25 of them are surely not empty, and LIMIT shows as many
    assert len(small.query("SELECT age, COUNT(*) AS n FROM visits GROUP BY age LIMIT 25", epsilon=5).rows) == 25


def test_rows_that_nobody_counted_are_as_many_as_fit(small: Session) -> None:
    """About as many rows as there are (1,000), but no more values than a release may have.

    At ε = 5 noise makes fewer than 25 of 1,000 rows with probability below 1e-8.
    """
    found = small.query("CALL mwem(table => 'visits', columns => ['region', {'column': 'age', 'bins': 2}])", epsilon=5)
    assert len(found.rows) == 25


def test_a_release_that_turns_out_too_large_fails_alone(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "MAX_RELEASE_BYTES", 100)
    with pytest.raises(RunError):
        session.query(COUNT, epsilon="0.1")
    monkeypatch.undo()
    assert session.query(f"{COUNT} LIMIT 2", epsilon="0.1").rows
    assert session._curator.ledger.verify().sound


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "100000001", "many"])
def test_a_number_of_values_that_is_none_is_refused(clinic: Path, value: str) -> None:
    (clinic / "hubbub.yaml").write_text(f"max_cells: {value}\n{YAML}")
    config, problems = examine(clinic / "hubbub.yaml")
    assert config is None
    assert [problem.code for problem in problems] == ["HB417"]
