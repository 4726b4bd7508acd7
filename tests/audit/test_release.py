"""The audit of one release, from the ledger alone."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.audit.conftest import QUERIES

from hubbub.accounting.anchor import default_path
from hubbub.accounting.chain import canonical
from hubbub.analyses import scores
from hubbub.analyses.programs import vectors
from hubbub.analyses.threshold import Comparison
from hubbub.audit import release as releases
from hubbub.audit.release import ReleaseAudit
from hubbub.config import load
from hubbub.curator.session import open_session
from hubbub.curator.thresholds import SessionState
from hubbub.errors import ParameterError
from hubbub.sql import measures
from hubbub.sql import plan as plans
from hubbub.sql.measures import Sensitivity

Numbers = tuple[Path, dict[str, int]]


def audited(folder: Path, number: int) -> ReleaseAudit:
    return releases.audit(load(folder / "hubbub.yaml"), number, worlds=4, chance=random.Random(2))


@pytest.mark.parametrize("name", QUERIES)
def test_an_honest_release_is_sound(numbers: Numbers, name: str) -> None:
    folder, known = numbers
    found = audited(folder, known[name])
    assert found.problems == []
    assert found.left_out == []
    assert found.sound
    assert found.loss.startswith("ε")
    assert any("replayed on simulated data" in line for line in found.lines)
    assert json.loads(json.dumps(found.to_json()))["sound"] is True


def test_the_data_is_not_needed(numbers: Numbers, tmp_path: Path) -> None:
    folder, known = numbers
    copy = copied(folder, tmp_path)
    (copy / "visits.csv").write_text("patient,region,age,cost,word\n")
    assert audited(copy, known["sums"]).sound


def test_a_number_without_a_release_is_refused(numbers: Numbers) -> None:
    with pytest.raises(ParameterError, match="HB146"):
        audited(numbers[0], 10_000)


def test_better_wording_does_not_make_a_receipt_look_changed(numbers: Numbers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "derivation", lambda *_: ("the same, in other words",))
    found = audited(numbers[0], numbers[1]["sums"])
    assert found.left_out == []
    assert "the query, planned again, has the facts that were charged" in found.lines


def test_receipts_say_nothing_about_hidden_columns(numbers: Numbers, tmp_path: Path) -> None:
    declared = []
    for number, hidden in enumerate(["secret: {hidden: true}", "other: {hidden: true}"]):
        copy = copied(numbers[0], tmp_path / str(number))
        text = (copy / "hubbub.yaml").read_text()
        (copy / "visits.csv").write_text("patient,region,age,cost,word,secret,other\n1,North,3,4,a,1,2\n")
        (copy / "hubbub.yaml").write_text(text.replace("      cost:", f"      {hidden}\n      cost:", 1))
        with open_session(copy / "hubbub.yaml") as session:
            receipt = session.query("SELECT COUNT(*) AS n FROM visits", epsilon="0.01", key=f"new {number}").receipt
            declared.append(receipt["declared"])
    assert declared[0] == declared[1]


def test_a_plan_that_would_be_made_otherwise_now_is_told(numbers: Numbers, tmp_path: Path) -> None:
    copy = copied(numbers[0], tmp_path)
    text = (copy / "hubbub.yaml").read_text()
    (copy / "hubbub.yaml").write_text(text.replace("bounds: [-10, 1000]", "bounds: [-10, 2000]"))
    found = audited(copy, numbers[1]["sums"])
    assert found.sound  # the old charge is right whatever is declared now
    assert "differs from the plan that was charged" in found.left_out[0]
    (copy / "hubbub.yaml").write_text(text.replace("      cost: {type: real, bounds: [-10, 1000]}\n", ""))
    assert "could not be planned again" in audited(copy, numbers[1]["sums"]).left_out[0]


def test_a_release_whose_charge_says_less_is_not_sound(numbers: Numbers, tmp_path: Path) -> None:
    """The receipt is changed in the ledger: less noise, a lower cost, another query or answer, a missing charge."""

    def less_noise(paper: dict[str, Any]) -> None:
        paper["receipt"]["draws"][0]["noise"]["scale"] = "1"

    def cheaper(paper: dict[str, Any]) -> None:
        paper["receipt"]["charge"]["epsilon"] = "1/100"

    def other_question(paper: dict[str, Any]) -> None:
        paper["receipt"]["query"] = "SELECT COUNT(*) AS n FROM labs"

    def other_answer(paper: dict[str, Any]) -> None:
        paper["answer"]["columns"][0]["values"] = [0]

    def no_charge(paper: dict[str, Any]) -> None:
        paper["receipt"]["ledger"][0]["hash"] = "00" * 32

    for number, spoil in enumerate((less_noise, cheaper, other_question, other_answer, no_charge)):
        copy = copied(numbers[0], tmp_path / str(number))
        changed(copy, numbers[1]["count"], spoil)
        found = audited(copy, numbers[1]["count"])
        assert not found.sound, spoil.__name__


def test_an_answer_that_no_session_paid_for_is_not_sound(
    numbers: Numbers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free answers: an honest one, one too many, one that moves too far, and one of another's session."""
    copy = copied(numbers[0], tmp_path)

    def compare(sql: str) -> int:
        release = session.compare("visits", "alarm", sql, threshold=-(10**6))
        return int(release.receipt["ledger"][0]["sequence"])

    with open_session(copy / "hubbub.yaml") as session:
        session.above_threshold("visits", "alarm", 0, hits=2, epsilon=1)
        monkeypatch.setattr(SessionState, "hits", 0)
        honest = compare("SELECT COUNT(*) FROM visits")
        monkeypatch.setattr(Comparison, "covers", lambda *_: None)
        far = compare("SELECT SUM(cost) FROM visits")
        third = compare("SELECT COUNT(*) FROM visits WHERE age > 3")
    monkeypatch.undo()
    found = audited(copy, honest)
    assert (found.problems, found.left_out) == ([], [])
    assert any("replayed on simulated data" in line for line in found.lines)
    assert "does not cover this answer" in audited(copy, far).problems[0]
    assert "gave more" in audited(copy, third).problems[0]
    changed(copy, honest, lambda paper: paper["receipt"].update(session=1))
    assert "not in the ledger" in audited(copy, honest).problems[0]


@pytest.mark.parametrize(
    "sql",
    [
        "mean_vector(table => 'visits', columns => ['age', 'cost'], norm => 'l2', noise => 'euclidean')",
        "binomial_count(table => 'visits', query => 'SELECT COUNT(*) FROM visits')",
    ],
)
def test_too_small_a_sensitivity_of_other_noise_is_found(
    numbers: Numbers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setattr(vectors, "over_cells", lambda *_: Sensitivity(9, 9))
    monkeypatch.setattr(scores, "max", lambda *_: 1, raising=False)
    copy = copied(numbers[0], tmp_path)
    with open_session(copy / "hubbub.yaml") as session:
        release = session.query(f"CALL {sql}", epsilon=1)
    found = audited(copy, release.receipt["ledger"][0]["sequence"])
    assert any(problem.startswith("On simulated neighbors") for problem in found.problems)


def test_a_sensitivity_that_is_too_small_is_found_by_replaying(
    numbers: Numbers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planner that halves sensitivities: its charges agree with its plans, and the replay does not."""
    true = measures.sensitivity

    def halved(*given: Any) -> Sensitivity:
        found = true(*given)
        return Sensitivity(max(1, found.l1 // 2), max(1, found.l2_squared // 4))

    for module in ("allocation", "plan", "measures"):
        place = f"hubbub.sql.{module}.sensitivity"
        monkeypatch.setattr(place, halved, raising=False)
    copy = copied(numbers[0], tmp_path)
    with open_session(copy / "hubbub.yaml") as session:
        release = session.query("SELECT region, SUM(cost) AS s FROM visits GROUP BY region", epsilon=1)
    found = audited(copy, release.receipt["ledger"][0]["sequence"])
    assert any(problem.startswith("On simulated neighbors") for problem in found.problems)


def copied(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target, dirs_exist_ok=True)
    # the anchor depends on the path of the ledger, so a copy needs its own
    shutil.copy(*(default_path(each / "hubbub-ledger" / "ledger.db") for each in (folder, target)))
    return target


def changed(folder: Path, number: int, spoil: Callable[[dict[str, Any]], None]) -> None:
    """Change a release in the ledger, as anyone with write access to the file can."""
    with closing(sqlite3.connect(folder / "hubbub-ledger" / "ledger.db")) as connection:
        (guard,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'releases_UPDATE'").fetchone()
        connection.execute("DROP TRIGGER releases_UPDATE")
        (body,) = connection.execute("SELECT body FROM releases WHERE charge = ?", (number,)).fetchone()
        paper = json.loads(body)
        spoil(paper)
        connection.execute("UPDATE releases SET body = ? WHERE charge = ?", (canonical(paper).encode(), number))
        connection.execute(guard)
        connection.commit()
