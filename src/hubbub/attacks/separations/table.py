"""Tables and plots of the separation: published views by bits and people, compared with one private answer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from math import ceil, log10
from statistics import NormalDist

from hubbub.answers import chart
from hubbub.attacks.separations import bounds, parity
from hubbub.attacks.separations.parity import histogram_difference, query_difference, query_error, repeated
from hubbub.core import numbers

BITS = (2, 4, 6, 8, 10, 12, 16, 20)
PEOPLE = (1, 10, 100, 1_000, 10_000, 100_000)
#: Maximum bits and people for which the noisy histogram is enumerated.
_HISTOGRAM_BITS, _HISTOGRAM_PEOPLE = 10, 2


@dataclass(frozen=True, slots=True)
class SeparationRow:
    """Statistical differences between "no one" and "everyone" for d bits and n people at one ε.

    response    2^d-ary randomized response, exact; `subset` is subset response for one person (None for more)
    histogram   a published noisy histogram, exact (None if it is too large)
    bound       maximum of every published view for 2/3 of all functions: `bounds.published_bound`
    corrected   theorem 3 of 2006 with corrected constants; `printed` is as printed
    asked       one private answer about the one parity; its mean absolute error is `error`
    needed      number of people that randomized response needs for a difference of ½ (approximate above 10,000)
    """

    bits: int
    people: int
    response: float
    subset: float | None
    histogram: float | None
    bound: float
    corrected: float
    printed: float
    asked: float
    error: float
    needed: int

    def to_json(self) -> dict[str, object]:
        """Return the row as JSON values."""
        return asdict(self)


def row(bits: int, people: int, epsilon: numbers.Number) -> SeparationRow:
    """Compute the row of one number of bits and people."""
    bits, people = numbers.integer(bits, "bits", 1, 24), numbers.integer(people, "people", 1, 10**9)
    at = float(numbers.epsilon(epsilon))
    one = parity.response_difference(bits, at)
    small = bits <= _HISTOGRAM_BITS and people <= _HISTOGRAM_PEOPLE
    return SeparationRow(
        bits,
        people,
        repeated(one, people),
        parity.subset_difference(bits, at) if people == 1 else None,
        histogram_difference(bits, people, at) if small else None,
        min(1.0, bounds.published_bound(bits, people, at)),
        min(1.0, bounds.theorem_3(bits, people, at)),
        min(1.0, bounds.theorem_3_printed(bits, people, at)),
        query_difference(people, at),
        query_error(at),
        people_needed(one),
    )


def people_needed(one: float, wanted: float = 0.5) -> int:
    """Return how many people with this difference each give a total difference of `wanted`; exact up to 10,000.

    Beyond that, the two binomials are almost normal, and their difference is the mass of a normal within ±one·√n.

    >>> people_needed(0.0261462), people_needed(0.4)
    (665, 3)
    """
    about = ceil((NormalDist().inv_cdf((1 + wanted) / 2) / one) ** 2)
    if about > 10_000:
        return about
    # an even number of people reveals no more than one person fewer
    return next(n for n in range(max(1, about // 2 | 1), 3 * about + 9, 2) if repeated(one, n) >= wanted)


def rows(
    *, epsilon: numbers.Number, bits: Sequence[int] = BITS, people: Sequence[int] = (1, 100, 10_000)
) -> tuple[SeparationRow, ...]:
    """Compute the table over bits and people."""
    return tuple(row(d, n, epsilon) for d in bits for n in people)


def sentences(*, epsilon: numbers.Number) -> tuple[str, ...]:
    """Summarize the table in sentences."""
    budget = numbers.epsilon(epsilon)
    few, many = row(6, 1, budget), row(20, 1, budget)
    enough = next(n for n in count(1) if query_difference(n, float(budget)) >= 0.5)
    return (
        f"One private answer to a known query has a mean error of {few.error:.3g} at ε = {numbers.brief(budget)}. With"
        f" {enough:,} people or more it distinguishes everyone from no one in three of four cases, for any number of"
        " bits.",
        "If everyone's randomized answer is published beforehand, the statistical difference for a parity of 6 bits is"
        f" {few.response:.3g} per person, so the same accuracy needs {few.needed:,} people. With 20 bits it is"
        f" {many.response:.2g}, which needs {many.needed:.2g} people.",
        "A limit applies to every ε-private table that is published once: for two thirds of all such queries, the"
        " difference is at most 3n·sinh(ε/2)/√(2^d − 1), which is"
        f" {bounds.published_bound(20, 1, float(budget)):.2g} for one person with 20 bits.",
        "The proof of 2006 has a wrong sign and an inverted α: `corrected` is its corrected bound, and `printed` is the"
        " bound as printed.",
    )


def over_bits(*, epsilon: numbers.Number, bits: Sequence[int] = BITS) -> str:
    """Draw one person's difference over the number of bits."""
    rows = [row(d, 1, epsilon) for d in bits]
    return _draw(
        {
            "randomized response": [(r.bits, r.response) for r in rows],
            "subset response": [(r.bits, r.subset or 0.0) for r in rows],
            "noisy histogram": [(r.bits, r.histogram) for r in rows if r.histogram is not None],
            "bound for any view": [(r.bits, r.bound) for r in rows],
            "2006, corrected": [(r.bits, r.corrected) for r in rows],
            "one private answer": [(r.bits, r.asked) for r in rows],
        },
        title=f"What one person's published view reveals about a parity, ε = {numbers.brief(numbers.epsilon(epsilon))}",
        across="bits per person",
        logarithmic=False,
    )


def over_people(*, epsilon: numbers.Number, bits: Sequence[int] = (4, 6, 10, 16)) -> str:
    """Draw the difference over the number of people, for several numbers of bits."""
    at = float(numbers.epsilon(epsilon))
    return _draw(
        {
            f"randomized response, {d} bits": [(n, repeated(parity.response_difference(d, at), n)) for n in PEOPLE]
            for d in bits
        }
        | {"one private answer": [(n, query_difference(n, at)) for n in PEOPLE]},
        title=f"Published responses compared with one private answer, ε = {numbers.brief(numbers.epsilon(epsilon))}",
        across="people",
        logarithmic=True,
    )


def _draw(series: Mapping[str, Sequence[tuple[int, float]]], *, title: str, across: str, logarithmic: bool) -> str:
    points = {
        name: [(float(x), log10(y), log10(y), log10(y)) for x, y in values if y > 0] for name, values in series.items()
    }
    return chart.lines(
        points, title=title, across=across, up="log₁₀ of the statistical difference", logarithmic=logarithmic, most=0.0
    )
