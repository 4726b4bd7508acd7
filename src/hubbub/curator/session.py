"""What an analyst holds: the same methods whether the curator is in this process or on a server."""

from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self, Unpack, overload

from hubbub.analyses.functions.function import RowFunction
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.combine import refine, repeat_query
from hubbub.answers.estimate import Estimate
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options
from hubbub.answers.publish import Publisher
from hubbub.answers.release import Release
from hubbub.answers.scope import Scope
from hubbub.config import load
from hubbub.core.numbers import Number
from hubbub.core.schema import Table, unknown_dataset
from hubbub.curator import Curator
from hubbub.curator.opening import open_curator
from hubbub.curator.question import Question
from hubbub.curator.user_functions import UserFunctionOptions, UserFunctions
from hubbub.errors import ParameterError


class Session(Analyses[Release], Publisher, UserFunctions):
    """One analyst's view of a curator. Close it, or use it in a `with` block."""

    def __init__(self, curator: Curator, analyst: str) -> None:
        """Use `hubbub.open`."""
        self.analyst = analyst
        self._curator = curator

    def datasets(self) -> tuple[str, ...]:
        """List the datasets that may be asked about."""
        return self._curator.datasets(self.analyst)

    def describe(self, dataset: str) -> Table:
        """Show what is declared about a dataset: who is protected, its columns with their facts."""
        if dataset not in self.datasets():
            raise unknown_dataset(dataset, self.datasets())
        return self._curator.tables[dataset].shown()

    def budget(self) -> tuple[BudgetOverview, ...]:
        """Say what is spent and what is left, for each dataset."""
        return self._curator.budget(self.analyst)

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Say what a question would cost and how exact its answer would be. Free: nothing is run or charged."""
        return self._curator.estimate(self.analyst, Question(sql, **options))

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask, for a price: `epsilon`, or `within` for the ± that is wanted. See `Question` for the other options.

        The same question on the same data is answered from the ledger at no cost. A `key` names one answer: the same
        key always gives the same one, a new key draws (and charges) anew. A run that was cut off is repeated with the
        same noise by the next call of the same question, or key, while the data is unchanged.
        """
        return self._curator.query(self.analyst, Question(sql, **options), key=key)

    @property
    def estimates(self) -> Estimates[Estimate]:
        """The analyses once more, each saying what it would cost instead of asking: h.estimates.kmeans(…). Free."""
        return Estimates(self.estimate)

    def scope(self, *, epsilon: Number, delta: Number = 0) -> Scope:
        """Give a loop of queries and analyses so much to spend, and no way to more: `with h.scope(epsilon=1) as s:`.

        See `hubbub.answers.scope.Scope`.
        """
        return Scope(self, epsilon=epsilon, delta=delta)

    def _called(self, text: str, key: str | None, options: Options) -> Release:
        return self.query(text, key=key, **options)

    def refine(self, first: Release, *, epsilon: Number, key: str | None = None) -> Release:
        """Ask the same once more with a second, independent draw at this price, and combine both: nothing paid is lost.

        For counts, sums and averages over declared groups; see `hubbub.answers.combine`. A `key` names the second draw.
        """
        sql, options = repeat_query(first.receipt, epsilon=epsilon)
        return refine(first, self.query(sql, key=key or token_hex(16), **options))

    def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]:
        """List what was asked and paid for, newest first; `before` (a number of the list) goes on where one ended."""
        return self._curator.releases(self.analyst, limit=limit, before=before)

    @overload
    def release(self, number: int) -> Release: ...
    @overload
    def release(self, number: RowFunction, **said: Unpack[UserFunctionOptions]) -> Release: ...
    def release(self, number: int | RowFunction, **said: Any) -> Release:
        """Give an earlier answer once more, by the number of its charge, free; or release a function of your own.

        A function is for who holds the data: see `UserFunctions.release_function` for what is said with it.
        """
        if isinstance(number, int):
            return self._curator.release(number, analyst=self.analyst)
        return self.release_function(number, **said)

    def close(self) -> None:
        """Let go of data and ledger."""
        self._curator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(path: str | Path = "hubbub.yaml", *, analyst: str | None = None) -> Session:
    """Open the datasets of a hubbub.yaml as one of its analysts (where it has only one, that one)."""
    config = load(Path(path))
    known = list(config.policy.analysts)
    if analyst is None and len(known) != 1:
        raise ParameterError(
            "HB121", "it is not said who asks.", f"Give analyst=, one of: {', '.join(known) or 'none'}."
        )
    name = known[0] if analyst is None else analyst
    curator = open_curator(config)
    try:
        curator.datasets(name)
    except BaseException:
        curator.close()
        raise
    return Session(curator, name)
