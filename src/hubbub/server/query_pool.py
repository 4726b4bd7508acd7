"""Work: queries run in a bounded pool of threads, and what becomes of them shows on a time quantum only.

How long a query takes may depend on the data. So an answer leaves at the next multiple of the quantum after its
request arrived, and so does every change of a job's visible state; in between, nobody can tell a quick query from a
slow one.
"""

import asyncio
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from hubbub.answers.release import Release
from hubbub.errors import AccessError, HubbubError, LedgerError, RunError

State = Literal["queued", "running", "done", "failed", "cancelled"]

#: Jobs that are kept after their end, so that they can be asked for; the oldest go first.
_KEPT = 1000
#: Seconds to suggest to those who find the queue full.
_WAIT = 2

clock: Callable[[], float] = time.monotonic


def release_time(arrived: float, ended: float, quantum: float) -> float:
    """Give the time at which something that ended then may show.

    >>> due(10.0, 10.25, 0.1) - 10, due(10.0, 10.25, 0) - 10
    (0.3000000000000007, 0.25)
    """
    return ended if not quantum else arrived + quantum * max(1, math.ceil((ended - arrived) / quantum))


@dataclass(eq=False)
class Job:
    """One query on its way. What `visible` says is all that may be shown of it."""

    owner: str
    arrived: float
    quantum: float
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    future: "Future[Release]" = field(default_factory=Future)
    started: float | None = None
    ended: float | None = None
    thread: int | None = None
    stop: Callable[[int], None] | None = None
    cancelled: bool = False
    interrupted: bool = False  #: whether its run was told to stop: what fails before that fails by itself
    ledger_key: str | None = None
    steps: list[tuple[float, float, str]] = field(default_factory=list)  #: when, how far, and what
    draws: bool = False  #: whether its release was not there before it, so that it must not show before its time

    def unseen(self, now: float) -> bool:
        """Say whether its end may not show yet, if it has ended at all."""
        return self.ended is None or now < release_time(self.arrived, self.ended, self.quantum)

    def visible(self, now: float) -> State:
        """Say what may be said of it now."""
        if self.cancelled:
            return "cancelled"
        if self.ended is not None and now >= release_time(self.arrived, self.ended, self.quantum):
            return "done" if self.future.exception() is None else "failed"
        if self.started is not None and now >= release_time(self.arrived, self.started, self.quantum):
            return "running"
        return "queued"

    def advance(self, done: float, what: str) -> None:
        """Note how far it is."""
        self.steps.append((clock(), done, what))

    def progress(self, now: float) -> tuple[float, str] | None:
        """Say how far it may be said to be: as with its end, when a step was reached shows on the quantum only."""
        shown = [(done, what) for at, done, what in self.steps if now >= release_time(self.arrived, at, self.quantum)]
        return shown[-1] if shown and self.visible(now) == "running" else None

    def problem(self) -> HubbubError | None:
        """Give the error of a job that failed; anything unforeseen after its charge is the one constant."""
        error = self.future.exception()
        return error if error is None or isinstance(error, HubbubError) else RunError()


class QueryPool:
    """A pool with so many threads and so many places to wait, of which nobody can take all.

    One analyst runs queries on all threads but one, and holds half of the places, at most. Whoever has the fewest
    running is served next; among equals, who waits longest.
    """

    def __init__(self, *, workers: int, queue: int, quantum: float) -> None:
        self.quantum = quantum
        self._places = workers + queue
        self._idle = workers
        self._most_running = max(1, workers - 1)
        self._most_places = -(-self._places // 2)
        self._waiting: list[tuple[Job, Callable[[Job], Release]]] = []
        self._running: Counter[str] = Counter()
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="hubbub-query")
        self._mutex = threading.Lock()
        self._unfinished: set[Job] = set()
        self._unseen: set[Job] = set()
        self._jobs: dict[str, Job] = {}
        self._stopping = False

    def begin(self, owner: str, run: Callable[[Job], Release], *, arrived: float, keep: bool = False) -> Job:
        """Put a query in line, or refuse it where the line is full; with `keep` it can be found by its number."""
        job = Job(owner, arrived, self.quantum)
        with self._mutex:
            if self._stopping:
                raise LedgerError("HB319", "the server is stopping. Nothing was charged.", "Ask again in a minute.")
            if len(self._unfinished) >= self._places:
                raise AccessError(
                    "HB722", "too many queries are waiting. Nothing was charged.", f"Ask again in {_WAIT} s.", _WAIT
                )
            if sum(other.owner == owner for other in self._unfinished) >= self._most_places:
                raise AccessError(
                    "HB722",
                    "you have as many queries in line as one analyst may. Nothing was charged.",
                    f"Ask again in {_WAIT} s, when some have ended.",
                    _WAIT,
                )
            self._unfinished.add(job)
            self._unseen.add(job)
            self._waiting.append((job, run))
            if keep:
                self._jobs[job.id] = job
                self._forget()
            self._dispatch()
        return job

    async def answer(self, job: Job) -> Release:
        """Wait for a query's answer or its error, and then for the quantum."""
        try:
            return await asyncio.shield(asyncio.wrap_future(job.future))
        finally:
            await asyncio.sleep(max(0.0, release_time(job.arrived, job.ended or clock(), self.quantum) - clock()))

    async def wait(self, job: Job, seconds: float) -> None:
        """Wait until a job shows that it has ended, or so long."""
        until = clock() + seconds
        future = asyncio.wrap_future(job.future)
        while job.visible(now := clock()) in ("queued", "running") and now < until:
            if job.ended is None:
                await asyncio.wait([future], timeout=min(0.25, until - now))  # somebody may cancel it meanwhile
            else:
                await asyncio.sleep(max(0.0, release_time(job.arrived, job.ended, self.quantum) - now))

    def find(self, number: str) -> Job | None:
        """Find a job that was kept."""
        return self._jobs.get(number)

    def cancel(self, job: Job) -> None:
        """Cancel what does not show as ended. A query that waits is never run; one that runs is stopped, soon."""
        if job.visible(clock()) in ("queued", "running"):
            job.cancelled = True
            # on the quantum too: whether it had ended before shows in what becomes of the next try
            at = release_time(job.arrived, clock(), self.quantum)
            threading.Thread(target=self._stop, args=[job, at], name="hubbub-cancel", daemon=True).start()

    def counts(self) -> tuple[int, int]:
        """Say how many queries run and how many wait, as far as that may show."""
        now, jobs = clock(), self.unseen()
        running = sum(
            job.started is not None and now >= release_time(job.arrived, job.started, self.quantum) for job in jobs
        )
        return running, len(jobs) - running

    def unseen(self) -> frozenset[Job]:
        """Give the jobs whose end does not show yet."""
        now = clock()
        with self._mutex:
            seen = {job for job in self._unseen if not job.unseen(now)}
            self._unseen -= seen
            known = {(job.owner, job.ledger_key) for job in seen if job.future.exception() is None}
            for job in self._unseen:  # what one try may show, another one does not hide
                job.draws = job.draws and (job.owner, job.ledger_key) not in known
            return frozenset(self._unseen)

    def close(self, *, patience: float) -> None:
        """Take nothing new; let what is in line end, and stop what has not ended in time."""
        with self._mutex:
            self._stopping = True
            left = set(self._unfinished)
        until = clock() + patience
        while left and clock() < until:
            time.sleep(0.02)
            left = {job for job in left if job.ended is None}
        for job in left:
            job.cancelled = True
        while left := {job for job in left if job.ended is None}:  # together: who waits ends after who runs
            with self._mutex:
                for job in left:
                    self._interrupt(job)
            time.sleep(0.02)
        self._pool.shutdown(wait=True)

    def _run(self, job: Job, run: Callable[[Job], Release]) -> None:
        job.thread = threading.get_ident()
        job.started = clock()
        try:
            if job.cancelled:
                raise cancelled()
            release = run(job)
        except BaseException as error:  # noqa: BLE001 - it goes to whoever waits
            self._end(job)
            job.future.set_exception(error)
        else:
            self._end(job)
            job.future.set_result(release)

    def _end(self, job: Job) -> None:
        with self._mutex:
            job.ended = clock()
            job.stop = None
            self._unfinished.discard(job)
            self._idle += 1
            self._running[job.owner] -= 1
            self._dispatch()

    def _dispatch(self) -> None:
        """Give each idle thread the next query that may run; whoever calls this holds the mutex."""
        while self._idle:
            may = [each for each in self._waiting if self._running[each[0].owner] < self._most_running]
            if not may:
                return
            job, run = chosen = min(may, key=lambda each: self._running[each[0].owner])  # the oldest among equals
            self._waiting.remove(chosen)
            self._idle -= 1
            self._running[job.owner] += 1
            self._pool.submit(self._run, job, run)

    def _stop(self, job: Job, at: float) -> None:
        """Stop its run, not before a time; again and again, since between two statements there is nothing to stop."""
        while job.ended is None and clock() < at:
            time.sleep(0.02)
        while job.ended is None:
            with self._mutex:  # while it is held the job cannot end, nor its thread go on to another's
                self._interrupt(job)
            time.sleep(0.02)

    @staticmethod
    def _interrupt(job: Job) -> None:
        if job.ended is None and job.stop is not None and job.thread is not None:
            job.interrupted = True
            job.stop(job.thread)

    def _forget(self) -> None:
        """Forget the oldest jobs that have ended."""
        ended = [number for number, job in self._jobs.items() if job.ended is not None]
        for number in ended[: max(0, len(self._jobs) - _KEPT)]:
            del self._jobs[number]


def cancelled() -> HubbubError:
    """Make the error of a query that was cancelled in time."""
    return LedgerError("HB320", "the query was cancelled before it began. Nothing was charged.", "Ask again.")
