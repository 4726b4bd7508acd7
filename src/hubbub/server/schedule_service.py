"""Scheduled queries: list, add and remove them, and show their answers block by block.

Tested in tests/server/test_schedules.py.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date

from hubbub.answers.over_time import growing_table
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.blocks import Blocks, block_number, number
from hubbub.curator import Curator
from hubbub.curator.opening import folder_of
from hubbub.curator.schedule import answer, answers, blocks_of, checked, due_now, ledger_name
from hubbub.curator.schedule_list import Schedule, Schedules
from hubbub.errors import AccessError, ParameterError
from hubbub.server.accounts import Principal
from hubbub.server.attempts import AttemptTable
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.problems import not_found
from hubbub.server.query_pool import QueryPool
from hubbub.server.roles import allowed

#: The newest blocks whose answers are shown.
SHOWN = 400


@dataclass(frozen=True, slots=True)
class ScheduledBlock:
    """One block: the number of its release, or why it has none; neither if it has not run yet."""

    block: str
    release: int | None
    problem: str = ""

    @property
    def state(self) -> str:
        """Return it in one word."""
        return "answered" if self.release is not None else "refused" if self.problem else "waiting"


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A scheduled query with its newest block that is due, and the day of its next run.

    paused  its analyst's tokens are revoked: it does not run until they have a new one
    """

    schedule: Schedule
    every: str
    next_run: date | None
    last: ScheduledBlock | None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleAnswers:
    """A scheduled query with its blocks and their answers, the earliest first."""

    view: ScheduleView
    blocks: tuple[ScheduledBlock, ...]
    releases: Mapping[str, Release]

    def table(self) -> str:
        """Return all answers as one CSV table."""
        return growing_table(self.releases)


class ScheduleService:
    """Analysts schedule their own queries; owners may do it for them, and auditors read all."""

    def __init__(
        self,
        current: CurrentCurator,
        pool: QueryPool,
        attempts: AttemptTable,
        shut_out: Callable[[], Collection[str]],
    ) -> None:
        self._current = current
        self._pool = pool
        self._attempts = attempts
        self._shut_out = shut_out
        self._schedules = Schedules(folder_of(current.config))

    @allowed("owner", "analyst", "auditor")
    def entries(self, principal: Principal) -> list[ScheduleView]:
        """List an analyst's scheduled queries, or all."""
        mine = principal.name if principal.role == "analyst" else None
        with self._current.using() as curator:
            return [self._view(curator, each) for each in self._schedules.list(mine)]

    @allowed("owner", "analyst", "auditor")
    def show(self, principal: Principal, analyst: str, name: str) -> ScheduleAnswers:
        """Return a scheduled query with its newest answers; free."""
        schedule = self._find(principal, analyst, name)
        with self._current.using() as curator:
            found = answers(curator, schedule, self._shown(schedule), SHOWN)
            names = sorted({*due_now(curator, schedule)[-SHOWN:], *found})
            blocks = tuple(self._block(schedule, name, found.get(name)) for name in names)
            return ScheduleAnswers(self._view(curator, schedule), blocks, found)

    @allowed("owner", "analyst")
    def add(
        self,
        principal: Principal,
        *,
        name: str,
        sql: str,
        every: str,
        epsilon: numbers.Number,
        analyst: str | None = None,
        first: str | None = None,
        wait: int = 1,
    ) -> ScheduleView:
        """Schedule a query; nothing is charged before it runs."""
        if principal.role == "analyst" and analyst not in (None, principal.name):
            raise AccessError("HB710", "Analysts schedule queries for themselves.", "Leave the analyst out.")
        if principal.role != "analyst" and analyst is None:
            raise ParameterError("HB799", "No analyst was given.", "Name the analyst whom the query is charged to.")
        with self._current.using() as curator:
            schedule = checked(
                curator,
                analyst or principal.name,
                sql,
                name=name,
                every=every,
                epsilon=epsilon,
                first=first,
                wait=wait,
            )
            self._schedules.add(schedule)
            return self._view(curator, schedule)

    @allowed("owner", "analyst")
    def remove(self, principal: Principal, analyst: str, name: str) -> None:
        """Remove a scheduled query; its answers stay in the ledger."""
        self._schedules.remove(self._find(principal, analyst, name).name, analyst)

    def _find(self, principal: Principal, analyst: str, name: str) -> Schedule:
        """Return a scheduled query; another analyst's is like one that does not exist."""
        mine = self._schedules.list(analyst) if principal.role != "analyst" or principal.name == analyst else ()
        for each in mine:
            if each.name == name:
                return each
        raise not_found("scheduled query of this name")

    def _shown(self, schedule: Schedule) -> Callable[[str], bool]:
        """Return whether the answer for a block may show: the end of its run does so on the time quantum only."""
        unseen = self._pool.unseen_charges()
        return lambda block: (schedule.analyst, ledger_name(schedule, block).rpartition(" ")[0]) not in unseen

    def _view(self, curator: Curator, schedule: Schedule) -> ScheduleView:
        blocks = blocks_of(curator, schedule)
        paused = schedule.analyst in self._shut_out()
        if blocks is None:
            return ScheduleView(schedule, "", None, None, paused)
        names = due_now(curator, schedule)
        last = None
        if names:
            shown = self._shown(schedule)(names[-1])
            last = self._block(schedule, names[-1], answer(curator, schedule, names[-1]) if shown else None)
        day = None if paused else next_run(schedule, blocks, curator.open_blocks.today())
        return ScheduleView(schedule, blocks.by, day, last, paused)

    def _block(self, schedule: Schedule, block: str, release: Release | None) -> ScheduledBlock:
        if release is not None:
            return ScheduledBlock(block, int(release.receipt["ledger"][0]["sequence"]))
        attempt = self._attempts.find(schedule.key(block))
        return ScheduledBlock(block, None, "" if attempt is None else attempt.told)


def next_run(schedule: Schedule, blocks: Blocks, today: date) -> date | None:
    """Return the first day after today on which a query runs for a block, or None if the blocks end before."""
    first = max(blocks.first, block_number(blocks.by, schedule.first))
    block = max(first, number(blocks.by, today))
    while block > first and schedule.runs_on(blocks, block - 1) > today:
        block -= 1
    return schedule.runs_on(blocks, block) if blocks.last is None or block <= blocks.last else None
