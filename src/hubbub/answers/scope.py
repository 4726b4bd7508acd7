"""Budget scopes: a fixed budget for a loop of queries.

    with h.scope(epsilon=1) as s:
        for _ in range(10):
            r = s.query("SELECT … ", epsilon=0.1)

Statistical-query learning is such a loop: each step queries noisy sums and chooses the next query adaptively.
"""

import threading
from collections.abc import Awaitable
from fractions import Fraction
from types import TracebackType
from typing import Protocol, Self, Unpack

from hubbub.answers.estimate import Estimate
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options, request_key
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.numbers import Number, brief
from hubbub.errors import BudgetError, ParameterError, QueryError


class Querier(Protocol):
    """A session of any kind, through which a scope runs its queries."""

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and accuracy of a query."""
        ...

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Run a query."""
        ...


class AsyncQuerier(Protocol):
    """An asynchronous session."""

    async def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and accuracy of a query."""
        ...

    async def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Run a query."""
        ...


class _RemainingBudget:
    """The remaining budget of a scope."""

    def __init__(self, epsilon: Number, delta: Number) -> None:
        self._left = numbers.epsilon(epsilon)
        self._left_delta = Fraction(0) if numbers.exact(delta, "delta") == 0 else numbers.delta(delta)
        self._total = (self._left, self._left_delta)
        self._lock = threading.Lock()
        self._open = True

    @property
    def left(self) -> Fraction:
        """The remaining ε."""
        return self._left

    @property
    def left_delta(self) -> Fraction:
        """The remaining δ."""
        return self._left_delta

    @property
    def spent(self) -> Fraction:
        """The spent ε."""
        return self._total[0] - self._left

    def _delta(self, options: Options) -> Fraction:
        given = options.get("delta")
        return Fraction(0) if given is None or numbers.exact(given, "delta") == 0 else numbers.delta(given)

    def _reserve(self, epsilon: Fraction, delta: Fraction) -> None:
        with self._lock:
            if not self._open:
                raise BudgetError("HB203", "This scope is closed. Nothing was run or charged.", "Open another scope.")
            if epsilon > self._left or delta > self._left_delta:
                raise BudgetError(
                    "HB202",
                    f"This query costs ε={brief(epsilon)}, δ={brief(delta)}, and the scope has ε={brief(self._left)}, "
                    f"δ={brief(self._left_delta)} remaining. Nothing was run or charged.",
                    "Use a smaller ε, or open a scope with a larger budget.",
                )
            self._left -= epsilon
            self._left_delta -= delta

    def _refund(self, epsilon: Fraction, delta: Fraction) -> None:
        with self._lock:
            self._left += epsilon
            self._left_delta += delta

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._open = False

    def __repr__(self) -> str:
        return f"<scope: ε = {brief(self._left)} of {brief(self._total[0])} remaining>"


class Scope(_RemainingBudget, Analyses[Release]):
    """A budget of ε (and δ) with the methods of a session: `query`, `estimate`, and all analyses.

    Theorem (Budget scope). For adaptively chosen queries from any number of threads, the queries that a scope passes on
    cost ε₁ + ε₂ + … ≤ ε and δ₁ + δ₂ + … ≤ δ. So all their answers together are (ε, δ)-private: the privacy filter of
    pure losses, with a cap fixed in advance.
    Proof    The cost is subtracted from the remaining budget, under a lock, before the query is passed on with exactly
             that cost. It is added back only if the query was rejected before any charge.
    Assumes  the curator charges no more than the stated cost of a query; it enforces its own caps as well.
    Tested   tests/answers/test_scope.py::test_no_loop_and_no_number_of_threads_spends_more_than_the_scope
             tests/answers/test_scope.py::test_a_price_is_taken_before_the_question_is_asked

    An answer replayed from the ledger is free there, but counts here: over a network, a scope cannot distinguish an old
    query from its own query that was retried. Queries use δ = 0 unless they name a δ.
    """

    def __init__(self, session: Querier, *, epsilon: Number, delta: Number = 0) -> None:
        """Use `h.scope`."""
        super().__init__(epsilon, delta)
        self._session = session

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and accuracy of a query. Free."""
        options["delta"] = self._delta(options)
        return self._session.estimate(sql, **options)

    @property
    def estimates(self) -> Estimates[Estimate]:
        """The analyses as methods that return estimates instead of releases. Free."""
        return Estimates(self.estimate)

    def query(self, sql: str, *, key: str | None = None, fresh: bool = False, **options: Unpack[Options]) -> Release:
        """Run a query if it fits into the remaining budget; δ is 0 unless the query names one."""
        delta, key = self._delta(options), request_key(key, fresh=fresh)
        options["delta"] = delta
        if options.get("epsilon") is None and options.get("within") is not None:
            # fix the privacy cost first, so that the scope reserves what the curator charges
            options["epsilon"], options["within"] = self._session.estimate(sql, **options).epsilon or None, None
        given = options.get("epsilon")
        if given is None:  # a query on public tables costs nothing; any other is rejected
            return self._session.query(sql, key=key, **options)
        epsilon = numbers.epsilon(given)
        self._reserve(epsilon, delta)
        try:
            return self._session.query(sql, key=key, **options)
        except (QueryError, ParameterError, BudgetError):
            # rejected before any charge; after any other failure the charge may stand
            self._refund(epsilon, delta)
            raise

    def _run_call(self, text: str, key: str | None, options: Options) -> Release:
        return self.query(text, key=key, **options)


class AsyncScope(_RemainingBudget, Analyses[Awaitable[Release]]):
    """A `Scope` for asynchronous sessions, used in a plain `with` block."""

    def __init__(self, session: AsyncQuerier, *, epsilon: Number, delta: Number = 0) -> None:
        """Use `h.scope`."""
        super().__init__(epsilon, delta)
        self._session = session

    async def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and accuracy of a query. Free."""
        options["delta"] = self._delta(options)
        return await self._session.estimate(sql, **options)

    @property
    def estimates(self) -> Estimates[Awaitable[Estimate]]:
        """The analyses as methods that return estimates instead of releases. Free."""
        return Estimates(self.estimate)

    async def query(
        self, sql: str, *, key: str | None = None, fresh: bool = False, **options: Unpack[Options]
    ) -> Release:
        """Run a query if it fits into the remaining budget; δ is 0 unless the query names one."""
        delta, key = self._delta(options), request_key(key, fresh=fresh)
        options["delta"] = delta
        if options.get("epsilon") is None and options.get("within") is not None:
            options["epsilon"], options["within"] = (await self._session.estimate(sql, **options)).epsilon or None, None
        given = options.get("epsilon")
        if given is None:
            return await self._session.query(sql, key=key, **options)
        epsilon = numbers.epsilon(given)
        self._reserve(epsilon, delta)
        try:
            return await self._session.query(sql, key=key, **options)
        except (QueryError, ParameterError, BudgetError):
            self._refund(epsilon, delta)
            raise

    def _run_call(self, text: str, key: str | None, options: Options) -> Awaitable[Release]:
        return self.query(text, key=key, **options)
