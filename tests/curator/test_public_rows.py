"""The public number of rows, from a user's side: free, exact, shown, and stated in receipts."""

import copy
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub
from hubbub.audit.receipt import check_receipt
from hubbub.curator.session import Session
from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.errors import ParameterError, QueryError, RunError

YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: row
    relation: replace
    columns: {age: {type: integer, bounds: [0, 100], required: true}, pay: {bounds: [0, 9000]}, sex: {values: [f, m]}}
    budget: {epsilon: 9}
  owned:
    source: people.csv
    unit: {column: age, groups: 2, rows: 2}
    relation: replace
    columns: {age: {type: integer}, pay: {bounds: [0, 9000]}}
    budget: {epsilon: 9}
analysts:
  ana: {people: {epsilon: 9}, owned: {epsilon: 9}}
"""


def write(folder: Path, rows: int) -> None:
    lines = [f"{20 + i % 60},{i},{'fm'[i % 2]}" for i in range(rows)]
    (folder / "people.csv").write_text("\n".join(["age,pay,sex", *lines]) + "\n")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    write(tmp_path, 500)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml") as opened:
        yield opened


@pytest.mark.row(95)
def test_the_number_of_rows_is_exact_and_free(session: Session) -> None:
    release = session.query("SELECT COUNT(*) AS n, COUNT(*) / 2 AS half, COUNT(age) AS ages FROM people")
    assert release.rows == [(500, 250.0, 500)]
    assert all(output.low is None for output in release.outputs)
    assert release.epsilon == 0
    assert session.releases() == ()
    assert session.query("SELECT COUNT(*) FROM people", epsilon=1).epsilon == 0
    assert "free: the number of rows is public" in repr(session.estimate("SELECT COUNT(*) FROM people"))
    assert "free: the number of rows is public" in release.cost()
    assert session.describe("people").size == 500
    assert session.describe("owned").size is None


@pytest.mark.row(95)
@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT(*) FROM people WHERE age > 0", "SELECT COUNT(pay) FROM people", "SELECT COUNT(*) FROM owned"],
)
def test_other_counts_have_to_be_paid_for(session: Session, sql: str) -> None:
    with pytest.raises(ParameterError, match="HB132"):
        session.query(sql)
    assert session.query(sql, epsilon="0.1").epsilon == Fraction(1, 10)


@pytest.mark.row(35)
def test_the_receipt_of_an_average_states_the_public_number_of_rows(session: Session) -> None:
    document = session.query("SELECT AVG(age) FROM people", epsilon=1).document()
    assert document["receipt"]["rows"] == 500
    assert check_receipt(document).sound
    assert any("500 rows, which is public" in line for line in check_receipt(document).lines)


def test_forged_public_counts_are_refused(session: Session) -> None:
    paper = session.query("SELECT AVG(age) FROM people", epsilon=1).document()["receipt"]
    assert check_receipt(paper).sound
    owner = [{**paper["data"][0], "unit": "age"}]
    forgeries: list[dict[str, Any]] = [
        {"relation": "add_remove"},
        {"cells": [2]},
        {"data": owner, "bounds": {"groups": 1, "rows": 1}},
        {"rows": -1},
        {"draws": [*paper["draws"], paper["draws"][-1]]},
        {"draws": paper["draws"][:-1]},
    ]
    for change in forgeries:
        assert not check_receipt({**copy.deepcopy(paper), **change}).sound, change


def test_a_new_version_of_the_data_has_a_new_public_number(session: Session, tmp_path: Path) -> None:
    assert session.query("SELECT COUNT(*) FROM people").rows == [(500,)]
    write(tmp_path, 501)
    with hubbub.open(tmp_path / "hubbub.yaml") as other:
        assert other.query("SELECT COUNT(*) FROM people").rows == [(501,)]


def test_a_count_that_fails_charges_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object, __: str) -> None:
        raise RunError

    monkeypatch.setattr(DuckDBEngine, "run", fail)
    with pytest.raises(QueryError, match="HB586"):
        session.query("SELECT COUNT(*) FROM people")
    assert session.releases() == ()


@pytest.mark.parametrize(
    "select", ["AVG(age)", "COUNT(*), AVG(age)", "VAR_POP(age)", "SUM(age)", "AVG(age), MEDIAN(pay)", "MEDIAN(age)"]
)
@pytest.mark.parametrize("bounds", ["[0, 100]", "auto"])
def test_receipts_verify_whether_bounds_are_declared_or_found(tmp_path: Path, select: str, bounds: str) -> None:
    write(tmp_path, 500)
    (tmp_path / "hubbub.yaml").write_text(YAML.replace("bounds: [0, 100]", f"bounds: {bounds}"))
    with hubbub.open(tmp_path / "hubbub.yaml") as opened:
        release = opened.query(f"SELECT {select} FROM people", epsilon=1)
    checked = check_receipt(release.document())
    assert checked.sound, checked.problems
    assert ("rows" in release.receipt) == any(draw["kind"] == "public" for draw in release.receipt["draws"])
