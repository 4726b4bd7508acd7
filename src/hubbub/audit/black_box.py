"""Lower bounds on the privacy loss of a mechanism, from samples of its outputs on two neighboring inputs.

    result = audit(outputs_on_x, outputs_on_y, promise=cost(event), alarm=1e-9, generator=…)
    result.excess     bounds that exceed the stated loss: if there are any, the guarantee is broken

The audit sees only outputs: arrays of n samples, or of n rows with several numbers each. A first part of the samples is
used to search for an event that distinguishes the inputs; the rest, which the search did not see, estimates how often
the event happens. So every bound is a lower bound on the true loss, wrong with probability at most `alarm`, however the
event was chosen: a poor search gives a smaller bound, never an invalid one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.cost import RENYI_UNIT, PrivacyCost
from hubbub.audit.distinguisher import as_table, fit_distinguisher, standard_error
from hubbub.core.binomial import lower_bound
from hubbub.core.loss import ORDERS
from hubbub.errors import AuditError

Samples = NDArray[Any]
Floats = NDArray[np.float64]
#: Log-ratios of the samples of both inputs, larger where the first input is likelier.
ScorePair = tuple[Floats, Floats]

#: Share of the samples that is used to search for an event.
SEARCH_SHARE = 0.25
#: Minimum number of samples per input.
MIN_SAMPLES = 64
#: The Rényi orders that are tested; at larger orders samples say little.
TESTED_ORDERS = tuple(order for order in ORDERS if order in (2, 4, 8))
_BINS = 16
#: Log-ratios are clipped to one of these before averaging: a wide range weakens the bound.
_CLIPS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
#: Tolerance for comparing floats with exact losses.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class LowerBound:
    """One lower bound.

    tester    the test: "best event", "histogram", "hockey stick" or "Rényi"
    measure   the bounded quantity: "ε", "δ at ε=…", "ε at δ=…" or "divergence of order …"
    least     the bound
    promised  the stated value of the same quantity
    event     the event that distinguishes the inputs, and how often it happened
    """

    tester: str
    measure: str
    least: float
    promised: float
    event: str

    @property
    def broken(self) -> bool:
        """Whether the bound exceeds the stated value."""
        return self.least > self.promised + _SLACK


@dataclass(frozen=True, slots=True)
class BlackBoxResult:
    """The bounds of all tests for one pair of inputs; they hold together except with probability `alarm`."""

    bounds: tuple[LowerBound, ...]
    alarm: float
    samples: tuple[int, int] = field(default=(0, 0))

    @property
    def excess(self) -> tuple[LowerBound, ...]:
        """The bounds that exceed the stated loss."""
        return tuple(bound for bound in self.bounds if bound.broken)

    @property
    def share(self) -> float:
        """The share of the stated ε that is attained, at least (1: all of it); of the divergences without an ε."""
        epsilons = [bound for bound in self.bounds if bound.measure.startswith("ε")]
        bounds = epsilons or [bound for bound in self.bounds if bound.tester == "Rényi"]
        return max((bound.least / bound.promised for bound in bounds if bound.promised > 0), default=0.0)


def audit(
    one: Samples, other: Samples, *, promise: PrivacyCost, alarm: float, generator: np.random.Generator
) -> BlackBoxResult:
    """Test a stated loss with every test that applies to it.

    Theorem (Multiplicity). If each of k bounds is wrong with probability at most alarm/k, all of them hold at once with
    probability at least 1 − alarm, whatever the testers have to do with each other; so a promise that is kept is called
    broken with probability at most alarm, and over a campaign of m audits at alarm/m each, with at most alarm.
    Proof    The union bound.
    Tested   tests/audit/test_black_box.py::test_false_alarms_are_as_rare_as_stated
    """
    seen, held = _scored(one, other, generator)
    delta = float(promise.delta)
    tests: list[Callable[[float], LowerBound]] = []
    for mine, before in ((held, seen), (_turned(held), _turned(seen))):
        if promise.pure is not None and delta:
            tests.append(partial(_at_delta, mine, before, delta, float(promise.pure)))
            tests.append(partial(_hockey_stick, mine, before, float(promise.pure), delta))
        elif promise.pure is not None:
            tests.append(partial(_best_event, mine, before, float(promise.pure), generator))
            tests.append(partial(_histogram, mine, before, float(promise.pure), generator))
        if not delta:
            curve = dict(zip(ORDERS, promise.renyi, strict=True))
            tests += [
                partial(_renyi, mine, before, float(order), float(curve[order] * RENYI_UNIT)) for order in TESTED_ORDERS
            ]
    return BlackBoxResult(tuple(test(alarm / len(tests)) for test in tests), alarm, (len(held[0]), len(held[1])))


def epsilon_at_least(
    one: Samples, other: Samples, *, alarm: float, generator: np.random.Generator, delta: float = 0.0
) -> float:
    """Return a lower bound on the ε of the two inputs at δ, wrong with probability at most `alarm`."""
    seen, held = _scored(one, other, generator)
    bounds = []
    for mine, before in ((held, seen), (_turned(held), _turned(seen))):
        if delta:
            bounds.append(_at_delta(mine, before, delta, math.inf, alarm / 2))
        else:
            bounds.append(_best_event(mine, before, math.inf, generator, alarm / 2))
    return max(bound.least for bound in bounds)


def ratio_at_least(first: int, second: int, alarm: float) -> float:
    """Return a lower bound on ln(p/q), given how often an event came from either side of a mixture.

    Theorem (Ratio from a mixture). Let each of N draws come from P or from Q by a fair coin of its own, and let an
    event S, chosen without these draws, have probability p and q. Given that it happened K times, the number of times
    that it came from P is binomial (K, p/(p+q)). So with r the one-sided Clopper–Pearson bound of that share,
    ln(r/(1−r)) ≤ ln(p/q) but with probability at most alarm. Then no ε below it is kept.
    Proof    Given S the coin shows P with probability p/(p+q), by Bayes, for each draw independently. K is a function
             of the draws' being in S alone. x ↦ ln(x/(1−x)) rises.
    Error    one binomial bound in the place of two: at equal confidence narrower by a factor of up to √2.
    Tested   tests/audit/test_black_box.py::test_a_ratio_is_bounded_from_below_as_often_as_stated
    """
    share = lower_bound(first, first + second, alarm) if first else 0.0
    return math.log(share / (1 - share)) if share > 0 else -math.inf


def _scored(one: Samples, other: Samples, generator: np.random.Generator) -> tuple[ScorePair, ScorePair]:
    """Fit a distinguisher to the first part of the samples; return the scores of that part and of the rest."""
    one, other = as_table(one), as_table(other)
    if one.shape[1] != other.shape[1] or min(len(one), len(other)) < MIN_SAMPLES:
        raise AuditError(
            "HB630",
            f"The samples differ in shape, or an input has fewer than {MIN_SAMPLES} of them.",
            "Draw more samples from the same mechanism.",
        )
    # the caller's order may not be exchangeable, for example chunks of different runs
    one, other = generator.permutation(one), generator.permutation(other)
    cut = int(SEARCH_SHARE * min(len(one), len(other)))
    distinguisher = fit_distinguisher(one[:cut], other[:cut])
    scores = distinguisher.score(one), distinguisher.score(other)
    return (scores[0][:cut], scores[1][:cut]), (scores[0][cut:], scores[1][cut:])


def _turned(scored: ScorePair) -> ScorePair:
    return -scored[1], -scored[0]


def _cuts(seen: ScorePair) -> Floats:
    """Return candidate thresholds t for the event {score ≥ t}."""
    both = np.concatenate(seen)
    scores = np.unique(both) if len(both) < 1 << 16 else np.unique(both[:: len(both) >> 15])
    return scores if len(scores) <= 512 else np.unique(np.quantile(scores, np.linspace(0, 1, 512)))


def _above(scores: Floats, cuts: Floats) -> NDArray[np.int64]:
    return len(scores) - np.searchsorted(np.sort(scores), cuts, side="left")


def _chosen(seen: ScorePair, value: Callable[[Floats, Floats, Floats, Floats], Floats]) -> float:
    """Return the threshold that maximizes a value of p, q and their standard errors on the search part."""
    cuts = _cuts(seen)
    p, q = (_above(scores, cuts) / len(scores) for scores in seen)
    return float(cuts[int(np.argmax(value(p, q, standard_error(p, len(seen[0])), standard_error(q, len(seen[1])))))])


def _mixed(scored: ScorePair, generator: np.random.Generator) -> ScorePair | None:
    """Mix the sides by fair coins; return None if a side has too few samples (probability 10⁻¹²)."""
    size = min(map(len, scored))
    draws = max(0, 2 * size - math.ceil(10 * math.sqrt(size)))
    heads = int(generator.binomial(draws, 0.5))
    if max(heads, draws - heads) > size:
        return None
    return scored[0][:heads], scored[1][: draws - heads]


def _best_event(
    held: ScorePair, seen: ScorePair, promised: float, generator: np.random.Generator, alarm: float
) -> LowerBound:
    later = len(held[0]) / len(seen[0])

    def value(p: Floats, q: Floats, _s: Floats, _t: Floats) -> Floats:
        first, second = p * len(seen[0]), q * len(seen[1])
        # subtract four standard errors: the best of many thresholds is partly luck
        first, second = first - 4 * np.sqrt(first + 1), second + 4 * np.sqrt(second + 1)
        return _forecast(later * np.maximum(first, 0), later * second, alarm)

    cut = _chosen(seen, value)
    mixed = _mixed(held, generator)
    if mixed is None:
        return LowerBound("best event", "ε", 0.0, promised, "too few draws")
    first, second = (int(np.count_nonzero(scores >= cut)) for scores in mixed)
    least = max(0.0, ratio_at_least(first, second, alarm))
    return LowerBound("best event", "ε", least, promised, f"log-ratio ≥ {cut:.4g}: {first} and {second} times")


def _forecast(first: Floats, second: Floats, alarm: float) -> Floats:
    """Approximate `ratio_at_least` for such counts, using Chernoff's bound instead of the exact one."""
    trials = first + second
    share = first / trials
    low, high = np.zeros_like(share), share
    for _ in range(40):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.where(share > 0, share * np.log(share / middle), 0)
            apart += np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - middle)), 0)
        sure = trials * apart > math.log(1 / alarm)
        low, high = np.where(sure, middle, low), np.where(sure, high, middle)
    return np.log(np.maximum(low, 1e-12) / (1 - low))


def _histogram(
    held: ScorePair, seen: ScorePair, promised: float, generator: np.random.Generator, alarm: float
) -> LowerBound:
    """Bound every bin of a histogram, each at its share of the alarm."""
    edges = np.unique(np.quantile(np.concatenate(seen), np.linspace(0, 1, _BINS + 1)[1:-1]))
    mixed = _mixed(held, generator)
    if mixed is None:
        return LowerBound("histogram", "ε", 0.0, promised, "too few draws")
    one, other = (np.bincount(np.searchsorted(edges, s, side="right"), minlength=len(edges) + 1) for s in mixed)
    # the alarm is shared by all bins, but only the most promising ones need the exact bound
    rough = _forecast(one.astype(np.float64) + 1e-9, other.astype(np.float64) + 1e-9, alarm / _BINS)
    least, event = 0.0, "nothing"
    for number in np.argsort(rough)[-2:].tolist():
        bound = ratio_at_least(int(one[number]), int(other[number]), alarm / (len(edges) + 1))
        if bound > least:
            least, event = bound, f"bin {number} of {len(edges) + 1}: {one[number]} and {other[number]} times"
    return LowerBound("histogram", "ε", least, promised, event)


def _counted(held: ScorePair, cut: float, alarm: float) -> tuple[float, float, str]:
    """Bound Pr[score ≥ cut] from below on the first input and from above on the second, each at half the alarm."""
    first, second = (int(np.count_nonzero(scores >= cut)) for scores in held)
    low = lower_bound(first, len(held[0]), alarm / 2)
    high = 1 - lower_bound(len(held[1]) - second, len(held[1]), alarm / 2)
    return low, high, f"log-ratio ≥ {cut:.4g}: {first} of {len(held[0])} and {second} of {len(held[1])} times"


def _hockey_stick(held: ScorePair, seen: ScorePair, epsilon: float, promised: float, alarm: float) -> LowerBound:
    """Return a lower bound on δ at an ε.

    Theorem (Hockey stick from one event). The least δ of (ε, δ)-privacy is at least P(S) − e^ε·Q(S) for every event S,
    and so, but with probability at most alarm, at least p − e^ε·q, p being the Clopper–Pearson bound of P(S) from below
    and q that of Q(S) from above, at alarm/2 each. So is the least ε at a δ at least ln((p − δ)/q).
    Proof    P(S) ≤ e^ε·Q(S) + δ is what (ε, δ)-privacy says of S; the union bound over the two.
    Assumes  S is chosen without the draws that are counted.
    Tested   tests/audit/test_black_box.py::test_delta_and_epsilon_of_gaussian_noise_are_bounded_by_its_profile
    """
    growth, cautious = math.exp(epsilon), _caution(alarm / 2)
    cut = _chosen(seen, lambda p, q, s, t: p - growth * q - cautious * (s + growth * t))
    low, high, event = _counted(held, cut, alarm)
    return LowerBound("hockey stick", f"δ at ε={epsilon:.4g}", max(0.0, low - growth * high), promised, event)


def _at_delta(held: ScorePair, seen: ScorePair, delta: float, promised: float, alarm: float) -> LowerBound:
    """Return a lower bound on ε at a δ."""
    cautious = _caution(alarm / 2)

    def value(p: Floats, q: Floats, s: Floats, t: Floats) -> Floats:
        least: Floats = np.log(np.maximum(p - cautious * s - delta, 1e-12) / (q + cautious * t + 1e-12))
        return least

    low, high, event = _counted(held, _chosen(seen, value), alarm)
    least = math.log((low - delta) / high) if low > delta else 0.0
    return LowerBound("hockey stick", f"ε at δ={delta:.3g}", max(0.0, least), promised, event)


def _renyi(held: ScorePair, seen: ScorePair, order: float, promised: float, alarm: float) -> LowerBound:
    """Return a lower bound on a Rényi divergence.

    Theorem (Rényi divergence from a function). For every bounded g and α > 1,
    D_α(P‖Q) ≥ α/(α−1)·ln E_P[e^((α−1)g)] − ln E_Q[e^(αg)], with equality at g = ln(dP/dQ) (Birrell, Dupuis,
    Katsoulakis, Rey-Bellet and Wang 2021). With a lower bound of the first mean and an upper bound of the second, each
    wrong with probability alarm/2, this is a lower bound but with probability at most alarm.
    Proof    Hölder: E_P[e^((α−1)g)] = E_Q[(dP/dQ)·e^((α−1)g)] ≤ E_Q[(dP/dQ)^α]^(1/α)·E_Q[e^(αg)]^((α−1)/α); take the
             logarithm times α/(α−1). The means are of variables in known ranges, bounded by the empirical Bernstein
             inequality (Maurer and Pontil 2009, Theorem 4).
    Assumes  g, a clipped log-ratio, is chosen without the draws that are averaged.
    Tested   tests/audit/test_black_box.py::test_renyi_divergence_of_gaussian_noise_is_bounded_by_its_line
    """
    clip = max(_CLIPS, key=lambda c: _variational(seen, order, c, alarm, len(held[0])))
    least = max(0.0, _variational(held, order, clip, alarm, len(held[0])))
    return LowerBound("Rényi", f"divergence of order {order:g}", least, promised, f"log-ratio within ±{clip:g}")


def _variational(scored: ScorePair, order: float, clip: float, alarm: float, size: int) -> float:
    one, other = (np.clip(scores, -clip, clip) for scores in scored)
    up = _mean(np.exp((order - 1) * one), math.exp((order - 1) * clip), alarm / 2, size)[0]
    down = _mean(np.exp(order * other), math.exp(order * clip), alarm / 2, size)[1]
    return order / (order - 1) * math.log(up) - math.log(down) if up > 0 else -math.inf


def _mean(values: Floats, most: float, alarm: float, size: int) -> tuple[float, float]:
    """Bound the mean of variables in [0, most] from both sides, each side wrong with probability at most alarm.

    `size` is the number of values; the search passes the size of the rest, to forecast the bound there.
    """
    level = math.log(2 / alarm)
    wide = math.sqrt(2 * float(values.var(ddof=1)) * level / size) + 7 * most * level / (3 * (size - 1))
    mean = float(values.mean())
    return mean - wide, min(most, mean + wide)


def _caution(alarm: float) -> float:
    """Return how many standard errors to subtract in the search: for the confidence bound, and for luck."""
    return _quantile(alarm) * math.sqrt(SEARCH_SHARE / (1 - SEARCH_SHARE)) + 3


def _quantile(alarm: float) -> float:
    """Approximate the normal quantile of an alarm; only the search uses it."""
    return math.sqrt(2 * math.log(1 / alarm))
