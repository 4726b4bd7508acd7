"""The separation as a table and as plots: published views over bits and people, beside one private answer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from math import ceil, log10
from statistics import NormalDist

from hubbub.answers import chart
from hubbub.attacks.separations import bounds, parity
from hubbub.attacks.separations.parity import asked_difference, asked_error, histogram_difference, repeated
from hubbub.core import numbers

BITS = (2, 4, 6, 8, 10, 12, 16, 20)
PEOPLE = (1, 10, 100, 1_000, 10_000, 100_000)
#: Bits up to which the noisy histogram of this many people is gone through.
_HISTOGRAM_BITS, _HISTOGRAM_PEOPLE = 10, 2


@dataclass(frozen=True, slots=True)
class Row:
    """What d bits and n people give at one ε, as statistical differences between "nobody" and "everybody".

    response    2^d-ary randomized response, exactly; `subset` is its best form, for one person (None for more)
    histogram   a published noisy histogram, exactly (None where that is too long)
    bound       what no published view exceeds for 2/3 of all functions: `bounds.published_bound`
    corrected   theorem 3 of 2006 with its constants set right; `printed` as printed
    asked       one private answer about the one parity; its mean error is `error`
    needed      how many people randomized response needs for a difference of ½ (about, where they are many)
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
        """Return it for JSON."""
        return asdict(self)


def row(bits: int, people: int, epsilon: numbers.Number) -> Row:
    """Compute one row."""
    bits, people = numbers.integer(bits, "bits", 1, 24), numbers.integer(people, "people", 1, 10**9)
    at = float(numbers.epsilon(epsilon))
    one = parity.response_difference(bits, at)
    small = bits <= _HISTOGRAM_BITS and people <= _HISTOGRAM_PEOPLE
    return Row(
        bits,
        people,
        repeated(one, people),
        parity.subset_difference(bits, at) if people == 1 else None,
        histogram_difference(bits, people, at) if small else None,
        min(1.0, bounds.published_bound(bits, people, at)),
        min(1.0, bounds.theorem_3(bits, people, at)),
        min(1.0, bounds.theorem_3_printed(bits, people, at)),
        asked_difference(people, at),
        asked_error(at),
        people_needed(one),
    )


def people_needed(one: float, wanted: float = 0.5) -> int:
    """Return how many people with this difference each give a total difference of `wanted`, exactly up to about 10,000.

    Beyond that, the two binomials are almost normal, and their difference is that of a normal within ±one·√n.

    >>> people_needed(0.0261462), people_needed(0.4)
    (665, 3)
    """
    about = ceil((NormalDist().inv_cdf((1 + wanted) / 2) / one) ** 2)
    if about > 10_000:
        return about
    # an even number tells no more than one less
    return next(n for n in range(max(1, about // 2 | 1), 3 * about + 9, 2) if repeated(one, n) >= wanted)


def rows(
    *, epsilon: numbers.Number, bits: Sequence[int] = BITS, people: Sequence[int] = (1, 100, 10_000)
) -> tuple[Row, ...]:
    """Compute the table over bits and people."""
    return tuple(row(d, n, epsilon) for d in bits for n in people)


def sentences(*, epsilon: numbers.Number) -> tuple[str, ...]:
    """Say what the table says, for a person."""
    price = numbers.epsilon(epsilon)
    few, many = row(6, 1, price), row(20, 1, price)
    enough = next(n for n in count(1) if asked_difference(n, float(price)) >= 0.5)
    return (
        f"One private answer, asked when the question is known, is off by {few.error:.3g} on average at"
        f" ε = {numbers.brief(price)}: from {enough:,} people on it tells everybody from nobody three times out of"
        " four, however many bits each has.",
        "If everybody's answer is randomized and published beforehand, a parity of 6 bits is told apart by"
        f" {few.response:.3g} for each person, so the same takes {few.needed:,} people; with 20 bits by"
        f" {many.response:.2g}, which takes {many.needed:.2g}.",
        "No table that is published once, whatever it is made by, escapes: for two thirds of all such questions the"
        " difference is at most 3n·sinh(ε/2)/√(2^d − 1), which is"
        f" {bounds.published_bound(20, 1, float(price)):.2g} for one person of 20 bits.",
        "The proof of 2006 has a wrong sign and an inverted α: `corrected` is what it gives when set right, `printed`"
        " is what it says.",
    )


def over_bits(*, epsilon: numbers.Number, bits: Sequence[int] = BITS) -> str:
    """Draw one person's difference over the number of bits."""
    found = [row(d, 1, epsilon) for d in bits]
    return _drawn(
        {
            "randomized response": [(r.bits, r.response) for r in found],
            "subset response": [(r.bits, r.subset or 0.0) for r in found],
            "noisy histogram": [(r.bits, r.histogram) for r in found if r.histogram is not None],
            "bound, all views": [(r.bits, r.bound) for r in found],
            "2006, corrected": [(r.bits, r.corrected) for r in found],
            "one private answer": [(r.bits, r.asked) for r in found],
        },
        title=f"What one person's published view tells of a parity, ε = {numbers.brief(numbers.epsilon(epsilon))}",
        across="bits of a person",
        logarithmic=False,
    )


def over_people(*, epsilon: numbers.Number, bits: Sequence[int] = (4, 6, 10, 16)) -> str:
    """Draw the difference over the number of people, for several numbers of bits."""
    at = float(numbers.epsilon(epsilon))
    return _drawn(
        {
            f"randomized response, {d} bits": [(n, repeated(parity.response_difference(d, at), n)) for n in PEOPLE]
            for d in bits
        }
        | {"one private answer": [(n, asked_difference(n, at)) for n in PEOPLE]},
        title=f"Published responses against one private answer, ε = {numbers.brief(numbers.epsilon(epsilon))}",
        across="people",
        logarithmic=True,
    )


def _drawn(series: Mapping[str, Sequence[tuple[int, float]]], *, title: str, across: str, logarithmic: bool) -> str:
    points = {
        name: [(float(x), log10(y), log10(y), log10(y)) for x, y in values if y > 0] for name, values in series.items()
    }
    return chart.lines(
        points, title=title, across=across, up="log₁₀ of the statistical difference", logarithmic=logarithmic, most=0.0
    )
