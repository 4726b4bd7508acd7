"""How far odds can rise under (ε, δ)-privacy, in numbers and in words; `hubbub.semantics` has the rest.

Tested in tests/semantics/test_pointwise.py and tests/semantics/test_odds.py.
"""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from hubbub.core.interval import exp
from hubbub.core.reals import ceil_to
from hubbub.core.reals import exp as exp_fraction
from hubbub.errors import ParameterError

#: Above this ε every bound on odds is trivial.
LARGE = 40
#: With δ > 0, bounds on odds are stated at this multiple of ε.
WIDER = Fraction(11, 10)

_ZERO, _ONE = Fraction(0), Fraction(1)
_THREE = Context(prec=3, rounding=ROUND_CEILING)
#: Larger factors are not spelled out.
MANY = 10**6
#: Below this ε, it may be that nothing can be learned from a dataset of ordinary size.
SMALL = Fraction(1, 100)
#: Answers on which all people together have no more influence than this tell almost nothing.
_NOTHING_TOLD = Fraction(1, 10)


def factor(epsilon: Fraction) -> Fraction:
    """Return e^ε rounded up, the largest factor by which odds can change (ε is capped at 40, a factor of 10¹⁷)."""
    return exp_fraction(min(epsilon, Fraction(LARGE)))[1]


def exceedance(*, delta: Fraction, slack: Fraction) -> Fraction:
    """Bound the probability that the odds of a fact rise by more than e^(ε + slack) under (ε, δ)-privacy.

    Theorem (Odds under delta). Under (ε, δ)-privacy, for every η > 0, the odds of a fact about one person rise by a
    factor of more than e^(ε+η) with probability at most δ/(1 − e^−η) if the fact is true, and less if it is false. No
    less will do, and nothing holds at η = 0: every answer that favors the fact may raise the odds by more than e^ε.
    Proof    Let P and Q be the distributions of the answer if the fact is true and if it is false, and S the answers
    where P > e^(ε+η) Q. Then δ ≥ P(S) − e^ε Q(S) ≥ P(S)(1 − e^−η), and Q(S) < P(S). Two answers attain it.
    Assumes  that everybody else's data is known or independent of the fact, so that P and Q are mixtures of neighbors
             with the same weights. The probability is over the answers, for data drawn from the belief.
    Tested   tests/semantics/test_pointwise.py::test_two_answers_attain_the_chance_that_odds_rise
             tests/semantics/test_pointwise.py::test_the_chance_holds_on_random_pairs
    """
    if not slack > 0:
        raise ParameterError("HB103", "The slack is not positive.", "Pass a number such as 0.1.")
    return min(_ONE, (delta / (1 - exp(-slack))).above(60))


def wider(*, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return the ε at which bounds on odds are stated, and the probability that they are exceeded.

    >>> at, chance = wider(epsilon=Fraction(1), delta=Fraction(1, 10**5))
    >>> float(at), f"{float(chance):.3e}"
    (1.1, '1.051e-04')
    """
    return (WIDER * epsilon, exceedance(delta=delta, slack=(WIDER - 1) * epsilon)) if delta else (epsilon, _ZERO)


def limit(*, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return a factor by which the odds of a fact rise at most, and the probability of a larger one.

    Without δ it is e^ε, which nothing exceeds. With δ it is e^(1.1ε), which is exceeded with probability at most
    δ/(1 − e^(−ε/10)): by `exceedance`, δ alone bounds nothing at e^ε itself.
    """
    at, chance = wider(epsilon=epsilon, delta=delta)
    return factor(at), chance


def three_digits(probability: Fraction) -> str:
    """Format a small probability with three digits, rounded up.

    >>> three_digits(Fraction(1, 10**7)), three_digits(Fraction(1, 3))
    ('1e-07', '0.334')
    """
    return f"{float(_THREE.divide(Decimal(probability.numerator), Decimal(probability.denominator))):g}"


def but_for(chance: Fraction) -> str:
    """Return the part of a sentence that states how often a bound is exceeded.

    >>> but_for(Fraction(0)), but_for(Fraction(1, 10**7))
    ('', ', except with probability 1e-07')
    """
    return f", except with probability {three_digits(chance)}" if chance else ""


def times(number: Fraction) -> str:
    """Format a factor with three digits, rounded up.

    >>> times(Fraction(110517, 100000)), times(Fraction(2)), times(Fraction(40343, 100))
    ('1.11', '2', '404')
    """
    whole = len(str(int(number)))
    places = max(0, 3 - whole)
    # numbers with more than three digits are shown in full, rounded up to an integer
    return f"{float(ceil_to(number, places)):,.{places}f}".rstrip("0").rstrip(".") if places else f"{-(-number // 1):,}"


def rise(*, epsilon: Fraction, delta: Fraction) -> str:
    """Say how far odds can move.

    >>> rise(epsilon=Fraction(1), delta=Fraction(0))
    'change by a factor of at most 2.72'
    >>> rise(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    'rise by a factor of at most 3.01, except with probability 1.06e-05'
    """
    most, chance = limit(epsilon=epsilon, delta=delta)
    verb = "rise" if delta else "change"
    if chance == 1:
        return f"{verb} by any factor"
    if most > MANY:
        return f"{verb} by a factor of more than 1,000,000"
    return f"{verb} by a factor of at most {times(most)}{but_for(chance)}"


def uninformative(*, epsilon: Fraction, delta: Fraction, people: int, word: str = "people") -> str:
    """Say so where ε is so small that the answers tell almost nothing about the whole dataset; "" elsewhere.

    By `accounting.convert.total_variation`, all n people together have at most tanh(nε/2) of influence; with δ,
    (e^(nε) − 1 + 2δₙ)/(e^(nε) + 1), where δₙ = δ(e^(nε) − 1)/(e^ε − 1).

    >>> print(uninformative(epsilon=Fraction(1, 10**4), delta=Fraction(0), people=1000))
    At this ε the answers tell almost nothing: without the data of all 1,000 people they would be nearly the same, and \
at most 52.5 of 100 guesses can tell (coin flips get 50).
    >>> uninformative(epsilon=Fraction(1, 100), delta=Fraction(0), people=1000)
    ''
    """
    if people * epsilon > 1:
        return ""
    growth = exp(people * epsilon)
    failing = delta * (growth - 1) / (exp(epsilon) - 1)
    influence = ((growth - 1 + 2 * failing) / (growth + 1)).above()
    if influence > _NOTHING_TOLD:
        return ""
    guesses = f"{float(ceil_to(50 + 50 * influence, 1)):g}"
    return (
        f"At this ε the answers tell almost nothing: without the data of all {people:,} {word} they would be nearly the"
        f" same, and at most {guesses} of 100 guesses can tell (coin flips get 50)."
    )


def consequence(*, epsilon: Fraction, delta: Fraction) -> str:
    """Say how much likelier anything becomes because one person's data is used.

    Theorem (Consequences). Whatever follows from the answers, to whomever it happens, has a probability of at most
    e^ε·p + δ if a person's data is used, where p is its probability without that person's data.
    Proof    It is a randomized function of the answers (post-processing), so the definition of privacy bounds it (Dwork
    2011). Exchange both datasets for a lower bound.
    Tested   tests/semantics/test_odds.py::test_no_consequence_becomes_likelier_than_stated

    >>> consequence(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    'Joining the data makes no consequence of the answers more than 2.72 times as likely, plus 1e-06.'
    """
    most = factor(epsilon)
    if most > MANY:
        return "Joining the data can make a consequence of the answers more than 1,000,000 times as likely."
    extra = f", plus {three_digits(delta)}" if delta else ""
    return f"Joining the data makes no consequence of the answers more than {times(most)} times as likely{extra}."
