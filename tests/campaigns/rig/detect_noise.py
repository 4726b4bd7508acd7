"""Detectors of errors in mechanisms, samplers, randomness or privacy costs.

On correct code a check that samples raises a false alarm with probability below 1e-9 per comparison.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, islice, product

import numpy as np
from tests.mechanisms.case import Case
from tests.mechanisms.conftest import CASES
from tests.mechanisms.test_contract import p_value

from hubbub.accounting import compose, convert
from hubbub.accounting.cost import RENYI_UNIT, ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits, filter_limits
from hubbub.audit.randomness import check_keystream
from hubbub.core import events
from hubbub.core.events import Composed, Event
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.loss import ORDERS, Approximate, BoundedRange, Loss, Pure, Zcdp
from hubbub.core.unit import Relation
from hubbub.errors import HubbubError
from hubbub.mechanisms.enumeration import SLACK, delta_at, renyi, satisfies, worst_ratio
from hubbub.mechanisms.euclidean import EuclideanNoise
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.histogram import NoisyHistogram
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.mechanisms.weighted_selection import WeightedSelection
from hubbub.noise.source import ReplaySource, system

#: Probability of a false alarm per comparison of samples with a distribution.
ALARM = 1e-9


#: Cases whose distributions take long to enumerate; other cases cover them.
_LONG = {
    "mean",
    "mean, gaussian",
    "histogram, add_remove",
    "cents, gaussian",
    "cents, laplace",
    "noisy max",
    "sparse vector, 2 hits, monotone",
    "threshold, gaussian",
}


def enumeration() -> list[str]:
    """Enumerate the distributions of mechanisms on their worst neighbors and compare with the stated loss."""
    return _first(found for case in CASES if case.name not in _LONG for found in _enumerated(case))


def _enumerated(case: Case) -> Iterator[str]:
    parameter = case.parameters[-1]
    mechanism = case.build(parameter)
    if not _within(mechanism.loss, parameter):
        yield f"{case.name}: costs more than it was made for"
    for one, two in case.pairs(mechanism):
        p, q = case.distribution(mechanism, one), case.distribution(mechanism, two)
        if not satisfies(mechanism.loss, p, q):
            yield f"{case.name}: loses more than it states"
            return


def _within(loss: Loss, asked: Fraction) -> bool:
    match loss:
        case Pure(size) | BoundedRange(size) | Zcdp(size):
            return size <= asked + SLACK
        case Approximate(rest, delta):
            return delta <= Fraction(1, 1000) + SLACK and _within(rest, asked)
    return False


def sampling() -> list[str]:
    """Sample every mechanism and compare with its distribution; values at the ends of 64 bits must not wrap around."""
    again = (found for case in _reversed() for found in _sampled(case, draws=9000))
    return _first(chain(_ends(), (found for case in CASES for found in _sampled(case)), again))


def _reversed() -> Iterator[Case]:
    """Yield the selections with reversed scores, so that ties are in another order."""
    for case in CASES:
        if case.name in ("permute and flip", "noisy max"):
            yield replace(case, name=f"{case.name}, reversed", value=case.value[::-1])


def _sampled(case: Case, draws: int = 1500) -> Iterator[str]:
    # a small ε for few answers, so that lies are not rare; a large ε for many
    mechanism = case.build(case.parameters[0 if case.kind in (RandomizedResponse, EuclideanNoise) else -1])
    value, source = case.to_sample(case.value), system()
    try:
        drawn: list[Hashable] = [case.to_outcome(mechanism.sample(value, source)) for _ in range(draws)]
    except Exception as error:  # noqa: BLE001 - a sampler that fails is an alarm, too
        yield f"{case.name}: fails ({type(error).__name__})"
        return
    distribution = {y: float(low + high) / 2 for y, (low, high) in mechanism.distribution(case.value).mass.items()}
    outside = [y for y in drawn if y not in distribution]
    if outside:
        yield f"{case.name}: gives what its distribution does not have"
    elif not p_value(drawn, distribution) > ALARM:
        yield f"{case.name}: draws by another distribution"


def _ends() -> Iterator[str]:
    noise = Laplace(sensitivity=1, scale=Fraction(1000))
    for end in (2**63 - 1, -(2**63)):
        drawn = noise.sample(np.full(500, end, dtype=np.int64), system())
        if np.abs(drawn.astype(np.float64) - end).max() > 1e6:
            yield "laplace: a sum wraps around at the end of 64 bits"


def words() -> list[str]:
    """Sample with chosen random words: outcomes depend on the words, and the number of words not on the value."""
    return _first(found for case in CASES for found in _from_words(case))


def _from_words(case: Case) -> Iterator[str]:
    mechanism = case.build(case.parameters[0])
    value = case.to_sample(case.value)
    generator = np.random.Generator(np.random.PCG64(11))
    tapes = [generator.integers(0, 2**64, size=4000, dtype=np.uint64).tolist() for _ in range(40)]
    answers = []
    for tape in tapes:
        pair = []
        for _ in range(2):
            source = ReplaySource(tape)
            try:
                pair.append((case.to_outcome(mechanism.sample(value, source)), source.left))
            except Exception:  # noqa: BLE001
                yield f"{case.name}: fails on words"
                return
        if pair[0] != pair[1]:
            yield f"{case.name}: the same words give another answer"
            return
        if pair[0][1] == 4000:
            yield f"{case.name}: uses no words"
            return
        answers.append(pair[0][0])
    if len(set(answers)) == 1:
        yield f"{case.name}: all words give one answer"


def randomness() -> list[str]:
    """Check the random source: words never repeat across forks, threads, new streams or within a long stream."""
    wrong = check_keystream(length=100_000, singles=3000, streams=3000, words_each=2, threads=8)
    return [] if wrong is None else [wrong]


def _first(complaints: Iterable[str]) -> list[str]:
    """Return the first complaint."""
    return list(islice(complaints, 1))


EVENTS: tuple[Event, ...] = (
    events.LaplaceEvent(2, Fraction(10)),
    events.GaussianEvent(4, Fraction(100)),
    events.SelectionEvent("exponential", 1, monotone=True, rate=Fraction(1, 10)),
    events.SelectionEvent("noisy_max", 1, monotone=False, rate=Fraction(1, 10)),
    events.ResponseEvent(3, Fraction(1, 2)),
    events.FlipsEvent(2, Fraction(1, 10)),
    events.MetricEvent(Fraction(2), Fraction(1, 10), constant_normaliser=False),
    events.SparseVectorEvent(1, monotone=False, threshold_scale=Fraction(10), query_scale=Fraction(20), hits=3),
    events.ThresholdEvent(events.LaplaceEvent(1, Fraction(5)), 2, 9),
)


def prices() -> list[str]:
    """Compare privacy costs with enumerated losses, including composition, conversions and group privacy."""
    checks: tuple[Callable[[], Iterator[str]], ...] = (_times, _covers, _converts, _groups, _caps)
    found = []
    for check in checks:
        try:
            found += _first(check())
        except (HubbubError, ArithmeticError, ValueError, AttributeError) as error:
            found.append(f"{check.__name__}: {type(error).__name__}")
    return found


def _times() -> Iterator[str]:
    for event in EVENTS:
        one = privacy_cost(event)
        summed = ZERO
        for _ in range(5):
            summed += one
        if (
            not one.times(5)
            == summed
            == privacy_cost(Composed(((event, 5),)))
            == privacy_cost(Composed(((event, 2), (event, 3))))
        ):
            yield f"five times {type(event).__name__} is not the sum of five"
    if compose.basic([Pure(Fraction(1, 10))] * 7) != Pure(Fraction(7, 10)):
        yield "seven tenths do not add up"


def _covers() -> Iterator[str]:
    for case in CASES:
        if case.name in _LONG | {"metric, star", "laplace vector", "histogram, replace"}:
            continue
        mechanism = case.build(case.parameters[-1])
        charged = privacy_cost(mechanism.event)
        for one, two in case.pairs(mechanism):
            p, q = case.distribution(mechanism, one), case.distribution(mechanism, two)
            if isinstance(mechanism, PartitionSelection | WeightedSelection):
                if delta_at(p, q, Fraction(30))[0] > charged.delta + SLACK:
                    yield f"{case.name}: slips more often than is charged"
                continue
            if charged.pure is not None and charged.delta:
                if delta_at(p, q, charged.pure)[0] > charged.delta + SLACK:
                    yield f"{case.name}: loses more than is charged"
                continue
            if charged.pure is not None and worst_ratio(p, q)[0] > charged.pure + SLACK:
                yield f"{case.name}: loses more than is charged"
            two_place = ORDERS.index(Fraction(2))
            if renyi(p, q, Fraction(2))[0] > charged.renyi[two_place] * RENYI_UNIT + Fraction(1, 10**15):
                yield f"{case.name}: diverges more than is charged"


def _converts() -> Iterator[str]:
    noise, delta = Gaussian.from_rho(sensitivity_squared=4, rho=Fraction(1, 2)), Fraction(1, 100)
    p, q = noise.distribution(0, (-40, 40)), noise.distribution(2, (-40, 40))
    epsilon = convert.epsilon_at(Zcdp(Fraction(1, 2)), delta=delta)
    if delta_at(p, q, epsilon)[0] > delta:
        yield "concentrated loss converts to too small an ε"
    answer = (
        exact_distribution({True: Fraction(3, 4), False: Fraction(1, 4)}),
        exact_distribution({True: Fraction(1, 4), False: Fraction(3, 4)}),
    )
    three = [_product(side, 3) for side in answer]
    loss = Pure(worst_ratio(*answer)[1])  # type: ignore[arg-type]
    found = compose.optimal(loss, count=3, delta=Fraction(1, 20))
    if delta_at(three[0], three[1], found)[0] > Fraction(1, 20):
        yield "optimal composition of three is too small"


def _product(distribution: FiniteDistribution[bool], count: int) -> FiniteDistribution[tuple[bool, ...]]:
    mass = {}
    for outcome in product(distribution.mass, repeat=count):
        chance = Fraction(1)
        for each in outcome:
            chance *= distribution.mass[each][0]
        mass[outcome] = chance
    return exact_distribution(mass)


def _groups() -> Iterator[str]:
    noise = Laplace(sensitivity=1, scale=Fraction(2))
    of_three = convert.group(Pure(Fraction(1, 2)), units=3)
    if (
        not isinstance(of_three, Pure)
        or worst_ratio(noise.distribution(0, (-9, 9)), noise.distribution(3, (-9, 9)))[0] > of_three.epsilon
    ):
        yield "a group of three is protected less than is said"
    wide = Gaussian.from_rho(sensitivity_squared=1, rho=Fraction(1, 8))
    many = convert.group(Zcdp(Fraction(1, 8)), units=3)
    far = renyi(wide.distribution(0, (-40, 40)), wide.distribution(3, (-40, 40)), Fraction(2))[0]
    if not isinstance(many, Zcdp) or far > 2 * many.rho:
        yield "a group of three is protected less than is said, in concentrated terms"
    if NoisyHistogram.from_epsilon(shape=(2,), rows=1, relation=Relation.REPLACE, epsilon=1).loss.epsilon > 1:
        yield "a histogram costs more than it was made for"


def _caps() -> Iterator[str]:
    for budget in (Budget(Fraction(1), Fraction(1, 10**6)), Budget(Fraction(3), Fraction(1, 100))):
        held = filter_limits(budget)
        if held.delta + sum(held.shares) > budget.delta:
            yield "the shares of a cap are more than its δ"
        noisy = privacy_cost(events.GaussianEvent(1, Fraction(10**9)))
        if not admits(budget, ZERO, noisy):
            yield "a cap refuses what costs nothing to speak of"
    whole, bit = (
        privacy_cost(events.LaplaceEvent(1, Fraction(1))),
        privacy_cost(events.LaplaceEvent(1, Fraction(10**15))),
    )
    if not admits(Budget(Fraction(1), Fraction(0)), ZERO, whole):
        yield "a cap refuses its own size"
    if admits(Budget(Fraction(1), Fraction(0)), whole, bit):
        yield "a cap that is spent admits a little more"


CHECKS: dict[str, Callable[[], list[str]]] = {
    "enumeration": enumeration,
    "sampling": sampling,
    "words": words,
    "randomness": randomness,
    "prices": prices,
}
