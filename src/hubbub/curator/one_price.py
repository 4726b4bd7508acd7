"""One price for several noises: parts that are planned one by one cost no more together than was said.

Tested in tests/curator/test_one_price.py.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf, log
from typing import TypeVar

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.analyses.base import PreparedAnalysis
from hubbub.core.events import Event
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.noise import Noise

Prepared = TypeVar("Prepared", bound=PreparedAnalysis)

_TINY = 1e-300


def fits(event: Event, epsilon: Fraction, delta: Fraction) -> bool:
    """Tell whether a cap of this size admits an event; failure probabilities were shared out before."""
    return admits(Budget(epsilon, delta), ZERO, replace(privacy_cost(event), delta=Fraction(0)))


def at_one_price(make: Callable[[Noise | None], Prepared], *, epsilon: Fraction, delta: Fraction) -> Prepared:
    """Plan parts with the best noise for each; where that costs more than (ε, δ) in the ledger, with one kind for all.

    Theorem (One price). A cap of (ε, δ) that nothing was charged to admits the result.
    Proof    Parts with Laplace noise alone have pure losses, which add up to ε at most. Anything else is asked of the
             filter first. By composition, parts for shares of (ε, δ) are (ε, δ)-DP together whatever their noises are;
             but filters add up variances, and a pure loss beside Gaussian noise costs more there than its share.
    Charges  nothing: no data is read.
    Tested   tests/curator/test_one_price.py::test_several_noises_cost_no_more_than_their_price
    """
    mixed = make(None)
    if not delta or fits(mixed.event, epsilon, delta):
        return mixed
    laplace = make("laplace")
    try:
        gaussian = make("gaussian")
    except (ParameterError, QueryError):
        return laplace
    better = fits(gaussian.event, epsilon, delta) and _errors(gaussian) < _errors(laplace)
    return gaussian if better else laplace


def _errors(planned: PreparedAnalysis) -> float:
    """Give the logarithm of the product of all expected errors."""
    return sum((log(max(each.plus_minus, _TINY)) for each in planned.expected if each.plus_minus < inf), 0.0)
