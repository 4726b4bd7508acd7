"""What ε means for one person: posteriors, odds, the best guess, the best test. Every figure is rounded against us.

The reader of these figures decides whether a promise is good enough, so each is an upper bound on what somebody could
learn, whatever else they know: probabilities that are "at most" are rounded up, on an exact enclosure of eˣ.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from hubbub.core import numbers
from hubbub.core.reals import ceil_to, exp, floor_to, sqrt
from hubbub.errors import ParameterError

EVEN = Fraction(1, 2)
#: The usual level of a test: so many innocents are accused.
LEVEL = Fraction(1, 20)
#: Beyond this ε nothing is promised any more: every bound below is the trivial one.
LARGE = 40
#: The ε that papers use (Dwork 2011): .01, .1, ln 2 and ln 3, the latter two cut to what can be added up exactly.
PRESETS = tuple(map(Fraction, ("0.01", "0.1", "0.693", "1.098")))

#: A belief about something rare.
RARE = Fraction(1, 100)
#: Where more guesses than this are right, nothing that matters is promised.
VACUOUS = Fraction(999, 1000)

_ONE = Fraction(1)
_THREE = Context(prec=3, rounding=ROUND_CEILING)


def factor(epsilon: Fraction) -> Fraction:
    """Give e^ε, rounded up: by how much odds can move at most (beyond ε = 40, as if it were 40: 10¹⁷ times)."""
    return exp(min(epsilon, Fraction(LARGE)))[1]


def posterior(prior: Fraction, *, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Bound what somebody who held something about one person for true with probability `prior` can come to hold.

    Theorem (Posterior odds). For every ε-private mechanism, every prior over two neighbors and every output, the
    posterior odds are within e^{±ε} of the prior odds: the posterior is in [p/(p + (1−p)e^ε), pe^ε/(pe^ε + 1 − p)].
    Proof    Bayes: posterior odds are prior odds times Pr[output | x] / Pr[output | x'], which is within e^{±ε}.
    Assumes  the two datasets are neighbors; with a δ, it holds for a process that gives the same answer but for a
             chance of δ.
    Error    none: randomized response attains both ends; here both are rounded outwards.
    Tested   tests/semantics/test_odds.py::test_posteriors_are_those_of_randomized_response
             tests/semantics/test_odds.py::test_the_shown_posterior_is_never_too_small
    """
    if not 0 <= prior <= 1:
        raise ParameterError("HB103", "the prior is not between 0 and 1.", "Give a probability such as 0.5.")
    if epsilon > LARGE:
        return (prior, prior) if prior in (0, 1) else (Fraction(0), _ONE)
    e = factor(epsilon)
    return prior / (prior + (1 - prior) * e), prior * e / (prior * e + 1 - prior)


def guess(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Bound how often the best guess is right, where a fair coin decided whether somebody is in the data.

    Theorem (Best guess). For every (ε, δ)-private mechanism the chance is at most (e^ε + δ)/(e^ε + 1).
    Proof    The best guess is right with ½(1 + TV), and TV ≤ (e^ε − 1 + 2δ)/(e^ε + 1): the two errors a, b of a test
             obey a + e^ε b ≥ 1 − δ and e^ε a + b ≥ 1 − δ; added up, a + b ≥ 2(1 − δ)/(1 + e^ε), and TV = 1 − (a + b).
    Tested   tests/semantics/test_odds.py::test_the_best_guess_and_the_best_test_are_attained
    """
    e = factor(epsilon)
    return _ONE if epsilon > LARGE else min(_ONE, (e + delta) / (e + 1))


def power(*, epsilon: Fraction, delta: Fraction, level: Fraction = LEVEL) -> Fraction:
    """Bound the power of the best test at a level: how many of those who are in the data it finds.

    Theorem (Best test). For every (ε, δ)-private mechanism, a test that accuses wrongly with probability α finds
    somebody who is in the data with probability at most min(e^ε·α + δ, 1 − e^{−ε}(1 − δ − α)).
    Proof    Both are the definition of privacy, for the set where the test accuses and for its complement
             (Kasiviswanathan and Smith 2014, equations 4 and 5; Wasserman and Zhou 2010).
    Tested   tests/semantics/test_odds.py::test_the_best_guess_and_the_best_test_are_attained
             tests/semantics/test_odds.py::test_the_trade_off_of_type_one_and_type_two_errors
    """
    return min(rise * level + start for rise, start in lines(epsilon=epsilon, delta=delta))


def lines(*, epsilon: Fraction, delta: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
    """Give the bounds on the power of a test as lines: how steeply each rises with the level, and where it starts."""
    certain = (Fraction(0), _ONE)
    if epsilon > LARGE:
        return (certain,)
    e = factor(epsilon)
    return certain, (e, delta), (1 / e, 1 - (1 - delta) / e)


def group(size: int, *, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Give the (ε, δ) that protects a family of so many units together: kε and δ(e^{kε} − 1)/(e^ε − 1), rounded up."""
    if size == 1 or not delta:
        return size * epsilon, delta
    if size * epsilon > LARGE:
        return size * epsilon, _ONE
    low, high = exp(epsilon)[0], exp(size * epsilon)[1]
    return size * epsilon, min(_ONE, ceil_to(delta * (high - 1) / (low - 1), 40))


def semantic(*, epsilon: Fraction, delta: Fraction, people: int) -> tuple[Fraction, Fraction] | None:
    """Bound how far beliefs move by one person's data, for adversaries with any prior over n people; None: no bound.

    Theorem (Beliefs under delta). For an (ε, δ)-private mechanism with δ < ε²/n, an output drawn from any data moves
    the belief by more than e^{3ε} − 1 + 2√(nδ) in statistical difference, between the worlds with and without one
    person's data, with probability at most 4√(nδ) (Kasiviswanathan and Smith 2014, Theorem 2.4(1)).
    Assumes  the paper's proof; it is not derived here. It says nothing where δ ≥ ε²/n or the first is 1 or more.
    Tested   tests/semantics/test_odds.py::test_a_million_people_at_a_tenth
             tests/semantics/test_odds.py::test_the_bound_on_beliefs_is_called_vacuous_where_it_is
    """
    if not delta < epsilon * epsilon / people:
        return None
    root = sqrt(people * delta)[1]
    # a statistical difference is at most 1 anyhow: what is far beyond that needs no digits
    return exp(min(3 * epsilon, Fraction(LARGE)))[1] - 1 + 2 * root, min(_ONE, 4 * root)


def warnings(*, epsilon: Fraction, delta: Fraction, people: int | None = None) -> tuple[str, ...]:
    """Say what somebody who leans on this promise should know."""
    found = []
    if guess(epsilon=epsilon, delta=delta) > VACUOUS:
        found.append("This guarantee is vacuous: by the bound alone, more than 999 of 1,000 guesses could be right.")
    if people is not None and delta * people >= 1:
        found.append(
            f"δ = {numbers.brief(delta)} is at least 1 in {people:,}: publishing somebody's row would be allowed."
        )
    elif people is not None and delta and delta >= epsilon * epsilon / people:
        found.append(
            f"δ = {numbers.brief(delta)} is not below ε²/n for n = {people:,}: what δ allows may outweigh ε's promise."
        )
    elif people is not None and delta:
        beliefs = semantic(epsilon=epsilon, delta=delta, people=people)
        if beliefs is None or beliefs[0] >= 1:
            found.append(
                "The general bound on beliefs under δ is vacuous at this ε; the odds hold but for a chance of δ."
            )
    return tuple(found)


def percent(probability: Fraction) -> str:
    """Show a probability that must not look smaller than it is: tenths of a percent, rounded up.

    >>> percent(Fraction(1, 2)), percent(Fraction(1, 3)), percent(Fraction(99991, 100000)), percent(Fraction(0))
    ('50 %', '33.4 %', 'almost 100 %', '0 %')
    """
    tenths = -((-1000 * probability.numerator) // probability.denominator)
    return f"{tenths / 10:g} %" if tenths < 1000 else "almost 100 %"


def in_a_hundred(probability: Fraction) -> str:
    """Show a probability as so many in a hundred, rounded up to a tenth; below 100 unless it is 1.

    >>> in_a_hundred(Fraction(267, 10000)), in_a_hundred(Fraction(1, 3)), in_a_hundred(Fraction(999999, 10**6))
    ('2.7', '33.4', 'almost 100')
    """
    return percent(probability).removesuffix(" %")


def but_for(delta: Fraction) -> str:
    """Say what a δ takes back of a promise; three digits, rounded up.

    >>> but_for(Fraction(0)), but_for(Fraction(1, 10**7)), but_for(Fraction(1, 3))
    ('', ', but for a chance of 1e-07', ', but for a chance of 0.334')
    """
    if not delta:
        return ""
    shown = _THREE.divide(Decimal(delta.numerator), Decimal(delta.denominator))
    return f", but for a chance of {float(shown):g}"


def _by(epsilon: Fraction) -> str:
    most = factor(epsilon)
    return "by more than 1,000,000 times" if most > 10**6 else f"by a factor of at most {times(most)}"


def times(number: Fraction) -> str:
    """Show a factor that must not look smaller than it is: three digits, rounded up.

    >>> times(Fraction(110517, 100000)), times(Fraction(2)), times(Fraction(40343, 100))
    ('1.11', '2', '404')
    """
    whole = len(str(int(number)))
    places = max(0, 3 - whole)
    # beyond three digits whole numbers are shown as they are: nobody is helped by 1,000 for 1,001
    return f"{float(ceil_to(number, places)):,.{places}f}".rstrip("0").rstrip(".") if places else f"{-(-number // 1):,}"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What (ε, δ) means for one person, in exact figures and in words. All figures are upper bounds but `low`."""

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
        """By how much the odds can move."""
        return f"The odds on anything about one person can move {_by(self.epsilon)}{but_for(self.delta)}."

    @property
    def belief(self) -> str:
        """What a belief can become."""
        who = "50/50" if self.prior == EVEN else f"{percent(self.prior)} sure"
        text = f"Somebody who is {who} about one person, whatever else they know, gets to at most"
        return f"{text} {percent(self.high)} sure{but_for(self.delta)}."

    @property
    def rare(self) -> str:
        """What a belief in something rare can become."""
        most = posterior(RARE, epsilon=self.epsilon)[1]
        text = f"If she thought 1 in 100, at most {in_a_hundred(most)} in 100 afterwards"
        return f"{text}{but_for(self.delta)}."

    @property
    def guesses(self) -> str:
        """How often a guess is right."""
        right = self.of_a_hundred
        return f"Of 100 guesses who is in the data, at most {right} are right on average; a coin gets 50."

    @property
    def of_a_hundred(self) -> int:
        """How many of a hundred guesses are right at most, rounded up."""
        return -((-100 * self.guess.numerator) // self.guess.denominator)

    @property
    def test(self) -> str:
        """What the best test finds."""
        found = percent(self.power)
        return f"A test that accuses 5 % of those who are not in the data finds at most {found} of those who are."

    @property
    def family(self) -> str:
        """What holds for several people together."""
        return self.family_of(self.families[-1][0])

    def family_of(self, size: int) -> str:
        """What holds for so many people together."""
        epsilon, delta = group(size, epsilon=self.epsilon, delta=self.delta)
        if delta >= 1:
            return f"To a family of {size} together nothing is promised: δ grows to 1 for them."
        moved = f"Of a family of {size} the odds can move {_by(epsilon)}{but_for(delta)}"
        return f"{moved}, as if ε were {numbers.brief(epsilon)}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything in words, the most important first."""
        return self.belief, self.rare, self.odds, self.guesses, self.test, self.family

    def to_json(self) -> dict[str, object]:
        """Give it for JSON; probabilities as rounded-up decimals, in words beside."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "prior": str(self.prior),
            "people": self.people,
            "posterior": [float(floor_to(self.low, 9)), float(ceil_to(self.high, 9))],
            "guess": float(ceil_to(self.guess, 9)),
            "power": float(ceil_to(self.power, 9)),
            "families": [
                {"size": size, "epsilon": str(epsilon), "delta": float(delta)} for size, epsilon, delta in self.families
            ],
            "warnings": list(self.warnings),
            "sentences": list(self.sentences),
        }


def meaning(*, epsilon: Fraction, delta: Fraction, prior: Fraction = EVEN, people: int | None = None) -> Meaning:
    """Say what (ε, δ) means for one person among so many."""
    low, high = posterior(prior, epsilon=epsilon)
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
