"""One number with noise by its local sensitivity: smooth sensitivity, or propose, test and release.

An analysis says how far one unit can move its number at datasets that are 0, 1, 2, … units away (`LocalValue`). The
noise then follows the data and not the worst case; nothing about its scale is shown before the charge, and after it
only a noisy bound on it, which is paid for.

Tested in tests/analyses/test_local_sensitivity.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, PreparedAnalysis, Protection, Published, Run, Setting
from hubbub.answers.estimate import Expected, significant
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed
from hubbub.core.secret import Secret
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.propose_test_release import ProposeTestRelease
from hubbub.mechanisms.smooth import MAX_DISTANCE, LocalValue, ScaleLevels, SmoothNoise

LEVEL = Fraction(95, 100)
#: Half of what a 95% interval may miss: once by the noise, once by the noisy bound on its scale.
_HALF = Fraction(975, 1000)
#: The share of ε that buys the noise; the rest buys a noisy bound on its scale, for the interval.
NOISE_SHARE = Fraction(3, 5)
#: The share of δ that one proposal uses.
DELTA_SHARE = Fraction(1, 1000)
#: Limit on what is looked at for all distances: their number, squared, times the changes that one unit can make.
MAX_WORK = 2_000_000_000

Local = Literal["smooth", "propose"]


@dataclass(frozen=True, kw_only=True)
class LocalStatistic:
    """A number whose local sensitivity can be bounded: its range, how one unit moves it, and how it is computed.

    low, high  the public range of the number, in steps
    largest    how far one unit can move it at worst, in steps
    compute    gives the exact number, with its bounds at so many distances, from what the engine returned
    rounding   how far the exact number may be from the truth, in steps
    changes    how many rows or pairs of nodes one unit can change
    """

    name: str
    step: Fraction
    low: int
    high: int
    largest: int
    sql: str
    compute: Callable[[Arrays, int], LocalValue]
    protection: Protection
    why: str
    rounding: Fraction = Fraction(0)
    changes: int = 1

    @property
    def global_half_width(self) -> Callable[[Fraction], float]:
        """Give the half width of Laplace noise by the global sensitivity, as a function of ε."""

        def half_width(epsilon: Fraction) -> float:
            noise = Laplace.from_epsilon(sensitivity=self.largest, epsilon=epsilon)
            return float(min(noise.error(LEVEL), Fraction(self.high - self.low)) * self.step)

        return half_width

    def output(self, cell: int | None, half: Fraction) -> Output:
        """Make the released column: the number, and an interval within its range."""
        if cell is None:
            return Output(self.name, self._kind, [None], [None], [None])
        reach = half + self.rounding
        ends = (min(max(cell + end, Fraction(self.low)), Fraction(self.high)) for end in (-reach, reach))
        low, high = (float(end * self.step) for end in ends)
        value = cell * self.step
        return Output(self.name, self._kind, [int(value) if self.step == 1 else float(value)], [low], [high])

    @property
    def _kind(self) -> Literal["integer", "real"]:
        return "integer" if self.step == 1 else "real"


@dataclass(frozen=True, kw_only=True)
class SmoothStatistic(PreparedAnalysis):
    """A number with noise by its smooth sensitivity, and an interval from a noisy bound on the scale of that noise.

    Theorem (Intervals without the scale). The noise costs ε₁ by `SmoothNoise`. The level of its scale changes by at
    most 1 between neighbors, so its release with Laplace noise of scale 1/ε₂ costs ε₂; the interval follows from both.
    Proof    Composition; the interval misses if the noise exceeds its half width at the true scale, or if the noisy
             level falls short of the true one: each has probability at most 2.5%.
    Charges  Pure(ε₁ + ε₂).
    Tested   tests/analyses/test_local_sensitivity.py::test_intervals_cover_although_the_scale_is_a_secret
    """

    statistic: LocalStatistic
    mechanism: SmoothNoise
    scale: Laplace

    def run(self, run: Run) -> Published:
        """Compute the number and its bounds; release both with noise."""
        run.progress(0.0, "reading rows")
        levels, distances = ScaleLevels(self.mechanism), len(self.mechanism.weights)
        secret = run.ask(self.statistic.sql).through(lambda rows: Secret(self.statistic.compute(rows, distances)))
        noisy = secret.through(lambda local: self.mechanism.sample(local, run.source))
        level = secret.through(lambda local: self.scale.sample(levels.level(self.mechanism.smooth(local)), run.source))
        bound = levels.bound(level + int(self.scale.error(LEVEL)))
        return Published((self.statistic.output(noisy, Fraction(self.mechanism.half_width(bound, _HALF))),))


@dataclass(frozen=True, kw_only=True)
class ProposedStatistic(PreparedAnalysis):
    """A number with noise by a proposed bound on its local sensitivity, or no answer: see `ProposeTestRelease`."""

    statistic: LocalStatistic
    mechanism: ProposeTestRelease

    def run(self, run: Run) -> Published:
        """Test the proposed bound, and release the number if it holds."""
        run.progress(0.0, "reading rows")
        distances = 2 * self.mechanism.margin
        noisy = run.ask(self.statistic.sql).through(
            lambda columns: self.mechanism.sample(self.statistic.compute(columns, distances), run.source)
        )
        cell = None if noisy is None else min(max(noisy, self.statistic.low), self.statistic.high)
        answer = self.statistic.output(cell, self.mechanism.error(LEVEL))
        return Published((answer, Output("bound_holds", "boolean", [cell is not None])))


def local_order_statistic(
    ordered: NDArray[np.int64], place: int, low: int, high: int, changes: int, distances: int
) -> LocalValue:
    """Give the value at a place of a sorted list, and how far a unit can move it that shifts it by up to `changes`.

    Theorem (Local sensitivity of an order statistic). Let X_t be the value t places after X₀, `low` before the first
    and `high` after the last, and let one change shift the list one way: X′_t ≤ X_t ≤ X′_t+1 for all t, or
    X′_t−1 ≤ X_t ≤ X′_t for all t. Then U_k = max over 0 ≤ t ≤ (k+1)·c of X_t − X_t−(k+1)c bounds how far c changes
    move X₀, k times c changes away; U₀ bounds the move from here, and U_k(x) ≤ U_k+1(x′).
    Proof    After one change X_t − X_t−w ≤ X′_s − X′_s−w−1 with s = t or t + 1, a window that is one longer; after c
             changes it is c longer and still contains the place. And X′₀ lies between X_−c and X_c.
    Tested   tests/analyses/programs/test_median.py::test_bounds_hold_for_all_datasets_of_a_small_universe
             tests/analyses/graphs/test_local_bounds.py::test_bounds_of_merges_hold_for_all_weights_of_four_nodes
    """
    widest = distances * changes
    around = np.full(2 * widest + 1, low, dtype=np.int64)
    index = np.arange(place - widest, place + widest + 1)
    around[index >= len(ordered)] = high
    inside = (index >= 0) & (index < len(ordered))
    around[inside] = ordered[index[inside]]
    bounds = []
    for distance in range(1, distances + 1):
        window = distance * changes
        nearby = around[widest - window : widest + window + 1]
        bounds.append(int((nearby[window:] - nearby[: window + 1]).max()))
    return LocalValue(int(around[widest]), tuple(bounds))


def local_statistic(
    setting: Setting, statistic: LocalStatistic, sensitivity: Local, bound: Fraction | None
) -> SmoothStatistic | ProposedStatistic:
    """Prepare a number with noise by its local sensitivity."""
    if sensitivity == "smooth":
        if bound is not None:
            raise QueryError("HB678", "bound is used with sensitivity => 'propose' only.", "Leave out bound.")
        return _smooth(setting, statistic)
    steps = 0 if bound is None else int(numbers.exact(bound, "bound") // statistic.step)
    if not 1 <= steps < statistic.largest:
        raise QueryError(
            "HB678",
            "sensitivity => 'propose' needs a bound: how far one unit may move the answer.",
            f"Pass bound => … from {numbers.brief(statistic.step)} to less than"
            f" {numbers.brief(statistic.largest * statistic.step)}, what the global sensitivity is.",
        )
    if not setting.delta > 0:
        raise QueryError(
            "HB678", "sensitivity => 'propose' needs a δ.", "Use sensitivity => 'smooth', or a budget with a delta."
        )
    return _proposed(setting, statistic, steps)


def _smooth(setting: Setting, statistic: LocalStatistic) -> SmoothStatistic:
    epsilon = setting.epsilon
    mechanism = SmoothNoise.from_epsilon(
        low=statistic.low, high=statistic.high, sensitivity=statistic.largest, epsilon=epsilon * NOISE_SHARE
    )
    _check_work(statistic, len(mechanism.weights))
    scale = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon * (1 - NOISE_SHARE))
    levels = ScaleLevels(mechanism)
    widths = [
        float(min(mechanism.half_width(levels.bound(level), LEVEL), statistic.high - statistic.low) * statistic.step)
        for level in (0, 1 << 30)
    ]
    worst = statistic.global_half_width(epsilon)
    return SmoothStatistic(
        protection=statistic.protection,
        epsilon=epsilon,
        delta=Fraction(0),
        event=Composed(((mechanism.event, 1), (scale.event, 1))),
        noise="smooth sensitivity",
        derivation=(
            statistic.why,
            f"noise follows the smooth sensitivity at rate β = {numbers.brief(mechanism.dilation)}; it is not released",
            f"the noise is between ±{significant(widths[0])} and ±{significant(widths[1])}, as the data decides;"
            f" noise by the global sensitivity would be ±{significant(worst)}",
            f"the noise costs ε = {epsilon * NOISE_SHARE}; a noisy bound on its scale, for the interval, costs"
            f" ε = {epsilon * (1 - NOISE_SHARE)}",
        ),
        expected=(_expected(statistic, widths[1]),),
        statistic=statistic,
        mechanism=mechanism,
        scale=scale,
    )


def _proposed(setting: Setting, statistic: LocalStatistic, steps: int) -> ProposedStatistic:
    delta = setting.delta * DELTA_SHARE
    mechanism = ProposeTestRelease.from_epsilon(bound=steps, epsilon=setting.epsilon, delta=delta)
    if 2 * mechanism.margin > MAX_DISTANCE:
        raise QueryError(
            "HB678", "At this ε no dataset passes the test.", "Increase ε, or use sensitivity => 'smooth'."
        )
    _check_work(statistic, 2 * mechanism.margin)
    half, worst = float(mechanism.error(LEVEL) * statistic.step), statistic.global_half_width(setting.epsilon)
    return ProposedStatistic(
        protection=statistic.protection,
        epsilon=setting.epsilon,
        delta=delta,
        event=Composed(((mechanism.event, 1),)),
        noise="propose-test-release",
        derivation=(
            statistic.why,
            f"proposed: one unit moves the answer by at most {numbers.brief(steps * statistic.step)}"
            f" (at worst {numbers.brief(statistic.largest * statistic.step)})",
            f"there is no answer unless about {mechanism.margin} units would have to change before this fails;"
            f" the test costs ε = {setting.epsilon / 2} and δ = {numbers.brief(delta)}",
            f"Laplace noise of ±{significant(half)}; noise by the global sensitivity would be ±{significant(worst)}",
        ),
        expected=(_expected(statistic, half),),
        statistic=statistic,
        mechanism=mechanism,
    )


def _check_work(statistic: LocalStatistic, distances: int) -> None:
    """Reject what would take too long, or too much memory, by the declarations and ε alone."""
    if distances * distances * statistic.changes > MAX_WORK:
        raise QueryError(
            "HB678",
            f"At this ε, {distances:,} distances are looked at, and one unit can change {statistic.changes:,} rows or"
            " edges: that is too much work.",
            "Pass a smaller rows=, or increase ε.",
        )


def _expected(statistic: LocalStatistic, half: float) -> Expected:
    low, high = (float(end * statistic.step) for end in (statistic.low, statistic.high))
    return Expected(statistic.name, half, None, 0.0, "value", low, high)
