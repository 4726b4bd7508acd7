"""Sessions of above threshold, as an analyst meets them: charged once, halting, and through crashes and races."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.curator.conftest import Opener

from hubbub.analyses.threshold import Comparison
from hubbub.audit.receipt import check_receipt
from hubbub.cli import main
from hubbub.curator.session import Session
from hubbub.errors import HubbubError, RunError
from hubbub.mechanisms.laplace import Laplace

#: 1,000 rows: at ε = 4 and 4 rows a patient, noise beyond 500 has a probability below e⁻¹⁰⁰.
ALL, NONE = "SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits WHERE age > 109 AND region = 'North'"


def refused(code: str, session: Session, *args: object, **options: object) -> None:
    with pytest.raises(HubbubError) as error:
        session.compare(*args, **options)  # type: ignore[arg-type]
    assert error.value.code == code


@pytest.fixture
def alarm(session: Session) -> Session:
    session.above_threshold("visits", "alarm", 500, hits=2, questions=5, epsilon=4)
    return session


def spent(session: Session) -> object:
    return [state.spent for state in session.budget()[0].caps]


def test_a_session_halts_and_gives_nothing_afterwards(alarm: Session) -> None:
    before = spent(alarm)
    assert alarm.compare("visits", "alarm", NONE).rows == [(False, 1, 2)]
    assert alarm.compare("visits", "alarm", ALL).rows == [(True, 2, 1)]
    assert alarm.compare("visits", "alarm", ALL).rows == [(True, 2, 1)]
    assert alarm.compare("visits", "alarm", ALL).replayed
    last = alarm.compare("visits", "alarm", NONE, threshold=-500)
    assert last.rows == [(True, 3, 0)]
    refused("HB673", alarm, "visits", "alarm", NONE, threshold=-600)
    assert alarm.compare("visits", "alarm", NONE).rows == [(False, 1, 2)]
    assert spent(alarm) == before
    assert (alarm.budget()[0].last, alarm.budget()[0].more) == (None, None)
    assert check_receipt(last.document()).sound
    assert last.receipt["session"] == 2


def test_scores_that_move_one_way_are_refused_where_a_unit_is_replaced(session: Session) -> None:
    opened = session.above_threshold("visits", "once", 500, epsilon=2)
    chosen = session.choose(["North", "South"], "SELECT COUNT(*) FROM visits WHERE region = $1", epsilon=1)
    for document in (opened.document(), chosen.document()):
        assert check_receipt(document).sound
        document["receipt"]["relation"] = "replace"
        assert "one way" in check_receipt(document).problems[0]


def test_questions_run_out_as_well(session: Session) -> None:
    session.above_threshold("visits", "few", 500, questions=2, epsilon=4)
    for number in (1, 2):
        assert session.compare("visits", "few", f"{NONE} AND cost > {number}").rows[0][0] is False
    refused("HB673", session, "visits", "few", NONE)


def test_a_name_is_charged_once_and_never_for_other_terms(alarm: Session, clinic: Path) -> None:
    before = spent(alarm)
    os.utime(clinic / "visits.parquet", ns=(1, 1))
    assert alarm.above_threshold("visits", "alarm", 500, hits=2, questions=5, epsilon=4).replayed
    with pytest.raises(HubbubError) as error:
        alarm.above_threshold("visits", "alarm", 400, epsilon=1)
    assert error.value.code == "HB676"
    assert spent(alarm) == before


def test_sessions_of_others_and_keys_of_other_queries_are_no_sessions(alarm: Session, opened: Opener) -> None:
    refused("HB675", opened("ben"), "visits", "alarm", ALL)
    refused("HB675", alarm, "labs", "alarm", "SELECT COUNT(*) FROM labs")
    alarm.query(NONE, epsilon="0.1", key="above threshold forged")
    refused("HB675", alarm, "visits", "forged", ALL)
    refused("HB672", alarm, "visits", "alarm", "SELECT SUM(cost) FROM visits")
    refused("HB672", alarm, "visits", "alarm", "SELECT COUNT(*) FROM labs")
    with pytest.raises(HubbubError) as error:
        alarm.query(f"CALL compare(table => 'visits', name => 'alarm', query => '{ALL}')", key="again")
    assert error.value.code == "HB672"
    # another query under the key of a comparison uses up its number, and counts as no answer
    alarm.query(NONE, epsilon="0.1", key="comparison alarm 1")
    assert alarm.compare("visits", "alarm", ALL).rows == [(True, 2, 1)]


def test_a_lost_or_exchanged_secret_ends_the_session(alarm: Session, clinic: Path) -> None:
    assert alarm.compare("visits", "alarm", NONE).rows[0][0] is False
    (path,) = (clinic / "hubbub-ledger" / "thresholds").glob("*.seed")
    assert path.stat().st_mode & 0o777 == 0o600
    kept = path.read_bytes()
    path.write_bytes(bytes(32))
    refused("HB674", alarm, "visits", "alarm", ALL)
    path.unlink()
    refused("HB674", alarm, "visits", "alarm", ALL)
    path.write_bytes(kept)
    assert alarm.compare("visits", "alarm", ALL).rows == [(True, 2, 1)]


def test_another_noise_from_the_same_seed_ends_the_session(alarm: Session) -> None:
    """A later version of the program may sample otherwise; a second noise of the threshold is not paid for."""
    assert alarm.compare("visits", "alarm", NONE).rows[0][0] is False
    with patch("hubbub.curator.thresholds.threshold_noise", lambda *_: 7):
        refused("HB674", alarm, "visits", "alarm", ALL)
    assert alarm.compare("visits", "alarm", ALL).rows == [(True, 2, 1)]


def test_a_session_from_before_a_forfeit_is_not_continued(clinic: Path, opened: Opener) -> None:
    """An older copy of the ledger has lost hits; the owner may write off less than everything."""
    with opened() as session:
        session.above_threshold("visits", "alarm", 500, hits=2, questions=5, epsilon=4)
        assert session.compare("visits", "alarm", NONE).rows == [(False, 1, 2)]
    folder, kept = clinic / "hubbub-ledger", clinic / "kept"
    shutil.copytree(folder, kept)
    with opened() as session:
        assert session.compare("visits", "alarm", ALL).rows == [(True, 2, 1)]
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    forfeit = ["admin", "forfeit", "--by", "owner", "--reason", "old copy", "--epsilon", "0.1", "--yes"]
    assert main([*forfeit, "-c", str(clinic / "hubbub.yaml")]) == 0
    session = opened()
    assert session.compare("visits", "alarm", NONE).rows == [(False, 1, 2)]
    refused("HB674", session, "visits", "alarm", ALL)


def test_a_changed_public_table_is_another_question(alarm: Session, clinic: Path, opened: Opener) -> None:
    sql = "SELECT COUNT(*) FROM visits JOIN regions ON visits.region = regions.region WHERE population <> '1'"
    assert alarm.compare("visits", "alarm", sql).rows == [(True, 1, 1)]
    (clinic / "regions.csv").write_text("region,population\nNorth,1\nSouth,1\nEast,1\n")
    again = opened().compare("visits", "alarm", sql)
    assert again.rows == [(False, 2, 1)]


def test_the_secret_is_erased_when_the_session_halts(session: Session, clinic: Path) -> None:
    session.above_threshold("visits", "once", 500, epsilon=4)
    assert session.compare("visits", "once", ALL).rows == [(True, 1, 0)]
    assert list((clinic / "hubbub-ledger" / "thresholds").glob("*.seed")) == []


def test_a_crash_repeats_the_draws_of_the_comparison(alarm: Session, opened: Opener) -> None:
    """A process that dies after the draw leaves a comparison without an answer; the next one draws the same."""
    drawn: list[int] = []
    sample = Laplace.sample

    def taped(self: Laplace, value: int, source: object) -> int:
        drawn.append(sample(self, value, source) - value)  # type: ignore[call-overload]
        return value + drawn[-1]

    with patch.object(Laplace, "sample", taped):
        with (
            patch.object(alarm._curator.ledger, "record", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            alarm.compare("visits", "alarm", ALL)
        other = opened()
        assert other.compare("visits", "alarm", ALL).rows == [(True, 1, 1)]
    assert len(drawn) == 4
    assert drawn[:2] == drawn[2:]


def test_another_question_after_a_crash_has_a_number_and_noise_of_its_own(alarm: Session) -> None:
    with patch.object(alarm._curator.ledger, "record", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        alarm.compare("visits", "alarm", ALL)
    assert alarm.compare("visits", "alarm", NONE).rows == [(False, 2, 2)]
    # what was interrupted before is no longer the last comparison: it is asked anew
    assert alarm.compare("visits", "alarm", ALL).rows == [(True, 3, 1)]


def test_a_failure_tells_nothing_but_itself_and_is_counted(alarm: Session) -> None:
    with patch.object(Comparison, "run", side_effect=ValueError("CANARY")):
        for number in range(3):
            with pytest.raises(RunError) as failed:
                alarm.compare("visits", "alarm", f"{NONE} AND cost > {number}")
            assert failed.value.__context__ is None
    refused("HB325", alarm, "visits", "alarm", ALL)


def test_comparisons_at_once_record_no_more_hits_than_were_charged(alarm: Session) -> None:
    def ask(number: int) -> object:
        try:
            return alarm.compare("visits", "alarm", f"{ALL} WHERE cost >= -{number}").rows[0][0]
        except HubbubError as error:
            return error.code

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(6)))
    assert sorted(map(str, answers)) == ["HB673"] * 4 + ["True"] * 2


def test_an_estimate_of_a_comparison_is_free_and_says_so(alarm: Session) -> None:
    estimate = alarm.estimates.compare("visits", "alarm", ALL)
    assert estimate.epsilon == 0
    assert "session alarm paid" in repr(estimate)


def test_watch_asks_once_for_each_version_of_the_data(
    clinic: Path, capsys: pytest.CaptureFixture[str], opened: Opener
) -> None:
    opened().above_threshold("labs", "busy", 2000, epsilon=2)
    sql = "SELECT COUNT(*) FROM labs"
    command = ["watch", "labs", "busy", sql, "--once", "-c", str(clinic / "hubbub.yaml"), "-a", "ana"]
    assert [main(command), main(command)] == [3, 3]
    first = capsys.readouterr().out
    assert first.count("not above (question 1)") == 2
    rows = "".join(f"{i},{i % 9 - 4}\n" for i in range(5000))
    (clinic / "labs.csv").write_text("patient,result\n" + rows)
    assert main(command) == 0
    assert ": above (question 2)" in capsys.readouterr().out
    assert main([*command, "--format", "json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["answer"], line["question"]) == ("above", 2)
    assert main([*command, "-o", str(clinic / "busy.csv")]) == 0
    assert (clinic / "busy.csv").read_text() == f"data_version,answer,question\n{line['data_version']},above,2\n"
