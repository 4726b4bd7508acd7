"""What every mechanism must do, over all classes of hubbub.mechanisms, found and not named."""

import importlib
import inspect
import json
import math
import pkgutil
import random
from collections.abc import Callable, Hashable
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hubbub.mechanisms
from hubbub.accounting.cost import RENYI_UNIT, privacy_cost
from hubbub.core.events import from_facts, to_facts
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import ORDERS, Approximate, BoundedRange, Pure, Zcdp
from hubbub.errors import ParameterError
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.enumeration import delta_at, ratio_range, renyi, satisfies, worst_ratio
from hubbub.noise.source import RandomSource, ReplaySource

NAN = float("nan")
NOT_COUNTS = (0, -1, True, 1.5, NAN, math.inf, "1", None, 10**40, Fraction(1, 2), [1])
NOT_RATIONALS = (
    0,
    -1,
    True,
    NAN,
    math.inf,
    -math.inf,
    "nan",
    "inf",
    "one",
    "",
    None,
    10**40,
    "1e400",
    Decimal("NaN"),
    [1],
)

LEVELS = (Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000))


def mechanisms_in(module: ModuleType) -> set[type]:
    asked = ("event", "loss", "sample", "distribution", "error")
    return {
        item
        for _, item in inspect.getmembers(module, inspect.isclass)
        if item.__module__ == module.__name__ and item is not Mechanism and all(hasattr(item, name) for name in asked)
    }


def all_mechanisms() -> set[type]:
    names = [info.name for info in pkgutil.iter_modules(hubbub.mechanisms.__path__)]
    return set().union(*(mechanisms_in(importlib.import_module(f"hubbub.mechanisms.{name}")) for name in names))


def test_every_mechanism_has_cases(cases: Any) -> None:
    found = all_mechanisms()
    assert len(found) >= 14
    assert found - {case.kind for case in cases} == set()


def test_a_planted_mechanism_without_cases_is_found(cases: Any) -> None:
    planted = ModuleType("planted")
    methods = dict.fromkeys(("event", "loss", "sample", "distribution", "error"))
    vars(planted)["Unheard"] = type("Unheard", (), {**methods, "__module__": "planted"})
    assert mechanisms_in(planted) - {case.kind for case in cases} == {vars(planted)["Unheard"]}


def test_a_mechanism_is_a_frozen_mechanism(case: Any) -> None:
    mechanism = case.build(case.parameters[0])
    assert type(mechanism) is case.kind
    assert isinstance(mechanism, Mechanism)
    assert mechanism == case.build(case.parameters[0])
    for name in inspect.signature(case.kind).parameters:
        with pytest.raises((AttributeError, TypeError)):
            setattr(mechanism, name, 1)


def test_enumerated_loss_is_the_stated_one(case: Any) -> None:
    """Stated ≥ enumerated on every pair (up to 1e-30, proved), and enumerated ≥ 0.99 of stated on the worst."""
    for parameter in case.parameters:
        mechanism = case.build(parameter)
        distributions = [
            (case.distribution(mechanism, x), case.distribution(mechanism, y)) for x, y in case.pairs(mechanism)
        ]
        for p, q in distributions:
            assert satisfies(mechanism.loss, p, q)
        assert_attained(mechanism.loss, distributions)


def assert_attained(
    loss: Any, distributions: list[tuple[FiniteDistribution[Hashable], FiniteDistribution[Hashable]]]
) -> None:
    nearly = Fraction(99, 100)
    match loss:
        case Pure(epsilon):
            assert max(worst_ratio(p, q)[0] for p, q in distributions) >= nearly * epsilon
        case BoundedRange(epsilon):
            assert max(worst_ratio(p, q)[0] for p, q in distributions) >= nearly * epsilon
            assert max(ratio_range(p, q)[0] for p, q in distributions) >= nearly * epsilon
        case Zcdp(rho):
            for order in (Fraction(2), Fraction(3), Fraction(4)):
                assert max(renyi(p, q, order)[0] for p, q in distributions) >= nearly * rho * order
        case Approximate(Pure(epsilon), delta) if all(worst_ratio(p, q)[0] == math.inf for p, q in distributions):
            assert max(delta_at(p, q, epsilon)[0] for p, q in distributions) >= nearly * delta
        case Approximate(rest, delta):
            assert max(delta_at(p, q, Fraction(20))[0] for p, q in distributions) >= nearly * delta
            assert_attained(rest, [(p, q) for p, q in distributions if worst_ratio(p, q)[0] != math.inf])
        case _:
            raise AssertionError(loss)


def test_a_loss_understated_by_two_percent_is_refuted(case: Any) -> None:
    mechanism = case.build(case.parameters[-1])
    shrink = Fraction(98, 100)
    match mechanism.loss:
        case Pure(epsilon):
            wrong: Any = Pure(epsilon * shrink)
        case BoundedRange(epsilon):
            wrong = BoundedRange(epsilon * shrink)
        case Zcdp(rho):
            wrong = Zcdp(rho * shrink)
        case Approximate(rest, delta):
            wrong = Approximate(rest, delta * shrink)
    assert not all(
        satisfies(wrong, case.distribution(mechanism, x), case.distribution(mechanism, y))
        for x, y in case.pairs(mechanism)
    )


def test_event_survives_the_ledger_s_form(case: Any) -> None:
    for parameter in case.parameters:
        event = case.build(parameter).event
        assert from_facts(json.loads(json.dumps(to_facts(event)))) == event


def test_price_of_the_event_is_the_stated_loss(case: Any) -> None:
    """Accounting prices the event, the mechanism states the loss, and they meet only here."""
    rounding = Fraction(1, 10**15)
    for parameter in case.parameters:
        mechanism = case.build(parameter)
        charged = privacy_cost(mechanism.event)
        stated, delta = size(mechanism.loss)
        assert delta <= charged.delta <= delta + rounding
        if charged.pure is not None:
            assert stated <= charged.pure <= stated + rounding
        else:
            assert all(stated * a <= value * RENYI_UNIT for a, value in zip(ORDERS, charged.renyi, strict=True))


def size(loss: Any) -> tuple[Fraction, Fraction]:
    match loss:
        case Pure(epsilon) | BoundedRange(epsilon):
            return epsilon, Fraction(0)
        case Zcdp(rho):
            return rho, Fraction(0)
        case Approximate(rest, delta):
            return size(rest)[0], delta
    raise AssertionError(loss)


def test_loss_is_what_was_asked_for_and_rises_with_it(case: Any) -> None:
    sizes = [size(case.build(parameter).loss)[0] for parameter in sorted(case.parameters)]
    assert sizes == sorted(case.parameters)
    assert len(set(sizes)) == len(sizes)


def refusals(case: Any) -> list[tuple[str, object]]:
    counts = [(name, bad) for name in case.counts for bad in NOT_COUNTS]
    return counts + [(name, bad) for name in case.rationals for bad in NOT_RATIONALS]


def test_bad_parameters_are_refused(case: Any) -> None:
    good = case.build(case.parameters[0])
    facts = {name: getattr(good, name) for name in inspect.signature(case.kind).parameters}
    assert case.kind(**facts) == good
    for name, bad in refusals(case):
        with pytest.raises(ParameterError):
            case.kind(**{**facts, name: bad})


def test_bad_privacy_parameters_are_refused(case: Any) -> None:
    for bad in NOT_RATIONALS:
        with pytest.raises((ParameterError, TypeError) if bad in (None, [1]) else ParameterError):
            case.build(bad)


def test_privacy_parameters_have_no_default_and_no_place(case: Any) -> None:
    constructors = [case.kind, *(getattr(case.kind, n) for n in ("from_epsilon", "from_rho") if hasattr(case.kind, n))]
    for constructor in constructors:
        for parameter in inspect.signature(constructor).parameters.values():
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert parameter.default is inspect.Parameter.empty


def test_error_interval_covers_at_its_level(case: Any) -> None:
    """From the distribution, exactly: the outcomes within the stated error have at least the stated probability."""
    for parameter in case.parameters:
        mechanism = case.build(parameter)
        masses = mechanism.distribution(case.value).mass.items()
        # rounded down to 40 digits, which is quicker to add up
        far = [(case.distance(case.value, y), low.numerator * 10**40 // low.denominator) for y, (low, _) in masses]
        for level in LEVELS:
            width = case.error(mechanism, level)
            within = sum(low for distance, low in far if distance <= width)
            assert Fraction(within, 10**40) >= level - Fraction(1, 10**30)


def test_error_grows_with_the_level(case: Any) -> None:
    mechanism = case.build(case.parameters[0])
    widths = [mechanism.error(level) for level in LEVELS]
    assert widths == sorted(widths)
    for bad in (0, 1, NAN, -1, True, "x"):
        with pytest.raises(ParameterError):
            mechanism.error(bad)


def p_value(drawn: list[Hashable], distribution: dict[Hashable, float], *, wrong: float = 0.0) -> float:
    """Give the p-value of χ² over at most 8 bins of like weight; the heaviest gives up `wrong` to the lightest."""
    bins, weights = {}, [0.0] * 8
    for outcome, mass in sorted(distribution.items(), key=lambda item: (-item[1], repr(item[0]))):
        bins[outcome] = weights.index(min(weights))
        weights[bins[outcome]] += mass
    seen = np.bincount([bins[outcome] for outcome in drawn], minlength=8)
    used = [i for i, weight in enumerate(weights) if weight * len(drawn) >= 5]
    expected = np.array([weights[i] for i in used])
    ranked = np.argsort(expected)
    expected[ranked[[0, -1]]] += (wrong, -wrong)
    return float(stats.chisquare(seen[used], expected / expected.sum() * seen[used].sum()).pvalue)


DRAWS = 6_000


def test_samples_agree_with_the_distribution(case: Any, seeded: Callable[[int], RandomSource]) -> None:
    """χ² at α = 1e-6 over 6,000 draws from fixed words (so: no false alarm in a run, 1e-6 for a choice of words).

    The same test must reject a distribution that is wrong by 5 % of its mass.
    """
    mechanism = case.build(case.parameters[-1])
    source = seeded(20_260_101)
    value = case.to_sample(case.value)
    drawn = [case.to_outcome(mechanism.sample(value, source)) for _ in range(DRAWS)]
    distribution = {y: float(low + high) / 2 for y, (low, high) in mechanism.distribution(case.value).mass.items()}
    assert set(drawn) <= set(distribution)
    assert p_value(drawn, distribution) > 1e-6
    assert p_value(drawn, distribution, wrong=0.05) < 1e-6


def test_same_words_give_the_same_answer_and_nothing_else_matters(case: Any) -> None:
    mechanism, value = case.build(case.parameters[0]), case.to_sample(case.value)
    kept = value.copy() if isinstance(value, np.ndarray) else value
    words = np.random.Generator(np.random.PCG64(7)).integers(0, 2**64, size=4000, dtype=np.uint64).tolist()
    first, source = [], ReplaySource(words)
    for _ in range(5):
        first.append(case.to_outcome(mechanism.sample(value, source)))
    random.seed(1)
    np.random.seed(1)
    again, twin, source = [], case.build(case.parameters[0]), ReplaySource(words)
    for _ in range(5):
        again.append(case.to_outcome(twin.sample(value, source)))
    assert first == again
    assert np.array_equal(value, kept)
