"""The session of an analyst; the client of a server has the same methods."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self, Unpack, overload

from hubbub.analyses.functions.function import RowFunction
from hubbub.answers.batch import Batching
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.combine import refine, repeat_query
from hubbub.answers.estimate import Estimate
from hubbub.answers.frames import QueryFrame
from hubbub.answers.methods import Analyses, AnalysisOptions, Estimates
from hubbub.answers.methods_base import options_key
from hubbub.answers.options import Options, Progress, ignore_progress, request_key
from hubbub.answers.profile import Profile
from hubbub.answers.publish import Publisher
from hubbub.answers.release import Release
from hubbub.answers.sandbox_session import SandboxSession
from hubbub.answers.scope import Scope
from hubbub.answers.stepwise import StepwiseBuyer
from hubbub.answers.study import Studying
from hubbub.config import load
from hubbub.core.call import AnalysisCall
from hubbub.core.numbers import Number
from hubbub.core.schema import Table, unknown_dataset
from hubbub.curator import Curator
from hubbub.curator.free import only_recorded
from hubbub.curator.opening import open_curator
from hubbub.curator.question import Question
from hubbub.curator.sandbox_session import local_session, rows_of_release
from hubbub.curator.user_functions import UserFunctionOptions, UserFunctions
from hubbub.errors import ParameterError


class Session(Analyses[Release], Publisher, Batching, Studying, StepwiseBuyer, UserFunctions):
    """One analyst's view of a curator. Close it, or use it in a `with` block."""

    def __init__(self, curator: Curator, analyst: str) -> None:
        """Use `hubbub.open`."""
        self.analyst = analyst
        #: Called with the share of an analysis that is done, and its step. Queries report nothing.
        self.on_progress: Progress = ignore_progress
        self._curator = curator

    def datasets(self) -> tuple[str, ...]:
        """List the datasets that the analyst can query."""
        return self._curator.datasets(self.analyst)

    def describe(self, dataset: str) -> Table:
        """Show the declarations of a dataset: its privacy unit, and its columns with their facts."""
        if dataset not in self.datasets():
            raise unknown_dataset(dataset, self.datasets())
        return replace(self._curator.tables[dataset].shown(), size=self._curator.public_rows(dataset))

    def budget(self) -> tuple[BudgetOverview, ...]:
        """Show the spent and the remaining budget of each dataset."""
        return self._curator.budget(self.analyst)

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and the errors of a query. Free: nothing is run or charged."""
        return self._curator.estimate(self.analyst, Question(sql, **options))

    def query(
        self, sql: str, *, key: str | None = None, fresh: bool = False, free: bool = False, **options: Unpack[Options]
    ) -> Release:
        """Run a query at a privacy cost `epsilon`, or with a margin of error `within`. `Question` lists the options.

        The same query on the same data is answered from the ledger for free. A `key` names one answer: the same key
        always gives the same answer, a new key samples and charges again; `fresh` is a new key that is not kept. An
        interrupted run is repeated with the same noise by the next call with the same query or key, while the data is
        unchanged. With `free`, the query is answered only if nothing has to be charged for it: from its own
        release, or from earlier ones that are as exact. Without a price it is answered from these, however exact.
        """
        claim = only_recorded(self._curator.ledger, self.analyst) if free else None
        question = Question(sql, **options, free=free)
        name = request_key(key, fresh=fresh)
        return self._curator.query(self.analyst, question, key=name, claim=claim, progress=self.on_progress)

    def sandbox(self, *datasets: str) -> SandboxSession:
        """Open a session on made-up rows, to try questions for free; with names, raise if one has no stand-in."""
        read = partial(rows_of_release, self._curator.ledger.snapshot)
        return local_session(self._curator.config, self.analyst, read).only(*datasets)

    def table(self, name: str) -> QueryFrame[Estimate, Release]:
        """Begin a query in the manner of data frames: `h.table("visits").group_by("region").agg(n=count())`."""
        return QueryFrame.of(self, name)

    @property
    def estimates(self) -> Estimates[Estimate]:
        """The analyses as estimates, such as h.estimates.kmeans(…). Free."""
        return Estimates(self.estimate)

    def scope(self, *, epsilon: Number, delta: Number = 0) -> Scope:
        """Limit what a loop of queries and analyses can spend: `with h.scope(epsilon=1) as s:`.

        See `hubbub.answers.scope.Scope`.
        """
        return Scope(self, epsilon=epsilon, delta=delta)

    def profile(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        max_rows: int | None = None,
        **options: Unpack[AnalysisOptions],
    ) -> Release:
        """Release a profile of a dataset and publish it: answers to every analyst state what their bounds leave out.

        It is charged to the analyst of this session and to the dataset, like any release. See `hubbub.model`.
        """
        given = {"table": table, "columns": None if columns is None else list(columns), "max_rows": max_rows}
        call = AnalysisCall("profile", {name: value for name, value in given.items() if value is not None})
        question = Question(call.text(), epsilon=options.get("epsilon"), delta=options.get("delta"))
        key = options_key(options)
        return self._curator.query(self.analyst, question, key=key, publish=True, progress=self.on_progress)

    def published_profile(self, dataset: str) -> Profile | None:
        """Give the newest published profile of a dataset, if there is one. Free."""
        if dataset not in self.datasets():
            raise unknown_dataset(dataset, self.datasets())
        return self._curator.profile(dataset)

    def _run_call(self, text: str, key: str | None, options: Options) -> Release:
        return self.query(text, key=key, **options)

    def refine(self, first: Release, *, epsilon: Number, key: str | None = None) -> Release:
        """Repeat a query with fresh noise at this cost and combine both answers, so that no budget is wasted.

        For counts, sums and averages over declared groups; see `hubbub.answers.combine`. `key` names the second answer.
        """
        sql, options = repeat_query(first.receipt, epsilon=epsilon)
        return refine(first, self.query(sql, key=key or token_hex(16), **options))

    def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]:
        """List past charges, newest first; `before` is a charge number and continues an earlier list."""
        return self._curator.releases(self.analyst, limit=limit, before=before)

    @overload
    def release(self, number: int) -> Release: ...
    @overload
    def release(self, number: RowFunction, **options: Unpack[UserFunctionOptions]) -> Release: ...
    def release(self, number: int | RowFunction, **options: Any) -> Release:
        """Give an earlier release by the number of its charge, for free; or release a user-defined function.

        `UserFunctions.release_function` lists the options of a function.
        """
        if isinstance(number, int):
            return self._curator.release(number, analyst=self.analyst)
        return self.release_function(number, **options)

    def close(self) -> None:
        """Close data and ledger."""
        self._curator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(path: str | Path = "hubbub.yaml", *, analyst: str | None = None) -> Session:
    """Open the datasets of a hubbub.yaml as one of its analysts; the name is optional if there is only one."""
    config = load(Path(path))
    known = list(config.policy.analysts)
    if analyst is None and len(known) != 1:
        raise ParameterError(
            "HB121", "No analyst was specified.", f"Pass analyst=. hubbub.yaml defines: {', '.join(known) or 'none'}."
        )
    name = known[0] if analyst is None else analyst
    curator = open_curator(config)
    try:
        curator.datasets(name)
    except BaseException:
        curator.close()
        raise
    return Session(curator, name)
