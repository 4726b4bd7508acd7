"""A receipt compared with its ledger, which detects changes that were hashed again."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.audit.test_receipt import YAML
from tests.fixtures.receipt_forgeries import forge, rehashed

from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import Snapshot
from hubbub.audit.ledger_check import compare_with_ledger
from hubbub.audit.receipt import check_receipt
from hubbub.cli import main
from hubbub.curator.session import open_session

QUERIES = (
    "SELECT region, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY region",
    "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
    "SELECT MEDIAN(age) AS m FROM visits",
    "CALL tabulate(table => 'visits', columns => ['region'])",
    "CALL stream(table => 'visits', name => 'seen', kind => 'density', universe => [0, 49])",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a hubbub.yaml, its ledger, and a file for each release."""
    folder = tmp_path_factory.mktemp("recorded")
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT i % 50 AS patient, ['North', 'South', 'East'][1 + i % 3] AS region, i % 90 AS age,"
            f" i % 900 AS cost, 'w' || (i % 4) AS word FROM range(4000) t(i)) TO '{folder}/visits.parquet'"
        )
    (folder / "hubbub.yaml").write_text(
        YAML.format(unit="{column: patient, groups: 2, rows: 3}", relation="add_remove")
    )
    with open_session(folder / "hubbub.yaml") as session:
        for number, sql in enumerate(QUERIES):
            text = json.dumps(session.query(sql, epsilon="2").document())
            (folder / f"receipt{number}.json").write_text(text)
    return folder


@pytest.fixture
def documents(place: Path) -> list[dict[str, Any]]:
    return [json.loads((place / f"receipt{number}.json").read_text()) for number in range(len(QUERIES))]


@pytest.fixture
def snapshot(place: Path) -> Iterator[Snapshot]:
    store = SqliteStore(place / "hubbub-ledger" / "ledger.db", read_only=True)
    with store.snapshot() as found:
        yield found
    store.close()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["verify", *arguments])
    return status, " ".join(capsys.readouterr().out.split())


def test_what_the_ledger_recorded_is_found_there(documents: list[dict[str, Any]], snapshot: Snapshot) -> None:
    for document in documents:
        whole, alone = compare_with_ledger(document, snapshot), compare_with_ledger(document["receipt"], snapshot)
        assert (whole.problems, alone.problems) == ([], [])
        assert "answer and receipt" in whole.lines[0]
        assert "the receipt matches" in alone.lines[0]


def test_a_changed_answer_that_was_hashed_again_is_found(documents: list[dict[str, Any]], snapshot: Snapshot) -> None:
    document = documents[0]
    document["answer"]["columns"][1]["values"][0] += 1
    rehashed(document)
    assert check_receipt(document).sound, "by itself it cannot be told"
    assert compare_with_ledger(document, snapshot).problems
    assert compare_with_ledger(document["receipt"], snapshot).problems, "the receipt alone holds another hash"


def test_every_change_of_a_value_is_found(documents: list[dict[str, Any]], snapshot: Snapshot) -> None:
    chance = random.Random(5)
    accepted, alone = [], 0
    for number in range(400):
        made, how = forge(documents[number % len(documents)], chance)
        if check_receipt(made).sound:
            alone += 1
            if not compare_with_ledger(made, snapshot).problems:
                accepted.append((how, made))
    assert accepted == []
    assert alone > 20, "some can be told by the ledger only"


@pytest.mark.parametrize(
    "change",
    [
        lambda paper: paper["ledger"][0].update(sequence=10**6),
        lambda paper: paper["ledger"][0].update(hash="0" * 64),
        lambda paper: paper["ledger"][0].update(time=1),
        lambda paper: paper["ledger"][0].update(policy="0" * 64),
        lambda paper: paper["ledger"][0].update(sequence=1),
        lambda paper: paper.update(query="SELECT 1"),
    ],
)
def test_a_charge_that_is_not_in_the_ledger_is_found(
    documents: list[dict[str, Any]], snapshot: Snapshot, change: Any
) -> None:
    change(documents[0]["receipt"])
    assert check_receipt(documents[0]).sound
    assert compare_with_ledger(documents[0], snapshot).problems


def test_the_command_compares_with_the_ledger_at_hand(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper, config = str(place / "receipt0.json"), str(place / "hubbub.yaml")
    status, said = run(capsys, paper, "--config", config)
    assert status == 0
    assert "the receipt and the ledger" in said
    assert "Not compared" not in said
    status, said = run(capsys, paper, "--ledger", str(place / "hubbub-ledger" / "ledger.db"))
    assert (status, "Not compared" in said) == (0, False)


def test_the_command_says_where_it_compared_with_nothing(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paper = str(place / "receipt0.json")
    for arguments in (["--config", str(tmp_path / "hubbub.yaml")], ["--config", str(place / "hubbub.yaml"), "--alone"]):
        status, said = run(capsys, paper, *arguments)
        assert status == 0
        assert "Not compared with a ledger" in said


def test_the_command_refuses_a_changed_answer(
    place: Path, tmp_path: Path, documents: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    changed = copy.deepcopy(documents[0])
    changed["answer"]["columns"][1]["values"][0] += 1
    (tmp_path / "changed.json").write_text(json.dumps(rehashed(changed)))
    status, said = run(capsys, str(tmp_path / "changed.json"), "--config", str(place / "hubbub.yaml"))
    assert status == 1
    assert "it was changed" in said
    status, said = run(capsys, str(tmp_path / "changed.json"), "--alone")
    assert (status, "Not compared with a ledger" in said) == (0, True)


def test_the_command_refuses_a_name_that_stands_twice(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (place / "receipt0.json").read_text().replace('{"answer":', '{"answer": {}, "answer":', 1)
    (tmp_path / "twice.json").write_text(text)
    assert main(["verify", str(tmp_path / "twice.json")]) == 1
    assert "HB134" in capsys.readouterr().err


def test_a_ledger_that_does_not_verify_compares_nothing(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (place / "hubbub-ledger" / "ledger.db").read_bytes()
    edited = whole.replace(b"SELECT region", b"SELECT REGION")
    assert edited != whole
    (tmp_path / "ledger.db").write_bytes(edited)
    status, said = run(capsys, str(place / "receipt0.json"), "--ledger", str(tmp_path / "ledger.db"))
    assert status == 1
    assert "does not verify" in said
