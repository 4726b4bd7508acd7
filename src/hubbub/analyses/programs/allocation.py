"""Split the privacy cost of a program over all noise that it draws, before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log

from hubbub.analyses.base import Setting
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise, standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget, noise_budgets

#: The samplers do not go beyond this scale.
_MAX_SCALE = Fraction(10**11)


@dataclass(frozen=True, slots=True)
class NoiseRequest:
    """One noise: its sensitivity, the share of the budget for all its draws, and how often it is drawn."""

    sensitivity: Sensitivity
    share: float
    times: int = 1


@dataclass(frozen=True, slots=True)
class BudgetAllocation:
    """The noises, in the order of the requests, and what they cost."""

    epsilon: Fraction
    delta: Fraction
    kind: Noise
    noises: tuple[AdditiveNoise, ...]
    event: Event


def allocate_budget(
    setting: Setting, requests: Sequence[NoiseRequest], *, kind: Noise | None = None
) -> BudgetAllocation:
    """Share ε, or the ρ that (ε, δ) allows, over the requests, with the smaller of Laplace and Gaussian noise.

    Theorem (Shared budget). Let portions p₁ + … + p_k ≤ ε, and let need i be drawn tᵢ times with Laplace noise of scale
    Dᵢ·tᵢ/pᵢ, Dᵢ its L1 sensitivity: all draws together are ε-private, also where each question depends on the answers
    before it. With portions of ρ and Gaussian noise of variance Dᵢ²·tᵢ/(2pᵢ), Dᵢ its L2 sensitivity, they are
    ρ-concentrated, hence (ε, δ)-private.
    Proof    Draw by draw the loss is pᵢ/tᵢ (of either kind); losses of a fixed list of mechanisms add up under adaptive
             choice of the functions. The conversion of ρ is that of `zcdp_budget`.
    Charges  Composed of all draws, tᵢ times each.
    Tested   tests/analyses/programs/test_allocation.py::test_price_of_all_draws_is_within_the_price_named
    """
    options = [
        (budget.noise, _noises(budget, requests)) for budget in noise_budgets(setting.epsilon, setting.delta, kind)
    ]
    # at a very large ε, a deviation is too small for a float
    best, noises = min(options, key=lambda option: sum(log(max(standard_deviation(n), 1e-300)) for n in option[1]))
    event = Composed(tuple((noise.event, request.times) for noise, request in zip(noises, requests, strict=True)))
    return BudgetAllocation(setting.epsilon, setting.delta if best == "gaussian" else Fraction(0), best, noises, event)


def describe_noise(noise: AdditiveNoise) -> str:
    """Give the sensitivity and the size of a noise, for people."""
    if isinstance(noise, Laplace):
        return f"L1 sensitivity {noise.sensitivity:,}: Laplace noise of scale {numbers.brief(noise.scale)}"
    squared = noise.sensitivity_squared
    return f"squared L2 sensitivity {squared:,}: Gaussian noise of variance {numbers.brief(noise.variance)}"


def _noises(budget: NoiseBudget, requests: Sequence[NoiseRequest]) -> tuple[AdditiveNoise, ...]:
    sensitivities = [request.sensitivity for request in requests]
    shares, times = [request.share for request in requests], [request.times for request in requests]
    for sensitivity, part in zip(sensitivities, budget.portions(shares, times), strict=True):
        if not part > 0 or max(sensitivity.l1, 1) / part > _MAX_SCALE:
            raise QueryError(
                "HB544",
                "At this ε the result would be almost entirely noise.",
                "Increase ε or ask for fewer rounds.",
            )
    return budget.mechanisms(sensitivities, shares, times)
