from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.disclosure import epsilon_under, remaining
from hubbub.accounting.filters import Budget
from hubbub.accounting.refusal import CapError
from hubbub.core.events import GaussianEvent, LaplaceEvent, ResponseEvent, ThresholdEvent
from hubbub.core.numbers import brief, round_down

if TYPE_CHECKING:
    from tests.accounting.conftest import Desk

    from hubbub.accounting.ledger import Ledger


def refused(desk: "Desk", ledger: "Ledger", epsilon: str, **asked: str) -> CapError:
    with pytest.raises(CapError) as refusal:
        desk.spend(ledger, epsilon, **asked)
    return refusal.value


def test_a_refusal_names_the_cap_what_is_left_and_what_would_pass(desk: "Desk") -> None:
    ledger = desk.open()
    for _ in range(4):
        desk.spend(ledger, "0.425")
    error = refused(desk, ledger, "0.5")
    assert str(error) == (
        "HB201 Not enough budget: this query costs ε=0.5, but only 0.3 is left for ana on visits. "
        "Nothing was run or charged.\n"
        "      Use at most ε=0.3: --epsilon 0.3"
    )
    assert error.largest == Fraction(3, 10)
    desk.spend(ledger, "0.3")


def test_the_group_and_the_data_set_are_named_too(desk: "Desk") -> None:
    ledger = desk.open()
    for _ in range(4):
        desk.spend(ledger, "0.5")
        desk.spend(ledger, "0.2", analyst="ben")
    error = refused(desk, ledger, "0.3", analyst="ben")
    assert "possibly only 0 is left for the group interns on visits" in error.message  # 0.2 are, in tenths of 3
    assert "Less than a tenth" in error.remedy
    assert "0.5 is allowed for one query on visits" in refused(desk, ledger, "0.6", analyst="cleo").message


def test_the_largest_epsilon_is_that_of_the_tightest_cap(desk: "Desk") -> None:
    ledger = desk.open()
    for _ in range(6):
        desk.spend(ledger, "0.45", analyst="ben")
    error = refused(desk, ledger, "0.55", analyst="ana")
    assert "for one query" in error.message
    assert error.largest == Fraction(3, 10)  # the group has less than the query may cost


def test_where_nothing_is_left_it_says_whom_to_ask(desk: "Desk") -> None:
    ledger = desk.open()
    desk.spend(ledger, "1", dataset="wards")
    error = refused(desk, ledger, "0.1", dataset="wards")
    assert "0 is left for ana on wards" in error.message
    assert "Ask the data owner to raise it" in error.remedy


@pytest.mark.parametrize("spends", [["0.3", "0.35"], ["0.123456789"], ["1/3"], ["0.5", "0.49999"]])
def test_what_the_refusal_offers_passes_when_typed(desk: "Desk", spends: list[str]) -> None:
    ledger = desk.open()
    for epsilon in spends:
        desk.spend(ledger, epsilon, dataset="wards")
    error = refused(desk, ledger, "1", dataset="wards")
    desk.spend(ledger, error.remedy.rpartition(" ")[2], dataset="wards")


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_a_number_that_is_shown_down_never_grows(value: Fraction) -> None:
    shown = Fraction(round_down(value))
    assert value * (1 - Fraction(1, 10**5)) <= shown <= value


def test_what_a_delta_is_left_is_said(desk: "Desk") -> None:
    ledger = desk.open()
    event = ThresholdEvent(LaplaceEvent(1, Fraction(10)), keys=1, above=229)
    ledger.charge(desk.request(event=event))
    with pytest.raises(CapError) as refusal:
        ledger.charge(desk.request(event=event))
    assert f"costs δ={brief(privacy_cost(event).delta)}" in refusal.value.message
    assert "only δ=4.04e-11 is left" in refusal.value.message
    assert "ε=" not in refusal.value.message + refusal.value.remedy
    # a tenth of the δ that is offered is a hundredth of what is left
    offered = Fraction(refusal.value.remedy.partition("--delta ")[2].partition(". Or")[0])
    assert offered / 10 <= Fraction("4.05e-13")
    small = ThresholdEvent(LaplaceEvent(1, Fraction(10)), keys=1, above=282)
    assert offered / 20 <= privacy_cost(small).delta <= offered / 10
    ledger.charge(desk.request(event=small))


def test_where_epsilon_is_short_delta_is_not_blamed(desk: "Desk") -> None:
    """Laplace noise with a threshold whose δ fits and whose ε does not."""
    ledger = desk.open()
    with pytest.raises(CapError) as refusal:
        ledger.charge(desk.request(event=ThresholdEvent(LaplaceEvent(1, Fraction(1, 4)), keys=1, above=100)))
    assert "costs ε=4" in refusal.value.message
    assert "Use at most ε=" in refusal.value.remedy


def test_a_gaussian_under_a_cap_without_delta_has_no_cost_as_epsilon() -> None:
    gaussian = privacy_cost(GaussianEvent(1, Fraction(100)))
    assert epsilon_under(Budget(Fraction(1), Fraction(0)), gaussian) is None
    assert epsilon_under(Budget(Fraction(1), Fraction(1, 10**9)), gaussian) is not None
    assert epsilon_under(Budget(Fraction(1), Fraction(0)), privacy_cost(LaplaceEvent(1, Fraction(2)))) == Fraction(1, 2)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
def test_what_is_left_is_the_largest_that_is_admitted(delta: Fraction) -> None:
    from hubbub.accounting.filters import admits

    budget = Budget(Fraction(2), delta)
    for spent in (
        ZERO,
        privacy_cost(LaplaceEvent(1, Fraction(10))).times(13),
        privacy_cost(ResponseEvent(2, Fraction("1.7"))),
    ):
        room = remaining(budget, spent)
        assert admits(budget, spent, privacy_cost(ResponseEvent(2, room)))
        assert not admits(budget, spent, privacy_cost(ResponseEvent(2, room + Fraction(1, 10**8))))
