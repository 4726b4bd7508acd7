"""What a request would change, in words: prices and promises are worked out by hand."""

from datetime import UTC, datetime
from fractions import Fraction

from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import Cap, Policy
from hubbub.answers.budget import PastCharge
from hubbub.server.request_effect import request_effect

NONE = Fraction(0)


def _policy() -> Policy:
    caps = {name: Cap("analyst", name, "visits", Budget(Fraction(1), NONE)) for name in ("ana", "ben")}
    return Policy(
        {"visits": (Cap("dataset", "", "visits", Budget(Fraction(3), NONE)),)},
        {name: {"visits": cap} for name, cap in caps.items()},
        {"guests": (("ben",), {"visits": Cap("group", "guests", "visits", Budget(Fraction(2), NONE))})},
    )


def _charge(number: int, epsilon: Fraction, dataset: str = "visits") -> PastCharge:
    return PastCharge(number, datetime(2026, 1, 1, tzinfo=UTC), "ana", dataset, "", epsilon, NONE, released=True)


def test_a_request_is_described_by_what_it_buys_and_by_the_promise() -> None:
    past = [_charge(i, Fraction(i, 10)) for i in (1, 2, 9)] + [_charge(4, Fraction(5), "wards")]
    bought, own, whole = request_effect(_policy(), "ana", "visits", Fraction(1), past)
    assert bought == "It buys about 5 more queries at ε = 0.2, the median price of ana's last 3."
    # e/(1 + e) = 73.1% and e²/(1 + e²) = 88.1%, rounded up
    assert "ε = 2 instead of 1" in own
    assert own.endswith("from ana's answers: 88.1% (now: 73.2%).")
    # e³/(1 + e³) = 95.26%
    assert whole == "The promise for all analysts together does not change: ε = 3, 95.3%."


def test_a_request_beyond_the_cap_says_how_much_can_be_approved() -> None:
    lines = request_effect(_policy(), "ben", "visits", Fraction(5, 2), [])
    assert lines[-2] == "It passes the cap of the dataset: at most ε = 2 can be approved."
    assert lines[-1] == "The caps of guests hold as well, and do not change."
