"""Pool of query threads whose results become visible only on a time quantum.

The running time of a query may depend on the data. An answer, and every visible change of a job's state, is therefore
released at the next multiple of the quantum after the request arrived, so that fast and slow queries look the same in
between.
"""

import asyncio
import logging
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from hubbub.answers.release import Release
from hubbub.errors import AccessError, HubbubError, LedgerError, RunError
from hubbub.server.board import SharedQueries
from hubbub.server.state import JobState

#: Number of finished jobs kept for polling; the oldest are dropped first.
_KEPT = 1000
#: Suggested retry delay in seconds when the queue is full.
_WAIT = 2

clock: Callable[[], float] = time.monotonic

_log = logging.getLogger("hubbub.server")


def release_time(arrived: float, ended: float, quantum: float) -> float:
    """Return the time at which an event at `ended` becomes visible.

    >>> release_time(10.0, 10.25, 0.1) - 10, release_time(10.0, 10.25, 0) - 10
    (0.3000000000000007, 0.25)
    """
    return ended if not quantum else arrived + quantum * max(1, math.ceil((ended - arrived) / quantum))


@dataclass(eq=False)
class Job:
    """One query in the pool. Only the state that `visible` returns may be shown."""

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
    interrupted: bool = False  #: whether the run was told to stop; earlier failures are its own
    ledger_key: str | None = None
    steps: list[tuple[float, float, str]] = field(default_factory=list)  #: time, progress, and step
    draws: bool = False  #: whether it creates a new release, which must not show early
    number: int = 0  #: among the queries of all workers

    def unseen(self, now: float) -> bool:
        """Return whether the job has not ended, or its end is not visible yet."""
        return self.ended is None or now < release_time(self.arrived, self.ended, self.quantum)

    def visible(self, now: float) -> JobState:
        """Return the visible state."""
        if self.cancelled:
            return "cancelled"
        if self.ended is not None and now >= release_time(self.arrived, self.ended, self.quantum):
            return "done" if self.future.exception() is None else "failed"
        if self.started is not None and now >= release_time(self.arrived, self.started, self.quantum):
            return "running"
        return "queued"

    def advance(self, done: float, what: str) -> None:
        """Record progress."""
        self.steps.append((clock(), done, what))

    def progress(self, now: float) -> tuple[float, str] | None:
        """Return the visible progress; like the end, each step shows on the quantum only."""
        shown = [(done, what) for at, done, what in self.steps if now >= release_time(self.arrived, at, self.quantum)]
        return shown[-1] if shown and self.visible(now) == "running" else None

    def problem(self) -> HubbubError | None:
        """Return the error of a failed job; unexpected exceptions become the constant RunError."""
        error = self.future.exception()
        return error if error is None or isinstance(error, HubbubError) else RunError()


class QueryPool:
    """A pool with a bounded number of threads and queue slots, shared fairly between analysts.

    One analyst can use half of the threads and of the slots. The analyst with the fewest running queries is next;
    ties go to the query that has waited longest.
    """

    def __init__(
        self, *, workers: int, queue: int, quantum: float, shared: SharedQueries | None = None, prefix: str = ""
    ) -> None:
        """Run `workers` threads. With `shared`, ends that do not show yet are hidden by all server processes.

        `prefix` is what ids of jobs begin with.
        """
        self.quantum = quantum
        self._shared = shared if quantum else None  # without a quantum, everything shows at once
        self._prefix = prefix
        self._slots = workers + queue
        self._idle = workers
        self._max_running = max(1, workers // 2)
        self._max_slots = -(-self._slots // 2)
        self._waiting: list[tuple[Job, Callable[[Job], Release]]] = []
        self._running: Counter[str] = Counter()
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="hubbub-query")
        self._mutex = threading.Lock()
        self._unfinished: set[Job] = set()
        self._unseen: set[Job] = set()
        self._jobs: dict[str, Job] = {}
        self._stopping = False

    def begin(self, owner: str, run: Callable[[Job], Release], *, arrived: float, keep: bool = False) -> Job:
        """Queue a query, or reject it if the queue is full; with `keep`, `find` returns it by id."""
        job = Job(owner, arrived, self.quantum)
        job.id = self._prefix + job.id[len(self._prefix) :]
        if self._shared is not None:
            job.number = self._shared.begin(owner, clock())
        try:
            self._queue(job, run, keep=keep)
        except HubbubError:
            self._show(job, failed=True)
            raise
        return job

    def _queue(self, job: Job, run: Callable[[Job], Release], *, keep: bool) -> None:
        owner = job.owner
        with self._mutex:
            if self._stopping:
                raise LedgerError(
                    "HB319", "The server is shutting down. Nothing was charged.", "Try again in a minute."
                )
            if len(self._unfinished) >= self._slots:
                raise AccessError(
                    "HB722", "Too many queries are waiting. Nothing was charged.", f"Try again in {_WAIT} s.", _WAIT
                )
            if sum(other.owner == owner for other in self._unfinished) >= self._max_slots:
                raise AccessError(
                    "HB722",
                    "You have reached the maximum number of waiting queries. Nothing was charged.",
                    f"Try again in {_WAIT} s, when some have finished.",
                    _WAIT,
                )
            self._unfinished.add(job)
            self._unseen.add(job)
            self._waiting.append((job, run))
            if keep:
                self._jobs[job.id] = job
                self._forget()
            self._dispatch()

    async def answer(self, job: Job) -> Release:
        """Wait for the result of a query, and then for the quantum."""
        try:
            return await asyncio.shield(asyncio.wrap_future(job.future))
        finally:
            await asyncio.sleep(max(0.0, release_time(job.arrived, job.ended or clock(), self.quantum) - clock()))

    async def wait(self, job: Job, seconds: float) -> None:
        """Wait until a job visibly ends, at most `seconds`."""
        until = clock() + seconds
        future = asyncio.wrap_future(job.future)
        while job.visible(now := clock()) in ("queued", "running") and now < until:
            if job.ended is None:
                await asyncio.wait([future], timeout=min(0.25, until - now))  # it may be cancelled meanwhile
            else:
                await asyncio.sleep(max(0.0, release_time(job.arrived, job.ended, self.quantum) - now))

    def find(self, number: str) -> Job | None:
        """Return a kept job by id."""
        return self._jobs.get(number)

    def cancel(self, job: Job) -> None:
        """Cancel a job that has not visibly ended: a waiting query never runs, a running one is interrupted."""
        if job.visible(clock()) in ("queued", "running"):
            job.cancelled = True
            # on the quantum too: the outcome of the next try shows whether it had already ended
            at = release_time(job.arrived, clock(), self.quantum)
            threading.Thread(target=self._stop, args=[job, at], name="hubbub-cancel", daemon=True).start()

    def counts(self) -> tuple[int, int]:
        """Return the visible numbers of running and waiting queries."""
        now, jobs = clock(), self.unseen()
        running = sum(
            job.started is not None and now >= release_time(job.arrived, job.started, self.quantum) for job in jobs
        )
        return running, len(jobs) - running

    def unseen_charges(self) -> frozenset[tuple[str, str]]:
        """Return the charges whose release must not show yet: its time would tell how long the query took."""
        if self._shared is not None:
            return frozenset((owner, key.rpartition(" ")[0]) for owner, key in self._shared.unseen(clock()))
        jobs = ((job.owner, job.ledger_key) for job in (self.unseen() if self.quantum else ()) if job.draws)
        return frozenset((owner, key.rpartition(" ")[0]) for owner, key in jobs if key is not None)

    def claimed(self, job: Job) -> None:
        """Tell the other server processes, before the charge, which release they must not show yet."""
        if self._shared is not None and job.ledger_key is not None:
            self._shared.claim(job.number, job.ledger_key, draws=job.draws)

    def twins(self, job: Job, others: frozenset[Job]) -> bool:
        """Return whether another try of a charge came first whose end did not show when this one arrived.

        `others` are the jobs of this process that did not show then.
        """
        if job.ledger_key is None:
            return False
        if any((other.owner, other.ledger_key) == (job.owner, job.ledger_key) for other in others):
            return True
        return self._shared is not None and self._shared.twin(job.number, job.owner, job.ledger_key, job.arrived)

    def _show(self, job: Job, *, failed: bool) -> None:
        """Tell the other server processes when the end of a job shows."""
        if self._shared is not None:
            ended = clock() if job.ended is None else job.ended
            try:
                self._shared.end(job.number, release_time(job.arrived, ended, self.quantum), failed=failed)
            except LedgerError as error:  # it stays hidden from them, which is safe
                _log.warning("the end of a query could not be shared: %s", error.code)

    def unseen(self) -> frozenset[Job]:
        """Return the jobs whose end is not visible yet."""
        now = clock()
        with self._mutex:
            seen = {job for job in self._unseen if not job.unseen(now)}
            self._unseen -= seen
            known = {(job.owner, job.ledger_key) for job in seen if job.future.exception() is None}
            for job in self._unseen:  # a release that one try shows need not be hidden by another
                job.draws = job.draws and (job.owner, job.ledger_key) not in known
            return frozenset(self._unseen)

    def close(self, *, patience: float) -> None:
        """Refuse new queries, let queued ones finish, and interrupt those that are not done in time."""
        with self._mutex:
            self._stopping = True
            left = set(self._unfinished)
        until = clock() + patience
        while left and clock() < until:
            time.sleep(0.02)
            left = {job for job in left if job.ended is None}
        for job in left:
            job.cancelled = True
        while left := {
            job for job in left if job.ended is None
        }:  # together, because waiting queries end after running ones
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
                raise cancelled_error()
            release = run(job)
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting caller
            self._end(job)
            self._show(job, failed=True)
            job.future.set_exception(error)
        else:
            self._end(job)
            self._show(job, failed=False)
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
        """Give each idle thread the next eligible query; the caller holds the mutex."""
        while self._idle:
            eligible = [entry for entry in self._waiting if self._running[entry[0].owner] < self._max_running]
            if not eligible:
                return
            job, run = chosen = min(eligible, key=lambda entry: self._running[entry[0].owner])  # ties: the oldest
            self._waiting.remove(chosen)
            self._idle -= 1
            self._running[job.owner] += 1
            self._pool.submit(self._run, job, run)

    def _stop(self, job: Job, at: float) -> None:
        """Interrupt a run from time `at` on, repeatedly: between two statements there is nothing to interrupt."""
        while job.ended is None and clock() < at:
            time.sleep(0.02)
        while job.ended is None:
            with self._mutex:  # while it is held, the job cannot end and its thread cannot start another
                self._interrupt(job)
            time.sleep(0.02)

    @staticmethod
    def _interrupt(job: Job) -> None:
        if job.ended is None and job.stop is not None and job.thread is not None:
            job.interrupted = True
            job.stop(job.thread)

    def _forget(self) -> None:
        """Drop the oldest finished jobs."""
        ended = [number for number, job in self._jobs.items() if job.ended is not None]
        for number in ended[: max(0, len(self._jobs) - _KEPT)]:
            del self._jobs[number]


def cancelled_error() -> HubbubError:
    """Return the error of a query that was cancelled before it started."""
    return LedgerError(
        "HB320", "The query was cancelled before it started. Nothing was charged.", "Run the query again."
    )
