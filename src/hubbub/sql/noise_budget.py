"""Split a privacy budget over several noises, with the kinds of noise that (ε, δ) allows.

Tested in tests/sql/test_plan.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from hubbub.core.reals import floor_to
from hubbub.errors import ParameterError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.allocation import deviations_at_level
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise, calibrate_noise
from hubbub.sql.split import gaussian_variance, portions, zcdp_budget

AdditiveNoise = Laplace | Gaussian

_PLACES = 24


@dataclass(frozen=True, slots=True)
class NoiseBudget:
    """What may be spent on one kind of noise: ε on Laplace noise, ρ on Gaussian."""

    noise: Noise
    amount: Fraction

    def deviation(self, sensitivity: Sensitivity, share: float = 1.0) -> float:
        """Give the standard deviation of the noise on a vector that gets a share of the budget, as it is calibrated."""
        amount = float(self.amount) * share
        if self.noise == "laplace":
            return sqrt(2) * sensitivity.l1 / amount
        return sqrt(gaussian_variance(max(1, sensitivity.l2_squared), Fraction(amount)))

    def portions(self, shares: Sequence[float], times: Sequence[int] | None = None) -> tuple[Fraction, ...]:
        """Split the budget; where a noise is drawn several times, give what one draw gets."""
        parts = portions(self.amount, shares)
        if times is None:
            return parts
        # rounded down to a decimal, so that the losses of all draws add up exactly to at most the whole
        return tuple(floor_to(part / count, _PLACES) for part, count in zip(parts, times, strict=True))

    def mechanisms(
        self, sensitivities: Sequence[Sensitivity], shares: Sequence[float], times: Sequence[int] | None = None
    ) -> tuple[AdditiveNoise, ...]:
        """Calibrate the noise of each vector to its share."""
        parts = self.portions(shares, times)
        return tuple(calibrate_noise(self.noise, each, part) for each, part in zip(sensitivities, parts, strict=True))

    def half_width(self, deviation: float) -> float:
        """Give the ± at 95% of an estimate: exact for Gaussian noise, conservative for a sum of Laplace noises."""
        return deviations_at_level(self.noise) * deviation


def noise_budgets(epsilon: Fraction, delta: Fraction, noise: Noise | None = None) -> tuple[NoiseBudget, ...]:
    """Give the budget for each kind of noise that can be used, or for the requested kind only."""
    rho = zcdp_budget(epsilon, delta)
    if noise == "gaussian" and not rho > 0:
        raise ParameterError("HB553", "Gaussian noise needs a larger δ or ε.", "Set a δ, or increase ε.")
    budgets = [NoiseBudget("laplace", epsilon)]
    if rho > 0:
        budgets.append(NoiseBudget("gaussian", rho))
    return tuple(budget for budget in budgets if noise in (None, budget.noise))
