"""Every figure of a document is derived again here: from the rows of the ledger's own tables, and by hand."""

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from hubbub.cli import main
from hubbub.config import Config
from hubbub.reports.document import spent
from hubbub.reports.facts import read


def test_counts_and_amounts_are_those_of_the_ledger(config: Config) -> None:
    (facts,) = read(config).datasets
    with sqlite3.connect(config.database) as database:
        rows = database.execute("SELECT analyst, facts FROM entries WHERE kind = 'charge'").fetchall()
    assert facts.charges == len(rows) == 3
    assert facts.analysts == len({analyst for analyst, _ in rows}) == 2
    assert facts.answered == 3
    # 1 + 0.5 + 0.25, as asked, by pure losses
    assert facts.spent.pure == Fraction(7, 4)
    assert facts.spent_epsilon == Fraction(7, 4)
    draws = [part for _, text in rows for part, _ in json.loads(text)["parts"]]
    assert sum(times for _, times in facts.mechanisms) == sum(
        repeated for _, text in rows for _, repeated in json.loads(text)["parts"]
    )
    assert {"laplace", "selection"} == {part["mechanism"] for part in draws}
    assert [name for name, _ in facts.mechanisms if "selection" in name]


def _write_off(config: Config, epsilon: str) -> None:
    by = ["--by", "owner", "--reason", "restored", "--yes"]
    assert main(["admin", "forfeit", "--config", str(config.path), "--epsilon", epsilon, *by]) == 0


def test_what_was_written_off_counts_as_spent(config: Config) -> None:
    """The ledger's own total, which decides charges, is the measure."""
    _write_off(config, "2")
    deployment = read(config)
    (facts,) = deployment.datasets
    assert facts.forfeits == 1
    assert facts.spent_epsilon == Fraction(15, 4)
    assert "ε = 3.75, with what was written off" in spent(facts)
    with sqlite3.connect(config.database) as database:
        (text,) = database.execute("SELECT spent FROM totals WHERE cap = 'dataset/people'").fetchone()
    assert facts.spent.to_json() == json.loads(text)


def test_declarations_are_read_from_hubbub_yaml(config: Config) -> None:
    deployment = read(config)
    (facts,) = deployment.datasets
    assert facts.rows_are_units
    assert "name: hidden from queries" in facts.bounds
    assert "region: 2 declared keys" in facts.bounds
    assert "age: clamped to 0 to 99" in facts.bounds
    assert deployment.public == ("towns",)
    assert deployment.engines == ("duckdb",)
    assert len(deployment.policies) == 2


def test_the_head_is_the_newest_entry(config: Config) -> None:
    with sqlite3.connect(config.database) as database:
        sequence, digest = database.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC").fetchone()
    deployment = read(config)
    assert deployment.verification.head.sequence == sequence
    assert deployment.head == bytes(digest).hex()
    assert deployment.verification.sound


def test_later_charges_are_left_out_of_an_earlier_moment(config: Config) -> None:
    (facts,) = read(config, until=datetime.now(UTC) - timedelta(days=1)).datasets
    assert facts.charges == 0
    assert facts.first is None


def test_a_changed_ledger_does_not_verify_in_the_document(config: Config) -> None:
    with sqlite3.connect(config.database) as database:
        guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE entries SET query = 'SELECT 1' WHERE kind = 'charge' AND analyst = 'ben'")
        for _, statement in guards:
            database.execute(statement)
    assert not read(config).verification.sound


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "threshold", "sparsevector"])
def test_every_stored_mechanism_has_words(mechanism: str) -> None:
    from hubbub.core.events import _STORED
    from hubbub.reports.facts import MECHANISMS

    assert mechanism in MECHANISMS
    assert set(_STORED.values()) - {"together"} == set(MECHANISMS)
