"""What the tools ask: a session over a hubbub.yaml or with a server, or the service of `hubbub serve`.

Tested in tests/mcp/test_stdio.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

import anyio.to_thread

from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.client.session import RemoteSession
from hubbub.core.schema import Table
from hubbub.curator.session import Session

T = TypeVar("T")


class Backend(Protocol):
    """The curator as one person sees it."""

    async def datasets(self) -> tuple[str, ...]:
        """List the datasets that can be queried."""
        ...

    async def describe(self, dataset: str) -> Table:
        """Return the declarations of a dataset, without hidden columns."""
        ...

    async def budget(self) -> tuple[BudgetOverview, ...]:
        """Return the spent and the remaining budget of each dataset."""
        ...

    async def releases(self, limit: int) -> tuple[PastCharge, ...]:
        """List past charges, newest first."""
        ...

    async def release(self, number: int) -> Release:
        """Return an earlier release by the number of its charge; free."""
        ...

    async def estimate(self, sql: str, options: Options) -> Estimate:
        """Estimate the privacy cost and the errors of a query; free."""
        ...

    async def query(self, sql: str, options: Options, *, key: str | None, free: bool, request: str) -> Release:
        """Answer a query; with `free`, only if nothing has to be charged. `request` names this call and its retries."""
        ...

    async def try_query(self, sql: str, options: Options) -> Release:
        """Answer a query on made-up rows, in the sandbox: nothing is charged or recorded."""
        ...


class SessionBackend:
    """A session of this process, whose methods wait; they run in threads."""

    def __init__(self, session: Session | RemoteSession) -> None:
        self._session = session

    async def datasets(self) -> tuple[str, ...]:
        """List the datasets."""
        return await _in_thread(self._session.datasets)

    async def describe(self, dataset: str) -> Table:
        """Return the declarations of a dataset."""
        return await _in_thread(partial(self._session.describe, dataset))

    async def budget(self) -> tuple[BudgetOverview, ...]:
        """Return the budgets."""
        return await _in_thread(self._session.budget)

    async def releases(self, limit: int) -> tuple[PastCharge, ...]:
        """List past charges."""
        return await _in_thread(partial(self._session.releases, limit=limit))

    async def release(self, number: int) -> Release:
        """Return an earlier release."""
        return await _in_thread(partial(self._session.release, number))

    async def estimate(self, sql: str, options: Options) -> Estimate:
        """Estimate a query."""
        return await _in_thread(lambda: self._session.estimate(sql, **options))

    async def query(self, sql: str, options: Options, *, key: str | None, free: bool, request: str) -> Release:
        """Answer a query; the ledger's own key names it, so `request` adds nothing."""
        del request
        return await _in_thread(lambda: self._session.query(sql, key=key, free=free, **options))

    async def try_query(self, sql: str, options: Options) -> Release:
        """Answer a query in a sandbox that lasts as long as the query."""

        def ask() -> Release:
            with self._session.sandbox() as sandbox:
                return sandbox.query(sql, **options)

        return await _in_thread(ask)


async def _in_thread(call: Callable[[], T]) -> T:
    # a cancelled call goes on in its thread: its charge is made or not, whoever waits for it
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
