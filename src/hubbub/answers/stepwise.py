"""Accuracy first: pay as little as an accuracy takes, where it depends on the answer itself.

    reached = h.query_within("SELECT COUNT(*) FROM visits WHERE age < 18", within="5%", at_most=1)
    reached.release.rows, reached.met, reached.spent

"±5 % of the answer" has no price in advance, because the answer is not known. So a cheap answer is bought first, and
its noisy value decides what the next one costs.

Tested in tests/curator/test_stepwise.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import log
from secrets import token_hex
from typing import Protocol, TypedDict, Unpack

from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.numbers import Number, brief
from hubbub.core.schema import Value
from hubbub.errors import ParameterError

#: Most answers that are bought, and the share of the limit that the first one costs.
STEPS, FIRST = 4, Fraction(1, 32)
#: Margins for which all answers together miss with 5%: a 95% margin times this, for Laplace noise; less for Gaussian.
WIDER = log(20 * STEPS) / log(20)
#: The next answer is bought a little more exactly than needed, because its value will differ.
_SPARE = Fraction(11, 10)
#: How much more the next answer costs where the last one told nothing about its size.
_BLIND = 4
_PLACES = 9


@dataclass(frozen=True)
class Reached:
    """The last answer that was bought.

    met      whether every number is as exact as was asked
    spent    what all answers cost together
    margins  the margin of each noisy number; all of them hold at once with whatever answer was the last, each with 95%
    """

    release: Release
    met: bool
    spent: Fraction
    bought: tuple[Release, ...]
    margins: tuple[tuple[float, ...], ...]

    def __repr__(self) -> str:
        verdict = "as exact as asked" if self.met else "less exact than asked: the limit was reached"
        return f"{self.release!r}\n{verdict}; {len(self.bought)} answers cost ε = {brief(self.spent)}"


class StepOptions(TypedDict, total=False):
    """Options of each answer, without those that set its price."""

    delta: Number | None
    parameters: Sequence[Value | float | Decimal]
    groups: int | None
    rows: int | None
    raw: bool
    dialect: str


class Buying(Protocol):
    """A session that can buy answers."""

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Run a query."""
        ...


class StepwiseBuyer:
    """A session that can buy answers until one is exact enough."""

    def query_within(
        self: Buying,
        sql: str,
        *,
        within: Number,
        at_most: Number,
        key: str | None = None,
        **options: Unpack[StepOptions],
    ) -> Reached:
        """Buy answers until one is within a margin: a number, or "5%" of each number itself. See `query_within`."""
        return query_within(self, sql, within=within, at_most=at_most, key=key, **options)


def query_within(
    session: Buying,
    sql: str,
    *,
    within: Number,
    at_most: Number,
    key: str | None = None,
    **options: Unpack[StepOptions],
) -> Reached:
    """Buy answers until one is exact enough, and never for more than `at_most` together.

    Theorem (Stepwise answers). The answers that are bought cost at most `at_most` together, whatever they are. If the
    margin of each is its 95% margin of Laplace or Gaussian noise times ln(20k)/ln 20, for at most k answers, then the
    true value is within the margin of the last answer with 95%, whichever answer is the last.
    Proof    Each answer is an ordinary query with noise of its own, charged durably before it is drawn. Its price
             follows from earlier noisy answers, and is at most what is left of `at_most`: a privacy filter of pure
             losses. With the wider margin one answer misses with at most 5%/k: for Laplace noise the tail is
             proportional to exp(−margin), and a Gaussian tail falls faster. The last answer is one of at most k, so it
             misses with at most 5% by the union bound; no independence of the time of stopping is needed.
    Assumes  margins of averages and other quotients hold as nearly as those of a single query.
    Charges  nothing by itself; each answer its ε.
    Tested   tests/curator/test_stepwise.py::test_answers_are_bought_until_one_is_exact_enough
             tests/curator/test_stepwise.py::test_the_limit_is_never_passed
             tests/curator/test_stepwise.py::test_the_margin_of_the_last_answer_holds_by_enumeration
    """
    target, share = _target(within)
    limit = numbers.epsilon(at_most)
    name, bought, spent, price = key or token_hex(16), list[Release](), Fraction(0), limit * FIRST
    while True:
        bought.append(session.query(sql, key=f"{name} {len(bought) + 1}", epsilon=price, **options))
        spent += price
        margins = _margins(bought[-1])
        needed = _needed(bought[-1], margins, target, share=share)
        if needed <= 1 or len(bought) == STEPS or spent >= limit:
            return Reached(bought[-1], needed <= 1, spent, tuple(bought), margins)
        left = limit - spent
        wanted = price * min(Fraction(needed), Fraction(10**6)) * _SPARE if needed < float("inf") else price * _BLIND
        rounded = Fraction(round(wanted * 10**_PLACES), 10**_PLACES)
        # the last answer may cost all that is left
        price = left if rounded >= left or len(bought) == STEPS - 1 else max(rounded, numbers.EPSILON_MIN)
        if price <= bought[-1].epsilon and len(bought) < STEPS:
            price = min(left, bought[-1].epsilon * 2)


def _target(within: Number) -> tuple[float, bool]:
    """Read a margin: a number, or a percentage of the answer."""
    text = str(within).strip()
    share = text.endswith("%")
    value = numbers.exact(text.removesuffix("%").strip() if share else within, "within")
    if not value > 0:
        raise ParameterError("HB132", "within must be greater than 0.", 'Use within=50, or within="5%".')
    return float(value / 100 if share else value), share


def _margins(release: Release) -> tuple[tuple[float, ...], ...]:
    """Give the margins of all noisy columns: the longer side of each interval, because the other may be clamped."""
    found = []
    for output in release.outputs:
        if output.low is None or output.high is None:
            continue
        sides = zip(output.values, output.low, output.high, strict=True)
        found.append(tuple(_longer(value, low, high) * WIDER for value, low, high in sides))
    return tuple(found)


def _longer(value: object, low: float | None, high: float | None) -> float:
    if not isinstance(value, int | float) or low is None or high is None:
        return float("inf")
    return max(value - low, high - value)


def _needed(release: Release, margins: tuple[tuple[float, ...], ...], target: float, *, share: bool) -> float:
    """Say by what factor the noise has to fall; infinity where the size of a number is not known yet."""
    noisy = [output for output in release.outputs if output.low is not None]
    worst = 0.0
    for output, own in zip(noisy, margins, strict=True):
        for value, margin in zip(output.values, own, strict=True):
            size = abs(float(value)) if isinstance(value, int | float) else 0.0
            # the true size is at least this, if the margin holds
            least = size - margin if share else 1.0
            if share and margin <= target * size:
                worst = max(worst, margin / (target * size) if size else 0.0)
            elif least <= 0:
                return float("inf")
            else:
                worst = max(worst, margin / (target * least))
    return worst
