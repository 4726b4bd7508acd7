"""Errors in charging, composition, refusals and storage."""
# ruff: noqa: ARG005 - a patch keeps the signature of what it stands for

import os
import time
from dataclasses import replace
from fractions import Fraction
from math import log, sqrt
from typing import Any
from unittest.mock import patch

from tests.campaigns.rig.bugs import BugCollection, swap, wrap, wrap_function

from hubbub.accounting import compose, convert, curves, filters, sqlite, verify
from hubbub.accounting import cost as price
from hubbub.accounting.cost import ZERO, PrivacyCost
from hubbub.accounting.events import laplace
from hubbub.accounting.filters import Budget, FilterLimits
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.policy import Policy
from hubbub.accounting.totals import Balance, Caps, Totals
from hubbub.accounting.transaction import Transaction
from hubbub.analyses.base import PreparedAnalysis
from hubbub.core import events, numbers
from hubbub.core.loss import ORDERS, Zcdp
from hubbub.curator import Curator
from hubbub.curator.draws import Draw, Draws
from hubbub.curator.question import Question

PATH = BugCollection("charging and accounting", ("path", "caps", "race", "tamper"))
bug = PATH.bug


# --- the path --------------------------------------------------------------------------------------------------------


@bug("the charge is made after the run", "path")
def charge_after_run() -> None:
    def around(of: Any, self: Any, analyst: str, question: Question, **named: Any) -> Any:
        planned = self._plan(analyst, question, salt=self._salt)
        for sql in planned.statements:
            self.engine.run(sql)
        return of(self, analyst, question, **named)

    wrap(Curator, "query", around)


@bug("a failure is refunded", "caps")
def refund() -> None:
    def around(of: Any, self: Any, planned: Any, *given: Any, **named: Any) -> Any:
        try:
            return of(self, planned, *given, **named)
        except Exception:
            loss = price.privacy_cost(planned.event)
            for balance in self.ledger._totals._balances.values():
                total = balance.total()
                balance._total = replace(total, pure=total.pure - loss.pure)
            raise

    wrap(Curator, "_answer", around)


@bug("the answer is not kept: every retry draws anew", "path")
def not_kept() -> None:
    def around(of: Any, self: Any, *given: Any, **named: Any) -> Any:
        return [each._replace(release=None) for each in of(self, *given, **named)]

    wrap(Curator, "_charge", around)
    wrap(Draws, "begin", lambda _, self, *__: Draw(self.sources(os.urandom(32)), retried=False))
    wrap(Transaction, "record", _recorded)


def _recorded(of: Any, self: Any, call: Any, found: Any) -> None:
    of(self, call, found)
    call.outcome = call.body


@bug("a key answers another question on the old charge", "path")
def key_reused() -> None:
    def around(of: Any, self: Any, call: Any, found: Any) -> Any:
        for asked in call.requests:
            known = found.get(asked.key)
            if known is not None:
                found = {**found, asked.key: known._replace(entry=known.entry._replace(request=asked.digest))}
        return of(self, call, found)

    wrap(Transaction, "charge", around)


@bug("only the first of several datasets is charged", "path")
def first_only() -> None:
    def around(of: Any, self: Any, *given: Any, **named: Any) -> Any:
        private: Any = PreparedAnalysis.private
        with patch.object(PreparedAnalysis, "private", property(lambda planned: private.fget(planned)[:1])):
            return of(self, *given, **named)

    wrap(Curator, "_charge", around)


@bug("NaN passes the guard on ε", "caps")
def nan_epsilon() -> None:
    def accept(of: Any, value: Any, name: str = "epsilon") -> Any:
        if isinstance(value, float) and not (value <= 0 or value > 100):  # as it is often written: NaN is neither
            return Fraction(1, 10) if value != value else of(value, name)
        return of(value, name)

    wrap_function(numbers.epsilon, accept)


# --- caps ------------------------------------------------------------------------------------------------------------


@bug("a naive ledger: look first, write afterwards", "race")
def naive_ledger() -> None:
    def around(of: Any, self: Any, requests: Any) -> Any:
        admitted = True
        for each in requests:
            caps = self._totals.caps(each.analyst, each.dataset, self.time())
            admitted = admitted and all(
                filters.admits(cap.budget, balance.total(), price.privacy_cost(each.event))
                for cap, balance in caps.lasting
            )
        if not admitted:
            return of(self, requests)
        time.sleep(0.01)
        kept = Caps.exceeded_by
        Caps.exceeded_by = lambda self, loss: None  # type: ignore[method-assign]
        try:
            return of(self, requests)
        finally:
            Caps.exceeded_by = kept  # type: ignore[method-assign]

    wrap(Ledger, "charge_all", around)


@bug("a cap compares floats, with a tolerance", "prices", "caps")
def float_cap() -> None:
    def about(budget: Budget, spent: PrivacyCost, loss: PrivacyCost) -> bool:
        if spent.pure is None or loss.pure is None:
            return bool(kept(budget, spent, loss))
        return float(spent.pure + loss.pure) <= float(budget.epsilon) * (1 + 1e-3)

    kept = filters.admits
    swap(filters.admits, about)


@bug("one more query is granted when the budget is spent", "caps", "race")
def one_more() -> None:
    def about(budget: Budget, spent: PrivacyCost, loss: PrivacyCost) -> bool:
        return bool(kept(budget, spent, ZERO)) and spent.pure is not None and spent.pure < budget.epsilon

    kept = filters.admits
    swap(filters.admits, about)
    wrap(Balance, "admits", lambda of, self, budget, loss: about(budget, self.total(), loss))


@bug("the dataset's own cap is forgotten", "caps")
def dataset_cap() -> None:
    wrap(Policy, "_derive", lambda of, self, *given: tuple(c for c in of(self, *given) if c.scope != "dataset"))


@bug("the cap of a group is forgotten", "caps")
def group_cap() -> None:
    wrap(Policy, "_derive", lambda of, self, *given: tuple(c for c in of(self, *given) if c.scope != "group"))


@bug("the cap on one query is forgotten", "caps")
def query_cap() -> None:
    wrap(Policy, "_derive", lambda of, self, *given: tuple(c for c in of(self, *given) if c.scope != "query"))


@bug("a restart forgets what was spent", "caps")
def forgotten() -> None:
    sqlite.SqliteStore.totals = lambda self, labels: {}  # type: ignore[method-assign]
    Totals.catch_up = lambda self, before, head, news: None  # type: ignore[method-assign]


@bug("a ledger is not verified when it is opened", "tamper")
def not_verified() -> None:
    verify.Verification.refuse = lambda self, where: None  # type: ignore[method-assign]


@bug("the anchor is not looked at", "tamper")
def no_anchor() -> None:
    swap(verify._check_anchor, lambda *given: [])


# --- prices ----------------------------------------------------------------------------------------------------------


@bug("k times an event is priced as one", "prices", "caps")
def times_lost() -> None:
    PrivacyCost.times = lambda self, count: self if count else ZERO  # type: ignore[method-assign]


@bug("the multiplier of one kind of event is lost", "prices")
def one_kind_lost() -> None:
    """As a public accounting library did for one type of event."""

    def around(of: Any, event: Any) -> Any:
        if isinstance(event, events.Composed):
            parts = tuple((e, 1 if isinstance(e, events.SelectionEvent) else n) for e, n in event.parts)
            return of(events.Composed(parts))
        return of(event)

    wrap_function(price.privacy_cost, around)


@bug("the group's multiplier is lost", "prices")
def group_lost() -> None:
    wrap_function(convert.group, lambda of, loss, *, units: loss)


@bug("a group's concentrated loss grows with k, not with k²", "prices")
def group_linear() -> None:
    def around(of: Any, loss: Any, *, units: int) -> Any:
        return Zcdp(units * loss.rho) if isinstance(loss, Zcdp) else of(loss, units=units)

    wrap_function(convert.group, around)


@bug("δ of discovered keys is not charged", "prices")
def delta_lost() -> None:
    def around(of: Any, event: Any) -> Any:
        found = of(event)
        return replace(found, delta=Fraction(0))

    wrap_function(price.privacy_cost, around)


@bug("hits of a sparse vector are priced once", "prices")
def hits_once() -> None:
    def around(of: Any, event: Any) -> Any:
        return of(replace(event, hits=1) if isinstance(event, events.SparseVectorEvent) else event)

    wrap_function(price.privacy_cost, around)


@bug("Laplace noise is priced with half its curve", "prices")
def half_curve() -> None:
    wrap_function(laplace.renyi_curve, lambda of, *given: tuple(value // 2 for value in of(*given)))


@bug("Gaussian noise is priced with D²/4σ²", "prices")
def half_rho() -> None:
    wrap_function(curves.concentrated, lambda of, rho: of(rho / 2))


@bug("conversion to (ε, δ) drops a factor of two under the root", "prices")
def conversion() -> None:
    def about(rho: Fraction, delta: Fraction) -> Fraction:
        return Fraction(float(rho) + sqrt(float(rho) * log(1 / float(delta)))).limit_denominator(10**9)

    swap(convert.zcdp_epsilon, about)


@bug("every Rényi order gets the whole δ", "prices")
def whole_delta() -> None:
    def about(budget: Budget) -> FilterLimits:
        most = [convert.divergence_for(order, budget.epsilon, budget.delta) if budget.delta else -1 for order in ORDERS]
        whole = tuple(int(x * curves.STEPS) if x > 0 else -1 for x in most)
        return FilterLimits(budget.delta, tuple(budget.delta for _ in ORDERS), whole, (Fraction(0), -1, -1))

    swap(filters.filter_limits, about)


@bug("composition counts one answer less", "prices")
def one_less() -> None:
    def around(of: Any, losses: Any) -> Any:
        return of(list(losses)[1:]) if len(losses) > 1 else of(losses)

    wrap_function(compose.basic, around)


@bug("optimal composition of one answer less", "prices")
def optimal_less() -> None:
    wrap_function(compose.optimal, lambda of, loss, *, count, delta: of(loss, count=max(1, count - 1), delta=delta))


@bug("the exponential mechanism is priced as bounded range where it is not: report noisy max", "prices")
def not_bounded_range() -> None:
    def around(of: Any, event: Any) -> Any:
        if isinstance(event, events.SelectionEvent) and event.rule != "exponential":
            return of(replace(event, rule="exponential", rate=event.rate / 2))
        return of(event)

    wrap_function(price.privacy_cost, around)
