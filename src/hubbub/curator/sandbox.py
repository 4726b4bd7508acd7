"""The sandbox: any question, free and as often as anyone likes, on rows that are made up.

A sandbox has its own rows, its own engine and no ledger. It is built from declarations, so nothing in it can reach the
data or charge anything, whatever is asked.

Tested in tests/curator/test_sandbox.py.
"""

import logging
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

import numpy as np

from hubbub.analyses.base import EngineRun, PreparedAnalysis
from hubbub.answers.columns import Column as LongColumn
from hubbub.answers.columns import export
from hubbub.answers.estimate import Estimate
from hubbub.answers.left_out import LeftOut
from hubbub.answers.options import Progress, ignore_progress
from hubbub.answers.release import Release
from hubbub.answers.sandbox import FROM_RELEASE, MADE_UP, PUBLIC_TABLES, marked_column
from hubbub.config import Config
from hubbub.config.dataset import DatasetConfig
from hubbub.core import call as calls
from hubbub.core import deadline
from hubbub.core.schema import Table, unknown_dataset
from hubbub.curator import receipt as receipts
from hubbub.curator.columns import AnswerColumns, columns_of
from hubbub.curator.estimate import make_estimate
from hubbub.curator.made_up_rows import DEFAULT_ROWS, MOST_DECLARED, Columns, MadeUpRows
from hubbub.curator.open_blocks import OpenBlocks
from hubbub.curator.planner import Planner
from hubbub.curator.public import read_public_table
from hubbub.curator.public_query import PublicQuery, check_size
from hubbub.curator.public_rows import PublicRowsQuery
from hubbub.curator.published import encode_published
from hubbub.curator.question import Question
from hubbub.curator.release_query import release_query
from hubbub.engines.base import DataSource
from hubbub.engines.multi_engine import engine_for, open_engine
from hubbub.errors import ParameterError, QueryError
from hubbub.noise.source import system
from hubbub.sql.release_size import json_cells

#: The salt of the sandbox, which is public, and the version of its rows.
_SALT = MADE_UP_VERSION = "made up"
#: Analyses that need a ledger after their first answer.
_OVER_TIME = frozenset({"stream", "above_threshold", "compare"})

_log = logging.getLogger("hubbub.curator")

#: Gives the rows of a release that an owner chose as the stand-in of a dataset.
ReleaseRows = Callable[[Table, int], Columns]


class _Calendar(OpenBlocks):
    """All blocks up to today's are open: the sandbox has no ledger that could have closed one."""

    def __init__(self, today: date) -> None:
        self._today = today

    def closed(self) -> Mapping[str, frozenset[str]]:
        """No block is closed."""
        return {}

    def today(self) -> date:
        """Give the day on which the sandbox was made."""
        return self._today


def no_release(table: Table, number: int) -> NoReturn:
    """Refuse a stand-in that is a release, where there is no ledger to read it from."""
    raise ParameterError(
        "HB863",
        f"The sandbox of {table.name} is release {number}, which cannot be read.",
        "Ask the data owner to correct `sandbox: {release: …}` in hubbub.yaml, or to remove it.",
    )


@dataclass(frozen=True)
class QuerySandbox:
    """Answers questions on made-up rows. Thread-safe; close it once.

    Theorem (Sandbox). Every answer of a sandbox is a function of the query, of declarations, public tables, releases
    that the owner names, and of noise: it is the same distribution on all data. It charges nothing.
    Proof    The engine is opened with views of files that `open` wrote from `MadeUpRows`, or from a release, and with
             the views of public tables. No object here refers to the ledger, to the engine of the data, or to the
             place of a private table: `config` has the places of the made-up files alone.
    Assumes  `Made-up rows`; an engine reads only the views that it was opened with.
    Charges  nothing.
    Tested   tests/curator/test_sandbox.py::test_the_real_data_is_not_needed
             tests/curator/test_sandbox.py::test_neighboring_datasets_have_the_same_stand_in
             tests/curator/test_sandbox.py::test_nothing_is_charged_or_recorded
    """

    config: Config
    planner: Planner
    folder: "tempfile.TemporaryDirectory[str]"

    @classmethod
    def open(cls, config: Config, *, release_rows: ReleaseRows = no_release) -> Self:
        """Make up the rows of all private datasets that may have a stand-in."""
        today = datetime.now(UTC).date()
        kept = {name: each for name, each in config.datasets.items() if each.table.public or each.sandbox.allowed}
        tables = {
            name: read_public_table(each, config.limits) if each.table.public else each.table
            for name, each in config.datasets.items()
        }
        made = MadeUpRows(tables, {name: _size(each) for name, each in config.datasets.items()}, today)
        with ExitStack() as opened:
            folder = tempfile.TemporaryDirectory(prefix="hubbub-sandbox-")
            opened.callback(folder.cleanup)
            datasets = {}
            for place, (name, each) in enumerate(kept.items()):
                datasets[name] = each
                if not each.table.public:
                    path = Path(folder.name) / f"{place}.parquet"
                    try:
                        columns = _stand_in(each, made.of(name), release_rows)
                    except ParameterError as error:  # other datasets still have their stand-ins
                        _log.warning("%s", error.message)
                        del datasets[name]
                        continue
                    export(columns, path)
                    datasets[name] = replace(each, place=DataSource("parquet", path), version=None, checksum=False)
            public = frozenset(name for name, each in datasets.items() if each.table.public)
            engine = open_engine([each.view for each in datasets.values()], public, limits=config.limits)
            opened.pop_all()
        shown = {name: tables[name] for name in datasets}
        own = replace(config, datasets=datasets)
        return cls(own, Planner(own, shown, engine, _Calendar(today)), folder)

    def datasets(self, analyst: str) -> tuple[str, ...]:
        """List the datasets that an analyst can query here: those of the analyst that have a stand-in."""
        return self.planner.datasets(analyst)

    def table(self, analyst: str, name: str) -> Table:
        """Show the declarations of a dataset."""
        if name not in self.datasets(analyst):
            raise unknown_dataset(name, self.datasets(analyst))
        return self.planner.tables[name].shown()

    def estimate(self, analyst: str, question: Question) -> Estimate:
        """Estimate what a question would cost, and its errors, if it were asked of the data."""
        planned = self._prepare(analyst, question)
        if not isinstance(planned, PreparedAnalysis):
            return replace(planned.estimate(), sandbox=_said_of_free(planned))
        return replace(
            make_estimate(
                planned,
                statuses=[],
                within=str(question.within or "").strip(),
                left_out=planned.stated_left_out,
            ),
            sandbox=self._said(planned),
        )

    def columns(self, analyst: str, question: Question) -> AnswerColumns | None:
        """Give the names and kinds of an answer's columns."""
        planned = self._prepare(analyst, question.planned())
        found = columns_of(planned, self._answer_free)
        if found is None or isinstance(planned, PublicQuery):
            return found
        return (*found, (marked_column([name for name, _ in found]), "boolean"))

    def query(
        self,
        analyst: str,
        question: Question,
        *,
        progress: Progress = ignore_progress,
    ) -> Release:
        """Answer a question on made-up rows, with the noise that the real answer would have."""
        planned = self._prepare(analyst, question)
        if not isinstance(planned, PreparedAnalysis):
            free = self._answer_free(planned)
            return replace(free, receipt={**free.receipt, "sandbox": _said_of_free(planned), "ledger": []})
        text, said = question.text(), self._said(planned)
        versions = {table.name: MADE_UP_VERSION for table in planned.tables}
        paper = receipts.receipt(
            planned, query=text, charges=(), versions=versions, left_out=planned.stated_left_out
        ) | {"sandbox": said}
        del paper["receipt"]  # without its format, no program can take it for a receipt
        failed = False
        body = b""
        try:
            engine = engine_for(self.planner.engine, [table.name for table in planned.tables])
            published = planned.run(EngineRun(engine.run, system(), progress))
            body = encode_published(published, paper, planned.tables, versions)
        except Exception:  # noqa: BLE001 - an error of an engine is not for analysts
            failed = True
        if failed:
            raise ParameterError(
                "HB862",
                "The query could not be completed on the made-up rows. Nothing was charged.",
                "It may take too long or too much memory: ask for fewer groups, or make joins narrower.",
            )
        found = receipts.decode(body)
        facts = (found.outputs, found.ratio, planned.epsilon, planned.delta, found.receipt)
        release = Release(*facts, model=found.model, left_out=LeftOut.from_receipt(found.receipt), packed=found.packed)
        return release.jointly() if question.joint else release

    def _prepare(self, analyst: str, question: Question) -> PreparedAnalysis | PublicQuery | PublicRowsQuery:
        """Plan a question as the curator would; the errors are the same."""
        visible = {name: self.planner.tables[name] for name in self.datasets(analyst)}
        if question.user_function is not None or (
            calls.is_call(question.sql) and calls.parse_call(question.sql).name in _OVER_TIME
        ):
            raise _not_here("streams, sessions and functions of your own")
        with deadline.limit_planning():
            release_query(question, visible, _no_release_here)
        return self.planner.public_query(analyst, question) or self.planner.plan(analyst, question, salt=_SALT)

    def _answer_free(self, query: PublicQuery | PublicRowsQuery) -> Release:
        if isinstance(query, PublicRowsQuery):
            return query.answer(engine_for(self.planner.engine, [query.table.name]).run, MADE_UP_VERSION)
        views = [self.config.datasets[table.name].view for table in query.tables]
        versions = {table.name: "public" for table in query.tables}
        release = query.answer(
            views, lambda name: engine_for(self.planner.engine, [name]), versions, self.config.limits
        )
        return check_size(release, most=json_cells(self.config.max_cells))

    def _said(self, planned: PreparedAnalysis) -> str:
        """Say what the rows are."""
        chosen = {table.name: self.config.datasets[table.name].sandbox.release for table in planned.private}
        named = [f"release {number} of {name}" for name, number in chosen.items() if number is not None]
        return FROM_RELEASE.format(", ".join(named)) if named else MADE_UP

    def close(self) -> None:
        """Remove the made-up rows."""
        self.planner.engine.close()
        self.folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _size(dataset: DatasetConfig) -> int:
    """Give the number of rows of a stand-in: the owner's, or one that follows from what the owner declared."""
    if dataset.sandbox.rows is not None:
        return dataset.sandbox.rows
    declared = dataset.table.expected_rows
    return DEFAULT_ROWS if declared is None else min(declared, MOST_DECLARED)


def _stand_in(dataset: DatasetConfig, made: Columns, release_rows: ReleaseRows) -> dict[str, tuple[str, LongColumn]]:
    """Give the columns of a stand-in, each with its kind."""
    number = dataset.sandbox.release
    chosen = {} if number is None else release_rows(dataset.table, number)
    count = min((len(column) for column in chosen.values()), default=None)
    parts = {}
    for name, kind in dataset.view.columns:
        array = chosen[name].array if name in chosen else made[name].array
        if count is not None and name not in chosen:  # keys and owners are made up around the released rows
            array = array[np.arange(count) % len(array)]
        parts[name] = (kind.value, LongColumn(array))
    return parts


def _said_of_free(query: PublicQuery | PublicRowsQuery) -> str:
    return MADE_UP if isinstance(query, PublicRowsQuery) else PUBLIC_TABLES


def _no_release_here(_: int) -> NoReturn:
    raise _not_here("earlier releases")


def _not_here(what: str) -> QueryError:
    return QueryError(
        "HB861", f"The sandbox has no {what}: it keeps nothing.", "Ask this without the sandbox; an estimate is free."
    )
