"""Queries that run once for each block that has ended, charged from that block.

Tested in tests/curator/test_schedule.py.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.blocks import Blocks, BlockSet, block_name, block_number, number
from hubbub.curator import Curator
from hubbub.curator.planner import UNSALTED
from hubbub.curator.question import Question
from hubbub.curator.schedule_list import MAX_WAIT, Schedule, Schedules
from hubbub.errors import HubbubError, ParameterError, QueryError, ReviewError

#: A query that does not use both parameters, or allows no block.
_NOT_BY_BLOCK = frozenset({"HB509", "HB794"})
#: Why the queries of an analyst do not run.
PAUSED = "paused: the tokens of {} are revoked"
_EXAMPLE = "Restrict it to one block by two parameters: WHERE {column} >= $1 AND {column} < $2."


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """What became of a scheduled query for one block; `refused` is empty if it has an answer."""

    name: str
    block: str
    refused: str = ""
    replayed: bool = False


def checked(
    curator: Curator,
    analyst: str,
    sql: str,
    *,
    name: str,
    every: str,
    epsilon: numbers.Number,
    first: str | None,
    wait: int = 0,
) -> Schedule:
    """Check a query that is to be scheduled, without charging: for each block it must read that block alone."""
    price = str(numbers.epsilon(epsilon))
    wait = numbers.integer(wait, "wait", 0, MAX_WAIT)
    today = curator.open_blocks.today()
    tables = [curator.tables[name] for name in curator.datasets(analyst)]
    declared = [(table.name, table.blocks) for table in tables if table.blocks is not None and table.blocks.by == every]
    for dataset, blocks in declared:
        since = number(blocks.by, today) if first is None else _block(blocks, first)
        schedule = Schedule(name, analyst, dataset, sql, price, block_name(blocks.by, since), wait)
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


def due(schedule: Schedule, blocks: Blocks, today: date, closed: frozenset[str] = frozenset()) -> list[int]:
    """List the blocks that the query is for, and for which its day has come."""
    ended = blocks.existing(today).between(block_number(blocks.by, schedule.first), number(blocks.by, today) - 1)
    named = zip(ended, ended.names(), strict=True)
    return [block for block, name in named if name not in closed and schedule.runs_on(blocks, block) <= today]


def blocks_of(curator: Curator, schedule: Schedule) -> Blocks | None:
    """Give the declared blocks of the dataset, unless it has none of the length that the query was scheduled for."""
    table = curator.tables.get(schedule.dataset)
    blocks = None if table is None else table.blocks
    try:
        if blocks is not None:
            block_number(blocks.by, schedule.first)
    except ValueError:
        return None
    return blocks


def due_now(curator: Curator, schedule: Schedule) -> list[str]:
    """Name the open blocks that the query is to run for by today; some may have an answer already."""
    blocks = blocks_of(curator, schedule)
    if blocks is None:
        return []
    closed = curator.open_blocks.closed().get(schedule.dataset, frozenset())
    return [block_name(blocks.by, block) for block in due(schedule, blocks, curator.open_blocks.today(), closed)]


def _nobody(_: str) -> bool:
    return False


def run_due(curator: Curator, schedules: Schedules, paused: Callable[[str], bool] = _nobody) -> Iterator[ScheduledRun]:
    """Run each scheduled query for each of its blocks that has no answer yet, and yield what became of it.

    The queries of analysts who are `paused` do not run.

    Theorem (Once for each block). However often this is started, killed and run at the same time, a scheduled query is
    charged at most once for each block, to that block alone, and has at most one answer for it.
    Proof    The idempotency key is a function of the query, its price and the block. The ledger has one charge for a
             key, and one release for a charge, whichever process comes first; a run that was killed is repeated with
             the same noise; one that was killed between the charge and its seed has no answer (HB901), and is not
             charged again. The plan for a block must read exactly this block, or it is refused before the charge.
    Charges  ε of the query, to the caps on the block.
    Tested   tests/curator/test_schedule.py::test_a_query_runs_once_for_each_block_however_often_it_is_killed
    """
    for schedule in schedules.list():
        if paused(schedule.analyst):
            yield ScheduledRun(schedule.name, "", PAUSED.format(schedule.analyst))
            continue
        if blocks_of(curator, schedule) is None:
            yield ScheduledRun(schedule.name, "", f"{schedule.dataset} has no such blocks any more.")
        for block in due_now(curator, schedule):
            if answer(curator, schedule, block) is None:
                yield _run(curator, schedule, block)


def question_for(curator: Curator, schedule: Schedule, block: str) -> Question:
    """Give the query for one block, or raise an error if it does not read this block alone."""
    blocks = blocks_of(curator, schedule)
    if blocks is not None and _reads(curator, schedule, blocks, block_number(blocks.by, block)) is not None:
        return schedule.question(blocks, block_number(blocks.by, block))
    raise ParameterError(
        "HB799",
        f"The scheduled query {schedule.name} no longer reads one block of {schedule.dataset} alone.",
        "Remove it and add it again.",
    )


def _run(curator: Curator, schedule: Schedule, block: str) -> ScheduledRun:
    try:
        question = question_for(curator, schedule, block)
        release = curator.query(schedule.analyst, question, key=schedule.key(block))
        return ScheduledRun(schedule.name, block, replayed=release.replayed)
    except HubbubError as error:  # of one block: the others go on
        return ScheduledRun(schedule.name, block, f"{error.code} {error.message}")


def ledger_name(schedule: Schedule, block: str) -> str:
    """Name the charge of a block in the ledger."""
    return f"key {schedule.key(block)} {schedule.dataset}"


def answer(curator: Curator, schedule: Schedule, block: str) -> Release | None:
    """Give the recorded answer for a block, if there is one; free.

    Analysts may name an answer as they like, also by this key: the answer to another question is not the answer.
    """
    try:
        blocks, found = blocks_of(curator, schedule), curator.recall(schedule.analyst, ledger_name(schedule, block))
    except ReviewError:
        return None
    if blocks is None or found is None:
        return None
    asked = schedule.question(blocks, block_number(blocks.by, block))
    return found if _same_question(found, asked) else None


def _same_question(release: Release, question: Question) -> bool:
    paid = Fraction(release.receipt["charge"]["epsilon"])
    return bool(release.receipt["query"] == question.text()) and paid == numbers.epsilon(question.epsilon or 0)


def _all(_: str) -> bool:
    return True


def answers(
    curator: Curator, schedule: Schedule, shown: Callable[[str], bool] = _all, most: int | None = None
) -> Mapping[str, Release]:
    """Give the recorded answers by block, the earliest first: of the `most` newest blocks that are `shown`. Free."""
    blocks = blocks_of(curator, schedule)
    if blocks is None:
        return {}
    ended = due(schedule, blocks, curator.open_blocks.today())
    names = [name for name in (block_name(blocks.by, block) for block in ended) if shown(name)]
    kept = names if most is None else names[-most:]
    found = {name: answer(curator, schedule, name) for name in kept}
    return {name: release for name, release in found.items() if release is not None}
