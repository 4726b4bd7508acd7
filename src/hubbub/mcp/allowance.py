"""How much an assistant may spend without asking again: an amount that a person set in advance.

Tested in tests/mcp/test_allowance.py.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class PrivacyAmount:
    """An ε and a δ."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def fits(self, other: "PrivacyAmount") -> bool:
        """Return whether both numbers are at most those of another amount."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def __add__(self, other: "PrivacyAmount") -> "PrivacyAmount":
        return PrivacyAmount(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: "PrivacyAmount") -> "PrivacyAmount":
        return PrivacyAmount(self.epsilon - other.epsilon, self.delta - other.delta)


class Allowance:
    """What one assistant has spent, and the charges that count in it. Safe to use from many threads.

    Theorem (Allowance). However many calls run at once, the amounts that are reserved and not given back never exceed
    the largest amount that was passed as `allowed`.
    Proof    `reserve` compares and adds under one lock, in exact fractions. An amount is given back only for a call
             that was refused before any charge, or whose charge already counts here under another reservation.
    Assumes  the curator charges no more than the stated cost of a query; if it ever did, `settle` counts the excess, so
             that nothing more fits.
    Tested   tests/mcp/test_allowance.py::test_no_number_of_threads_reserves_more_than_is_allowed
             tests/mcp/test_allowance.py::test_a_charge_counts_once_however_many_calls_share_it
    """

    def __init__(self) -> None:
        self._spent = PrivacyAmount()
        self._counted: set[int] = set()
        self._lock = threading.Lock()

    @property
    def spent(self) -> PrivacyAmount:
        """What is spent or reserved."""
        with self._lock:
            return self._spent

    def left(self, allowed: PrivacyAmount) -> PrivacyAmount:
        """What is left of an allowed amount; never negative."""
        rest = allowed - self.spent
        return PrivacyAmount(max(Fraction(0), rest.epsilon), max(Fraction(0), rest.delta))

    def reserve(self, amount: PrivacyAmount, allowed: PrivacyAmount) -> bool:
        """Reserve an amount if it fits into what is allowed; return whether it did."""
        if not (amount.epsilon >= 0 and amount.delta >= 0):
            return False
        with self._lock:
            if not (self._spent + amount).fits(allowed):
                return False
            self._spent += amount
            return True

    def give_back(self, amount: PrivacyAmount) -> None:
        """Give back a reservation whose call was refused before any charge."""
        with self._lock:
            self._spent -= amount

    def settle(self, amount: PrivacyAmount, charges: Iterable[int], charged: PrivacyAmount) -> bool:
        """Count the charges of an answer once; return whether this call paid for it.

        If all of them were counted before, another call with the same charge has paid, and the reservation goes back.
        """
        numbers = set(charges)
        with self._lock:
            if numbers <= self._counted:
                self._spent -= amount
                return False
            self._counted |= numbers
            self._spent += PrivacyAmount(
                max(Fraction(0), charged.epsilon - amount.epsilon), max(Fraction(0), charged.delta - amount.delta)
            )
            return True

    def note(self, charges: Iterable[int]) -> None:
        """Note charges that a person approved one by one: they do not count, and nothing else counts them."""
        with self._lock:
            self._counted |= set(charges)
