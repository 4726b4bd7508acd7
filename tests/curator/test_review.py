"""An answer that somebody has to approve is in nobody's hands before, by any path."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.accounting.store import EntryFilter
from hubbub.curator.session import Session, open_session
from hubbub.errors import HubbubError, ParameterError, QueryError, ReviewError

Opener = Callable[..., Session]
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
TOTAL = "SELECT COUNT(*) AS n FROM visits WHERE region IN ('North', 'East')"
JOINED = "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.patient = labs.patient"
LABS = "SELECT COUNT(*) AS n FROM labs"
CALL = "CALL tabulate(table => 'visits', columns => ['region'])"


def rule(folder: Path, dataset: str, text: str) -> None:
    """Set the rule of a dataset in hubbub.yaml; an empty text removes it."""
    path = folder / "hubbub.yaml"
    lines = path.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.strip().startswith(f"{dataset}:"))
    if "review:" in lines[place + 1]:
        del lines[place + 1]
    if text:
        indent = len(lines[place + 1]) - len(lines[place + 1].lstrip())
        lines.insert(place + 1, " " * indent + f"review: {text}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def reviewed(clinic: Path, opened: Opener) -> Opener:
    """Open sessions under a rule of review."""

    def open_with(analyst: str = "ana", dataset: str = "visits", text: str = "true") -> Session:
        rule(clinic, dataset, text)
        return opened(analyst)

    return open_with


@contextmanager
def held() -> Iterator[None]:
    with pytest.raises(ReviewError, match="HB910"):
        yield


def number_of(h: Session) -> int:
    return max(each.id for each in h.releases())


@pytest.mark.parametrize(
    ("sql", "dataset"), [(COUNT, "visits"), (CALL, "visits"), (JOINED, "visits"), (JOINED, "labs"), (JOINED, "both")]
)
def test_no_path_shows_an_answer_before_its_review(opened: Opener, clinic: Path, sql: str, dataset: str) -> None:
    for name in ("visits", "labs") if dataset == "both" else (dataset,):
        rule(clinic, name, "true")
    h, other = opened(), opened()
    assert h.estimate(sql, epsilon="0.5").review
    for read in (h, other, h):
        with held():
            read.query(sql, epsilon="0.5")
    charges = {each.id for each in h.releases()}
    assert len(charges) == (2 if sql == JOINED else 1)
    for read in (h, other):
        assert [(each.released, each.review) for each in read.releases()] == [(False, "waiting")] * len(charges)
        with read._curator.ledger.snapshot() as snapshot:
            keys = [entry.key for entry in snapshot.entries(EntryFilter(kind="charge"))]
        for key in keys:
            with held():
                read._curator.recall("ana", key)
        for number in charges:
            with held():
                read.release(number)
            with held():
                read._curator.refuse_held_release(number)
            with pytest.raises(HubbubError, match=r"HB910|HB146"):
                read.query(f"SELECT * FROM release({number})")
        with held():
            read.query(sql, epsilon="0.5", free=True)
        with pytest.raises(ParameterError, match="HB167"):
            read.query(TOTAL, free=True)
        assert read.estimate(TOTAL, epsilon="0.1").free is None
    review = h._curator.reviews()[0]
    seen = h._curator.release(review.number, analyst=None)
    assert h._curator.decide(review.number, approve=True, by="stella").state == "approved"
    for read in (h, other):
        assert read.query(sql, epsilon="0.5").document() == seen.document()
        assert all(read.release(number).document() == seen.document() for number in charges)
        assert sql != COUNT or len(read.query(TOTAL, free=True).rows) == 1
    assert {each.id for each in h.releases() if each.epsilon} == charges
    assert h._curator.ledger.verify().sound


def test_a_declined_answer_stays_away_and_its_charge_stands(reviewed: Opener) -> None:
    h = reviewed()
    with held():
        h.query(COUNT, epsilon="0.5", key="mine")
    spent = h.budget()[0].caps[1].spent
    h._curator.decide(number_of(h), approve=False, by="stella", reason="cells too small")
    for _ in range(2):
        with pytest.raises(ReviewError, match=r"HB911.*declined: cells too small"):
            h.query(COUNT, epsilon="0.5", key="mine")
    with pytest.raises(ReviewError, match="declined"):
        h.release(number_of(h))
    assert h.budget()[0].caps[1].spent == spent == 0.5
    assert h.releases()[0].review == "declined"
    with pytest.raises(ReviewError, match="HB913"):
        h._curator.decide(number_of(h), approve=True, by="otto")


def test_several_people_must_be_different_and_not_who_asked(reviewed: Opener) -> None:
    h = reviewed(text="{people: 2}")
    decide = h._curator.decide
    with held():
        h.query(COUNT, epsilon="0.5")
    number = number_of(h)
    for by, approve, code in (("ana", True, "HB915"), (" ", True, "HB914"), ("stella", False, "HB914")):
        with pytest.raises(ReviewError, match=code):
            decide(number, approve=approve, by=by)
    assert decide(number, approve=True, by="stella").state == "waiting"
    with pytest.raises(ReviewError, match="HB915"):
        decide(number, approve=True, by="stella")
    with held():
        h.query(COUNT, epsilon="0.5")
    assert decide(number, approve=True, by="otto", reason="checked").state == "approved"
    assert len(h.query(COUNT, epsilon="0.5").rows) == 3
    with pytest.raises(ParameterError, match="HB146"):
        decide(number + 50, approve=True, by="otto")


def test_a_rule_names_answers_by_price_and_by_analysis(reviewed: Opener) -> None:
    h = reviewed(text="{above: 0.5, calls: true}")
    assert not h.estimate(COUNT, epsilon="0.5").review
    assert len(h.query(COUNT, epsilon="0.5").rows) == 3
    with pytest.raises(ReviewError, match="HB912"):
        h._curator.decide(number_of(h), approve=True, by="stella")
    for sql, price in ((COUNT, "0.51"), (CALL, "0.1"), ("SELECT MEDIAN(age) AS m FROM visits", "0.6")):
        assert h.estimate(sql, epsilon=price).review
        with held():
            h.query(sql, epsilon=price, fresh=True)
    assert len(h.query(TOTAL, free=True).rows) == 1  # from the answer that needs no review
    assert h.releases()[0].released
    assert h.releases()[0].epsilon == 0


def test_an_approval_is_of_one_query_and_not_of_its_key(clinic: Path, opened: Opener) -> None:
    """An analyst may give one key to queries on different datasets; whoever approves one has not seen the other."""
    for name in ("visits", "labs"):
        rule(clinic, name, "true")
    h = opened()
    with held():
        h.query(COUNT, epsilon="0.5", key="mine")
    decide, first = h._curator.decide, number_of(h)
    decide(first, approve=True, by="stella")
    shown = h.query(COUNT, epsilon="0.5", key="mine")
    with held():
        h.query(LABS, epsilon="0.5", key="mine")
    second = number_of(h)
    for read in (h, opened()):  # one that read the decision before the second charge, and one after it
        states = [(each.number, each.state) for each in read._curator.reviews()]
        assert states == [(second, "waiting"), (first, "approved")]
        with held():
            read.release(second)
        with held():
            read.query(LABS, epsilon="0.5", key="mine")
    decide(second, approve=False, by="stella", reason="no")
    with pytest.raises(ReviewError, match="HB911"):
        h.query(LABS, epsilon="0.5", key="mine")
    assert shown.receipt["ledger"][0]["sequence"] == first


def test_an_answer_that_waits_is_not_bought_twice(reviewed: Opener) -> None:
    """A combined answer is bought under a new key each time, so it cannot be asked for until it was approved."""
    h = reviewed()
    with held():
        h.query(TOTAL, epsilon="0.1")
    h._curator.decide(number_of(h), approve=True, by="stella")
    free = h.estimate(TOTAL, epsilon="0.12").free
    assert free is not None
    assert free.combined is None
    for _ in range(2):
        with held():
            h.query(TOTAL, epsilon="0.12", combine=True)
    assert h.budget()[0].caps[1].spent == Fraction("0.22")


def test_a_scope_counts_a_charge_whose_answer_waits(reviewed: Opener) -> None:
    """A refusal before the charge is given back; this one comes after it."""
    with reviewed() as h, h.scope(epsilon=1) as scope:
        with held():
            scope.query(COUNT, epsilon="0.6")
        assert scope.left == Fraction("0.4")


def test_the_rule_is_that_of_the_charge(reviewed: Opener) -> None:
    with reviewed(text="") as h:
        before = h.query(COUNT, epsilon="0.5")
    with reviewed() as h:
        assert h.query(COUNT, epsilon="0.5").document() == before.document()
        with held():
            h.query(TOTAL, epsilon="0.4", fresh=True)
        waiting = number_of(h)
    with reviewed(text="") as h, held():
        h.release(waiting)


def test_another_process_cannot_derive_what_waits(reviewed: Opener, opened: Opener) -> None:
    """A second curator has read the ledger before the charge, and reads it again with the release in it."""
    h, other = reviewed(), opened()
    assert other.releases() == ()
    with held():
        h.query(COUNT, epsilon="0.5")
    with pytest.raises(ParameterError, match="HB167"):
        other.query(TOTAL, free=True)
    with held():
        other.query(TOTAL, epsilon="0.01")  # charged by itself: it does not follow from the one that waits


def test_shared_answers_wait_too(clinic: Path, opened: Opener) -> None:
    rule(clinic, "visits", "true")
    path = clinic / "hubbub.yaml"
    path.write_text(path.read_text().replace("    review: true", "    review: true\n    share: everyone"))
    ana, ben = opened("ana"), opened("ben")
    with held():
        ana.query(COUNT, epsilon="0.5")
    for sql in (COUNT, TOTAL):
        with pytest.raises(ParameterError, match="HB167"):
            ben.query(sql, epsilon="0.5", free=True)
        assert ben.estimate(sql, epsilon="0.1").free is None
    ana._curator.decide(number_of(ana), approve=True, by="stella")
    assert len(ben.query(COUNT, epsilon="0.5").rows) == 3
    assert all(each.epsilon == 0 for each in ben.releases())


@pytest.mark.parametrize(
    "sql",
    [
        "CALL stream(name => 's', table => 'visits', horizon => 8)",
        "CALL above_threshold(name => 's', table => 'visits', hits => 1, questions => 5)",
    ],
)
def test_answers_over_time_are_refused(reviewed: Opener, sql: str) -> None:
    h = reviewed()
    for ask in (h.estimate, h.query):
        with pytest.raises(QueryError, match="HB796"):
            ask(sql, epsilon="0.5")
    assert h.releases() == ()


def test_the_owner_publishes_a_profile_without_review(reviewed: Opener) -> None:
    h = reviewed()
    assert h.profile("visits", epsilon="0.5").rows
    with held():
        h.query("CALL profile(table => 'visits')", epsilon="0.5", key="profile")


@pytest.mark.parametrize("text", ["2", "{people: 0}", "{people: 6}", "{above: -1}", "{calls: 1}", "{when: always}"])
def test_a_rule_that_cannot_be_read_is_refused(clinic: Path, text: str) -> None:
    rule(clinic, "visits", text)
    with pytest.raises(HubbubError, match=r"datasets\.visits\.review"):
        open_session(clinic / "hubbub.yaml", analyst="ana")
