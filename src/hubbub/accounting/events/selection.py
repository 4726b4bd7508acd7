"""Accounting of private selection: exponential mechanism, permute-and-flip, report noisy max."""

from hubbub.accounting import curves, gaussian_filter
from hubbub.accounting.events.base import EventAccounting, EventLoss
from hubbub.core.events import SelectionEvent


def loss(event: SelectionEvent) -> EventLoss:
    """Give the loss; the exponential mechanism has bounded range, the other rules are charged by their pure loss.

    Theorem (Bounded range of the exponential mechanism). With Pr[r] ∝ exp(rate·u(x, r)) and |u(x, r) − u(x′, r)| ≤ D,
    the log-ratio lies in one interval of length 2·rate·D; of length rate·D if u(x, ·) − u(x′, ·) never changes sign
    (Durfee and Rogers, 2019).
    Proof    The log-ratio is rate·(u(x, r) − u(x′, r)) plus a constant (the normalizers), and the first term ranges
    over [−rate·D, rate·D], or over one half of it.
    Tested   tests/accounting/test_cost.py::test_exponential_mechanism_has_bounded_range
    """
    epsilon = event.rate * event.sensitivity * (1 if event.monotone else 2)
    if event.rule != "exponential":
        return EventLoss.of_pure(epsilon)
    return EventLoss(epsilon, curves.bounded_range(epsilon), gaussian=gaussian_filter.bounded_range(epsilon))


ACCOUNTING = EventAccounting(loss)
