"""Answers of many groups: asked, recorded as columns, replayed, verified and shown."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
from rich.console import Console

import hubbub
from hubbub.answers import render
from hubbub.answers.columns import Column
from hubbub.answers.notebook import to_html
from hubbub.answers.release import Release
from hubbub.audit.ledger_check import compare_with_ledger
from hubbub.audit.receipt import check_receipt
from hubbub.core import machine
from hubbub.curator.session import Session
from hubbub.errors import QueryError
from hubbub.sql import release_size

GROUPS = 20_100
COUNT = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
#: Noise of scale 1/50 is 0 in all cells but with probability 20,100 · 2 · e⁻⁵⁰ < 1e-16.
PRICE = 50


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Rows 0, 0, 0, 1, 2, …: key 0 three times, keys up to 20,099 once; NULL twice; and some outside the bounds."""
    folder = tmp_path_factory.mktemp("long")
    keys = f"SELECT i AS k FROM range({GROUPS}) t(i) UNION ALL SELECT unnest([0, 0, NULL, NULL, -7, {GROUPS + 5}])"
    duckdb.sql(f"COPY ({keys}) TO '{folder}/t.parquet'")
    words = f"SELECT 'w' || i AS word FROM range({GROUPS}) t(i), range(3) UNION ALL SELECT unnest([NULL, NULL, NULL])"
    duckdb.sql(f"COPY ({words}) TO '{folder}/words.parquet'")
    (folder / "hubbub.yaml").write_text(f"""version: 1
datasets:
  t:
    source: t.parquet
    unit: row
    columns: {{k: {{bounds: [0, {GROUPS - 1}], nullable: true}}}}
    budget: {{epsilon: 1000}}
  words:
    source: words.parquet
    unit: row
    columns: {{word: {{}}}}
    budget: {{epsilon: 1000, delta: 0.5}}
analysts: {{ana: {{t: {{epsilon: 1000}}, words: {{epsilon: 1000, delta: 0.5}}}}}}
""")
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as opened:
        yield opened


@pytest.fixture(scope="module")
def release(session: Session) -> Release:
    """All groups of the declared range, and NULL."""
    return session.query(COUNT, epsilon=PRICE)


def test_every_integer_of_a_range_is_a_group_with_its_count(release: Release) -> None:
    """Values outside the bounds are clamped to them, as everywhere."""
    keys, counts = release.outputs
    assert isinstance(keys.values, Column)
    assert isinstance(counts.values, Column)
    assert list(keys.values) == [*range(GROUPS), None]
    assert list(counts.values) == [4, *[1] * (GROUPS - 2), 2, 2]


def test_a_long_answer_is_replayed_for_nothing(session: Session, release: Release) -> None:
    again = session.query(COUNT, epsilon=PRICE)
    assert again.replayed
    assert again.rows == release.rows
    assert again.document() == release.document()


def test_a_long_answer_is_verified_against_receipt_and_ledger(session: Session, release: Release) -> None:
    document = json.loads(json.dumps(release.document()))
    assert check_receipt(document).problems == []
    with session._curator.ledger.snapshot() as snapshot:
        assert compare_with_ledger(document, snapshot).problems == []
        document["answer"]["rows"] -= 1
        assert not check_receipt(document).sound
        assert compare_with_ledger(document, snapshot).problems


def test_the_answer_survives_the_way_to_a_client(release: Release) -> None:
    sent = Release.from_json(json.loads(json.dumps(release.to_json())))
    assert sent.rows == release.rows
    assert sent.document() == release.document()
    assert sent.jointly().intervals == release.jointly().intervals


def test_the_first_thousand_rows_are_shown(release: Release) -> None:
    console = Console(file=io.StringIO(), width=200)
    render.release(release, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"{GROUPS + 1 - 1000:,} more rows" in text
    assert text.count("\n") < 1100
    assert to_html(release).count("<tr>") == 1001


def test_discovered_keys_are_columns_too(session: Session, tmp_path: Path) -> None:
    """At this price and δ a group needs fewer than three rows, with noise of 0 (see `PRICE`)."""
    found = session.query("SELECT word, COUNT(*) AS n FROM words GROUP BY word", epsilon=PRICE, delta="0.4")
    words, counts = found.outputs
    assert isinstance(words.values, Column)
    assert list(words.values) == [*sorted(f"w{i}" for i in range(GROUPS)), None]
    assert list(counts.values) == [3] * (GROUPS + 1)
    found.export(tmp_path / "words.parquet")
    assert duckdb.read_parquet(str(tmp_path / "words.parquet")).fetchall()[0][0] == words.values[0]


def test_a_query_reads_a_long_release(session: Session, release: Release) -> None:
    number = release.receipt["ledger"][0]["sequence"]
    found = session.query(f"SELECT k, n FROM release({number}) WHERE n > 1 ORDER BY k NULLS LAST", epsilon=1)
    assert found.rows == [(0, 4), (GROUPS - 1, 2), (None, 2)]


def test_conditions_cut_a_range(session: Session) -> None:
    found = session.query(f"{COUNT.replace(' GROUP', ' WHERE k >= 5 AND k < 9 AND k <> 7 GROUP')}", epsilon=PRICE)
    assert found.rows == [(5, 1), (6, 1), (8, 1)]


def test_what_does_not_fit_into_memory_is_refused_before_the_charge(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "memory", lambda: 10)
    with session._curator.ledger.snapshot() as snapshot:
        before = snapshot.head().sequence
    with pytest.raises(QueryError, match=r"could take \d+ MB of memory; this machine allows 3 MB"):
        session.query(COUNT.replace("n", "m", 1), epsilon=PRICE)
    with session._curator.ledger.snapshot() as snapshot:
        assert snapshot.head().sequence == before


def test_parts_that_would_not_fit_are_left_out_by_the_number_of_rows_alone() -> None:
    assert release_size.has_all_parts(3_900_000, 1)
    assert not release_size.has_all_parts(4_000_000, 1)
    assert not release_size.has_all_parts(2_100_000, 2)


def test_a_long_column_has_no_object_per_cell(release: Release) -> None:
    numbers = [output.values.array for output in release.outputs if isinstance(output.values, Column)]
    assert [array.dtype for array in numbers] == [np.int64, np.int64]
