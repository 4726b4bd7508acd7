"""What all published tables share: the noise of several vectors under one price, and a prepared release."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import cast

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.tables.marginals import Marginal, OfMarginal
from hubbub.answers.estimate import Expected
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.aggregates.formula import TYPICAL_ROWS
from hubbub.sql.allocation import factor
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise, mechanism
from hubbub.sql.split import concentrated, portions


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent with one kind of noise: ε with Laplace noise, ρ with Gaussian."""

    noise: Noise
    amount: Fraction

    def spread(self, moved: Sensitivity, share: float = 1.0) -> float:
        """Give the standard deviation of the noise on a vector that gets a share."""
        amount = float(self.amount) * share
        return sqrt(2) * moved.l1 / amount if self.noise == "laplace" else sqrt(moved.l2_squared / (2 * amount))

    def mechanisms(self, moved: Sequence[Sensitivity], shares: Sequence[float]) -> tuple[Laplace | Gaussian, ...]:
        """Calibrate the noise of each vector to its share."""
        parts = portions(self.amount, list(shares))
        return tuple(mechanism(self.noise, each, part) for each, part in zip(moved, parts, strict=True))


def budgets(setting: Setting, noise: object) -> tuple[Budget, ...]:
    """Give the kinds of noise that may be used: the one that is insisted on, or each for which there is a budget."""
    if noise not in (None, "laplace", "gaussian"):
        raise QueryError("HB587", "the noise is 'laplace' or 'gaussian'.", "Leave it out to have the better one.")
    rho = concentrated(setting.epsilon, setting.delta)
    if noise == "gaussian" and not rho > 0:
        raise ParameterError("HB553", "Gaussian noise needs a δ that leaves it room.", "Give a δ, or raise ε.")
    found = [Budget("laplace", setting.epsilon)]
    if rho > 0:
        found.append(Budget("gaussian", rho))
    return tuple(each for each in found if noise in (None, each.noise))


def half_width(noise: Noise, deviation: float) -> float:
    """Give the ± of an estimate at 95%: exact for Gaussian noise, for a sum of Laplace noises on the safe side."""
    return factor(noise) * deviation


def expected(name: str, half: float) -> Expected:
    """Say what error to expect of a count."""
    return Expected(name, half, None, half / TYPICAL_ROWS)


@dataclass(frozen=True)
class Release(OfMarginal):
    """A prepared release: one marginal is asked of the engine, sums of its cells get noise, the rest is free.

    `publish` is given the run, and lets nothing out of the engine's counts but through `mechanisms`, each once.
    """

    budget: Budget
    mechanisms: tuple[Laplace | Gaussian, ...]
    derivation: tuple[str, ...]
    expected: tuple[Expected, ...]
    publish: Callable[[Run], Published]

    @property
    def delta(self) -> Fraction:
        """The δ of it: none with Laplace noise."""
        return self.setting.delta if self.budget.noise == "gaussian" else Fraction(0)

    @property
    def event(self) -> Event:
        """The facts that are charged."""
        return Composed(tuple((cast(Event, each.event), 1) for each in self.mechanisms))

    @property
    def noise(self) -> str:
        """The kind of noise."""
        return self.budget.noise

    def run(self, run: Run) -> Published:
        """Ask, add noise, and make what is published."""
        return self.publish(run)


def opening(marginal: Marginal, count: str) -> tuple[str, ...]:
    """Say what is counted, whose it is, and how much of it counts."""
    cells = f"{marginal.size:,} cells of {' × '.join(marginal.names) or 'the total'}"
    names = ", ".join(table.name for table in marginal.tables)
    if marginal.limits is None:
        whose = "each row is its own unit"
    else:
        whose = f"a unit counts in at most {marginal.limits.groups} cells"
        whose += f", with at most {marginal.limits.rows} rows in each" if count == "rows" else ""
    changed = "one unit more or less" if marginal.relation is Relation.ADD_REMOVE else "one unit replaced by another"
    return (f"count {count} of {names} in {cells}; {whose}", f"neighbors differ by {changed}")


def noised(what: str, moved: Sensitivity, each: Laplace | Gaussian) -> str:
    """Say how one vector's noise follows from its sensitivity."""
    if isinstance(each, Laplace):
        return f"{what}: moves by at most {moved.l1:,} (L1); Laplace noise of scale {brief(each.scale)}"
    return f"{what}: moves by at most √{moved.l2_squared:,} (L2); Gaussian noise of variance {brief(each.variance)}"


def free(name: str, taken: Collection[str]) -> str:
    """Give a column a name that no other has.

    >>> free("count", {"count", "age"})
    'count_'
    """
    while name in taken:
        name += "_"
    return name
