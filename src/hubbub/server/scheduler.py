"""The thread that runs scheduled queries: each once for each block, whichever process comes first.

Tested in tests/server/test_scheduler.py.
"""

import fcntl
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import chain, zip_longest

from hubbub.curator import Curator
from hubbub.curator.opening import folder_of
from hubbub.curator.schedule import answer, due_now, question_for
from hubbub.curator.schedule_list import Schedule, Schedules
from hubbub.errors import HubbubError, RunError
from hubbub.private_files import create_folder, private_file
from hubbub.server.accounts import Principal
from hubbub.server.attempts import PAUSE, AttemptTable
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.problems import redacted
from hubbub.server.query_pool import clock, release_time
from hubbub.server.query_service import QueryService

#: Seconds between two looks at what is due.
PERIOD = 30.0
#: The pool is full, or the server is shutting down: not a try.
_LATER = frozenset({"HB722", "HB319", "HB320"})

_log = logging.getLogger("hubbub.server")


class Scheduler:
    """Runs what is due, one query after another, in the query pool like every other query of its analyst.

    Theorem (One runner). Of several processes on one machine, one at a time runs scheduled queries, and another takes
    over when it ends. However they are stopped, and if servers on several machines run the same schedule, a query is
    charged at most once for a block.
    Proof    A turn holds an exclusive lock of a file, which the system releases when the process ends. One charge for a
             block follows from the idempotency key alone ("Once for each block"); the lock saves work.
    Charges  what the scheduled query costs, once for each block.
    Tested   tests/server/test_scheduler.py::test_two_servers_at_once_run_each_block_once
             tests/server/test_scheduler.py::test_a_server_that_is_killed_at_any_step_leaves_one_charge_for_each_block
    """

    def __init__(
        self,
        current: CurrentCurator,
        queries: QueryService,
        attempts: AttemptTable,
        seconds: Callable[[], int],
        shut_out: Callable[[], Collection[str]],
    ) -> None:
        """Do nothing yet; `start` starts the thread.

        `seconds` is the clock of the server's tables; `shut_out` gives the analysts whose tokens were revoked, and
        whose queries pause.
        """
        self._current = current
        self._queries = queries
        self._attempts = attempts
        self._seconds = seconds
        self._shut_out = shut_out
        self._folder = folder_of(current.config)
        self._answered: set[str] = set()
        self._failed: dict[str, int] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="hubbub-schedule", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Begin no other query; the one that runs ends with the query pool."""
        self._stopping.set()

    def join(self) -> None:
        """Wait for the thread to end."""
        if self._thread is not None:
            self._thread.join()

    def turn(self) -> int:
        """Run what is due unless another process does; return how many queries got an answer."""
        with self._alone() as alone:
            return sum(self._run(schedule, block) for schedule, block in self._due()) if alone else 0

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self.turn()
            except HubbubError as error:
                _log.warning("scheduled queries cannot run now: %s", error.code)
            except Exception as error:  # noqa: BLE001 - a thread that ends would stop all schedules silently
                _log.error("scheduled queries cannot run now: %s", type(error).__name__)
            self._stopping.wait(PERIOD)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        create_folder(self._folder)
        with private_file(self._folder / "schedules.turn", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _due(self) -> Iterator[tuple[Schedule, str]]:
        """Give the blocks that may be tried, from each analyst in turn, so that nobody's many queries come first."""
        waiting: dict[str, list[tuple[Schedule, str]]] = {}
        with self._current.using() as curator:
            for schedule in Schedules(self._folder).list():
                for block in due_now(curator, schedule):
                    if self._may_run(curator, schedule, block):
                        waiting.setdefault(schedule.analyst, []).append((schedule, block))
        turns = chain.from_iterable(zip_longest(*waiting.values()))
        return (each for each in turns if each is not None and self._may_go_on(each[0].analyst))

    def _may_go_on(self, analyst: str) -> bool:
        """Return whether an analyst's queries may go on, asked before each of them.

        Failures after a charge are limited, and soon used up. Who may not ask any more is not charged either.
        """
        failed = self._failed.get(analyst)
        waits = failed is not None and self._seconds() - failed < PAUSE
        return not (self._stopping.is_set() or waits or analyst in self._shut_out())

    def _may_run(self, curator: Curator, schedule: Schedule, block: str) -> bool:
        key = schedule.key(block)
        if key in self._answered:
            return False
        if answer(curator, schedule, block) is not None:
            self._answered.add(key)
            return False
        attempt = self._attempts.find(key)
        return attempt is None or attempt.again(self._seconds())

    def _run(self, schedule: Schedule, block: str) -> bool:
        """Run a query for one block, and return whether it has an answer."""
        key = schedule.key(block)
        self._attempts.begin(key, self._seconds())
        try:
            self._answer(schedule, block)
        except HubbubError as error:
            if error.code in _LATER:
                self._attempts.forget(key)
            else:
                if isinstance(error, RunError):
                    self._failed[schedule.analyst] = self._seconds()
                shown = redacted(error, "schedule")
                self._attempts.fail(key, f"{shown.code} {shown.message}")
            return False
        self._answered.add(key)
        self._attempts.forget(key)
        return True

    def _answer(self, schedule: Schedule, block: str) -> None:
        key = schedule.key(block)
        with self._current.using() as curator:
            question = question_for(curator, schedule, block)

        def check(curator: Curator) -> None:
            question_for(curator, schedule, block)  # hubbub.yaml may have changed since

        principal = Principal(schedule.analyst, "analyst", None, 0)
        job = self._queries.begin(principal, question, key=key, header=key, check=check)
        job.future.exception()  # waits
        # on the time quantum, as for every query: what runs next must not tell how long this one took
        self._stopping.wait(max(0.0, release_time(job.arrived, job.ended or clock(), job.quantum) - clock()))
        problem = job.problem()
        if problem is not None:
            raise problem
