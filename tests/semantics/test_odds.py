"""Every figure and every sentence about ε, against its formula computed in another way."""

import math
import re
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.odds import factor, times
from hubbub.errors import ParameterError
from hubbub.semantics import odds
from hubbub.semantics.odds import Meaning, meaning

EPSILONS = tuple(map(Fraction, ("0.01", "0.1", "0.5", "0.693", "1", "1.098", "2", "3", "6", "10", "25")))
NONE = Fraction(0)

epsilons = st.fractions(Fraction(1, 1000), Fraction(12), max_denominator=1000)
deltas = st.sampled_from([NONE, Fraction(1, 10**9), Fraction(1, 10**5), Fraction(1, 100)])
chances = st.fractions(Fraction(0), Fraction(1), max_denominator=1000)


def true(value: object) -> Fraction:
    """A high-precision value as a fraction."""
    return Fraction(str(mpmath.nstr(value, 45)))


def e_to(epsilon: Fraction) -> "mpmath.mpf":
    return mpmath.e ** (mpmath.mpf(epsilon.numerator) / epsilon.denominator)


def shown(text: str) -> list[Fraction]:
    """The percentages and factors in a sentence, as a reader takes them."""
    return [Fraction(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-\d+)?", text)]


@pytest.mark.row(9)
def test_posteriors_are_those_of_randomized_response() -> None:
    """The best attack on randomized response with ln 3: ½ becomes ¾, and the odds are tripled whatever they were."""
    epsilon = Fraction("1.0986122886681098")
    low, high = odds.posterior(Fraction(1, 2), epsilon=epsilon)
    assert abs(high - Fraction(3, 4)) < Fraction(1, 10**12)
    assert abs(low - Fraction(1, 4)) < Fraction(1, 10**12)
    for prior in (Fraction(1, 1000), Fraction(1, 10), Fraction(9, 10)):
        truthful, lying = Fraction(3, 4), Fraction(1, 4)
        bayes = prior * truthful / (prior * truthful + (1 - prior) * lying)
        assert abs(odds.posterior(prior, epsilon=epsilon)[1] - bayes) < Fraction(1, 10**12)


@given(chances, epsilons)
def test_the_shown_posterior_is_never_too_small(prior: Fraction, epsilon: Fraction) -> None:
    low, high = odds.posterior(prior, epsilon=epsilon)
    e = e_to(epsilon)
    p = mpmath.mpf(prior.numerator) / prior.denominator
    slack = Fraction(1, 10**30)
    assert 0 <= high - true(p * e / (p * e + 1 - p)) + slack <= 2 * slack
    assert 0 <= true(p / (p + (1 - p) * e)) - low + slack <= 2 * slack


def trade_off(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """The mechanism that is (ε, δ)-private and no better: four outcomes, two of which give the secret away."""
    e = math.exp(epsilon)
    with_person = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
    return list(zip(with_person, reversed(with_person), strict=True))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_the_best_guess_and_the_best_test_are_attained(epsilon: float, delta: float) -> None:
    """On the worst mechanism the bounds are equalities: the optimal test is enumerated, with randomization."""
    distribution = trade_off(epsilon, delta)
    exact = {"epsilon": Fraction(repr(epsilon)), "delta": Fraction(repr(delta))}
    right = sum(max(p, q) for p, q in distribution) / 2
    # 1e-3 of slack: this mechanism's TV is δ + (1−δ)tanh(ε/2), the bound's 2δ/(e^ε+1) + tanh(ε/2): the same
    assert float(odds.guess(**exact)) == pytest.approx(right, abs=1e-12)
    ordered = sorted(distribution, key=lambda pair: pair[1] / pair[0] if pair[0] else math.inf)
    level, power, left = 0.05, 0.0, 0.05
    for p, q in ordered:  # accuse on the most telling outcomes first, the last of them by a coin
        share = 1.0 if q <= left or not q else left / q
        power, left = power + share * p, left - share * q
    assert float(odds.power(**exact, level=Fraction(repr(level)))) == pytest.approx(power, abs=1e-12)


@pytest.mark.row(22)
@given(epsilons, deltas, chances)
def test_the_trade_off_of_type_one_and_type_two_errors(epsilon: Fraction, delta: Fraction, level: Fraction) -> None:
    """1 − power is max(0, 1 − δ − e^ε·α, e^{−ε}(1 − δ − α)), and without δ at most e^ε·α of the guilty are found."""
    e, a, d = e_to(epsilon), mpmath.mpf(level.numerator) / level.denominator, mpmath.mpf(float(delta))
    missed = max(mpmath.mpf(0), 1 - d - e * a, (1 - d - a) / e)
    found = odds.power(epsilon=epsilon, delta=delta, level=level)
    assert abs((1 - found) - true(missed)) < Fraction(1, 10**15)
    assert found <= true(e * a) + delta + Fraction(1, 10**15)


@pytest.mark.row(13)
def test_a_million_people_at_a_tenth() -> None:
    found = odds.semantic(epsilon=Fraction(1, 10), delta=Fraction(1, 10**12), people=10**6)
    assert found is not None
    assert [round(float(each), 3) for each in found] == [0.352, 0.004]
    assert found[0] >= true(e_to(Fraction(3, 10)) - 1) + Fraction(2, 1000)


@pytest.mark.row(13)
def test_a_delta_that_is_too_large_is_warned_of() -> None:
    few = Fraction(1, 10**30)
    for epsilon in (Fraction("0.23"), Fraction("0.232"), Fraction(1)):  # a bound on beliefs is shown there
        assert not any("vacuous" in text for text in odds.warnings(epsilon=epsilon, delta=few, people=100))
    at = Fraction("0.1") ** 2 / 1000
    assert odds.semantic(epsilon=Fraction("0.1"), delta=at, people=1000) is None
    assert odds.semantic(epsilon=Fraction("0.1"), delta=at - few, people=1000) is not None
    assert any("ε²/n" in text for text in odds.warnings(epsilon=Fraction("0.1"), delta=at, people=1000))
    large = odds.warnings(epsilon=Fraction(1), delta=Fraction(1, 1000), people=1000)
    assert any("publishing" in text for text in large)
    assert odds.warnings(epsilon=Fraction("0.1"), delta=NONE, people=1000) == ()


@pytest.mark.row(4)
def test_the_usual_epsilons_as_factors() -> None:
    assert [times(factor(epsilon)) for epsilon in odds.PRESETS] == ["1.02", "1.11", "2", "3"]


@given(epsilons, deltas, st.integers(1, 6))
def test_a_family_is_protected_by_the_sum(epsilon: Fraction, delta: Fraction, size: int) -> None:
    together, failing = odds.group(size, epsilon=epsilon, delta=delta)
    assert together == size * epsilon
    steps = sum(e_to(step * epsilon) for step in range(size)) * delta.numerator / delta.denominator
    assert failing >= min(Fraction(1), true(steps)) - Fraction(1, 10**20)
    if failing < 1:
        assert failing <= true(steps) + Fraction(1, 10**15)


@given(st.fractions(Fraction(0), Fraction(1), max_denominator=10**6))
def test_a_percentage_is_rounded_up(probability: Fraction) -> None:
    text = odds.percent(probability)
    if text == "almost 100%":
        assert probability > Fraction(999, 1000)
    else:
        assert 0 <= shown(text)[0] - 100 * probability < Fraction(1, 10)


@given(st.fractions(Fraction(1), Fraction(10**6), max_denominator=10**6))
def test_a_factor_is_rounded_up(number: Fraction) -> None:
    (read,) = shown(times(number))
    assert number <= read <= number * Fraction(102, 100)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [NONE, Fraction(1, 10**7)])
@pytest.mark.parametrize("prior", [Fraction(1, 2), Fraction(1, 100)])
def test_every_sentence_says_its_formula(epsilon: Fraction, delta: Fraction, prior: Fraction) -> None:
    """Each number that a person reads is at least the true one and at most one step of its rounding above."""
    found = meaning(epsilon=epsilon, delta=delta, prior=prior)
    e, p, d = e_to(epsilon), mpmath.mpf(prior.numerator) / prior.denominator, mpmath.mpf(float(delta))

    def at_least(text: str, formula: object, step: Fraction) -> None:
        if "almost 100" in text or "more than 1,000,000" in text:
            assert true(formula) > (Fraction(999, 10) if "almost" in text else 10**6)
        else:
            above = shown(text)[-1] - true(formula)
            assert -Fraction(1, 10**25) <= above < step, text

    tenth = Fraction(1, 10)
    # with δ, odds are bounded at 1.1 ε, except with probability δ/(1 − e^(−ε/10))
    wide, exceeded = (e ** (mpmath.mpf(11) / 10), d / (1 - e ** (-mpmath.mpf(1) / 10))) if delta else (e, 0)
    belief = found.belief.partition(", whatever else")[0]
    at_least(belief, 100 * p * wide / (p * wide + 1 - p), tenth)
    percent = "50%" if prior == Fraction(1, 2) else "1%"
    assert found.belief.startswith(f"Someone who starts out {percent} sure of a fact")
    at_least(found.odds.partition(", except with")[0], wide, max(Fraction(1), true(wide) / 100))
    at_least(found.guesses.partition(" are right")[0], 100 * (e + d) / (e + 1), Fraction(1))
    at_least(found.test, 100 * min(1, e / 20 + d, 1 - (mpmath.mpf(19) / 20 - d) / e), tenth)
    assert found.rare.startswith("Someone who starts out 1% sure can end up at most ")
    rare = mpmath.mpf(1) / 100
    at_least(found.rare.partition(", except with")[0], 100 * rare * wide / (rare * wide + 1 - rare), tenth)
    for sentence in (found.belief, found.rare, found.odds):
        said = bool(delta) and "more than 1,000,000" not in sentence
        assert ("except with probability" in sentence) is said
        if said:
            at_least(sentence.partition(", except with")[2], exceeded, true(exceeded) / 100)
    at_least(found.consequence.partition(" times")[0], e, max(Fraction(1), true(e) / 100))
    assert (", plus 1e-07." in found.consequence) is (bool(delta) and e <= 10**6)
    together = d * (e**4 - 1) / (e - 1)
    assert ("no guarantee" in found.family) is (together >= 1)
    expected = (found.belief, found.rare, found.odds, found.guesses, found.test, found.consequence, found.family)
    assert found.sentences == expected
    if together >= 1:
        assert found.family == "A group of 4 people has no guarantee: its δ reaches 1."
        return
    wide, exceeded = (e ** (mpmath.mpf(44) / 10), together / (1 - e ** (-mpmath.mpf(4) / 10))) if delta else (e**4, 0)
    if exceeded >= 1:
        assert "the odds can rise by any factor" in found.family
        return
    if delta and "more than 1,000,000" not in found.family:
        at_least(
            found.family.partition(", except with")[2].partition(", as if")[0],
            exceeded,
            max(Fraction(1, 10**9), true(exceeded) / 100),
        )
    at_least(re.split(", except with|, as if", found.family)[0], wide, max(Fraction(1), true(wide) / 100))
    assert found.family.endswith(f"as if ε were {float(4 * epsilon):g}.")
    assert found.family_of(2).endswith(f"as if ε were {float(2 * epsilon):g}.")


@pytest.mark.row(108)
@pytest.mark.parametrize("delta", [NONE, Fraction(1, 50)])
def test_no_consequence_becomes_likelier_than_stated(delta: Fraction) -> None:
    """Whatever an insurer does with the answer: all 2⁴ sets of answers at which a premium rises, with and without me.

    The mechanism is the worst one, so some set attains e^ε·p + δ: a smaller factor or δ would fail.
    """
    epsilon = Fraction(1)
    attained = False
    pairs = trade_off(1.0, float(delta))
    for chosen in range(2 ** len(pairs)):
        with_row = sum(p for place, (p, _) in enumerate(pairs) if chosen >> place & 1)
        without = sum(q for place, (_, q) in enumerate(pairs) if chosen >> place & 1)
        assert with_row <= math.e * without + float(delta) + 1e-12
        attained |= chosen > 0 and with_row >= math.e * without + float(delta) - 1e-12 and with_row > float(delta)
    assert attained
    said = meaning(epsilon=epsilon, delta=delta).consequence
    figures = [Fraction(272, 100)] + ([delta] if delta else [])
    assert shown(said) == figures


def test_the_form_is_rounded_outwards() -> None:
    found = meaning(epsilon=Fraction(1), delta=Fraction(1, 10**7), people=1000)
    form = found.to_json()
    low, high = (Fraction(each) for each in str(form["posterior"])[1:-1].split(", "))
    assert low <= found.low
    assert high >= found.high
    assert form["sentences"] == list(found.sentences)


def test_an_impossible_prior_is_refused() -> None:
    with pytest.raises(ParameterError, match="HB103"):
        odds.posterior(Fraction(3, 2), epsilon=Fraction(1))


def test_huge_epsilons_are_answered_at_once() -> None:
    found = meaning(epsilon=Fraction(10**6), delta=Fraction(1, 10**9), people=100)
    assert isinstance(found, Meaning)
    assert "can end up at most almost 100% sure" in found.belief
    assert found.of_a_hundred == 100
    # nothing is promised there, so no prior is too small to become sure
    assert odds.posterior(Fraction(1, 10**30), epsilon=Fraction(41)) == (NONE, Fraction(1))
    assert odds.posterior(Fraction(0), epsilon=Fraction(41)) == (NONE, NONE)
    assert odds.power(epsilon=Fraction(41), delta=NONE) == odds.guess(epsilon=Fraction(41), delta=NONE) == 1


def test_one_in_a_hundred_becomes_at_most_two_point_seven() -> None:
    assert (
        meaning(epsilon=Fraction(1), delta=NONE).rare == "Someone who starts out 1% sure can end up at most 2.7% sure."
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "vacuous"),
    [("6.9", "0", False), ("6.91", "0", True), ("40", "0", True), ("0.1", "0.99", False), ("1", "0.999", True)],
)
def test_a_guarantee_is_called_vacuous_where_guesses_are_right(epsilon: str, delta: str, vacuous: bool) -> None:  # noqa: FBT001
    """(e^ε + δ)/(e^ε + 1) above .999: from ε = 6.907 on without a δ."""
    e, d = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
    assert ((e + d) / (e + 1) > 0.999) is vacuous
    said = odds.warnings(epsilon=Fraction(epsilon), delta=Fraction(delta))
    assert any(text.startswith("This guarantee is vacuous") and "999 of 1,000" in text for text in said) is vacuous


@pytest.mark.row(6)
@pytest.mark.parametrize("delta", [NONE, Fraction(1, 10**9)])
def test_a_tiny_epsilon_is_said_to_tell_nothing(delta: Fraction) -> None:
    """All n people together move a guess by at most tanh(nε/2), with δ by the group's bound; said up to a tenth."""
    for epsilon, people, nothing in (("0.0001", 1000, True), ("0.0001", 2100, False), ("0.001", 190, True)):
        said = [
            text for text in odds.warnings(epsilon=Fraction(epsilon), delta=delta, people=people) if "nothing" in text
        ]
        assert bool(said) is nothing
        if said:
            e, g = e_to(Fraction(epsilon)), e_to(people * Fraction(epsilon))
            failing = mpmath.mpf(delta.numerator) / delta.denominator * (g - 1) / (e - 1)
            influence = (g - 1 + 2 * failing) / (g + 1)
            assert 0 <= float(shown(said[0])[1]) - (50 + 50 * influence) < 0.1
