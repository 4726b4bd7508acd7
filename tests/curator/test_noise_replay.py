"""Answers that were paid for with the Gaussian noise of an earlier hubbub stay free, for queries and for analyses."""

from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from hubbub.curator.session import open_session
from hubbub.sql import noise, noise_budget, split

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: patient, groups: 12, rows: 4}
    columns: {patient: {type: integer}, word: {type: text}, age: {bounds: [0, 100]}, size: {bounds: [0, 9]}}
    budget: {epsilon: 20, delta: 1e-6}
analysts: {ana: {visits: {epsilon: 20}}}
"""
QUESTIONS = [
    "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
    "CALL ranges(table => 'visits', column => 'age', noise => 'gaussian')",
]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_an_answer_with_the_noise_of_an_earlier_version_is_free(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect() as made:
        made.execute(
            f"COPY (SELECT p AS patient, 'w' || p % 5 AS word, p % 100 AS age, p % 10 AS size FROM range(500) a(p)) "
            f"TO '{tmp_path}/visits.parquet'"
        )
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with monkeypatch.context() as before:
        before.setattr(noise_budget, "zcdp_budget", split.rho_of_streams)
        before.setattr(noise, "gaussian_variance", lambda squared, rho: Fraction(squared) / (2 * rho))
        with open_session(tmp_path / "hubbub.yaml") as session:
            paid = session.query(sql, epsilon=1)
            assert "gaussian" in str(paid.document()).lower(), "the case needs Gaussian noise"
    with open_session(tmp_path / "hubbub.yaml") as session:
        spent = session.budget()[0].caps[0].spent
        again = session.query(sql, epsilon=1)
        assert again.replayed
        assert again.document() == paid.document()
        assert session.budget()[0].caps[0].spent == spent
        # another price is another question, planned as it is now
        assert not session.query(sql, epsilon=2).replayed
