"""Open a session in the sandbox of a hubbub.yaml.

Tested in tests/curator/test_sandbox_session.py.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hubbub.accounting.reviews import Reviews
from hubbub.accounting.store import Snapshot
from hubbub.answers.columns import Column as LongColumn
from hubbub.answers.estimate import Estimate
from hubbub.answers.options import Options
from hubbub.answers.release import Output, Release
from hubbub.answers.sandbox_session import SandboxSession
from hubbub.config import Config, load
from hubbub.core.schema import Kind, Table
from hubbub.curator import history as past
from hubbub.curator import receipt as receipts
from hubbub.curator.made_up_rows import Columns
from hubbub.curator.opening import is_postgres, store_of
from hubbub.curator.question import Question
from hubbub.curator.sandbox import QuerySandbox, ReleaseRows, no_release
from hubbub.errors import ParameterError

#: Analyses whose releases are rows.
_SYNTHETIC = frozenset({"synthetic", "mwem"})
_TYPES = {
    "boolean": "bool",
    "integer": "int64",
    "real": "float64",
    "date": "datetime64[D]",
    "timestamp": "datetime64[us]",
}


@dataclass(frozen=True)
class LocalSandbox:
    """A sandbox in this process, as one analyst uses it."""

    sandbox: QuerySandbox
    analyst: str

    def datasets(self) -> tuple[str, ...]:
        """List the datasets that have a stand-in."""
        return self.sandbox.datasets(self.analyst)

    def describe(self, dataset: str) -> Table:
        """Show the declarations of a dataset."""
        return self.sandbox.table(self.analyst, dataset)

    def estimate(self, sql: str, options: Options) -> Estimate:
        """Estimate a question."""
        return self.sandbox.estimate(self.analyst, Question(sql, **options))

    def query(self, sql: str, options: Options) -> Release:
        """Answer a question."""
        return self.sandbox.query(self.analyst, Question(sql, **options))

    def close(self) -> None:
        """Remove the made-up rows."""
        self.sandbox.close()


def local_session(config: Config, analyst: str, release_rows: ReleaseRows) -> SandboxSession:
    """Open the sandbox of a configuration for one analyst."""
    sandbox = QuerySandbox.open(config, release_rows=release_rows)
    try:
        sandbox.datasets(analyst)
    except BaseException:
        sandbox.close()
        raise
    return SandboxSession(LocalSandbox(sandbox, analyst))


def open_sandbox(path: str | Path = "hubbub.yaml", *, analyst: str | None = None) -> SandboxSession:
    """Open the sandbox of a hubbub.yaml as one of its analysts; neither the data nor the ledger is opened.

    Only a stand-in that is a release is read from the ledger.
    """
    config = load(Path(path))
    known = list(config.policy.analysts)
    if analyst is None and len(known) != 1:
        raise ParameterError(
            "HB121", "No analyst was specified.", f"Pass analyst=. hubbub.yaml defines: {', '.join(known) or 'none'}."
        )
    return local_session(config, known[0] if analyst is None else analyst, stored_rows(config))


def stored_rows(config: Config) -> ReleaseRows:
    """Read the rows of releases from the ledger of a configuration."""

    def rows(table: Table, number: int) -> Columns:
        if not is_postgres(config) and not config.database.exists():
            no_release(table, number)
        with closing(store_of(config, read_only=True)) as store:
            return rows_of_release(store.snapshot, table, number)

    return rows


def rows_of_release(snapshot: Callable[[], AbstractContextManager[Snapshot]], table: Table, number: int) -> Columns:
    """Read the rows of a release of synthetic data about a table, which must not wait for review.

    Theorem (Synthetic stand-in). The columns are a function of a release that was charged, and that may be shown.
    Charges  nothing: post-processing of that release.
    Tested   tests/curator/test_sandbox_session.py::test_a_release_of_synthetic_rows_is_the_stand_in
             tests/curator/test_sandbox_session.py::test_a_release_that_waits_for_review_is_no_stand_in
    """
    with snapshot() as found:
        held = Reviews().held_in(found)
        charge = past.find_charge(found, number, None)
        if charge is None or charge.dataset != table.name:
            no_release(table, number)
        try:
            stored = receipts.decode(past.find_release(found, number, None, held))
        except ParameterError:
            no_release(table, number)
    if stored.receipt.get("analysis") not in _SYNTHETIC:
        no_release(table, number)
    kinds = {column.name: column.kind for column in table.columns if not column.hidden}
    return {each.name: _column(each) for each in stored.outputs if kinds.get(each.name) is Kind(each.kind)}


def _column(output: Output) -> LongColumn:
    """Give the cells of an output as an array."""
    if isinstance(output.values, LongColumn):
        return output.values
    cells = list(output.values)
    null = np.array([cell is None for cell in cells])
    plain = np.array(cells, dtype=object)
    if output.kind not in _TYPES or null.all():
        return LongColumn(plain)
    plain[null] = next(cell for cell in cells if cell is not None)
    typed = plain.astype(_TYPES[output.kind])
    return LongColumn(np.ma.array(typed, mask=null) if null.any() else typed)
