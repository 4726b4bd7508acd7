"""User-defined functions supplied by the data owner. Embedded curator only; the server accepts none.

Tested in tests/analyses/functions/test_function.py.
"""

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
    """The options of `hubbub.analyses.functions.function.FunctionRequest`, and the privacy cost.

    check  a finite universe, on all of which the declared sensitivity is checked before the charge
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
    """The methods of a session that accept code."""

    analyst: str
    _curator: Curator

    def release_function(self, function: RowFunction, **options: Unpack[UserFunctionOptions]) -> Release:
        """Release a function of the rows with noise for its declared sensitivity; `h.release(f, …)` calls this.

        The function runs in this process on the rows. The owner vouches for its sensitivity, and with `total=True` that
        it returns a value on every dataset. Otherwise the noise also covers the default value of a failure.
        """
        given: dict[str, Any] = dict(options)
        check, epsilon, delta, key = (given.pop(name, None) for name in ("check", "epsilon", "delta", "key"))
        order = FunctionRequest.of(function, given.pop("table", ""), given.pop("columns", ()), **given)

        def prepare(setting: Setting) -> FunctionRelease:
            made = order.prepare(setting)
            check_total(order, made.mechanism, made.rows.table)
            if check is not None:
                refuse_exceeded(check_sensitivity(order, made.mechanism, check, made.relation), setting.epsilon)
            return made

        question = Question(order.text, epsilon=epsilon, delta=delta, user_function=prepare)
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
        **options: Unpack[AggregateOptions],
    ) -> Release:
        """Run an untrusted function in a sandbox on disjoint blocks of units, and release the median or mean.

        `hubbub.analyses.functions.sample_and_aggregate.AggregateRequest` lists the options. The blocks run one after
        the other, each for a fixed time.
        """
        order = AggregateRequest.of(function, table, columns, bounds=bounds, **options)
        with order.sandbox() as sandbox:
            question = Question(
                order.text, epsilon=epsilon, user_function=lambda setting: order.prepare(setting, sandbox)
            )
            return self._curator.query(self.analyst, question, key=key)

    def estimate_own(
        self, order: FunctionRequest | AggregateRequest, *, epsilon: Number, delta: Number | None = None
    ) -> Estimate:
        """Estimate the privacy cost and the error of a function. Free: nothing is run or charged."""
        own = order.prepare if isinstance(order, FunctionRequest) else partial(order.prepare, sandbox=None)
        return self._curator.estimate(
            self.analyst, Question(order.text, epsilon=epsilon, delta=delta, user_function=own)
        )
