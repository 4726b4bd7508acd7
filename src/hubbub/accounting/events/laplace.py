"""Accounting of discrete Laplace noise."""

from fractions import Fraction
from typing import Any

from hubbub.accounting import curves
from hubbub.accounting.events.base import EventAccounting, EventLoss, PldSettings
from hubbub.core.events import LaplaceEvent
from hubbub.core.loss import ORDERS

#: Above this scale the curve is that of the pure loss to all digits that are kept.
_HUGE_SCALE = 10**15
#: Losses of one event that are listed one by one.
_MAX_LOSSES = 10**4


def renyi_curve(sensitivity: int, scale: Fraction) -> curves.Curve:
    """Give the Rényi curve of discrete Laplace noise on an integer vector of this L1 sensitivity.

    Theorem (Rényi curve of the discrete Laplace). With q = e^(−1/s), w = q^(2α−1) and ε = D/s, the largest D_α is
    ε + ln((1 + w^D + (1−q)(w − w^D)/(1−w))/(1+q))/(α−1), attained by the whole shift D in one coordinate.
    Proof    For one coordinate, sum p(z)^α p(z−D)^(1−α) over z ≤ 0, 0 < z < D and z ≥ D: three geometric series. For
    several, the coordinates are independent, so their divergences add: Σ g(D_i) with Σ|D_i| ≤ D. And
    (α−1)g(t) = ln Σ_z exp(α ln p(z) + (α−1)|z−t|/s) + const is a log-sum-exp of convex functions of t, so g is convex;
    g(0) = 0 and g ≥ 0, so g is superadditive and increasing: Σ g(D_i) ≤ g(D).
    Tested   tests/accounting/test_curves.py::test_each_curve_is_the_closed_form_to_one_unit,
    tests/accounting/test_curves.py::test_laplace_curve_equals_brute_force,
    tests/accounting/test_curves.py::test_the_whole_shift_in_one_coordinate_is_worst
    """
    epsilon = sensitivity / scale
    if sensitivity == 1 or scale > _HUGE_SCALE:
        return curves.pure(epsilon)
    step, shift = curves.DecayPowers(1 / scale), curves.DecayPowers(epsilon)
    one, q_low = curves.ONE, step[1][0]
    curve = []
    for order, doubled in zip(ORDERS, curves.DOUBLED_ORDERS, strict=True):
        w_high = step[doubled - 1][1]
        shift_low, shift_high = shift[doubled - 1]
        between = -(-(one - q_low) * max(0, w_high - shift_low) // (one - w_high))
        curve.append(curves.divergence(epsilon, curves.log_above(one + shift_high + between, one + q_low), order))
    return tuple(curve)


def loss(event: LaplaceEvent) -> EventLoss:
    """Give the loss: ε = D/s and its own Rényi curve."""
    return EventLoss(event.sensitivity / event.scale, renyi_curve(event.sensitivity, event.scale))


def loss_distribution(event: LaplaceEvent, settings: PldSettings) -> Any:
    """Make the privacy loss distribution, which for a vector is that of the whole shift in one coordinate.

    Theorem (One coordinate is worst for Laplace). Discrete Laplace noise on an integer vector of L1 sensitivity D is
    (ε, δ)-DP for every (ε, δ), ε ≥ 0, for which that on one integer moved by D is; so the loss distribution of the
    latter may stand for it, also under composition (Zhu, Dong and Wang, 2022).
    Proof    Let H_a(g) be the δ at ε = g of one integer moved by a; with q = e^(−1/s), and for g ≥ −a/s, it is the
    maximum of 0 and 1 − (q^(t+1) + e^g·q^(a−t))/(1+q) over 0 ≤ t < a. For two coordinates moved by a ≥ b it is
    E[H_a(g − L)] with L ≤ b/s the log-ratio of the second, and H_a falls, so it is at most H_a(g − b/s). There each t
    gives the same value as in H_(a+b)(g), which has all those t and more. For g ≥ 0, g − b/s ≥ −a/s. Induct.
    Theorem (A coarser Laplace grid is no better). Discrete Laplace noise of scale ks on an integer moved by kD is a
    post-processing of that of scale s on an integer moved by D; so a long list of losses may be shortened.
    Proof    The noise of scale ks is the difference of two geometric variables; each is k times its quotient, which is
    geometric with the ratio of scale s, plus an independent remainder. So it is k times noise of scale s plus something
    independent of it.
    Tested   tests/accounting/test_pld.py::test_whole_shift_in_one_coordinate_has_the_largest_delta,
    tests/accounting/test_pld.py::test_a_coarser_grid_has_the_larger_delta,
    tests/accounting/test_pld.py::test_tight_price_lies_between_the_exact_loss_and_the_renyi_price,
    tests/accounting/test_pld.py::test_repeating_an_event_is_listing_it
    """
    coarse = -(-event.sensitivity // _MAX_LOSSES)
    return settings.of_laplace(coarse / event.scale, -(-event.sensitivity // coarse))


ACCOUNTING = EventAccounting(loss, loss_distribution)
