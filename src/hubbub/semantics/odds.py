"""What ε and δ mean for one person: bounds on posteriors, odds, guesses and tests, in numbers and in sentences.

People use these figures to judge a privacy guarantee, so each is an upper bound on what an adversary with any auxiliary
information can learn, rounded up from an exact enclosure of eˣ.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core import numbers
from hubbub.core.odds import LARGE, but_for, consequence, factor, limit, rise, uninformative
from hubbub.core.reals import ceil_to, exp, floor_to, sqrt
from hubbub.errors import ParameterError

EVEN = Fraction(1, 2)
#: The usual false-positive rate of a test.
LEVEL = Fraction(1, 20)
#: Values of ε from papers (Dwork 2011): .01, .1, ln 2 and ln 3, the latter two truncated so that they sum exactly.
PRESETS = tuple(map(Fraction, ("0.01", "0.1", "0.693", "1.098")))

#: A prior belief in a rare fact.
RARE = Fraction(1, 100)
#: A guarantee that allows more right guesses than this is vacuous.
VACUOUS = Fraction(999, 1000)

_NONE, _ONE = Fraction(0), Fraction(1)


def posterior(prior: Fraction, *, epsilon: Fraction, delta: Fraction = _NONE) -> tuple[Fraction, Fraction]:
    """Bound the posterior belief in a fact about one person, given the prior belief.

    Theorem (Posterior odds). For every ε-private mechanism, every prior over two neighbors and every output, the
    posterior odds are within e^{±ε} of the prior odds: the posterior is in [p/(p + (1−p)e^ε), pe^ε/(pe^ε + 1 − p)].
    Proof    Bayes: posterior odds are prior odds times Pr[output | x] / Pr[output | x'], which is within e^{±ε}.
    Assumes  the two datasets are neighbors. With δ, the factor is that of `limit`, and each end is passed with at most
             the probability that is stated there.
    Error    none: randomized response attains both ends; here both are rounded outward.
    Tested   tests/semantics/test_odds.py::test_posteriors_are_those_of_randomized_response
             tests/semantics/test_odds.py::test_the_shown_posterior_is_never_too_small
    """
    if not 0 <= prior <= 1:
        raise ParameterError("HB103", "The prior is not between 0 and 1.", "Pass a probability such as 0.5.")
    if epsilon > LARGE:
        return (prior, prior) if prior in (0, 1) else (Fraction(0), _ONE)
    e, _ = limit(epsilon=epsilon, delta=delta)
    return prior / (prior + (1 - prior) * e), prior * e / (prior * e + 1 - prior)


def guess(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Bound the success rate of the best guess at whether a person is in the data, when a fair coin decides that.

    Theorem (Best guess). For every (ε, δ)-private mechanism the chance is at most (e^ε + δ)/(e^ε + 1).
    Proof    The best guess is right with ½(1 + TV), and TV ≤ (e^ε − 1 + 2δ)/(e^ε + 1): the two errors a, b of a test
             obey a + e^ε b ≥ 1 − δ and e^ε a + b ≥ 1 − δ; added up, a + b ≥ 2(1 − δ)/(1 + e^ε), and TV = 1 − (a + b).
    Tested   tests/semantics/test_odds.py::test_the_best_guess_and_the_best_test_are_attained
    """
    e = factor(epsilon)
    return _ONE if epsilon > LARGE else min(_ONE, (e + delta) / (e + 1))


def power(*, epsilon: Fraction, delta: Fraction, level: Fraction = LEVEL) -> Fraction:
    """Bound the true-positive rate of the best membership test at a given false-positive rate.

    Theorem (Best test). For every (ε, δ)-private mechanism, a test with false-positive rate α has a true-positive rate
    of at most min(e^ε·α + δ, 1 − e^{−ε}(1 − δ − α)).
    Proof    Both are the definition of privacy, for the set where the test is positive and for its complement
             (Kasiviswanathan and Smith 2014, equations 4 and 5; Wasserman and Zhou 2010).
    Tested   tests/semantics/test_odds.py::test_the_best_guess_and_the_best_test_are_attained
             tests/semantics/test_odds.py::test_the_trade_off_of_type_one_and_type_two_errors
    """
    return min(rise * level + start for rise, start in lines(epsilon=epsilon, delta=delta))


def lines(*, epsilon: Fraction, delta: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return the bounds on the power of a test as lines: the slope in the level, and the value at level 0."""
    certain = (Fraction(0), _ONE)
    if epsilon > LARGE:
        return (certain,)
    e = factor(epsilon)
    return certain, (e, delta), (1 / e, 1 - (1 - delta) / e)


def group(size: int, *, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return the (ε, δ) of a group of `size` units (group privacy): kε and δ(e^{kε} − 1)/(e^ε − 1), rounded up."""
    if size == 1 or not delta:
        return size * epsilon, delta
    if size * epsilon > LARGE:
        return size * epsilon, _ONE
    low, high = exp(epsilon)[0], exp(size * epsilon)[1]
    return size * epsilon, min(_ONE, ceil_to(delta * (high - 1) / (low - 1), 40))


def semantic(*, epsilon: Fraction, delta: Fraction, people: int) -> tuple[Fraction, Fraction] | None:
    """Bound how far one person's data changes beliefs, for any prior over n people; None if there is no bound.

    Theorem (Beliefs under delta). For an (ε, δ)-private mechanism with δ < ε²/n, an output drawn from any data moves
    the belief by more than e^{3ε} − 1 + 2√(nδ) in statistical difference, between the worlds with and without one
    person's data, with probability at most 4√(nδ) (Kasiviswanathan and Smith 2014, Theorem 2.4(1)).
    Proof    By `bounds.approximate_beliefs`, which is no larger wherever this one says something; the paper's proof
             relies on a lemma that fails (`bounds.conditioned`). It says nothing where δ ≥ ε²/n or the first is 1 or
             more.
    Tested   tests/semantics/test_odds.py::test_a_million_people_at_a_tenth
             tests/semantics/test_bounds.py::test_the_tight_form_is_below_the_printed_theorem
    """
    if not delta < epsilon * epsilon / people:
        return None
    root = sqrt(people * delta)[1]
    # a statistical difference is at most 1, so larger bounds need no precision
    return exp(min(3 * epsilon, Fraction(LARGE)))[1] - 1 + 2 * root, min(_ONE, 4 * root)


def warnings(*, epsilon: Fraction, delta: Fraction, people: int | None = None) -> tuple[str, ...]:
    """List the caveats of this guarantee."""
    told = "" if people is None else uninformative(epsilon=epsilon, delta=delta, people=people)
    caveats = [told] if told else []
    if guess(epsilon=epsilon, delta=delta) > VACUOUS:
        caveats.append("This guarantee is vacuous: it allows more than 999 of 1,000 guesses to be right.")
    if people is not None and delta * people >= 1:
        caveats.append(
            f"δ = {numbers.brief(delta)} is at least 1/n for n = {people:,}: it would allow publishing a person's row."
        )
    elif people is not None and delta and delta >= epsilon * epsilon / people:
        caveats.append(
            f"δ = {numbers.brief(delta)} is not below ε²/n for n = {people:,}: the risk from δ may exceed that from ε."
        )
    return tuple(caveats)


def percent(probability: Fraction) -> str:
    """Format a probability in tenths of a percent, rounded up.

    >>> percent(Fraction(1, 2)), percent(Fraction(1, 3)), percent(Fraction(99991, 100000)), percent(Fraction(0))
    ('50%', '33.4%', 'almost 100%', '0%')
    """
    tenths = -((-1000 * probability.numerator) // probability.denominator)
    return f"{tenths / 10:g}%" if tenths < 1000 else "almost 100%"


def in_a_hundred(probability: Fraction) -> str:
    """Format a probability as a number out of 100, rounded up to a tenth.

    >>> in_a_hundred(Fraction(267, 10000)), in_a_hundred(Fraction(1, 3)), in_a_hundred(Fraction(999999, 10**6))
    ('2.7', '33.4', 'almost 100')
    """
    return percent(probability).removesuffix("%")


def certainty(prior: Fraction, *, epsilon: Fraction, delta: Fraction, word: str = "") -> str:
    """Return how sure someone can become, and how often more; `word` follows the percentage.

    >>> certainty(Fraction(1, 2), epsilon=Fraction(1), delta=Fraction(0))
    '73.2%'
    >>> certainty(Fraction(1, 2), epsilon=Fraction(1), delta=Fraction(1, 10**6))
    '75.1%, except with probability 1.06e-05'
    """
    chance = limit(epsilon=epsilon, delta=delta)[1]
    most = _ONE if chance == 1 else posterior(prior, epsilon=epsilon, delta=delta)[1]
    return f"{percent(most)}{word}{but_for(chance) if chance < 1 else ''}"


def power_sentence(share: str) -> str:
    """Return the sentence about a test at the usual level that has this true-positive rate.

    >>> print(power_sentence("at most 13.6%"))
    A test that wrongly flags 5% of the people who are not in the data can correctly flag at most 13.6% of those who
    are.
    """
    flagged = f"A test that wrongly flags {percent(LEVEL)} of the people who are not in the data"
    return f"{flagged} can correctly flag {share} of those who are."


@dataclass(frozen=True, slots=True)
class Meaning:
    """What (ε, δ) means for one person, in exact figures and in sentences; all but `low` are upper bounds.

    With δ > 0, `low` and `high` are passed in few answers, with at most the probability that `limit` states.
    """

    epsilon: Fraction
    delta: Fraction
    prior: Fraction
    people: int | None
    low: Fraction
    high: Fraction
    guess: Fraction
    power: Fraction
    families: tuple[tuple[int, Fraction, Fraction], ...]
    warnings: tuple[str, ...]

    @property
    def odds(self) -> str:
        """The largest change of odds."""
        return f"The odds of any fact about one person can {rise(epsilon=self.epsilon, delta=self.delta)}."

    @property
    def belief(self) -> str:
        """The largest posterior belief."""
        start = f"Someone who starts out {percent(self.prior)} sure of a fact about one person"
        word = " sure, whatever else they know"
        return f"{start} can end up at most {certainty(self.prior, epsilon=self.epsilon, delta=self.delta, word=word)}."

    @property
    def rare(self) -> str:
        """The largest posterior belief in a rare fact."""
        most = certainty(RARE, epsilon=self.epsilon, delta=self.delta, word=" sure")
        return f"Someone who starts out {percent(RARE)} sure can end up at most {most}."

    @property
    def consequence(self) -> str:
        """The largest change in the probability of anything because one person's data is used."""
        return consequence(epsilon=self.epsilon, delta=self.delta)

    @property
    def guesses(self) -> str:
        """The success rate of guesses."""
        right = self.of_a_hundred
        return f"Of 100 guesses about who is in the data, at most {right} are right on average; coin flips get 50."

    @property
    def of_a_hundred(self) -> int:
        """The maximum number of right guesses out of 100, rounded up."""
        return -((-100 * self.guess.numerator) // self.guess.denominator)

    @property
    def test(self) -> str:
        """The power of the best test."""
        return power_sentence(f"at most {percent(self.power)}")

    @property
    def family(self) -> str:
        """The guarantee for the largest of `families`."""
        return self.family_of(self.families[-1][0])

    def family_of(self, size: int) -> str:
        """The guarantee for a group of `size` people."""
        epsilon, delta = group(size, epsilon=self.epsilon, delta=self.delta)
        people = "1 person" if size == 1 else f"{size:,} people"
        if delta >= 1:
            return f"A group of {people} has no guarantee: its δ reaches 1."
        change = f"For a group of {people}, the odds can {rise(epsilon=epsilon, delta=delta)}"
        return f"{change}, as if ε were {numbers.brief(epsilon)}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, the most important first."""
        return self.belief, self.rare, self.odds, self.guesses, self.test, self.consequence, self.family

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values; probabilities are decimals, rounded up."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "prior": str(self.prior),
            "people": self.people,
            "posterior": [float(floor_to(self.low, 9)), float(ceil_to(self.high, 9))],
            "exceeded": float(limit(epsilon=self.epsilon, delta=self.delta)[1]),
            "guess": float(ceil_to(self.guess, 9)),
            "power": float(ceil_to(self.power, 9)),
            "families": [
                {"size": size, "epsilon": str(epsilon), "delta": float(delta)} for size, epsilon, delta in self.families
            ],
            "warnings": list(self.warnings),
            "sentences": list(self.sentences),
        }


def meaning(*, epsilon: Fraction, delta: Fraction, prior: Fraction = EVEN, people: int | None = None) -> Meaning:
    """Compute what (ε, δ) means for one person in a dataset of `people`."""
    low, high = posterior(prior, epsilon=epsilon, delta=delta)
    return Meaning(
        epsilon,
        delta,
        prior,
        people,
        low,
        high,
        guess(epsilon=epsilon, delta=delta),
        power(epsilon=epsilon, delta=delta),
        tuple([(size, *group(size, epsilon=epsilon, delta=delta)) for size in (1, 2, 4)]),
        warnings(epsilon=epsilon, delta=delta, people=people),
    )
