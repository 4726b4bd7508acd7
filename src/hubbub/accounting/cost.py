"""The privacy cost of an event, in the forms that privacy filters add up.

A cost has a pure loss, the Rényi divergence at each of the fixed orders, a failure probability, and a price under the
Gaussian filter. Each is rounded up once per event and then added exactly; so k equal events cost exactly k times as
much as one, in any order and grouping.
"""

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from operator import add

from hubbub.accounting import curves, gaussian_filter
from hubbub.accounting.events import ACCOUNTING
from hubbub.accounting.events.base import check_facts
from hubbub.core.blocks import BlockSet
from hubbub.core.events import Composed, Event, from_facts
from hubbub.core.loss import ORDERS
from hubbub.core.numbers import MAX_DENOMINATOR, MAX_PLACES
from hubbub.core.reals import ceil_to
from hubbub.errors import ParameterError

#: The unit of Rényi totals, which are integers.
RENYI_UNIT = Fraction(1, curves.STEPS)

_NOTHING = Fraction(0)
_NO_RENYI = (0,) * len(ORDERS)
_GRID = 10**MAX_PLACES


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """Pure loss (None if there is none), Rényi divergence at each of `ORDERS`, failure probability, Gaussian price.

    For two neighbors, with distributions P and Q of the answer, it means: P = (1−δ)P′ + δP″ and Q = (1−δ)Q′ + δQ″,
    where P′ and Q′ satisfy the pure loss (if there is one), the Rényi curve and the price at once, in both directions.
    The total of a cap with charges from before 19 November 2026 has no Gaussian price: `filters` keeps to its old rule.
    """

    pure: Fraction | None
    renyi: tuple[int, ...]
    delta: Fraction
    gaussian: gaussian_filter.Price | None = None

    @property
    def by_first_rule(self) -> "PrivacyCost":
        """The same cost without a Gaussian price: see `filters`."""
        return replace(self, gaussian=None)

    def __add__(self, other: "PrivacyCost") -> "PrivacyCost":
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        # most events have no δ, and adding Fractions costs a gcd
        delta = self.delta if not other.delta else other.delta if not self.delta else self.delta + other.delta
        gaussian = None
        if self.gaussian is not None and other.gaussian is not None:
            gaussian = tuple(map(add, self.gaussian, other.gaussian))
        return PrivacyCost(pure, tuple(map(add, self.renyi, other.renyi)), delta, gaussian)

    def times(self, count: int) -> "PrivacyCost":
        """Give the cost of `count` equal events.

        >>> from hubbub.core.events import LaplaceEvent
        >>> privacy_cost(LaplaceEvent(1, Fraction(10))).times(3).pure
        Fraction(3, 10)
        """
        if not count >= 0:
            raise ParameterError("HB106", f"The number of events is {count}.", "Pass a count of 0 or more.")
        if count == 0:
            return ZERO
        pure = None if self.pure is None else self.pure * count
        gaussian = None if self.gaussian is None else tuple([part * count for part in self.gaussian])
        return PrivacyCost(pure, tuple([value * count for value in self.renyi]), self.delta * count, gaussian)

    def to_json(self) -> list[object]:
        """Give the compact canonical form: [pure or null, [Rényi units…], δ, [Gaussian price…]], fractions as strings.

        A total without a Gaussian price, from before there were any, has three parts.
        """
        gaussian = [] if self.gaussian is None else [list(self.gaussian)]
        return [None if self.pure is None else str(self.pure), list(self.renyi), str(self.delta), *gaussian]

    @staticmethod
    def from_json(form: object) -> "PrivacyCost":
        """Read the canonical form back; reject anything that `to_json` would not write."""
        try:
            pure, renyi, delta, *more = form  # type: ignore[misc]
            gaussian = tuple(more[0]) if more else None  # type: ignore[has-type]
            cost = PrivacyCost(None if pure is None else Fraction(pure), tuple(renyi), Fraction(delta), gaussian)  # type: ignore[has-type]
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise ParameterError(
                "HB107", "The record is not a privacy cost.", "Restore the ledger from a backup: the record is corrupt."
            ) from error
        valid = len(cost.renyi) == len(ORDERS) and len(cost.gaussian or gaussian_filter.NOTHING) == len(
            gaussian_filter.NOTHING
        )
        valid = valid and all(type(value) is int and value >= 0 for value in (*cost.renyi, *(cost.gaussian or ())))
        if not valid or cost.to_json() != form or cost.delta < 0 or (cost.pure is not None and cost.pure < 0):
            raise ParameterError(
                "HB107",
                "The privacy cost is not in canonical form.",
                "Restore the ledger from a backup: the record is corrupt.",
            )
        return cost


ZERO = PrivacyCost(_NOTHING, _NO_RENYI, _NOTHING, gaussian_filter.NOTHING)


@lru_cache(maxsize=1024)
def cost_of_total(text: str) -> PrivacyCost:
    """Read a stored total; a text is read once.

    >>> cost_of_total('["1/10",[' + ",".join(["0"] * len(ORDERS)) + '],"0"]').pure
    Fraction(1, 10)
    """
    return PrivacyCost.from_json(json.loads(text))


def is_summable(loss: Fraction) -> bool:
    """Say whether losses like this stay short when added up: `numbers.epsilon` accepts its denominator."""
    return loss.denominator <= MAX_DENOMINATOR or _GRID % loss.denominator == 0


def _summable(loss: Fraction) -> Fraction:
    # round up others to 30 places, so that totals stay short
    return loss if is_summable(loss) else ceil_to(loss, MAX_PLACES)


@lru_cache(maxsize=16384)
def privacy_cost(event: Event) -> PrivacyCost:
    """Give the privacy cost of one event; an event that no mechanism can have produced is rejected.

    >>> from hubbub.core.events import LaplaceEvent
    >>> privacy_cost(LaplaceEvent(1, Fraction(10))).pure
    Fraction(1, 10)
    """
    check_facts(event)
    if isinstance(event, Composed):
        return sum((privacy_cost(part).times(count) for part, count in event.parts), ZERO)
    loss = ACCOUNTING[type(event)].loss(event)
    pure = None if loss.pure is None else _summable(loss.pure)
    return PrivacyCost(pure, loss.curve, _summable(loss.delta), loss.gaussian_price)


@lru_cache(maxsize=65536)
def cost_of_facts(facts: str) -> PrivacyCost:
    """Give the privacy cost of a charge from its facts in the ledger.

    >>> cost_of_facts('{"mechanism":"laplace","scale":"10","sensitivity":1}').pure
    Fraction(1, 10)
    """
    return privacy_cost(event_of_facts(facts))


def event_of_facts(facts: str) -> Event:
    """Give the event of a charge from its facts in the ledger, whatever blocks it was charged to."""
    form = json.loads(facts)
    return from_facts({name: value for name, value in form.items() if name != "blocks"})


@lru_cache(maxsize=65536)
def blocks_of_facts(facts: str) -> BlockSet | None:
    """Give the blocks that a charge was made to; None where its dataset had none.

    >>> blocks_of_facts('{"blocks":{"by":"year","ranges":[["1970","1971"]]},"mechanism":"laplace"}')
    BlockSet(by='year', ranges=((0, 1),))
    """
    if '"blocks"' not in facts:
        return None
    form = json.loads(facts).get("blocks")
    return None if form is None else BlockSet.from_json(form)
