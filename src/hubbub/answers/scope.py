"""A budget scope: a loop that an analyst writes over queries, and that can never spend more than it was given.

    with h.scope(epsilon=1) as s:
        for _ in range(10):
            r = s.query("SELECT … ", epsilon=0.1)

Statistical-query learning is such a loop: each step asks for noisy sums, and chooses the next by the answers so far.
"""

import threading
from collections.abc import Awaitable
from fractions import Fraction
from types import TracebackType
from typing import Protocol, Self, Unpack

from hubbub.answers.estimate import Estimate
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.numbers import Number, brief
from hubbub.errors import BudgetError, ParameterError, QueryError


class Querier(Protocol):
    """What a scope asks through: a session, of whichever kind."""

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Say what a question would cost."""
        ...

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask."""
        ...


class AsyncQuerier(Protocol):
    """A session that is awaited."""

    async def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Say what a question would cost."""
        ...

    async def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask."""
        ...


class _RemainingBudget:
    """What a scope has left, and how it is taken."""

    def __init__(self, epsilon: Number, delta: Number) -> None:
        self._left = numbers.epsilon(epsilon)
        self._left_delta = Fraction(0) if numbers.exact(delta, "delta") == 0 else numbers.delta(delta)
        self._whole = (self._left, self._left_delta)
        self._lock = threading.Lock()
        self._open = True

    @property
    def left(self) -> Fraction:
        """The ε that is left."""
        return self._left

    @property
    def left_delta(self) -> Fraction:
        """The δ that is left."""
        return self._left_delta

    @property
    def spent(self) -> Fraction:
        """The ε that is spent."""
        return self._whole[0] - self._left

    def _delta(self, options: Options) -> Fraction:
        given = options.get("delta")
        return Fraction(0) if given is None or numbers.exact(given, "delta") == 0 else numbers.delta(given)

    def _take(self, epsilon: Fraction, delta: Fraction) -> None:
        with self._lock:
            if not self._open:
                raise BudgetError("HB203", "this scope is closed. Nothing was run or charged.", "Open another.")
            if epsilon > self._left or delta > self._left_delta:
                raise BudgetError(
                    "HB202",
                    f"this asks for ε={brief(epsilon)}, δ={brief(delta)}, and ε={brief(self._left)}, "
                    f"δ={brief(self._left_delta)} is left in this scope. Nothing was run or charged.",
                    "Ask at a lower ε, or open a scope with more.",
                )
            self._left -= epsilon
            self._left_delta -= delta

    def _put_back(self, epsilon: Fraction, delta: Fraction) -> None:
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
        return f"<a scope with ε = {brief(self._left)} left of {brief(self._whole[0])}>"


class Scope(_RemainingBudget, Analyses[Release]):
    """So much ε (and δ), and the methods of a session to spend it with: `query`, `estimate`, and all analyses.

    Theorem (Budget scope). Whatever is asked in a scope, by whatever loop over the answers so far and from however many
    threads, the queries that a scope passes on cost ε₁ + ε₂ + … ≤ ε and δ₁ + δ₂ + … ≤ δ. So all their answers together
    are (ε, δ)-private: the pure filter, a cap that was fixed beforehand.
    Proof    A price is taken from what is left, under a lock, before the question is passed on, and the question is
             passed on at that price. It is put back only where the question was refused before any charge.
    Assumes  the curator charges what a question is asked at, and no more; it holds its own caps as well.
    Tested   tests/answers/test_scope.py::test_no_loop_and_no_number_of_threads_spends_more_than_the_scope
             tests/answers/test_scope.py::test_a_price_is_taken_before_the_question_is_asked

    An answer that was paid for earlier costs nothing in the ledger, and counts here all the same: over a network one
    cannot tell a question paid for long ago from one's own that was tried twice. Questions use no δ but what they name.
    """

    def __init__(self, session: Querier, *, epsilon: Number, delta: Number = 0) -> None:
        """Use `h.scope`."""
        super().__init__(epsilon, delta)
        self._session = session

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Say what a question would cost and how exact its answer would be. Free."""
        options["delta"] = self._delta(options)
        return self._session.estimate(sql, **options)

    @property
    def estimates(self) -> Estimates[Estimate]:
        """The analyses once more, each saying what it would cost instead of asking. Free."""
        return Estimates(self.estimate)

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask as a session does, if the scope has the price left; δ is 0 unless the question names one."""
        delta = self._delta(options)
        options["delta"] = delta
        if options.get("epsilon") is None and options.get("within") is not None:
            # the price of a ± is fixed first, so that what is taken here is what is charged there
            options["epsilon"], options["within"] = self._session.estimate(sql, **options).epsilon, None
        epsilon = numbers.epsilon(options.get("epsilon") or 0)
        self._take(epsilon, delta)
        try:
            return self._session.query(sql, key=key, **options)
        except (QueryError, ParameterError, BudgetError):
            # refused before any charge; after any other failure the charge may stand
            self._put_back(epsilon, delta)
            raise

    def _called(self, text: str, key: str | None, options: Options) -> Release:
        return self.query(text, key=key, **options)


class AsyncScope(_RemainingBudget, Analyses[Awaitable[Release]]):
    """The same for programs that await: see `Scope`. The `with` is a plain one."""

    def __init__(self, session: AsyncQuerier, *, epsilon: Number, delta: Number = 0) -> None:
        """Use `h.scope`."""
        super().__init__(epsilon, delta)
        self._session = session

    async def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Say what a question would cost and how exact its answer would be. Free."""
        options["delta"] = self._delta(options)
        return await self._session.estimate(sql, **options)

    @property
    def estimates(self) -> Estimates[Awaitable[Estimate]]:
        """The analyses once more, each saying what it would cost instead of asking. Free."""
        return Estimates(self.estimate)

    async def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask as a session does, if the scope has the price left; δ is 0 unless the question names one."""
        delta = self._delta(options)
        options["delta"] = delta
        if options.get("epsilon") is None and options.get("within") is not None:
            options["epsilon"], options["within"] = (await self._session.estimate(sql, **options)).epsilon, None
        epsilon = numbers.epsilon(options.get("epsilon") or 0)
        self._take(epsilon, delta)
        try:
            return await self._session.query(sql, key=key, **options)
        except (QueryError, ParameterError, BudgetError):
            self._put_back(epsilon, delta)
            raise

    def _called(self, text: str, key: str | None, options: Options) -> Awaitable[Release]:
        return self.query(text, key=key, **options)
