"""An asynchronous session in the sandbox of a server: `hubbub.answers.sandbox_session` with `await`.

Tested in tests/client/test_async_sandbox.py.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Self, Unpack

from hubbub.answers.batch import AsyncBatching
from hubbub.answers.estimate import Estimate
from hubbub.answers.frames import QueryFrame
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.client.calls import Calls
from hubbub.client.protocol import Steps
from hubbub.core.schema import Table, unknown_dataset


class AsyncSandboxSession(Analyses[Awaitable[Release]], AsyncBatching):
    """Asks the same questions as a session on the data, of made-up rows. Nothing is charged or recorded."""

    def __init__(self, run: Callable[[Steps[Any]], Awaitable[Any]], calls: Calls) -> None:
        """Use `await session.sandbox()`."""
        self._run = run
        self._calls = calls

    async def datasets(self) -> tuple[str, ...]:
        """List the datasets that have a stand-in."""
        return tuple(await self._run(self._calls.sandbox_datasets()))

    async def describe(self, dataset: str) -> Table:
        """Show the declarations of a dataset."""
        table: Table = await self._run(self._calls.sandbox_describe(dataset))
        return table

    async def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and the errors that a query on the data would have."""
        found: Estimate = await self._run(self._calls.sandbox_estimate(sql, options))
        return found

    async def query(
        self, sql: str, *, key: str | None = None, fresh: bool = False, free: bool = False, **options: Unpack[Options]
    ) -> Release:
        """Answer a query on made-up rows; each call draws new noise. `key`, `fresh` and `free` have no effect."""
        del key, fresh, free
        release: Release = await self._run(self._calls.sandbox_query(sql, options))
        return release

    def table(self, name: str) -> QueryFrame[Awaitable[Estimate], Awaitable[Release]]:
        """Begin a query in the manner of data frames."""
        return QueryFrame.of(self, name)

    @property
    def estimates(self) -> Estimates[Awaitable[Estimate]]:
        """The analyses as estimates, such as h.estimates.kmeans(…)."""
        return Estimates(self.estimate)

    def _run_call(self, text: str, key: str | None, options: Options) -> Awaitable[Release]:
        return self.query(text, key=key, **options)

    async def only(self, *datasets: str) -> Self:
        """Return this session if it has these datasets, and raise an error otherwise."""
        known = await self.datasets()
        missing = next((name for name in datasets if name not in known), None)
        if missing is None:
            return self
        raise unknown_dataset(missing, known)
