"""What a price buys: every noise that a program will draw, made before it starts, and the event that is charged."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

from hubbub.analyses.base import Setting
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.reals import floor_to
from hubbub.errors import QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise
from hubbub.sql.split import concentrated, portions

_PLACES = 24
#: Past this the samplers do not go.
_MOST = Fraction(10**11)

Additive = Laplace | Gaussian


@dataclass(frozen=True, slots=True)
class Need:
    """One noise: how far neighbors are apart, which share of the whole all its draws get, how often it is drawn."""

    moved: Sensitivity
    share: float
    times: int = 1


@dataclass(frozen=True, slots=True)
class BudgetAllocation:
    """The noises, in the order of the needs, and what they cost."""

    epsilon: Fraction
    delta: Fraction
    kind: Noise
    noises: tuple[Additive, ...]
    event: Event


def allocate_budget(setting: Setting, needs: Sequence[Need], *, kind: Noise | None = None) -> BudgetAllocation:
    """Share ε, or the ρ that (ε, δ) allows, over needs; of Laplace and Gaussian noise the smaller is taken.

    Theorem (Shared budget). Let portions p₁ + … + p_k ≤ ε, and let need i be drawn tᵢ times with Laplace noise of scale
    Dᵢ·tᵢ/pᵢ, Dᵢ its L1 sensitivity: all draws together are ε-private, also where each question depends on the answers
    before it. With portions of ρ and Gaussian noise of variance Dᵢ²·tᵢ/(2pᵢ), Dᵢ its L2 sensitivity, they are
    ρ-concentrated, hence (ε, δ)-private.
    Proof    Draw by draw the loss is pᵢ/tᵢ (of either kind); losses of a fixed list of mechanisms add up under adaptive
             choice of the functions. The conversion of ρ is that of `concentrated`.
    Charges  Together of all draws, tᵢ times each.
    Tested   tests/analyses/programs/test_allocation.py::test_price_of_all_draws_is_within_the_price_named
    """
    rho = concentrated(setting.epsilon, setting.delta)
    found = {"laplace": _noises("laplace", setting.epsilon, needs)} if kind != "gaussian" or not rho > 0 else {}
    if rho > 0 and kind != "laplace":
        found["gaussian"] = _noises("gaussian", rho, needs)
    best: Noise = "laplace"
    if "gaussian" in found and ("laplace" not in found or _loudness(found["gaussian"]) < _loudness(found["laplace"])):
        best = "gaussian"
    made = found[best]
    event = Composed(tuple((noise.event, need.times) for noise, need in zip(made, needs, strict=True)))
    return BudgetAllocation(setting.epsilon, setting.delta if best == "gaussian" else Fraction(0), best, made, event)


def deviation(noise: Additive) -> float:
    """Give the standard deviation of a noise, in steps."""
    variance = noise.variance
    return sqrt(variance[1] if isinstance(variance, tuple) else variance)


def said(noise: Additive) -> str:
    """Say how large a noise is."""
    if isinstance(noise, Laplace):
        return f"L1 sensitivity {noise.sensitivity:,}: Laplace noise of scale {numbers.brief(noise.scale)}"
    squared = noise.sensitivity_squared
    return f"squared L2 sensitivity {squared:,}: Gaussian noise of variance {numbers.brief(noise.variance)}"


def _noises(kind: Noise, budget: Fraction, needs: Sequence[Need]) -> tuple[Additive, ...]:
    parts = portions(budget, [need.share for need in needs])
    # floored to a decimal, so that the losses of all draws add up exactly and not above the whole
    each = [floor_to(part / need.times, _PLACES) for part, need in zip(parts, needs, strict=True)]
    return tuple(_noise(kind, need.moved, portion) for need, portion in zip(needs, each, strict=True))


def _noise(kind: Noise, moved: Sensitivity, portion: Fraction) -> Additive:
    if not portion > 0 or max(moved.l1, 1) / portion > _MOST:
        raise QueryError("HB544", "at this ε the noise would be beyond every use.", "Raise ε, or ask for fewer rounds.")
    if kind == "laplace":
        return Laplace(sensitivity=moved.l1, scale=max(moved.l1 / portion, numbers.SCALE_MIN))
    return Gaussian(
        sensitivity_squared=moved.l2_squared, variance=max(moved.l2_squared / (2 * portion), numbers.SCALE_MIN**2)
    )


def _loudness(noises: Sequence[Additive]) -> float:
    return sum(log(deviation(noise)) for noise in noises)
