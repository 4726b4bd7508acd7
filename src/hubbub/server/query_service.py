"""Estimates, queries, and jobs: what analysts do with their budget."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

from starlette.concurrency import run_in_threadpool

from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.curator import Curator
from hubbub.curator.columns import AnswerColumns
from hubbub.curator.free import only_recorded
from hubbub.curator.question import Question
from hubbub.curator.streams import buys_stream
from hubbub.errors import ConfigError, HubbubError, LedgerError, ParameterError
from hubbub.server.accounts import Principal
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.job_registry import JobRegistry
from hubbub.server.query_pool import Job, QueryPool, cancelled_error, clock
from hubbub.server.roles import allowed
from hubbub.server.state import JobState, State

JobResult = tuple[JobState, Release | None, HubbubError | None]
_UNFINISHED = ("queued", "running")


class QueryService:
    """Plans and runs the queries of analysts. `registry` is for several servers, or workers, on one ledger."""

    def __init__(self, current: CurrentCurator, state: State, pool: QueryPool, registry: JobRegistry | None) -> None:
        self._current = current
        self._state = state
        self._pool = pool
        self._registry = registry

    @allowed("analyst")
    def estimate(self, principal: Principal, question: Question) -> Estimate:
        """Return a query's privacy cost and expected accuracy; free."""
        with self._current.using() as curator:
            return curator.estimate(principal.name, question, unseen=self._pool.unseen_charges())

    @allowed("analyst")
    def explain(self, principal: Principal, question: Question) -> dict[str, Any]:
        """Return how a query is answered: noise derivation, engine SQL, and budget split; free."""
        estimate = self.estimate(principal, question).to_json()
        fields = ("datasets", "epsilon", "delta", "noise", "cells", "derivation", "sql")
        return {name: estimate[name] for name in fields} | {"split": estimate["expected"]}

    @allowed("analyst")
    async def ask(
        self,
        principal: Principal,
        question: Question,
        *,
        key: str | None,
        header: str | None,
        arrived: float | None = None,
        free: bool = False,
    ) -> Release:
        """Charge and run a query; return its release on the time quantum. `header` is the Idempotency-Key.

        With `free`, the query is answered only if nothing has to be charged for it.
        """
        job = self.begin(principal, question, key=key, header=header, arrived=arrived, free=free)
        return await self._pool.answer(job)

    @allowed("analyst")
    def begin(
        self,
        principal: Principal,
        question: Question,
        *,
        key: str | None,
        header: str | None,
        arrived: float | None = None,
        free: bool = False,
        check: Callable[[Curator], None] = lambda _: None,
    ) -> Job:
        """Queue a query whose caller waits with `answer`, and may `stop` it; `free` as in `ask`.

        `check` is called with the curator that answers, before the charge, and may raise an error.
        """
        arrived = clock() if arrived is None else arrived
        return self._begin(principal, question, key, header, arrived, keep=False, free=free, check=check)

    @allowed("analyst")
    async def answer(self, principal: Principal, job: Job) -> Release:
        """Return the release of a query that was begun, on the time quantum."""
        return await self._pool.answer(self._own(principal, job))

    @allowed("analyst")
    def stop(self, principal: Principal, job: Job) -> JobState:
        """Cancel a query that was begun, and return its visible state; a charge that was already made stays."""
        self._pool.cancel(self._own(principal, job))
        return job.visible(clock())

    @allowed("analyst")
    def columns(self, principal: Principal, question: Question) -> AnswerColumns | None:
        """Return the names and kinds of the columns of an answer, or None if only the run tells; free."""
        with self._current.using() as curator:
            return curator.columns(principal.name, question, unseen=self._pool.unseen_charges())

    @allowed("analyst")
    def enqueue(
        self,
        principal: Principal,
        question: Question,
        *,
        key: str | None,
        header: str,
        arrived: float | None = None,
        free: bool = False,
    ) -> str:
        """Queue a query and return the id of its job."""
        arrived = clock() if arrived is None else arrived
        return self._begin(principal, question, key, header, arrived, keep=True, free=free).id

    @allowed("analyst")
    def job(self, principal: Principal, number: str) -> JobResult:
        """Return the state of a job, with its release or its error once it has ended."""
        job = self._job(principal, number)
        if job is None:
            return self._elsewhere(principal, number)
        state = job.visible(clock())
        release = job.future.result() if state == "done" else None
        return state, release, job.problem() if state == "failed" else None

    @allowed("analyst")
    def progress(self, principal: Principal, number: str) -> tuple[float, str] | None:
        """Return an analysis' progress from 0 to 1 and its step; None for a query or another server's job."""
        job = self._job(principal, number)
        return None if job is None else job.progress(clock())

    @allowed("analyst")
    async def wait(self, principal: Principal, number: str, seconds: float) -> None:
        """Wait until a job has ended, at most `seconds`."""
        job, until = self._job(principal, number), clock() + seconds
        if job is not None:
            await self._pool.wait(job, seconds)
            return
        while (await run_in_threadpool(self._elsewhere, principal, number))[0] in _UNFINISHED:
            if clock() >= until:
                return
            await asyncio.sleep(0.25)

    @allowed("analyst")
    def cancel(self, principal: Principal, number: str) -> JobState:
        """Cancel a job; a charge that was already made stays."""
        job = self._job(principal, number)
        if job is None:
            if self._registry is not None and self._elsewhere(principal, number)[0] in _UNFINISHED:
                self._registry.cancel(principal.name, number)
            return self._elsewhere(principal, number)[0]
        self._pool.cancel(job)
        return job.visible(clock())

    @staticmethod
    def _own(principal: Principal, job: Job) -> Job:
        if job.owner != principal.name:
            raise _no_job()
        return job

    def _job(self, principal: Principal, number: str) -> Job | None:
        """Return a job of this server; None if it may be another server's."""
        job = self._pool.find(number)
        if job is not None and job.owner == principal.name:
            return job
        if job is not None or self._registry is None:
            raise _no_job()
        return None

    def _elsewhere(self, principal: Principal, number: str) -> JobResult:
        result = None if self._registry is None else self._registry.find(principal.name, number)
        if result is None:
            raise _no_job()
        state, key, error = result
        if state != "done" or key is None:
            return state, None, error
        with self._current.using() as curator:
            return state, curator.recall(principal.name, key), None

    def _begin(
        self,
        principal: Principal,
        question: Question,
        key: str | None,
        header: str | None,
        arrived: float,
        *,
        keep: bool,
        free: bool,
        check: Callable[[Curator], None] = lambda _: None,
    ) -> Job:
        others = self._pool.unseen() if self._pool.quantum else frozenset()

        def run(job: Job) -> Release:
            for last in (False, True):
                with self._current.using() as curator:
                    job.stop = curator.engine.interrupt
                    try:
                        check(curator)
                        release = self._answer(curator, principal.name, question, key, header, job, free=free)
                        # do not reveal whether another try, whose end does not show yet, came first
                        return replace(release, replayed=True) if self._pool.twins(job, others) else release
                    except LedgerError as error:
                        if last or error.code != "HB312":
                            raise
                        with suppress(ConfigError):  # it names files, and an analyst cannot fix them
                            self._current.reload()  # another process changed the policy: read the file it wrote
            raise AssertionError("unreachable")

        job = self._pool.begin(principal.name, run, arrived=arrived, keep=keep)
        if keep and self._registry is not None:
            self._registry.begin(job)
        return job

    def _answer(
        self,
        curator: Curator,
        analyst: str,
        question: Question,
        key: str | None,
        header: str | None,
        job: Job,
        *,
        free: bool,
    ) -> Release:
        """Charge and answer once, however often the same request is made.

        Theorem (One charge per request). All tries of one request, under one Idempotency-Key, are charged together at
        most once and get the same release, through crashes and changes of the data; or none, where a crash or a change
        of the data came before it was recorded.
        Proof    Before any charge, a try claims its key: the first claim is durable and wins, and every later one gets
                 the first one's name in the ledger. All tries charge under that one name, and the ledger charges a name
                 once and keeps one release for it. A crash before the charge leaves a claim that costs nothing.
        Assumes  claims are durable when `claim` returns; a key of an analyst is never given to another.
        Tested   tests/server/test_retries.py::test_a_retry_gets_the_same_release_and_is_charged_once
                 tests/server/test_retries.py::test_a_retry_after_the_data_changed_gets_the_old_release
                 tests/server/test_retries.py::test_the_claim_is_durable_before_the_charge
        """
        if header is None or free:  # what costs nothing needs no name
            return curator.query(
                analyst,
                replace(question, free=free),
                key=key,
                claim=only_recorded(curator.ledger, analyst, self._pool.unseen_charges) if free else None,
                progress=job.advance,
                cancelled=lambda: job.interrupted,
                unseen=self._pool.unseen_charges(),
            )
        digest = digest_of(question, key)
        earlier = self._state.retries.find(analyst, header)
        if earlier is not None:
            _same(earlier[0], digest)
            job.ledger_key = earlier[1]
            self._pool.claimed(job)
            release = curator.recall(analyst, earlier[1])
            # a stream may not have started yet; a combined answer is computed from this release and others
            if release is not None and not buys_stream(question) and not question.combine:
                return release.jointly() if question.joint else release

        def claim(name: str) -> str:
            if job.cancelled:
                raise cancelled_error()
            kept, ledger_key = self._state.retries.claim(analyst, header, digest, name)
            _same(kept, digest)
            job.ledger_key = ledger_key
            charge = curator.ledger.recall(analyst, ledger_key)
            job.draws = charge is None or charge.release is None
            self._pool.claimed(job)
            return ledger_key

        return curator.query(
            analyst,
            question,
            key=key,
            claim=claim,
            progress=job.advance,
            cancelled=lambda: job.interrupted,
            unseen=self._pool.unseen_charges(),
        )


def digest_of(question: Question, key: str | None) -> str:
    """Hash a request, so that an Idempotency-Key that is reused for another request is noticed."""
    weights = sorted((question.weights or {}).items())
    fields = (
        question.sql,
        question.epsilon,
        question.within,
        question.delta,
        tuple(question.parameters),
        question.groups,
        question.rows,
        weights,
        question.raw,
        question.dialect,
        *(["combine"] if question.combine else []),
        *([f"noise {question.noise}"] if question.noise else []),
        key,
    )
    return sha256(repr(fields).encode(errors="backslashreplace")).hexdigest()


def _same(kept: str, digest: str) -> None:
    if kept != digest:
        raise ParameterError(
            "HB124",
            "This Idempotency-Key was used for a different request. Nothing was charged.",
            "Use a new key for a new request, or repeat the original request to get its answer.",
        )


def _no_job() -> ParameterError:
    return ParameterError(
        "HB164",
        "Job not found, or no longer kept.",
        "Repeat the request with the same Idempotency-Key: it is charged only once, and its answer is kept.",
    )
