"""The sandbox of a server: analysts ask any question on made-up rows, free.

Tested in tests/server/test_sandbox.py.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.core.schema import Table
from hubbub.curator.columns import AnswerColumns
from hubbub.curator.question import Question
from hubbub.curator.sandbox import QuerySandbox
from hubbub.curator.sandbox_session import rows_of_release
from hubbub.server.accounts import Principal
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.query_pool import Job, QueryPool, clock
from hubbub.server.roles import allowed


class _Used:
    """A sandbox with its number of users; after it is replaced, the last user closes it."""

    def __init__(self, hash_: str, sandbox: QuerySandbox) -> None:
        self.hash = hash_
        self.sandbox = sandbox
        self.users = 0
        self.replaced = False


class SandboxService:
    """Answers in the sandbox. It has its own rows and engine; no method here reaches the data or charges anything."""

    def __init__(self, current: CurrentCurator, pool: QueryPool) -> None:
        self._current = current
        self._pool = pool
        self._mutex = threading.Lock()
        self._used: _Used | None = None

    @allowed("analyst")
    def datasets(self, principal: Principal) -> tuple[str, ...]:
        """List the datasets that have a stand-in."""
        with self._using() as sandbox:
            return sandbox.datasets(principal.name)

    @allowed("analyst")
    def describe(self, principal: Principal, name: str) -> Table:
        """Show the declarations of a dataset that has a stand-in."""
        with self._using() as sandbox:
            return sandbox.table(principal.name, name)

    @allowed("analyst")
    def estimate(self, principal: Principal, question: Question) -> Estimate:
        """Estimate what a question would cost on the data, and its errors."""
        with self._using() as sandbox:
            return sandbox.estimate(principal.name, question)

    @allowed("analyst")
    def columns(self, principal: Principal, question: Question) -> AnswerColumns | None:
        """Return the names and kinds of the columns of an answer, or None if only the run tells."""
        with self._using() as sandbox:
            return sandbox.columns(principal.name, question)

    @allowed("analyst")
    async def ask(self, principal: Principal, question: Question, *, arrived: float | None = None) -> Release:
        """Answer a question on made-up rows; nothing is charged or recorded."""
        return await self._pool.answer(self.begin(principal, question, arrived=arrived))

    @allowed("analyst")
    def begin(self, principal: Principal, question: Question, *, arrived: float | None = None) -> Job:
        """Queue a question whose caller waits for its answer and may stop it, as `QueryService.begin` does."""

        def run(job: Job) -> Release:
            with self._using() as sandbox:
                job.stop = sandbox.planner.engine.interrupt
                return sandbox.query(principal.name, question, progress=job.advance)

        return self._pool.begin(principal.name, run, arrived=clock() if arrived is None else arrived)

    def close(self) -> None:
        """Remove the made-up rows."""
        with self._mutex:
            used, self._used = self._used, None
        if used is not None:
            used.sandbox.close()

    @contextmanager
    def _using(self) -> Iterator[QuerySandbox]:
        """Use the sandbox of the current hubbub.yaml throughout, even if the file changes meanwhile."""
        with self._current.using() as curator:
            config, ledger = curator.config, curator.ledger
        old = None
        with self._mutex:
            if self._used is None or self._used.hash != config.hash:
                made = QuerySandbox.open(config, release_rows=partial(rows_of_release, ledger.snapshot))
                old, self._used = self._used, _Used(config.hash, made)
                if old is not None:
                    old.replaced = True
                    old = old if not old.users else None
            used = self._used
            used.users += 1
        if old is not None:
            old.sandbox.close()
        try:
            yield used.sandbox
        finally:
            with self._mutex:
                used.users -= 1
                last = used.replaced and not used.users
            if last:
                used.sandbox.close()
