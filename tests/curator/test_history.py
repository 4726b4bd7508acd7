"""What was asked before, read again from the ledger."""

from fractions import Fraction
from typing import Any

import pytest

from hubbub.curator.question import Question
from hubbub.errors import ParameterError, RunError

COUNT = "SELECT COUNT(*) AS n FROM visits"
JOINED = "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.patient = labs.patient"


def test_releases_are_listed_newest_first_and_given_again(session: Any) -> None:
    curator = session._curator
    made = [session.query(COUNT, epsilon="0.1", key=f"{number}") for number in range(4)]
    listed = curator.releases("ana", limit=3)
    assert [each.id for each in listed] == sorted((each.id for each in listed), reverse=True)
    rest = curator.releases("ana", limit=3, before=listed[-1].id)
    assert len(listed + rest) == 4
    again = [curator.release(each.id, analyst="ana") for each in reversed(listed + rest)]
    assert [each.document() for each in again] == [each.document() for each in made]
    assert all(each.replayed and each.left == Fraction("7.6") for each in again)
    assert all(each.released and each.epsilon == Fraction(1, 10) for each in listed + rest)


def test_a_query_on_two_tables_is_released_under_both_of_its_charges(session: Any) -> None:
    curator = session._curator
    made = session.query(JOINED, epsilon="0.5", rows=1, groups=1)
    listed = curator.releases("ana")
    assert {each.dataset for each in listed} == {"visits", "labs"}
    for each in listed:
        assert each.released
        assert curator.release(each.id, analyst="ana").document() == made.document()


def test_the_price_of_gaussian_noise_is_the_one_that_was_agreed_on(session: Any) -> None:
    sums = ", ".join(f"SUM(cost + {number}) AS s{number}" for number in range(12))
    made = session.query(f"SELECT {sums} FROM visits", epsilon="1", groups=1, rows=1)
    (listed,) = session._curator.releases("ana")
    assert listed.epsilon == made.epsilon == 1
    assert listed.delta == made.delta


def test_gaussian_noise_without_an_answer_has_a_price_too(session: Any) -> None:
    """The price is computed from the noise, so it may differ a little from the ε that was asked for."""
    curator = session._curator
    run = curator.engine.run

    def broken(_: str) -> None:
        raise ValueError

    curator.engine.run = broken
    sums = ", ".join(f"SUM(cost + {number}) AS s{number}" for number in range(12))
    with pytest.raises(RunError):
        session.query(f"SELECT {sums} FROM visits", epsilon="1", groups=1, rows=1)
    curator.engine.run = run
    (listed,) = session.releases()
    assert not listed.released
    assert listed.delta > 0
    assert Fraction("0.9") < listed.epsilon < Fraction("1.1")


def test_a_charge_without_an_answer_has_no_release(session: Any) -> None:
    curator = session._curator

    def broken(_: str) -> None:
        raise ValueError

    curator.engine.run = broken
    with pytest.raises(Exception, match="HB900"):
        session.query(COUNT, epsilon="0.1")
    (listed,) = curator.releases("ana")
    assert not listed.released
    with pytest.raises(ParameterError, match="HB146"):
        curator.release(listed.id, analyst="ana")


def test_what_others_asked_is_not_there(opened: Any) -> None:
    ana = opened("ana")
    ana.query(COUNT, epsilon="0.1")
    curator = ana._curator
    (listed,) = curator.releases("ana")
    assert curator.releases("ben") == ()
    for number, analyst in ((listed.id, "ben"), (999, "ana"), (0, None)):
        with pytest.raises(ParameterError, match="HB146"):
            curator.release(number, analyst=analyst)
    assert curator.release(listed.id, analyst=None).replayed


def test_a_release_is_found_by_the_ledgers_key(session: Any) -> None:
    curator, seen = session._curator, []

    def claim(key: str) -> str:
        seen.append(key)
        return key

    question = Question(COUNT, epsilon="0.1")
    assert curator.recall("ana", "plan of nothing visits") is None
    made = curator.query("ana", question, claim=claim)
    assert curator.recall("ana", seen[0]).document() == made.document()
    assert curator.recall("ben", seen[0]) is None
    # another try is charged under the name of the first, whatever it would have taken itself
    again = curator.query("ana", question, key="another", claim=lambda _: seen[0])
    assert again.document() == made.document()
    assert curator.budget("ana")[0].caps[1].spent == Fraction(1, 10)
