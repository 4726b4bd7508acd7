"""Every estimate and answer states what its bounds leave out, from the newest profile that the owner published."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.answers.left_out import LeftOut
from hubbub.audit.receipt import check_receipt
from hubbub.curator.question import Question
from hubbub.curator.session import open_session
from hubbub.errors import RunError

#: What each query bounds: groups, rows, what counts, what it is grouped by, whether it is filtered, what is clamped.
QUERIES: dict[str, tuple[int | None, int | None, str, str | None, bool, list[str]]] = {
    "SELECT COUNT(*) AS n FROM visits": (None, 4, "rows", "", False, []),
    "SELECT COUNT(*) AS n FROM visits WHERE age > 30": (None, 4, "rows", "", True, []),
    "SELECT COUNT(*) FILTER (WHERE age > 30) AS n FROM visits": (None, 4, "rows", "", True, []),
    "SELECT AVG(cost) AS a FROM visits": (None, 4, "rows", "", False, ["cost"]),
    "SELECT SUM(cost + age) AS a FROM visits": (None, 4, "rows", "", False, ["age", "cost"]),
    "SELECT MEDIAN(age) AS a FROM visits": (None, 4, "rows", "", False, ["age"]),
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region": (None, 4, "rows", "region", False, []),
    "SELECT age, COUNT(*) AS n FROM visits GROUP BY age": (3, 4, "rows", "age", False, ["age"]),
    "SELECT age // 10 AS d, COUNT(*) AS n FROM visits GROUP BY 1": (3, 4, "rows", None, False, ["age"]),
    "SELECT region, age, COUNT(*) AS n FROM visits GROUP BY region, age": (3, 4, "rows", None, False, ["age"]),
    "SELECT word, COUNT(*) AS n FROM visits GROUP BY word": (3, 4, "rows", None, False, []),
    "SELECT COUNT(DISTINCT patient) AS n FROM visits": (None, None, "units", "", False, []),
    "SELECT age, COUNT(DISTINCT patient) AS n FROM visits GROUP BY age": (3, None, "units", "age", False, ["age"]),
    "SELECT AVG(n) AS a FROM (SELECT patient, LEAST(COUNT(*), 9) AS n FROM visits GROUP BY patient) AS s": (
        None,
        None,
        "units",
        None,
        False,
        [],
    ),
}
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def auto(clinic: Path) -> Any:
    """Yield a session over tables whose bounds are found, with a maximum above and below what a join keeps."""
    text = (clinic / "hubbub.yaml").read_text()
    text = text.replace("groups: 3, rows: 4", "rows: auto, max_rows: 5000").replace(
        "groups: 2, rows: 2", "rows: auto, max_rows: 60"
    )
    (clinic / "hubbub.yaml").write_text(text)
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        yield session


@pytest.mark.parametrize("text", QUERIES)
def test_an_estimate_states_what_the_query_bounds(session: Any, text: str) -> None:
    found = session.estimate(text, epsilon=1).left_out
    clamped = [each.column for each in found.clamped]
    assert (found.groups, found.rows, found.counts, found.by, found.filtered, clamped) == QUERIES[text]
    assert (found.dataset, found.unit) == ("visits", "patient")
    assert found.share is None
    assert ("not known" in found.sentence()) is found.bounded


def test_a_listed_number_is_not_said_to_be_clamped(clinic: Path) -> None:
    """A value outside of the list is NULL: nothing is moved to an end of it."""
    ages = ", ".join(map(str, range(20, 80)))
    text = (clinic / "hubbub.yaml").read_text().replace("bounds: [0, 110]", f"values: [{ages}]")
    (clinic / "hubbub.yaml").write_text(text)
    with open_session(clinic / "hubbub.yaml", analyst="ana") as session:
        found = session.estimate("SELECT AVG(age) AS a, SUM(cost) AS s FROM visits", epsilon=1).left_out
    assert found is not None
    assert [each.column for each in found.clamped] == ["cost"]


def test_the_bounds_of_the_query_are_stated_and_not_those_of_the_owner(session: Any) -> None:
    found = session.estimate("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", epsilon=1, groups=2, rows=1).left_out
    assert (found.groups, found.rows) == (2, 1)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        (COUNT, None),
        ("SELECT COUNT(*) AS n FROM visits JOIN labs USING (patient)", 60),
        ("SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b USING (patient)", 1024),
        ("SELECT COUNT(*) AS n FROM labs AS a JOIN labs AS b USING (patient)", 60),
        (
            "SELECT COUNT(*) AS n FROM visits JOIN (SELECT patient FROM labs GROUP BY patient) AS s USING (patient)",
            None,
        ),
    ],
)
def test_what_a_table_keeps_before_a_join_is_stated(auto: Any, text: str, joined: int | None) -> None:
    assert auto.estimate(text, epsilon=1).left_out.joined == joined
    release = auto.query(text, epsilon=1)
    assert release.left_out.joined == joined
    stated_later = LeftOut.from_receipt(release.receipt)
    assert stated_later is not None
    assert stated_later.joined == joined
    assert check_receipt(release.receipt).sound
    stated = f"Before the join, a table keeps at most {joined or 0:,} rows of each patient."
    assert (stated in release.left_out.sentence()) is (joined is not None)


def test_a_published_profile_is_stated_on_answers_of_everyone(session: Any, opened: Any) -> None:
    before = session.query(COUNT, epsilon="0.5")
    assert before.left_out.share is None
    profile = session.profile("visits", epsilon=4, max_rows=100)
    number = profile.receipt["ledger"][0]["sequence"]
    ben = opened("ben")
    for release in (
        ben.query(COUNT, epsilon="0.5"),
        ben.estimate(COUNT, epsilon="0.5"),
        session.query(COUNT, epsilon=1),
    ):
        assert release.left_out.share is not None
        assert release.left_out.evidence.charge == number
        assert not release.left_out.evidence.older
    again = session.query(COUNT, epsilon="0.5")
    assert again.replayed
    assert again.document() == before.document()  # the receipt stays as it was
    assert again.left_out.evidence.charge == number  # what is known now is stated


def test_a_column_that_was_hidden_later_is_in_no_profile(clinic: Path, session: Any, opened: Any) -> None:
    session.profile("visits", epsilon=1)
    whole = session.published_profile("visits")
    assert "region" in whole.model["groups"]
    assert "cost" in whole.model["values"]
    session.close()
    path = clinic / "hubbub.yaml"
    text = path.read_text()
    hidden = re.sub(r"(\n *(?:region|cost): )\{[^}]*\}", r"\1{hidden: true}", text)
    assert hidden.count("hidden: true") == text.count("hidden: true") + 2
    path.write_text(hidden)
    model = opened("ben").published_profile("visits").model
    assert not any({"region", "cost"} & model[kind].keys() for kind in ("groups", "values", "nulls"))
    assert model["rows"] == whole.model["rows"]


def test_the_share_is_that_of_the_data(session: Any) -> None:
    """300 patients with 3 or 4 rows, and one with 2: at most 2 rows each leave out 1,000 − 600 of 1,002 rows.

    An interval of 95% that is nine times as wide misses with probability below 1e-9.
    """
    session.profile("visits", epsilon=5, max_rows=8, columns=["region"])
    share = session.estimate(COUNT, epsilon=1, rows=2).left_out.share
    wide = share.high - share.low
    assert share.low - 4 * wide <= 400 / 1002 <= share.high + 4 * wide
    assert share.high - share.low < 0.1
    whole = session.estimate(COUNT, epsilon=1).left_out.share
    assert whole.value < 0.05


def test_receipts_with_a_statement_are_sound(session: Any) -> None:
    session.profile("visits", epsilon=4)
    for text in ("SELECT AVG(cost) AS a FROM visits", "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"):
        document = session.query(text, epsilon="0.5").document()
        stated = LeftOut.from_json(document["receipt"]["left_out"])
        assert stated.share is not None
        assert check_receipt(document).problems == []
        document["receipt"]["left_out"]["share"]["value"] = "half"
        assert check_receipt(document).problems


def test_the_same_profile_is_answered_from_the_ledger(session: Any) -> None:
    first = session.profile("visits", epsilon=1)
    again = session.profile("visits", epsilon=1)
    assert again.replayed
    assert again.document() == first.document()
    assert len(session.releases()) == 1


def test_a_profile_that_an_analyst_calls_is_not_published(session: Any, opened: Any) -> None:
    """An analyst could otherwise put a worthless profile beside the answers of all others."""
    session.query("CALL profile(table => 'visits')", epsilon="0.001")
    session.query("CALL profile(table => 'visits')", epsilon="0.001", key="profile key x")
    session.estimates.profile("visits", epsilon=1)
    for each in (session, opened("ben")):
        assert each.estimate(COUNT, epsilon="0.5").left_out.evidence is None
    assert session.published_profile("visits") is None


def test_the_newest_profile_of_the_same_version_is_used_and_an_older_one_is_marked(
    clinic: Path, session: Any, opened: Any
) -> None:
    first = session.profile("visits", epsilon="0.5")
    second = session.profile("visits", epsilon="0.5", key="another")
    assert session.published_profile("visits").charge == second.receipt["ledger"][0]["sequence"]
    before = session.query(COUNT, epsilon="0.1")
    with duckdb.connect() as made:
        made.execute(f"COPY (SELECT * FROM '{clinic}/visits.parquet' LIMIT 900) TO '{clinic}/new.parquet'")
    (clinic / "new.parquet").replace(clinic / "visits.parquet")
    after = session.query(COUNT, epsilon="0.1")
    assert not after.replayed
    assert after.left_out.evidence.older
    assert "another version" in after.left_out.sentence()
    third = session.profile("visits", epsilon="0.5")
    assert not third.replayed
    number = before.receipt["ledger"][0]["sequence"]
    shown = session.release(number).left_out.evidence
    assert (shown.charge, shown.older) == (second.receipt["ledger"][0]["sequence"], False)
    assert session.estimate(COUNT, epsilon="0.1").left_out.evidence.charge == third.receipt["ledger"][0]["sequence"]
    assert first.receipt["data"][0]["version"] != third.receipt["data"][0]["version"]


def test_looking_up_a_profile_reads_no_data_and_each_entry_once(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session.profile("visits", epsilon=1)
    curator = session._curator

    def forbidden(*_: Any) -> None:
        raise AssertionError("data was read")

    monkeypatch.setattr(curator.engine, "run", forbidden)
    monkeypatch.setattr(curator.engine, "fingerprint", forbidden)
    assert session.estimate(COUNT, epsilon="0.5").left_out.share is not None
    read: list[int] = []
    with curator.ledger.snapshot() as snapshot:
        entries = snapshot.entries

        def watched(which: Any, *, after: int = 0) -> Any:
            read.append(after)
            return entries(which, after=after)

        monkeypatch.setattr(snapshot, "entries", watched)
        curator._profiles.take_in(snapshot)
        assert read == []  # nothing was written since
        head = snapshot.head()
        monkeypatch.setattr(snapshot, "head", lambda: head._replace(sequence=head.sequence + 1))
        curator._profiles.take_in(snapshot)
        assert read == [head.sequence]


def test_a_profile_whose_run_failed_is_published_once_it_is_repeated(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = session._curator
    run = curator.engine.run

    def fail(_: str) -> None:
        raise ValueError

    monkeypatch.setattr(curator.engine, "run", fail)
    with pytest.raises(RunError):
        session.profile("visits", epsilon=1)
    assert session.estimate(COUNT, epsilon="0.5").left_out.evidence is None
    monkeypatch.setattr(curator.engine, "run", run)
    session.profile("visits", epsilon=1)
    assert session.estimate(COUNT, epsilon="0.5").left_out.evidence is not None
    assert len(session.releases()) == 1


def test_another_process_sees_the_profile(clinic: Path, session: Any) -> None:
    session.profile("visits", epsilon=1)
    with open_session(clinic / "hubbub.yaml", analyst="ben") as other:
        stated = other._curator.estimate("ben", Question(COUNT, epsilon="0.1")).left_out
        assert stated is not None
        assert stated.evidence is not None
