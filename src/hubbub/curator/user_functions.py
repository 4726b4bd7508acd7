"""Code that who holds the data hands in: for a curator in this process alone. No server takes any."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Required, TypedDict, Unpack

from hubbub.analyses.base import Setting
from hubbub.analyses.functions.declared_sensitivity import Universe, check_sensitivity, check_total, refuse_exceeded
from hubbub.analyses.functions.function import FunctionRelease, FunctionRequest, Named, RowFunction
from hubbub.analyses.functions.sample_and_aggregate import AggregateOptions, AggregateRequest
from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.core.numbers import Number
from hubbub.curator import Curator
from hubbub.curator.question import Question
from hubbub.mechanisms.metric import Space


class UserFunctionOptions(TypedDict, total=False):
    """What is said with a function: see `hubbub.analyses.functions.function.FunctionRequest`; and what it may cost.

    check  a finite universe, on all of which the declared sensitivity is tried before anything is charged
    """

    table: Required[str]
    columns: Required[Sequence[str]]
    sensitivity: Required[Number]
    epsilon: Required[Number]
    metric: Named | Space
    points: Sequence[Hashable]
    outputs: int
    bounds: tuple[Number, Number] | None
    step: Number | None
    total: bool
    check: Universe | None
    delta: Number | None
    key: str | None


class UserFunctions:
    """The part of a session that takes code."""

    analyst: str
    _curator: Curator

    def release_function(self, function: RowFunction, **said: Unpack[UserFunctionOptions]) -> Release:
        """Release a function of the rows by how far one unit moves it, in a metric: `h.release(f, …)` is this.

        The function runs in this process on the rows. Its sensitivity is the owner's word, and so is `total=True`: that
        it gives a value on every dataset. Without it the noise also covers the default that stands for a failure.
        """
        given: dict[str, Any] = dict(said)
        check, epsilon, delta, key = (given.pop(name, None) for name in ("check", "epsilon", "delta", "key"))
        order = FunctionRequest.of(function, given.pop("table", ""), given.pop("columns", ()), **given)

        def prepare(setting: Setting) -> FunctionRelease:
            made = order.prepare(setting)
            check_total(order, made.mechanism, made.rows.table)
            if check is not None:
                refuse_exceeded(check_sensitivity(order, made.mechanism, check, made.relation), setting.epsilon)
            return made

        question = Question(order.text, epsilon=epsilon, delta=delta, own=prepare)
        return self._curator.query(self.analyst, question, key=key)

    def sample_and_aggregate(
        self,
        function: Callable[..., Any] | str,
        table: str,
        columns: Sequence[str],
        *,
        bounds: Sequence[Any],
        epsilon: Number,
        key: str | None = None,
        **said: Unpack[AggregateOptions],
    ) -> Release:
        """Run anybody's function on blocks of rows that share no unit, shut in, and release the median or mean.

        `hubbub.analyses.functions.sample_and_aggregate.AggregateRequest` lists the options. The blocks run one after
        the other, each for a fixed time, whatever the function does.
        """
        order = AggregateRequest.of(function, table, columns, bounds=bounds, **said)
        with order.sandbox() as sandbox:
            question = Question(order.text, epsilon=epsilon, own=lambda setting: order.prepare(setting, sandbox))
            return self._curator.query(self.analyst, question, key=key)

    def estimate_own(
        self, order: FunctionRequest | AggregateRequest, *, epsilon: Number, delta: Number | None = None
    ) -> Estimate:
        """Say what a function would cost and what its noise would do. Free: nothing is run or charged."""
        own = order.prepare if isinstance(order, FunctionRequest) else partial(order.prepare, sandbox=None)
        return self._curator.estimate(self.analyst, Question(order.text, epsilon=epsilon, delta=delta, own=own))
