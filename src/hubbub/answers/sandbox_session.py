"""A session in the sandbox, embedded or of a server: questions on made-up rows, free and as often as one likes.

Tested in tests/curator/test_sandbox_session.py.
"""

from types import TracebackType
from typing import Protocol, Self, Unpack

from hubbub.answers.batch import Batching
from hubbub.answers.estimate import Estimate
from hubbub.answers.frames import QueryFrame
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core.schema import Table, unknown_dataset


class AskedSandbox(Protocol):
    """What a session in the sandbox needs: a sandbox in this process, or on a server. It can charge nothing."""

    def datasets(self) -> tuple[str, ...]:
        """List the datasets that have a stand-in."""
        ...

    def describe(self, dataset: str) -> Table:
        """Show the declarations of a dataset."""
        ...

    def estimate(self, sql: str, options: Options) -> Estimate:
        """Estimate a question."""
        ...

    def query(self, sql: str, options: Options) -> Release:
        """Answer a question."""
        ...

    def close(self) -> None:
        """Remove what only this session uses."""
        ...


class SandboxSession(Analyses[Release], Batching):
    """Asks the same questions in the same way as a session on the data, of made-up rows.

    It has no budget, no list of releases, and no key: nothing is charged or recorded. Close it, or use it in a `with`
    block.
    """

    def __init__(self, asked: AskedSandbox) -> None:
        """Use `session.sandbox()`, or `hubbub.open(…, sandbox=True)`."""
        self._asked = asked

    def datasets(self) -> tuple[str, ...]:
        """List the datasets that have a stand-in."""
        return self._asked.datasets()

    def describe(self, dataset: str) -> Table:
        """Show the declarations of a dataset."""
        return self._asked.describe(dataset)

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Estimate the privacy cost and the errors that a query on the data would have."""
        return self._asked.estimate(sql, options)

    def query(
        self, sql: str, *, key: str | None = None, fresh: bool = False, free: bool = False, **options: Unpack[Options]
    ) -> Release:
        """Answer a query on made-up rows; each call draws new noise. `key`, `fresh` and `free` have no effect."""
        del key, fresh, free
        return self._asked.query(sql, options)

    def table(self, name: str) -> QueryFrame[Estimate, Release]:
        """Begin a query in the manner of data frames."""
        return QueryFrame.of(self, name)

    @property
    def estimates(self) -> Estimates[Estimate]:
        """The analyses as estimates, such as h.estimates.kmeans(…)."""
        return Estimates(self.estimate)

    def _run_call(self, text: str, key: str | None, options: Options) -> Release:
        return self.query(text, key=key, **options)

    def only(self, *datasets: str) -> Self:
        """Return this session if it has these datasets; close it and raise an error otherwise."""
        known = self.datasets()
        missing = next((name for name in datasets if name not in known), None)
        if missing is None:
            return self
        self.close()
        raise unknown_dataset(missing, known)

    def close(self) -> None:
        """Remove the made-up rows, if no other session uses them."""
        self._asked.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
