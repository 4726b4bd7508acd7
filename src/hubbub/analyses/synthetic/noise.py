"""All noise that a synthesis draws: for the counts of columns, the selection of pairs, their counts, and the report.

Tested in tests/analyses/synthetic/test_synthetic.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import cast

from hubbub.analyses.tables.marginals import Marginal
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import calibrate_noise
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget
from hubbub.sql.split import portions


@dataclass(frozen=True)
class SynthesisNoise:
    """The noise of a synthesis.

    pairs       how many pairs of columns are selected and measured
    shares      of the budget: columns, selections, pairs, report
    ones, twos  the marginals of single columns, and of all pairs
    others      in how many pairs a column is at most; by default it is in one with each other column
    """

    budget: NoiseBudget
    pairs: int
    shares: Mapping[str, float]
    ones: tuple[Marginal, ...]
    twos: tuple[Marginal, ...]
    others: int | None = None

    @property
    def partners(self) -> int:
        """In how many pairs a column is at most."""
        return len(self.ones) - 1 if self.others is None else self.others

    @property
    def relation(self) -> Relation:
        """Which datasets are neighbors."""
        return self.ones[0].relation

    @cached_property
    def _parts(self) -> dict[str, Fraction]:
        return dict(zip(self.shares, portions(self.budget.amount, list(self.shares.values())), strict=True))

    @cached_property
    def _of_columns(self) -> tuple[Fraction, ...]:
        return portions(self._parts["columns"], [1.0] * len(self.ones))

    @cached_property
    def counted(self) -> tuple[AdditiveNoise, ...]:
        """The noise on the counts of each column."""
        return tuple(
            calibrate_noise(self.budget.noise, each.sensitivity, part)
            for each, part in zip(self.ones, self._of_columns, strict=True)
        )

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of the sums of any pair, however coarse."""
        bounds = [each.sensitivity for each in self.twos] + [each.part(each.size - 1) for each in self.twos]
        return Sensitivity(max(each.l1 for each in bounds), max(each.l2_squared for each in bounds))

    @cached_property
    def measured(self) -> AdditiveNoise:
        """The noise on the counts of each selected pair."""
        return calibrate_noise(self.budget.noise, self.sensitivity, self._of_each_pair("pairs"))

    def selection(self, candidates: int) -> Exponential:
        """Select one of several candidates; the event does not depend on their number."""
        part = self._of_each_pair("selections")
        # see `zcdp_budget`: the Gaussian filter charges (11/7)·ε²/4 for a range of ε
        epsilon = part if self.budget.noise == "laplace" else root_below(Fraction(56, 11) * part)
        return Exponential.from_epsilon(
            candidates=candidates,
            sensitivity=self.sensitivity.l1,
            monotone=False,
            relation=self.relation,
            epsilon=epsilon,
        )

    @cached_property
    def reported(self) -> tuple[AdditiveNoise, ...]:
        """The noise on the report: the error of each column, and that of its pairs."""
        d = len(self.ones)
        off = max(each.sensitivity.l1 for each in self.ones)
        vectors = [Sensitivity(d * off, d * off**2)]
        if self.partners:
            l1 = self.partners * self.sensitivity.l1
            vectors.append(Sensitivity(d * l1, d * l1**2))
        return NoiseBudget(self.budget.noise, self._parts["report"]).mechanisms(vectors, [1.0] * len(vectors))

    @property
    def event(self) -> Composed:
        """The facts that are charged."""
        parts = [(cast(Event, each.event), 1) for each in (*self.counted, *self.reported)]
        if self.pairs:
            parts += [
                (cast(Event, self.measured.event), self.pairs),
                (cast(Event, self.selection(1).event), self.pairs),
            ]
        return Composed(tuple(parts))

    @property
    def derivation(self) -> tuple[str, ...]:
        """How the noise follows from the declarations."""
        kind = "Laplace" if self.budget.noise == "laplace" else "Gaussian"
        changed = "one unit more or less" if self.relation is Relation.ADD_REMOVE else "one unit replaced by another"
        of_columns = NoiseBudget(self.budget.noise, self._of_columns[0]).deviation(self.ones[0].sensitivity)
        lines = [
            f"neighbors differ by {changed}",
            f"{self.shares['columns']:.0%} for the counts of {len(self.ones)} columns: {kind} noise of standard "
            f"deviation {of_columns:.4g}",
        ]
        if self.pairs:
            of_pairs = NoiseBudget(self.budget.noise, self._of_each_pair("pairs")).deviation(self.sensitivity)
            lines += [
                f"{self.shares['selections']:.0%} for the selection of {self.pairs} pairs of columns: exponential "
                f"mechanism at ε = {brief(self.selection(1).epsilon)} each; a score moves by at most "
                f"{self.sensitivity.l1:,}",
                f"{self.shares['pairs']:.0%} for the counts of these pairs: {kind} noise of standard deviation "
                f"{of_pairs:.4g}",
            ]
        return (
            *lines,
            f"{self.shares['report']:.0%} for the report on how far the rows are off",
            "the rows are drawn from a model that was told from these noisy counts alone",
        )

    def _of_each_pair(self, share: str) -> Fraction:
        """Give the portion of each selected pair."""
        return portions(self._parts[share], [1.0] * self.pairs)[0]


def root_below(square: Fraction) -> Fraction:
    """Give the square root, rounded down.

    >>> root_below(Fraction(2)) ** 2 <= 2, float(root_below(Fraction(2)))
    (True, 1.414213562373)
    """
    root = isqrt(square.numerator * 10**24 // square.denominator)
    if not root:
        raise QueryError(
            "HB593", "The budget is too small to select pairs of columns.", "Increase ε or ask for fewer pairs."
        )
    return Fraction(root, 10**12)
