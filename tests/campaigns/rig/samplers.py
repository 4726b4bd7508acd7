"""Mechanisms, streams and surveys on neighboring values, ready to be sampled."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.mechanisms.conftest import CASES

from hubbub.accounting.cost import PrivacyCost, privacy_cost
from hubbub.analyses.streams.terms import Terms
from hubbub.core.unit import Relation
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.noisy_max import NoisyMax
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.mechanisms.top_k import TopK
from hubbub.mechanisms.weighted_selection import WeightedSelection
from hubbub.noise.source import RandomSource
from hubbub.surveys.response import respond
from hubbub.surveys.survey import Survey
from hubbub.surveys.survey import SurveyQuestion as Asked

Table = NDArray[np.float64]
#: Fills the columns that a shorter answer does not have.
SHORT = -7.0
#: Returns this many samples of one side (0 or 1).
Sampler = Callable[[int, int, RandomSource], Table]


@dataclass(frozen=True)
class SampledPair:
    """A sampler on two neighboring inputs, and its stated cost.

    worst    these inputs attain the stated loss, or nearly (in closed form), so that most of it is detectable
    slow     one outcome per call
    """

    name: str
    promise: PrivacyCost
    draw: Sampler
    worst: bool
    slow: bool


def mechanisms() -> Iterator[SampledPair]:
    """Yield every mechanism of the contract tests, with all parameters and pairs of neighbors."""
    for case in CASES:
        for parameter in case.parameters:
            made = case.build(parameter)
            for place, pair in enumerate(case.pairs(made)):
                values = tuple(case.to_sample(value) for value in pair)
                name = f"{case.name} at {parameter}, pair {place}"
                yield SampledPair(
                    name, privacy_cost(made.event), *_sampler(made, values), worst=False, slow=_slow(made)
                )
    yield from _worst_pairs()


def _slow(mechanism: Any) -> bool:
    return not isinstance(
        mechanism, Laplace | Gaussian | RandomizedResponse | BitFlips | PartitionSelection | WeightedSelection
    )


def _sampler(mechanism: Any, values: tuple[Any, Any]) -> tuple[Sampler]:
    def draw(side: int, count: int, source: RandomSource) -> Table:
        value = values[side]
        if isinstance(mechanism, Laplace | Gaussian | RandomizedResponse | BitFlips):
            row = np.atleast_1d(np.asarray(value))
            found: Any = mechanism.sample(np.tile(row, (count, 1)), source)
        elif isinstance(mechanism, PartitionSelection | WeightedSelection):
            positions, counts = mechanism.sample(np.tile(value, count), source)
            found = np.full(count * len(value), -1.0)
            found[positions] = counts
            found = found.reshape(count, len(value))
        else:
            rows = [_flat(mechanism.sample(value, source)) for _ in range(count)]
            width = max(map(len, rows))
            found = [row + [SHORT] * (width - len(row)) for row in rows]
        return np.asarray(found, dtype=np.float64)

    return (draw,)


def _flat(outcome: Any) -> list[float]:
    if isinstance(outcome, np.ndarray):
        outcome = outcome.ravel().tolist()
    parts = outcome if isinstance(outcome, tuple | list) else [outcome]
    # a test that fails gives no number
    return [SHORT if each is None else float(each) for each in parts]


def _worst_pairs() -> Iterator[SampledPair]:
    """Yield pairs that attain (nearly) the stated loss of each mechanism, at outcomes that are not rare.

    Noise, flips, responses: values at the sensitivity. Selections: the score of one of m candidates falls while all
    others rise: from equal scores the ratio of its chances is exactly e^ε for permute-and-flip with two candidates, and
    e^ε·m/(m − 1 + e^−ε) for the exponential mechanism; noisy max is within a few hundredths of e^ε with ten.
    """
    both = Relation.ADD_REMOVE
    for epsilon in (Fraction(1), Fraction(3)):
        made: list[tuple[str, Any, tuple[Any, Any]]] = [
            ("laplace", Laplace.from_epsilon(sensitivity=5, epsilon=epsilon), (0, 5)),
            ("laplace vector", Laplace.from_epsilon(sensitivity=2, epsilon=epsilon), (_at(0, 0, 0), _at(1, -1, 0))),
            ("gaussian", Gaussian.from_rho(sensitivity_squared=16, rho=epsilon / 4), (0, 4)),
            ("gaussian vector", Gaussian.from_rho(sensitivity_squared=16, rho=epsilon / 4), (_at(0, 0), _at(0, 4))),
            ("response", RandomizedResponse(answers=2, epsilon=epsilon), (0, 1)),
            ("response of 4", RandomizedResponse(answers=4, epsilon=epsilon), (0, 3)),
            ("flips", BitFlips.from_epsilon(bits=3, distance=2, epsilon=epsilon), (_bits(0, 0, 1), _bits(1, 1, 1))),
        ]
        for kind, size in ((PermuteAndFlip, 2), (Exponential, 40), (NoisyMax, 10)):
            rule = kind.from_epsilon(candidates=size, sensitivity=1, monotone=False, relation=both, epsilon=epsilon)
            up = 1 if kind is PermuteAndFlip else math.ceil(Fraction(1, 2) / rule.rate)
            scores = _at(0, *[up - 1] * (size - 1)), _at(-1, *[up] * (size - 1))
            made.append((f"{kind.rule} of {size}", rule, scores))
        top = TopK.from_epsilon(k=1, candidates=40, sensitivity=1, monotone=True, relation=both, epsilon=epsilon)
        made.append(("top 1 of 40", top, (_at(*[0] * 40), _at(0, *[1] * 39))))
        for name, mechanism, pair in made:
            yield SampledPair(
                f"worst {name} at {epsilon}",
                privacy_cost(mechanism.event),
                *_sampler(mechanism, pair),
                worst=True,
                slow=_slow(mechanism),
            )


def _at(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _bits(*values: int) -> NDArray[np.bool_]:
    return np.array(values, dtype=np.bool_)


def streams() -> Iterator[SampledPair]:
    """Yield streams with one event added or replaced, and a survey with another truth."""
    for epsilon in (Fraction(1), Fraction(3)):
        for private in (False, True):
            terms = Terms(name="n", kind="count", epsilon=epsilon, horizon=7, private_state=private)
            yield SampledPair(
                f"running count at {epsilon}, state {'private' if private else 'secret'}",
                privacy_cost(terms.event),
                _counted(terms.counter, seen=private),
                worst=False,
                slow=False,
            )
        for method in ("tree", "root"):
            rough = Terms(name="n", kind="count", epsilon=epsilon, delta=Fraction(1, 10**5), horizon=7, method=method)
            yield SampledPair(
                f"running count at {epsilon}, Gaussian, {method}",
                privacy_cost(rough.event),
                _counted(rough.counter, seen=False),
                worst=False,
                slow=method == "root",
            )
        for relation in Relation:
            dense = Terms(name="d", kind="density", epsilon=epsilon, universe=(0, 2), relation=relation)
            name = f"density at {epsilon}, {relation.value}"
            yield SampledPair(name, privacy_cost(dense.event), _dense(dense), worst=False, slow=True)
        survey = Survey(
            "habits",
            (
                Asked(name="a", text="a", answers=("no", "yes"), epsilon=epsilon / 2),
                Asked(name="b", text="b", answers=("x", "y", "z"), epsilon=epsilon / 2, boxes=True, most=2),
            ),
        )
        yield SampledPair(f"survey at {epsilon}", privacy_cost(survey.event), _surveyed(survey), worst=False, slow=True)


def _counted(counter: Any, *, seen: bool) -> Sampler:
    """Return all answers of a counter and, if it is pan-private, its state after five events."""

    def draw(side: int, count: int, source: RandomSource) -> Table:
        # bins are independent counters: each bin is one run
        many = replace(counter, bins=count)
        arrived = np.array([1, 0, 1, side, 0, 1, 1], dtype=np.int64)
        state = many.take(many.start(source), np.tile(arrived[:5, None], (1, count)), source)
        look = state["open"].astype(np.float64) if seen else np.zeros((0, count))
        state = many.take(state, np.tile(arrived[5:, None], (1, count)), source)
        return np.concatenate([many.estimates(state), look]).T

    return draw


def _dense(terms: Terms) -> Sampler:
    made = terms.density
    other = -1 if terms.relation is Relation.ADD_REMOVE else 2

    def once(side: int, source: RandomSource) -> list[float]:
        bits = made.take(made.start(source), np.array([0, 1 if side else other, 0], dtype=np.int64), source)
        return [*bits.astype(np.float64).tolist(), float(made.noisy_count(bits, source))]

    return lambda side, count, source: np.array([once(side, source) for _ in range(count)])


def _surveyed(survey: Survey) -> Sampler:
    truths: tuple[Any, Any] = ({"a": "no", "b": ["x"]}, {"a": "yes", "b": ["y", "z"]})

    def once(side: int, source: RandomSource) -> list[float]:
        answers = respond(survey, truths[side], source)["answers"]
        return [float(answers["a"]), float(sum(2**place for place in answers["b"]))]

    return lambda side, count, source: np.array([once(side, source) for _ in range(count)])
