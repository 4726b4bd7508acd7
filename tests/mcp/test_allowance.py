"""An allowance is never overspent, and one charge counts once."""

import threading
from fractions import Fraction

import pytest

from hubbub.mcp.allowance import Allowance, PrivacyAmount


def amount(epsilon: str, delta: str = "0") -> PrivacyAmount:
    return PrivacyAmount(Fraction(epsilon), Fraction(delta))


def test_no_number_of_threads_reserves_more_than_is_allowed() -> None:
    allowance, allowed, taken = Allowance(), amount("1"), list[PrivacyAmount]()
    ready = threading.Barrier(8)

    def spend() -> None:
        ready.wait()
        for _ in range(200):
            if allowance.reserve(amount("0.03"), allowed):
                taken.append(amount("0.03"))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 33
    assert allowance.spent.epsilon == Fraction(99, 100)
    assert allowance.left(allowed).epsilon == Fraction(1, 100)


@pytest.mark.parametrize("wanted", [amount("1.01"), amount("0.5", "1e-9"), amount("-1"), amount("0.1", "-1e-9")])
def test_an_amount_that_does_not_fit_is_not_reserved(wanted: PrivacyAmount) -> None:
    allowance = Allowance()
    assert not allowance.reserve(wanted, amount("1"))
    assert allowance.spent == amount("0")


def test_a_charge_counts_once_however_many_calls_share_it() -> None:
    allowance, allowed = Allowance(), amount("1")
    assert allowance.reserve(amount("0.4"), allowed)
    assert allowance.reserve(amount("0.4"), allowed)
    assert allowance.settle(amount("0.4"), [7], amount("0.4"))
    assert not allowance.settle(amount("0.4"), [7], amount("0.4"))
    assert allowance.spent == amount("0.4")
    # a query over two tables has two charges; one new charge among them is enough to count
    assert allowance.reserve(amount("0.1"), allowed)
    assert allowance.settle(amount("0.1"), [7, 8], amount("0.1"))
    assert allowance.spent == amount("0.5")


def test_what_a_person_approved_one_by_one_does_not_count() -> None:
    allowance, allowed = Allowance(), amount("1")
    assert allowance.reserve(amount("0.4"), allowed)
    allowance.note([5])
    assert not allowance.settle(amount("0.4"), [5], amount("0.4"))
    assert allowance.spent == amount("0")


def test_a_charge_above_its_estimate_counts_in_full_and_nothing_more_fits() -> None:
    allowance, allowed = Allowance(), amount("1")
    assert allowance.reserve(amount("0.5"), allowed)
    assert allowance.settle(amount("0.5"), [3], amount("1.5"))
    assert allowance.spent == amount("1.5")
    assert allowance.left(allowed) == amount("0")
    assert not allowance.reserve(amount("0.001"), allowed)


def test_what_was_given_back_can_be_spent() -> None:
    allowance, allowed = Allowance(), amount("1")
    assert allowance.reserve(amount("1"), allowed)
    allowance.give_back(amount("1"))
    assert allowance.reserve(amount("1"), allowed)
