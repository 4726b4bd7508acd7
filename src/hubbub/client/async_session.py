"""The asynchronous session with a server.

Tested in tests/client/test_alike.py.
"""

import asyncio
from collections.abc import Awaitable, Generator
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx2

from hubbub.answers.batch import AsyncBatching
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.combine import refine, repeat_query
from hubbub.answers.estimate import Estimate
from hubbub.answers.frames import QueryFrame
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options, Progress, ignore_progress, request_key
from hubbub.answers.profile import Profile
from hubbub.answers.publish import AsyncPublisher
from hubbub.answers.release import Release
from hubbub.answers.scope import AsyncScope
from hubbub.answers.study import AsyncStudying
from hubbub.client import problems
from hubbub.client.async_sandbox import AsyncSandboxSession
from hubbub.client.calls import Calls
from hubbub.client.protocol import Pause, Request, Steps
from hubbub.client.session import RETRIES, TIMEOUT, settings
from hubbub.core.numbers import Number
from hubbub.core.schema import Table

T = TypeVar("T")


class AsyncSession(Analyses[Awaitable[Release]], AsyncPublisher, AsyncBatching, AsyncStudying):
    """An analyst's asynchronous session with a server: use `async with`, or `await` it and close it.

    Canceling a task that waits for an answer cancels its query; if the charge was already made, it stands.
    """

    def __init__(self, client: httpx2.AsyncClient, *, retries: int) -> None:
        """Use `hubbub.connect_async`."""
        self._client = client
        self._calls = Calls(retries)
        #: Called with the share of an analysis that is done, and its step. Queries report nothing.
        self.on_progress: Progress = ignore_progress
        self.analyst = ""

    async def datasets(self) -> tuple[str, ...]:
        """List the datasets that can be queried."""
        return await self._run(self._calls.datasets())

    async def describe(self, dataset: str) -> Table:
        """Return the declaration of a dataset: its privacy unit and its columns."""
        return await self._run(self._calls.describe(dataset))

    async def published_profile(self, dataset: str) -> Profile | None:
        """Return the newest published profile of a dataset, if there is one. Free."""
        return await self._run(self._calls.published_profile(dataset))

    async def budget(self) -> tuple[BudgetOverview, ...]:
        """Return the spent and remaining budget of each dataset."""
        return await self._run(self._calls.budget())

    async def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and accuracy of a query. Free: nothing is run or charged."""
        return await self._run(self._calls.estimate(sql, options))

    async def query(
        self, sql: str, *, key: str | None = None, fresh: bool = False, free: bool = False, **options: Unpack[Options]
    ) -> Release:
        """Run a query and charge its privacy cost: see `RemoteSession.query`."""
        return await self._run(self._calls.query(sql, request_key(key, fresh=fresh), options, free=free))

    async def sandbox(self, *datasets: str) -> AsyncSandboxSession:
        """Open a session on made-up rows of the server: `s = await h.sandbox("visits")`."""
        return await AsyncSandboxSession(self._run, self._calls).only(*datasets)

    def table(self, name: str) -> QueryFrame[Awaitable[Estimate], Awaitable[Release]]:
        """Begin a query in the manner of data frames: `h.table("visits").group_by("region").agg(n=count())`."""
        return QueryFrame.of(self, name)

    @property
    def estimates(self) -> Estimates[Awaitable[Estimate]]:
        """The analyses as methods that return estimates: h.estimates.kmeans(…). Free."""
        return Estimates(self.estimate)

    def scope(self, *, epsilon: Number, delta: Number = 0) -> AsyncScope:
        """Open a scope with a fixed budget for a loop of queries: see `hubbub.answers.scope.Scope`."""
        return AsyncScope(self, epsilon=epsilon, delta=delta)

    def _run_call(self, text: str, key: str | None, options: Options) -> Awaitable[Release]:
        return self.query(text, key=key, **options)

    async def refine(self, first: Release, *, epsilon: Number, key: str | None = None) -> Release:
        """Repeat a query and combine both answers: see `hubbub.curator.session.Session.refine`."""
        sql, options = repeat_query(first.receipt, epsilon=epsilon)
        return refine(first, await self.query(sql, key=key or token_hex(16), **options))

    async def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]:
        """List past charges, newest first; `before` is the id of the last charge of the previous page."""
        return await self._run(self._calls.releases(limit, before))

    async def release(self, number: int) -> Release:
        """Return an earlier release by the id of its charge. Free."""
        return await self._run(self._calls.release(number))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        try:
            self.analyst = await self._run(self._calls.me())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    def __repr__(self) -> str:
        return f"<{self.analyst or 'unknown analyst'} at {self._client.base_url}>"

    async def _run(self, steps: Steps[T]) -> T:
        """Run the steps, passing each result or failure back to the generator."""
        try:
            step = next(steps)
            while True:
                response, failure = None, None
                try:
                    response = await self._do(step)
                except BaseException as error:  # noqa: BLE001 - the generator also handles an interrupted wait
                    failure = error
                # outside the handler, so that raised errors do not reference a request, with its token, as context
                step = steps.send(response) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _do(self, step: Request | Pause) -> httpx2.Response | None:
        if isinstance(step, Pause):
            if step.progress is not None:
                self.on_progress(*step.progress)
            await asyncio.sleep(step.seconds)
            return None
        if self._client.is_closed:
            raise problems.closed()
        return await self._client.request(
            step.method, step.path, json=step.body, params=step.query, headers=step.headers
        )


def connect_async(
    url: str,
    token: str,
    *,
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    ca: str | Path | None = None,
    insecure: bool = False,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> AsyncSession:
    """Open a session with a server; see `hubbub.connect_async`."""
    options = settings(url, token, timeout=timeout, ca=ca, insecure=insecure)
    return AsyncSession(httpx2.AsyncClient(**options, transport=transport), retries=retries)
