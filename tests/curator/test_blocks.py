"""Queries on a dataset with blocks: what they are charged to, month after month."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from hubbub.accounting.blocks import close_block
from hubbub.accounting.cost import blocks_of_facts
from hubbub.accounting.refusal import CapError
from hubbub.accounting.store import EntryFilter
from hubbub.audit.receipt import check_receipt
from hubbub.audit.release import audit
from hubbub.config import load
from hubbub.core import chunked_json
from hubbub.curator import Curator
from hubbub.curator.opening import open_curator
from hubbub.curator.question import Question
from hubbub.errors import ConfigError, HubbubError, QueryError
from hubbub.reports.document import budgets, spent
from hubbub.reports.facts import read
from hubbub.semantics.history import query_history

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: person, per: {month: day}, groups: 4, rows: 3}
    columns:
      day: {type: date}
      region: {values: [North, South]}
      cost: {bounds: [0, 10]}
    blocks: {column: day, by: month, from: 2026-01, budget: {epsilon: 2}}
analysts: {ana: {visits: {epsilon: 1}}, ben: {visits: {epsilon: 2}}}
"""
ALL = "SELECT COUNT(*) FROM visits"
JANUARY = f"{ALL} WHERE day < '2026-02-01'"


@dataclass
class Place:
    """A deployment with a clock of its own."""

    folder: Path
    today: date = date(2026, 2, 10)

    @contextmanager
    def curator(self) -> Iterator[Curator]:
        def clock() -> int:
            return int((self.today - date(1970, 1, 1)).total_seconds()) * 1_000_000

        with open_curator(load(self.folder / "hubbub.yaml"), clock=clock) as curator:
            yield curator


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "visits.parquet"
    duckdb.sql(
        f"COPY (SELECT 'p' || (i % 40) AS person, DATE '2025-12-01' + CAST(i % 120 AS INTEGER) AS day,"
        f" ['North', 'South'][1 + i % 2] AS region, i % 9 AS cost FROM range(600) t(i)"
        f" UNION ALL SELECT 'p1', NULL, 'North', 3) TO '{path}'"
    )
    return path


@pytest.fixture
def place(tmp_path: Path, data: Path) -> Place:
    (tmp_path / "hubbub.yaml").write_text(YAML.replace("visits.parquet", str(data)))
    return Place(tmp_path)


def ask(curator: Curator, sql: str, epsilon: str = "0.5", analyst: str = "ana") -> bool:
    """Ask, and tell whether the answer was free."""
    return curator.query(analyst, Question(sql, epsilon=epsilon)).replayed


def charged(curator: Curator) -> list[str]:
    """The blocks of each charge."""
    with curator.ledger.snapshot() as snapshot:
        found = [blocks_of_facts(entry.facts) for entry in snapshot.entries(EntryFilter(kind="charge"))]
    return [blocks.text() for blocks in found if blocks is not None]


def test_a_query_spends_in_the_blocks_that_it_reads(place: Place) -> None:
    with place.curator() as curator:
        ask(curator, ALL)
        ask(curator, f"{ALL} WHERE day >= '2026-02-03'", "0.25")
        ask(curator, "SELECT region, SUM(cost) FROM visits WHERE day < '2026-02-01' GROUP BY region", "0.25")
        ask(curator, "CALL tabulate(table => 'visits', columns => ['region'])", "0.125")
        ask(curator, f"SELECT (SELECT COUNT(*) FROM visits WHERE day < '2026-02-01') AS a, ({ALL}) AS b", "0.125")
        assert charged(curator) == [
            "2026-01 to 2026-02",
            "2026-02",
            "2026-01",
            "2026-01 to 2026-02",
            "2026-01 to 2026-02",
        ]
        (view,) = curator.budget("ana")
        assert [(block.name, block.spent, block.left) for block in view.blocks] == [
            ("2026-01", Fraction(1), Fraction(0)),
            ("2026-02", Fraction(1), Fraction(0)),
        ]
        assert curator.ledger.verify().sound
        with pytest.raises(CapError, match="for ana on visits in 2026-01"):
            ask(curator, JANUARY)
        estimate = curator.estimate("ben", Question(JANUARY, epsilon="0.25"))
        assert (estimate.admitted, estimate.fits) == (True, 4)


def test_a_batch_is_charged_to_every_open_block(place: Place) -> None:
    """Also where a condition of one of its questions allows less."""
    regions = "SELECT region, COUNT(*) FROM visits GROUP BY region"
    with place.curator() as curator:
        texts = ", ".join("'" + text.replace("'", "''") + "'" for text in (JANUARY, regions, ALL))
        ask(curator, f"CALL batch(queries => [{texts}])")
        assert charged(curator) == ["2026-01 to 2026-02"]


def test_new_months_bring_new_budget_and_old_answers_stay_free(place: Place) -> None:
    with place.curator() as curator:
        assert not ask(curator, JANUARY, "1")
        assert not ask(curator, f"{ALL} WHERE day >= '2026-02-01'", "1")
    place.today = date(2026, 3, 1)
    with place.curator() as curator:
        assert ask(curator, JANUARY, "1")
        # without an upper end, the condition allows the new month too
        with pytest.raises(CapError, match="2026-02"):
            ask(curator, f"{ALL} WHERE day >= '2026-02-01'", "0.5")
        assert not ask(curator, f"{ALL} WHERE day >= '2026-03-01'", "1")
        assert ask(curator, f"{ALL} WHERE day >= '2026-03-01'", "1")
        assert charged(curator) == ["2026-01", "2026-02", "2026-03"]


def test_the_same_question_in_a_new_month_is_another_one(place: Place) -> None:
    with place.curator() as curator:
        assert not ask(curator, ALL, "0.25")
        assert ask(curator, ALL, "0.25")
        place.today = date(2026, 3, 1)  # the plan of the question was kept, for two blocks
        assert not ask(curator, ALL, "0.25")
        assert charged(curator) == ["2026-01 to 2026-02", "2026-01 to 2026-03"]


def test_rows_in_no_block_are_never_counted(place: Place, data: Path) -> None:
    """December, rows of coming months, and a row without a date; exactly, because ε is large."""
    text = YAML.replace("epsilon: 2}}", "epsilon: 1000}}").replace("{epsilon: 1}", "{epsilon: 900}")
    text = text.replace("rows: 3", "rows: 90").replace("visits.parquet", str(data))
    (place.folder / "hubbub.yaml").write_text(text)
    expected = sum(1 for i in range(600) if 31 <= i % 120 < 31 + 31 + 28)
    with place.curator() as curator:
        release = curator.query("ana", Question(ALL, epsilon=800))
        assert abs(float(str(release.rows[0][0])) - expected) <= 10  # noise of scale 360 / 800; false alarms below 1e-9


def test_a_closed_block_is_left_out_and_never_opens_again(place: Place) -> None:
    with place.curator() as curator:
        ask(curator, JANUARY, "0.5")
        close_block(curator.ledger, "visits", "2026-01", by="olga", reason="retired")
        ask(curator, ALL, "0.5")
        assert charged(curator) == ["2026-01", "2026-02"]
        with pytest.raises(QueryError) as refusal:
            ask(curator, JANUARY, "0.1")
        assert refusal.value.code == "HB794"
        (view,) = curator.budget("ana")
        assert [(block.name, block.closed) for block in view.blocks] == [("2026-01", True), ("2026-02", False)]
        assert curator.ledger.verify().sound
        close_block(curator.ledger, "visits", "2026-02", by="olga", reason="retired")
        for sql in (ALL, "CALL tabulate(table => 'visits', columns => ['region'])"):
            with pytest.raises(QueryError) as refusal:
                ask(curator, sql, "0.1")
            assert refusal.value.code == "HB795"


@pytest.mark.parametrize(
    "call", ["CALL stream(table => 'visits', length => 10)", "CALL above_threshold(table => 'visits', threshold => 5)"]
)
def test_analyses_that_go_on_reading_are_refused(place: Place, call: str) -> None:
    with place.curator() as curator:
        with pytest.raises(QueryError) as refusal:
            ask(curator, call)
        assert refusal.value.code == "HB796"
        assert charged(curator) == []


def test_receipts_name_the_blocks_and_are_audited(place: Place) -> None:
    with place.curator() as curator:
        release = curator.query("ana", Question(JANUARY, epsilon="0.5"))
        call = curator.query("ben", Question("CALL tabulate(table => 'visits', columns => ['region'])", epsilon="0.5"))
        assert release.receipt["data"][0]["blocks"] == {"by": "month", "ranges": [["2026-01", "2026-01"]]}
        with curator.ledger.snapshot() as snapshot:
            bodies = [snapshot.body(each.receipt["ledger"][0]["sequence"]) for each in (release, call)]
    for body in bodies:
        assert check_receipt(chunked_json.loads(body or b"")).problems == []
    place.today = date(2026, 5, 1)
    for number in (each.receipt["ledger"][0]["sequence"] for each in (release, call)):
        found = audit(load(place.folder / "hubbub.yaml"), number, worlds=20)
        assert found.problems == []
        assert any("planned again" in line for line in found.lines)


def test_blocks_cannot_be_added_to_earlier_charges(place: Place) -> None:
    with_blocks = (place.folder / "hubbub.yaml").read_text()
    plain = with_blocks.replace(
        "blocks: {column: day, by: month, from: 2026-01, budget: {epsilon: 2}}", "budget: {epsilon: 2}"
    )
    (place.folder / "hubbub.yaml").write_text(plain)
    with place.curator() as curator:
        ask(curator, ALL)
    (place.folder / "hubbub.yaml").write_text(with_blocks)
    with pytest.raises(ConfigError, match="earlier charges were made without blocks"), place.curator():
        pass


def test_a_user_key_is_for_one_set_of_blocks(place: Place) -> None:
    question = Question(ALL, epsilon=Fraction(1, 4))
    with place.curator() as curator:
        first = curator.query("ana", question, key="mine")
        again = curator.query("ana", question, key="mine")
        assert (first.replayed, again.replayed) == (False, True)
        assert first.rows == again.rows


def test_free_answers_come_from_the_same_blocks(place: Place) -> None:
    """What was released about two months tells nothing about three, and is free again for the two."""
    regions = "SELECT region, COUNT(*) FROM visits WHERE day >= '2026-01-01' {} GROUP BY region"
    total = "SELECT COUNT(*) FROM visits WHERE day >= '2026-01-01' AND region IN ('North', 'South') {}"
    ends = "AND day < '2026-03-01'"
    with place.curator() as curator:
        ask(curator, regions.format(ends), "0.5")
        assert curator.query("ana", Question(total.format(ends))).epsilon == 0
    place.today = date(2026, 3, 1)
    with place.curator() as curator:
        assert curator.query("ana", Question(total.format(ends))).epsilon == 0
        with pytest.raises(HubbubError):
            curator.query("ana", Question(total.format("")))
        assert set(charged(curator)) == {"2026-01 to 2026-02"}
        assert curator.ledger.verify().sound


def test_what_is_left_is_said_of_the_blocks_that_it_is_about(place: Place) -> None:
    """Ana may spend 1 in each block: a figure about the newest block must not be read as one about another."""
    with place.curator() as curator:
        ask(curator, JANUARY, "0.75")
        (view,) = curator.budget("ana")
        assert view.more == 0  # the last query read January, where 0.25 is left; February has all of its budget
        assert view.largest == 1
        assert "up to ε=1 for a query that reads 2026-02 alone" in view.text()
        ask(curator, f"{ALL} WHERE day >= '2026-02-01'", "0.25")
        (view,) = curator.budget("ana")
        assert view.more == 3
        ask(curator, ALL, "0.25")
        (view,) = curator.budget("ana")
        assert view.more == 0  # it read both
        assert [(line.name, line.more) for line in view.blocks] == [("2026-01", 0), ("2026-02", 2)]


def test_no_document_states_the_cap_of_a_block_as_one_of_all_queries(place: Place) -> None:
    with place.curator() as curator:
        for condition in ("day < '2026-02-01'", "day >= '2026-02-01'"):
            ask(curator, f"{ALL} WHERE {condition}", "1")
            ask(curator, f"{ALL} WHERE {condition}", "1", "ben")
        with curator.ledger.snapshot() as snapshot:
            for who in (None, "ana"):
                history = query_history(snapshot, curator.config.policy, "visits", analyst=who)
                said = " ".join(history.sentences)
                assert history.total.pure is not None
                assert history.total.pure > history.cap_epsilon
                assert "their total stays within the cap" not in said
                assert "in each block" in said
    facts = read(load(place.folder / "hubbub.yaml")).datasets[0]
    assert facts.spent.pure == facts.budget.epsilon == 2
    assert "on the block that was charged most" in spent(facts)
    assert "new blocks bring new budget" in budgets(facts)


def test_what_bounds_leave_out_is_stated_of_the_blocks_that_were_read(place: Place) -> None:
    """All blocks were filled together, so that their versions have one name: a profile of both is not one of January.

    The same statement about both blocks is of the same data.
    """
    with place.curator() as curator:
        profile = Question("CALL profile(table => 'visits')", epsilon="0.5")
        curator.query("ben", profile, key="profile ben", publish=True)
        of_january = curator.estimate("ana", Question(JANUARY, epsilon="0.1")).left_out
        of_both = curator.estimate("ana", Question(ALL, epsilon="0.1")).left_out
        assert of_january is not None
        assert of_both is not None
        assert of_january.evidence is not None
        assert of_both.evidence is not None
        assert (of_january.evidence.older, of_both.evidence.older) == (True, False)
        january = curator.query("ana", Question(JANUARY, epsilon="0.1"))
        both = curator.query("ana", Question(ALL, epsilon="0.1"))
        versions = {each.receipt["data"][0]["version"] for each in (january, both)}
        assert len(versions) == 1
        for release, older in ((january, True), (both, False)):
            assert release.left_out is not None
            assert release.left_out.evidence is not None
            assert release.left_out.evidence.older is older
            number = release.receipt["ledger"][0]["sequence"]
            again = curator.release(number, analyst="ana").left_out
            assert again == release.left_out


def test_a_release_of_other_blocks_is_not_offered(place: Place) -> None:
    """It has the same version: what it read is told apart by the blocks."""
    with place.curator() as curator:
        ask(curator, ALL, "0.5")
        offered = {sql: curator.estimate("ana", Question(sql, epsilon="0.1")).free for sql in (ALL, JANUARY)}
        assert offered[ALL] is not None
        assert offered[JANUARY] is None
        paid = [curator.query("ana", Question(sql, epsilon="0.1")).epsilon for sql in (ALL, JANUARY)]
        assert paid == [0, Fraction(1, 10)]
