"""The session with a server, with the same methods, answers and errors as an embedded session."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx2

from hubbub.answers.batch import Batching
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.combine import refine, repeat_query
from hubbub.answers.estimate import Estimate
from hubbub.answers.frames import QueryFrame
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options, Progress, ignore_progress, request_key
from hubbub.answers.profile import Profile
from hubbub.answers.publish import Publisher
from hubbub.answers.release import Release
from hubbub.answers.sandbox_session import SandboxSession
from hubbub.answers.scope import Scope
from hubbub.answers.stepwise import StepwiseBuyer
from hubbub.answers.study import Studying
from hubbub.client import address, problems
from hubbub.client.calls import Calls
from hubbub.client.protocol import Pause, Request, Steps
from hubbub.core.numbers import Number
from hubbub.core.schema import Table

T = TypeVar("T")

#: Timeout in seconds for one HTTP response. The client polls for queries that take longer.
TIMEOUT = 30.0
RETRIES = 4


class RemoteSession(Analyses[Release], Publisher, Batching, Studying, StepwiseBuyer):
    """An analyst's session with a server. Close it, or use it in a `with` block."""

    def __init__(self, client: httpx2.Client, *, retries: int) -> None:
        """Use `hubbub.connect`."""
        self._client = client
        self._calls = Calls(retries)
        #: Called with the share of an analysis that is done, and its step. Queries report nothing.
        self.on_progress: Progress = ignore_progress
        self.analyst = ""
        self.analyst = self._run(self._calls.me())

    def datasets(self) -> tuple[str, ...]:
        """List the datasets that can be queried."""
        return self._run(self._calls.datasets())

    def describe(self, dataset: str) -> Table:
        """Return the declaration of a dataset: its privacy unit and its columns."""
        return self._run(self._calls.describe(dataset))

    def published_profile(self, dataset: str) -> Profile | None:
        """Return the newest published profile of a dataset, if there is one. Free."""
        return self._run(self._calls.published_profile(dataset))

    def budget(self) -> tuple[BudgetOverview, ...]:
        """Return the spent and remaining budget of each dataset."""
        return self._run(self._calls.budget())

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and accuracy of a query. Free: nothing is run or charged."""
        return self._run(self._calls.estimate(sql, options))

    def query(
        self, sql: str, *, key: str | None = None, fresh: bool = False, free: bool = False, **options: Unpack[Options]
    ) -> Release:
        """Run a query; `epsilon` sets its privacy cost, or `within` its target margin of error.

        Repeating a query on the same data returns the recorded answer for free. A `key` names one answer: the same key
        always returns the same answer, a new key samples (and charges) again; `fresh` is a new key that is not kept.
        Retries after network failures are charged once. Ctrl-C cancels the query; if the charge was already made, it
        stands. With `free`, the query is answered only if nothing has to be charged for it.
        """
        return self._run(self._calls.query(sql, request_key(key, fresh=fresh), options, free=free))

    def sandbox(self, *datasets: str) -> SandboxSession:
        """Open a session on made-up rows of the server: see `hubbub.curator.session.Session.sandbox`."""
        return SandboxSession(_RemoteSandbox(self._run, self._calls)).only(*datasets)

    def table(self, name: str) -> QueryFrame[Estimate, Release]:
        """Begin a query in the manner of data frames: `h.table("visits").group_by("region").agg(n=count())`."""
        return QueryFrame.of(self, name)

    @property
    def estimates(self) -> Estimates[Estimate]:
        """The analyses as methods that return estimates: h.estimates.kmeans(…). Free."""
        return Estimates(self.estimate)

    def scope(self, *, epsilon: Number, delta: Number = 0) -> Scope:
        """Open a scope with a fixed budget for a loop of queries and analyses: `with h.scope(epsilon=1) as s:`.

        See `hubbub.answers.scope.Scope`.
        """
        return Scope(self, epsilon=epsilon, delta=delta)

    def _run_call(self, text: str, key: str | None, options: Options) -> Release:
        return self.query(text, key=key, **options)

    def refine(self, first: Release, *, epsilon: Number, key: str | None = None) -> Release:
        """Repeat a query and combine both answers: see `hubbub.curator.session.Session.refine`."""
        sql, options = repeat_query(first.receipt, epsilon=epsilon)
        return refine(first, self.query(sql, key=key or token_hex(16), **options))

    def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]:
        """List past charges, newest first; `before` is the id of the last charge of the previous page."""
        return self._run(self._calls.releases(limit, before))

    def release(self, number: int) -> Release:
        """Return an earlier release by the id of its charge. Free."""
        return self._run(self._calls.release(number))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.analyst or 'unknown analyst'} at {self._client.base_url}>"

    def _run(self, steps: Steps[T]) -> T:
        """Run the steps, passing each result or failure back to the generator."""
        try:
            step = next(steps)
            while True:
                response, failure = None, None
                try:
                    response = self._do(step)
                except BaseException as error:  # noqa: BLE001 - the generator also handles an interrupted wait
                    failure = error
                # outside the handler, so that raised errors do not reference a request, with its token, as context
                step = steps.send(response) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _do(self, step: Request | Pause) -> httpx2.Response | None:
        if isinstance(step, Pause):
            if step.progress is not None:
                self.on_progress(*step.progress)
            time.sleep(step.seconds)
            return None
        if self._client.is_closed:
            raise problems.closed()
        return self._client.request(step.method, step.path, json=step.body, params=step.query, headers=step.headers)


@dataclass(frozen=True)
class _RemoteSandbox:
    """The sandbox of a server."""

    run: Callable[[Steps[Any]], Any]
    calls: Calls

    def datasets(self) -> tuple[str, ...]:
        return tuple(self.run(self.calls.sandbox_datasets()))

    def describe(self, dataset: str) -> Table:
        table: Table = self.run(self.calls.sandbox_describe(dataset))
        return table

    def estimate(self, sql: str, options: Options) -> Estimate:
        found: Estimate = self.run(self.calls.sandbox_estimate(sql, options))
        return found

    def query(self, sql: str, options: Options) -> Release:
        release: Release = self.run(self.calls.sandbox_query(sql, options))
        return release

    def close(self) -> None:
        """Leave the connection open: it is that of the session."""


def settings(url: str, token: str, *, timeout: float, ca: str | Path | None, insecure: bool) -> dict[str, Any]:
    """Return the arguments for both kinds of httpx2 client."""
    base_url = address.base(url, insecure=insecure)
    return {
        "base_url": base_url,
        "auth": address.BearerToken(token),
        "timeout": timeout,
        "verify": address.trust(ca=ca, insecure=insecure),
        # a proxy from the environment would see unencrypted traffic
        "trust_env": base_url.scheme == "https",
        # a redirect could send the token elsewhere
        "follow_redirects": False,
        "headers": {"Accept": "application/json"},
    }


def connect(
    url: str,
    token: str,
    *,
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    ca: str | Path | None = None,
    insecure: bool = False,
    transport: httpx2.BaseTransport | None = None,
) -> RemoteSession:
    """Open a session with a server; see `hubbub.connect`."""
    client = httpx2.Client(**settings(url, token, timeout=timeout, ca=ca, insecure=insecure), transport=transport)
    try:
        return RemoteSession(client, retries=retries)
    except BaseException:
        client.close()
        raise
