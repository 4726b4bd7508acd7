"""Queries that run once for each block that has ended, charged from that block.

The list of scheduled queries is a private file beside the ledger; their answers are releases in the ledger.
Tested in tests/curator/test_schedule.py.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path

from hubbub.accounting.chain import canonical
from hubbub.accounting.policy import is_name
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.blocks import Blocks, BlockSet, block_name, block_number, number, start
from hubbub.curator import Curator
from hubbub.curator.planner import UNSALTED
from hubbub.curator.question import Question
from hubbub.errors import HubbubError, LedgerError, ParameterError, QueryError
from hubbub.private_files import open_private, private_file

FILE = "schedules.json"
FORMAT = 1
#: Cells that every format of a list can hold; others, such as dates, become text.
_PLAIN = (str, int, float, bool, type(None))

#: A query that does not use both parameters, or allows no block.
_NOT_BY_BLOCK = frozenset({"HB509", "HB794"})
_EXAMPLE = "Restrict it to one block by two parameters: WHERE {column} >= $1 AND {column} < $2."


@dataclass(frozen=True, slots=True)
class Schedule:
    """One scheduled query. `first` is the first block that it runs for."""

    name: str
    analyst: str
    dataset: str
    sql: str
    epsilon: str
    first: str

    def key(self, block: str) -> str:
        """Give the idempotency key of the run for one block: another query under the same name has other keys."""
        terms = canonical([self.analyst, self.dataset, self.sql, self.epsilon])
        return f"schedule {sha256(terms.encode()).hexdigest()[:32]} {block}"

    def question(self, blocks: Blocks, block: int) -> Question:
        """Give the query for one block: $1 is its first day, and $2 the day after its last."""
        ends = (start(blocks.by, block), start(blocks.by, block + 1))
        return Question(self.sql, epsilon=self.epsilon, parameters=ends)


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """What became of a scheduled query for one block; `refused` is empty if it has an answer."""

    name: str
    block: str
    refused: str = ""
    replayed: bool = False


class Schedules:
    """The scheduled queries of one ledger."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def list(self) -> tuple[Schedule, ...]:
        """List all scheduled queries by their names."""
        with self._locked() as known:
            return tuple(sorted(known.values(), key=lambda each: each.name))

    def find(self, name: str) -> Schedule:
        """Find one by its name."""
        found = next((each for each in self.list() if each.name == name), None)
        if found is None:
            names = ", ".join(each.name for each in self.list()) or "none"
            raise ParameterError("HB797", f"There is no scheduled query named {name!r}.", f"Scheduled: {names}.")
        return found

    def add(self, schedule: Schedule) -> None:
        """Add one under a new name."""
        with self._locked() as known:
            if schedule.name in known or not is_name(schedule.name):
                raise ParameterError(
                    "HB797",
                    f"{schedule.name!r} is in use, or is not a valid name.",
                    "Choose another name: letters, digits, or any of . _ @ + -.",
                )
            known[schedule.name] = schedule

    def remove(self, name: str) -> None:
        """Remove one; its answers stay in the ledger."""
        self.find(name)
        with self._locked() as known:
            known.pop(name, None)

    @contextmanager
    def _locked(self) -> Iterator[dict[str, Schedule]]:
        """Yield the scheduled queries, and save changes atomically."""
        try:
            with private_file(self._path.with_suffix(".lock"), "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                text = self._path.read_text() if self._path.exists() else json.dumps({"format": FORMAT, "queries": []})
                content = json.loads(text)
                if content["format"] != FORMAT:
                    raise ValueError(content["format"])
                known = {each["name"]: Schedule(**each) for each in content["queries"]}
                yield known
                now = json.dumps({"format": FORMAT, "queries": [asdict(each) for each in known.values()]})
                if now != text:
                    self._write(now)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                "HB798",
                f"The list of scheduled queries {self._path} cannot be used. Nothing was charged.",
                "Make it writable for this user, or remove it and add the queries again: their answers stay.",
            ) from error

    def _write(self, text: str) -> None:
        new = self._path.with_suffix(".new")
        file = open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(file, text.encode())
            os.fsync(file)
        finally:
            os.close(file)
        new.replace(self._path)


def checked(
    curator: Curator, analyst: str, sql: str, *, name: str, every: str, epsilon: str, first: str | None
) -> Schedule:
    """Check a query that is to be scheduled, without charging: for each block it must read that block alone."""
    price = str(numbers.epsilon(epsilon))
    today = curator.open_blocks.today()
    tables = [curator.tables[name] for name in curator.datasets(analyst)]
    declared = [(table.name, table.blocks) for table in tables if table.blocks is not None and table.blocks.by == every]
    for dataset, blocks in declared:
        since = number(blocks.by, today) if first is None else _block(blocks, first)
        schedule = Schedule(name, analyst, dataset, sql, price, block_name(blocks.by, since))
        read = _reads(curator, schedule, blocks, min(since, number(blocks.by, today)))
        if read is not None:
            return schedule
    columns = [blocks.column for _, blocks in declared]
    raise ParameterError(
        "HB799",
        f"This query cannot run every {every}: it does not read one block of one dataset alone.",
        _EXAMPLE.format(column=columns[0]) if columns else f"Declare `blocks` with `by: {every}` on its dataset.",
    )


def _block(blocks: Blocks, name: str) -> int:
    try:
        return max(blocks.first, block_number(blocks.by, name))
    except ValueError:
        example = block_name(blocks.by, blocks.first)
        raise ParameterError("HB799", f"{name!r} is not a {blocks.by}.", f"Write it like {example}.") from None


def _reads(curator: Curator, schedule: Schedule, blocks: Blocks, block: int) -> BlockSet | None:
    """Give the blocks that the query reads for one block, if it is that block of its dataset, and nothing else."""
    try:
        planned = curator.planner.plan(schedule.analyst, schedule.question(blocks, block), salt=UNSALTED)
    except QueryError as error:
        if error.code in _NOT_BY_BLOCK:
            return None
        raise
    read = {table.name: table.read_blocks for table in planned.private}
    expected = BlockSet.of(blocks.by, [block])
    return expected if read == {schedule.dataset: expected} else None


def due(schedule: Schedule, blocks: Blocks, today: date, closed: frozenset[str]) -> list[int]:
    """List the blocks that have ended and that the query is for."""
    ended = blocks.existing(today).between(block_number(blocks.by, schedule.first), number(blocks.by, today) - 1)
    return [b for b, name in zip(ended, ended.names(), strict=True) if name not in closed]


def run_due(curator: Curator, schedules: Schedules) -> Iterator[ScheduledRun]:
    """Run each scheduled query for each of its blocks that has no answer yet, and yield what became of it.

    Theorem (Once for each block). However often this is started, killed and run at the same time, a scheduled query is
    charged at most once for each block, to that block alone, and has at most one answer for it.
    Proof    The idempotency key is a function of the query, its price and the block. The ledger has one charge for a
             key, and one release for a charge, whichever process comes first; a run that was killed is repeated with
             the same noise; one that was killed between the charge and its seed has no answer (HB901), and is not
             charged again. The plan for a block must read exactly this block, or it is refused before the charge.
    Charges  ε of the query, to the caps on the block.
    Tested   tests/curator/test_schedule.py::test_a_query_runs_once_for_each_block_however_often_it_is_killed
    """
    closed, today = curator.open_blocks.closed(), curator.open_blocks.today()
    for schedule in schedules.list():
        table = curator.tables.get(schedule.dataset)
        if table is None or table.blocks is None:
            yield ScheduledRun(schedule.name, "", f"{schedule.dataset} has no blocks any more.")
            continue
        for block in due(schedule, table.blocks, today, closed.get(schedule.dataset, frozenset())):
            name = block_name(table.blocks.by, block)
            if answer(curator, schedule, name) is None:
                yield _run(curator, schedule, table.blocks, block)


def _run(curator: Curator, schedule: Schedule, blocks: Blocks, block: int) -> ScheduledRun:
    name = block_name(blocks.by, block)
    try:
        if _reads(curator, schedule, blocks, block) is None:
            return ScheduledRun(schedule.name, name, "It no longer reads this block alone.")
        question = schedule.question(blocks, block)
        release = curator.query(schedule.analyst, question, key=schedule.key(name))
        return ScheduledRun(schedule.name, name, replayed=release.replayed)
    except HubbubError as error:  # of one block: the others go on
        return ScheduledRun(schedule.name, name, f"{error.code} {error.message}")


def answer(curator: Curator, schedule: Schedule, block: str) -> Release | None:
    """Give the recorded answer for a block, if there is one; free."""
    return curator.recall(schedule.analyst, f"key {schedule.key(block)} {schedule.dataset}")


def answers(curator: Curator, schedule: Schedule) -> Mapping[str, Release]:
    """Give all recorded answers by block, the earliest first; free."""
    blocks = curator.tables[schedule.dataset].blocks
    if blocks is None:
        return {}
    names = [block_name(blocks.by, block) for block in due(schedule, blocks, curator.open_blocks.today(), frozenset())]
    found = {name: answer(curator, schedule, name) for name in names}
    return {name: release for name, release in found.items() if release is not None}


def growing_rows(releases: Mapping[str, Release]) -> tuple[list[str], list[list[str | int | float | bool | None]]]:
    """Give the columns and rows of all answers, with the block first and an interval for each noisy number."""
    names: list[str] = ["block"]
    rows: list[list[str | int | float | bool | None]] = []
    for block, release in releases.items():
        columns = release.flat()
        names = ["block", *(column.name for column in columns)]
        for row in zip(*(column.values for column in columns), strict=True):
            rows.append([block, *(cell if isinstance(cell, _PLAIN) else str(cell) for cell in row)])
    return names, rows
