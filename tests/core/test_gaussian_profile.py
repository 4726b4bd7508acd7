"""The search for the least variance: short, and the same wherever it begins."""

from fractions import Fraction

import pytest

from hubbub.core import gaussian_profile
from hubbub.core.gaussian_profile import calibrated, least_variance, profile
from hubbub.core.interval import Interval

PRICES = [("0.02", "1e-6"), ("1", "1e-9"), ("8", "0.01"), ("0.000001", "1e-30"), ("40", "1e-12"), ("0", "0.001")]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """Collect the variances whose profile is computed."""
    asked = list[Fraction]()

    def profiled(*, epsilon: Fraction, sensitivity_squared: int, variance: Fraction) -> Interval:
        asked.append(variance)
        return profile(epsilon=epsilon, sensitivity_squared=sensitivity_squared, variance=variance)

    monkeypatch.setattr(gaussian_profile, "profile", profiled)
    return asked


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_the_least_variance_is_enough_and_a_12th_digit_less_is_not(
    epsilon: str, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(monkeypatch)
    found = least_variance(Fraction(epsilon), Fraction(delta))
    assert len(asked) <= 16
    for variance, enough in ((found, True), (found * (1 - Fraction(1, 10**10)), False)):
        upper = profile(epsilon=Fraction(epsilon), sensitivity_squared=1, variance=variance).high
        assert (upper <= Fraction(delta)) == enough


def test_a_bad_guess_changes_nothing() -> None:
    """Stored events have these variances, so they must never change: the figure was found by bisection alone."""

    def search(guess: float | None) -> Fraction:
        return calibrated(
            lambda v: profile(epsilon=Fraction(1), sensitivity_squared=1, variance=v),
            Fraction(1, 10**6),
            Fraction(1, 10**20),
            Fraction(10) ** 60,
            guess,
        )

    plain = search(None)
    assert plain == Fraction("17.847911717924")
    for guess in (1e-15, 1.0, 17.847911717924, 17.9, 1e20, 1e70):
        assert search(guess) == plain
