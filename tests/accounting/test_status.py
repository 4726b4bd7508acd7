import csv
import io
import json
from datetime import UTC, datetime
from fractions import Fraction
from math import log
from typing import TYPE_CHECKING

import pytest

from hubbub.accounting import status as inspection
from hubbub.accounting.chain import facts_text
from hubbub.accounting.policy import DAY
from hubbub.accounting.status import HistoryLine, history, overview, write_csv, write_json
from hubbub.accounting.store import EntryFilter
from hubbub.answers.budget import COMPOSED, MANY, PastCharge
from hubbub.core.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

    from hubbub.accounting.ledger import Ledger
    from hubbub.answers.budget import BudgetOverview


def seen(ledger: "Ledger", analyst: str = "ana", dataset: str = "visits") -> "BudgetOverview":
    with ledger.snapshot() as snapshot:
        return overview(snapshot, ledger.policy, analyst, dataset, ledger.time())


def lines(ledger: "Ledger", which: EntryFilter | None = None, **options: bool | int) -> list[HistoryLine]:
    with ledger.snapshot() as snapshot:
        return list(history(snapshot, which or EntryFilter(), **options))  # type: ignore[arg-type]


def test_an_overview_says_what_is_spent_and_left_of_each_cap(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, "0.5", query="SELECT count(*) FROM visits")
    desk.spend(ledger, "0.25", analyst="ben")
    assert seen(ledger).text() == (
        "ana on visits: up to ε=0.5 for the next query\n"
        "  at most ε=0.5 for one query on visits\n"
        "  spent 0.5 of ε=2, δ=1e-09, 1.5 remaining, for ana on visits\n"
        "  spent 0.9 of ε=3, δ=1e-09, 2.1 remaining, for the group interns on visits\n"
        "  spent 1.1 of ε=6, δ=1e-09, 4.9 remaining, for everybody on visits\n"
        "  about 3 more queries like your last one: SELECT count(*) FROM visits"
    )


@pytest.mark.parametrize("epsilon", ["0.5", "0.3", "0.07"])
def test_as_many_more_as_the_overview_says_are_granted(desk: "Desk", epsilon: str) -> None:
    ledger = desk.open()
    desk.spend(ledger, epsilon)
    said = seen(ledger).more
    assert desk.exhaust(ledger, epsilon)[0] == said
    assert seen(ledger).more == 0


def test_another_analysts_last_query_is_not_shown(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, analyst="ana", query="what ana asked")
    assert (seen(ledger, "ben").last, seen(ledger, "ben").more) == (None, None)
    assert seen(ledger, "ana", "wards").last is None


def test_a_plentiful_budget_is_not_counted_out(desk: "Desk") -> None:
    rich = "version: 1\ndatasets: {visits: {budget: {epsilon: 1000000}}}\nanalysts: {ana: {visits: {epsilon: 1000000}}}"
    ledger = desk.open(policy=rich)
    desk.spend(ledger, "0.001")
    assert seen(ledger).more == MANY
    assert f"more than {MANY} more" in seen(ledger).text()


def test_an_overview_has_a_form_for_programs(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, "1/3", dataset="wards")
    form = json.loads(json.dumps(seen(ledger, "ana", "wards").to_json()))
    assert form["largest_epsilon"].startswith("0.66666") or Fraction(form["largest_epsilon"]) < Fraction(2, 3)
    assert form["caps"][0] == {
        "scope": "analyst",
        "name": "ana",
        "per": None,
        "epsilon": "1",
        "delta": "0",
        "spent": "1/3",
        "left": form["largest_epsilon"],
        "composed": False,
    }


def test_an_overview_of_nobody_is_refused(desk: "Desk") -> None:
    ledger = desk.open()
    with pytest.raises(ParameterError, match="HB121"):
        seen(ledger, "eve")


def test_a_renewed_cap_is_shown_for_its_period(desk: "Desk") -> None:
    policy = """
version: 1
datasets: {visits: {budget: {epsilon: 3, renewal: {per: day, epsilon: 1}}}}
analysts: {ana: {visits: {epsilon: 3}}}
"""
    time = [20_000 * DAY]
    ledger = desk.open(policy=policy, clock=lambda: time[0])
    desk.spend(ledger, "0.6")
    assert "spent 0.6 of ε=1, 0.4 remaining, for everybody on visits today" in seen(ledger).text()
    time[0] += DAY
    assert "spent 0 of ε=1, 1 remaining, for everybody on visits today" in seen(ledger).text()
    desk.spend(ledger, "0.6")  # an equal charge, on another day
    assert "spent 0.6 of ε=1, 0.4 remaining, for everybody on visits today" in seen(ledger).text()


# --- history


def test_the_history_tells_charges_releases_and_what_has_none(desk: "Desk") -> None:
    ledger = desk.open()
    kept = desk.spend(ledger, "0.5", query="SELECT 1")
    ledger.record(kept, b"answer")
    desk.spend(ledger, "0.25", analyst="ben", query="SELECT 2")
    told = [line.text() for line in lines(ledger)]
    assert [line.split()[2] for line in told] == ["policy", "charge", "release", "charge"]
    assert told[1].endswith("ε=0.5  SELECT 1")
    assert told[2].endswith("of charge 2")
    assert told[3].endswith("ε=0.25  SELECT 2  (no release)")


def test_the_history_can_be_filtered(desk: "Desk") -> None:
    time = [20_000 * DAY]
    ledger = desk.open(clock=lambda: time[0])
    for analyst, dataset in (("ana", "visits"), ("ben", "visits"), ("ana", "wards")):
        desk.spend(ledger, analyst=analyst, dataset=dataset)
        time[0] += DAY

    def found(which: EntryFilter, **options: bool | int) -> list[int]:
        return [line.sequence for line in lines(ledger, which, **options)]

    assert found(EntryFilter()) == [1, 2, 3, 4]
    assert found(EntryFilter(kind="charge")) == [2, 3, 4]
    assert found(EntryFilter(analyst="ana")) == [2, 4]
    assert found(EntryFilter(analyst="ana", dataset="wards")) == [4]
    assert found(EntryFilter(since=20_001 * DAY, until=20_002 * DAY)) == [3]
    assert found(EntryFilter(), newest_first=True, limit=2) == [4, 3]
    assert found(EntryFilter(analyst="nobody")) == []
    with ledger.snapshot() as snapshot:
        first = next(snapshot.entries(EntryFilter(kind="charge")))
    assert first.sequence == 2
    assert found(EntryFilter(), unreleased=True) == [2, 3, 4]


def test_a_long_history_is_read_page_by_page(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.accounting.status._PAGE", 3)
    ledger = desk.open()
    for number in range(10):
        charge = desk.spend(ledger, "0.01")
        if number % 2:
            ledger.record(charge, b"x")
    assert [line.sequence for line in lines(ledger)] == list(range(1, 17))
    assert len(lines(ledger, unreleased=True)) == 5


def test_every_loss_is_shown_as_a_number(desk: "Desk") -> None:
    """Gaussian noise of variance 900 is 1/1800-zCDP; the best of all orders is the least that may be shown."""
    ledger = desk.open()
    ledger.charge(desk.request(event=GaussianEvent(1, Fraction(900))))
    ledger.charge(desk.request(event=ThresholdEvent(LaplaceEvent(1, Fraction(10)), keys=1, above=270)))
    gaussian, threshold = [line.epsilon for line in lines(ledger, EntryFilter(kind="charge"))]
    assert threshold == "ε=0.1, δ=9.86714e-13"
    epsilon, delta = (float(part.partition("=")[2]) for part in gaussian.split(", "))
    orders = (1 + 10 ** (place / 500) for place in range(-500, 2000))
    least = min(a / 1800 + log(1 - 1 / a) - log(a * 1e-9) / (a - 1) for a in orders)
    assert delta == 1e-9
    assert least * (1 - 1e-5) <= epsilon <= least * 1.05


def test_what_remains_falls_by_what_is_spent_and_the_rest_is_explained(desk: "Desk") -> None:
    """Six answers with Gaussian noise of ρ = 1/800 are ρ = 0.0075 together, far below the sum of their ε."""
    ledger = desk.open()
    assert seen(ledger).notes() == []
    before = {state.scope: state for state in seen(ledger).caps}["analyst"]
    for number in range(6):
        ledger.charge(desk.request(event=GaussianEvent(1, Fraction(400)), key=f"g{number}"))
    view = seen(ledger)
    after = {state.scope: state for state in view.caps}["analyst"]
    assert after.spent is not None
    assert before.left == after.epsilon == 2
    # one pure loss beside Gaussian noise costs the Gaussian filter a little more than its own ε
    assert Fraction(18, 10) < after.spent + after.left <= 2
    orders = (1 + 10 ** (place / 500) for place in range(-500, 2000))
    least = min(0.0075 * a + log(1 - 1 / a) - log(a * 1e-9) / (a - 1) for a in orders)
    assert 0.9 * least <= float(after.spent) <= least  # the conversion of ρ, which the Gaussian filter undercuts
    assert (before.composed, after.composed) == (False, True)
    assert COMPOSED in view.text()


def test_budgets_and_charges_print_decimals(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, "1/8", query="SELECT count(*)")
    shown = repr((seen(ledger), seen(ledger).caps))
    assert "Fraction" not in shown
    assert "spent 0.125 of ε=2, δ=1e-09, 1.875 remaining" in shown
    time = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    charge = PastCharge(7, time, "ana", "visits", "SELECT\x1b[2J", Fraction(1, 8), Fraction(0), released=False)
    assert repr(charge) == r"<7 2026-01-02 03:04 visits: ε=0.125 (no answer): SELECT\x1b[2J>"


def test_exports_hold_every_field_and_can_be_read_back(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, query='=HYPERLINK("evil")', key='@key,with "quotes"')
    told = lines(ledger)
    out = io.StringIO()
    write_json(told, out)
    read = json.loads(out.getvalue())
    assert [entry["query"] for entry in read] == ["", '=HYPERLINK("evil")']
    assert read[1]["previous"] == read[0]["hash"]
    out = io.StringIO(newline="")
    write_csv(told, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))
    assert rows[1]["query"] == '\'=HYPERLINK("evil")'  # a spreadsheet must not run what an analyst wrote
    assert rows[1]["key"] == '\'@key,with "quotes"'
    assert rows[1]["released"] == "False"
    empty = io.StringIO()
    write_json([], empty)
    assert json.loads(empty.getvalue()) == []


def test_a_query_cannot_steer_the_terminal_of_who_reads_it(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, query="SELECT 1 \x1b[2J\u202e")
    (line,) = lines(ledger, EntryFilter(kind="charge"))
    assert "\x1b" not in line.text()
    assert "\u202e" not in line.text()
    assert "\x1b" not in seen(ledger).text()


def test_a_line_is_a_class_and_equal_prices_are_worked_out_once() -> None:
    assert isinstance(inspection.HistoryLine, type)
    inspection._epsilon.cache_clear()
    facts = facts_text(LaplaceEvent(sensitivity=1, scale=Fraction(2)))
    assert [inspection._epsilon(facts) for _ in range(3)] == ["ε=0.5"] * 3
    assert inspection._epsilon.cache_info().misses == 1
