"""Deployments that an earlier hubbub left behind open, verify and answer again at no cost.

The files in `golden/` were written by version 0.1.0 as it was on 16 November 2026 and are never written again: every
kind of ledger entry of that time, receipts, releases, data versions and a stream's state, on SQLite and on PostgreSQL.
"""

import json
import re
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.fixtures.postgres_server import Server

import hubbub
from hubbub.accounting.ledger import examine
from hubbub.accounting.store import EntryFilter
from hubbub.analyses.streams.stream import open_stream
from hubbub.audit.ledger_check import compare_with_ledger
from hubbub.audit.receipt import check_receipt
from hubbub.config import load
from hubbub.curator.opening import anchor_of, store_of

GOLDEN = Path(__file__).parent / "golden"
KINDS = {"policy": 1, "charge": 19, "release": 17, "forfeit": 1}


@pytest.fixture(params=["sqlite", "postgres"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Lay the files of an old deployment out as they were."""
    folder = tmp_path / "deployment"
    shutil.copytree(GOLDEN / request.param, folder)
    for data in (GOLDEN / "data").iterdir():
        shutil.copyfile(data, folder / data.name)
    if request.param == "sqlite":
        yield folder
        return
    server: Server = request.getfixturevalue("postgres_server")
    with server.database() as database:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute((folder / "ledger.sql").read_bytes())
        config, name = folder / "hubbub.yaml", conninfo_to_dict(database)["dbname"]
        address = f"postgresql://hubbub@/{name}?host={server.home}"
        config.write_text(re.sub(r"database: \S+", f"database: {address}", config.read_text()))
        yield folder


@pytest.fixture
def derived(tmp_path: Path) -> Path:
    """Lay out a deployment of 19 November 2026: answers that follow from earlier ones, with their sources."""
    return Path(shutil.copytree(GOLDEN / "derived", tmp_path / "derived"))


def test_old_derived_answers_verify_and_are_given_again(derived: Path) -> None:
    store = store_of(load(derived / "hubbub.yaml"), read_only=True)
    with store.snapshot() as snapshot:
        for paper in sorted((derived / "receipts").glob("*.json")):
            document = json.loads(paper.read_text())
            assert check_receipt(document).sound, paper.name
            assert not compare_with_ledger(document, snapshot).problems, paper.name
    store.close()
    before = json.loads((derived / "asked.json").read_text())["asked"]
    assert sum(each["epsilon"] == "0" for each in before) == 3
    for question in before:
        with hubbub.open(derived / "hubbub.yaml", analyst=question["analyst"]) as session:
            release = session.query(question["sql"], **question["options"])
            charged = len(session.releases())
        if question["epsilon"] != "0":
            assert release.replayed
            assert [list(map(str, row)) for row in release.rows] == question["rows"]
        assert release.epsilon == Fraction(question["epsilon"])
        assert charged <= 6


def test_old_releases_are_sources(derived: Path) -> None:
    with hubbub.open(derived / "hubbub.yaml", analyst="ana") as session:
        answer = session.query("SELECT COUNT(*) AS n FROM visits WHERE cost > 20 AND cost <= 60", free=True)
    papers = [json.loads(paper.read_text())["receipt"] for paper in (derived / "receipts").glob("*.json")]
    paid = {each["ledger"][0]["sequence"] for each in papers if each["charge"]["epsilon"] != "0"}
    assert {each["charge"] for each in answer.receipt["derived"]["sources"]} <= paid


def asked(folder: Path) -> list[dict[str, Any]]:
    """Read what was asked then, and the answers."""
    found: list[dict[str, Any]] = json.loads((folder / "asked.json").read_text())["asked"]
    return found


def kinds(folder: Path) -> dict[str, int]:
    """Count the ledger's entries by kind."""
    store = store_of(load(folder / "hubbub.yaml"), read_only=True)
    try:
        with store.snapshot() as snapshot:
            names = [entry.kind for entry in snapshot.entries(EntryFilter())]
    finally:
        store.close()
    return {name: names.count(name) for name in sorted(set(names))}


def test_an_old_ledger_verifies_and_keeps_every_entry(deployment: Path) -> None:
    config = load(deployment / "hubbub.yaml")
    with hubbub.open(deployment / "hubbub.yaml", analyst="ana"):
        pass  # whatever an opening adds or migrates
    store = store_of(config, read_only=True)
    try:
        assert examine(store, anchor_of(config)).sound
    finally:
        store.close()
    counted = kinds(deployment)
    # an opening may note what hubbub.yaml declares, and adds nothing else
    assert counted.pop("policy") in (1, 2)
    assert counted == {kind: number for kind, number in KINDS.items() if kind != "policy"}


def test_every_old_question_is_answered_again_for_free(deployment: Path) -> None:
    for question in asked(deployment):
        if "sql" not in question:
            continue
        with hubbub.open(deployment / "hubbub.yaml", analyst=question["analyst"]) as session:
            release = session.query(question["sql"], **question["options"])
        assert release.replayed, question["sql"]
        assert list(release.columns) == question["columns"]
        assert [list(map(str, row)) for row in release.rows] == question["rows"]
    assert kinds(deployment)["charge"] == KINDS["charge"]


def test_old_spending_still_counts(deployment: Path) -> None:
    then = json.loads((deployment / "asked.json").read_text())["budget"]
    with hubbub.open(deployment / "hubbub.yaml", analyst="ana") as session:
        now = {overview.dataset: {state.scope: state.left for state in overview.caps} for overview in session.budget()}
    # the analyst's own caps without δ; those with δ may become cheaper by a better proof
    for dataset in ("bills", "arrivals"):
        (left,) = (Fraction(amount) for scope, amount in then[dataset] if scope == "analyst")
        assert now[dataset]["analyst"] == left


def test_old_receipts_verify_by_themselves(deployment: Path) -> None:
    papers = sorted((deployment / "receipts").glob("*.json"))
    assert len(papers) == 15
    for paper in papers:
        assert not check_receipt(json.loads(paper.read_text())).problems, paper.name


def test_an_old_stream_says_what_it_said(deployment: Path) -> None:
    (stream,) = (each for each in asked(deployment) if "stream" in each)
    with open_stream(deployment / "hubbub-streams", stream["stream"]) as held:
        assert [[value.name, str(value.value)] for value in held.values()] == stream["values"]
