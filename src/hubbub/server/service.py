"""The service: what can be asked of it, one method each, whoever asks and by whatever way.

Each method takes the principal first and is let through by the table in `roles`. API and pages call these methods and
nothing below them.
"""

import asyncio
from contextlib import suppress
from dataclasses import asdict, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

from starlette.concurrency import run_in_threadpool

from hubbub.accounting.failures import review
from hubbub.accounting.status import history
from hubbub.accounting.store import Filter
from hubbub.answers.budget import Overview, Past
from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Release
from hubbub.config.summary import neighbors, protected
from hubbub.core import numbers
from hubbub.core.schema import unknown
from hubbub.curator import Curator
from hubbub.curator.question import Question
from hubbub.curator.streams import buys_stream
from hubbub.errors import AccessError, ConfigError, HubbubError, LedgerError, ParameterError
from hubbub.semantics.odds import EVEN, Meaning, meaning
from hubbub.server.accounts import Principal
from hubbub.server.attacking import Attacking
from hubbub.server.problems import missing
from hubbub.server.query_pool import Job, cancelled, clock
from hubbub.server.roles import allowed

#: Seconds that running queries have to end when the server stops.
PATIENCE = 20.0
#: Entries that one page of a list holds at most.
PAGE = 500


class Service(Attacking):
    """Answers for one hubbub.yaml. Safe to use from many threads; close it once."""

    # --- who and what -------------------------------------------------------------------------------------------------

    @allowed
    def me(self, principal: Principal) -> dict[str, Any]:
        """Say who asks."""
        return {"name": principal.name, "role": principal.role, "expires": principal.expires}

    @allowed
    def meaning(
        self,
        principal: Principal,
        *,
        epsilon: numbers.Number,
        delta: numbers.Number,
        prior: numbers.Number | None,
        people: int | None,
    ) -> Meaning:
        """Say what an ε means."""
        none = numbers.exact(delta, "delta") == 0
        return meaning(
            epsilon=numbers.epsilon(epsilon),
            delta=Fraction(0) if none else numbers.delta(delta),
            prior=EVEN if prior is None else numbers.in_range(prior, "prior", Fraction(0), Fraction(1)),
            people=people,
        )

    @allowed
    def datasets(self, principal: Principal) -> tuple[str, ...]:
        """List datasets: an analyst's own, or all."""
        with self.current.using() as curator:
            return _visible(curator, principal)

    @allowed
    def describe(self, principal: Principal, name: str) -> dict[str, Any]:
        """Show what is declared about a dataset, and whom it protects."""
        with self.current.using() as curator:
            if name not in (known := _visible(curator, principal)):
                raise unknown(name, known)
            declared = curator.config.datasets[name]
            # what the owner did not list, or hid, is not even named to an analyst
            disabled = () if principal.role == "analyst" else declared.disabled
            return {
                **curator.tables[name].shown().form(),
                "protected": protected(declared),
                "neighbors": neighbors(declared),
                "disabled": [{"column": column, "reason": why} for column, why in disabled],
            }

    @allowed
    def budget(self, principal: Principal, analyst: str | None = None) -> tuple[Overview, ...]:
        """Say what is spent and left: an analyst's own, or that of one or all."""
        with self.current.using() as curator:
            if principal.role == "analyst":
                if analyst not in (None, principal.name):
                    raise AccessError("HB712", "the budget of others is not yours to see.", "Leave out `analyst`.")
                return curator.budget(principal.name)
            known = curator.config.policy.analysts
            if analyst is not None and analyst not in known:
                raise missing(f"analyst called {analyst!r}")
            return tuple(view for name in known if analyst in (None, name) for view in curator.budget(name, exact=True))

    # --- asking -------------------------------------------------------------------------------------------------------

    @allowed
    def estimate(self, principal: Principal, question: Question) -> Estimate:
        """Say what a question would cost and how exact its answer would be; free."""
        with self.current.using() as curator:
            return curator.estimate(principal.name, question)

    @allowed
    def explain(self, principal: Principal, question: Question) -> dict[str, Any]:
        """Say how a question is answered: the derivation of its noise, what the engine runs, how ε is split; free."""
        found = self.estimate(principal, question).form()
        shown = ("datasets", "epsilon", "delta", "noise", "cells", "derivation", "sql")
        return {name: found[name] for name in shown} | {"split": found["expected"]}

    @allowed
    async def ask(
        self,
        principal: Principal,
        question: Question,
        *,
        key: str | None,
        header: str | None,
        arrived: float | None = None,
    ) -> Release:
        """Answer a question at its price, on the quantum. `header` names this try and all that repeat it."""
        job = self._begin(principal, question, key, header, clock() if arrived is None else arrived, keep=False)
        return await self.work.answer(job)

    @allowed
    def enqueue(
        self, principal: Principal, question: Question, *, key: str | None, header: str, arrived: float | None = None
    ) -> str:
        """Put a question in line, and give the number by which to ask for its answer."""
        return self._begin(principal, question, key, header, clock() if arrived is None else arrived, keep=True).id

    @allowed
    def job(self, principal: Principal, number: str) -> tuple[str, Release | None, HubbubError | None]:
        """Say what became of a question in line: its state, and the release or the error once it has ended."""
        job = self._job(principal, number)
        if job is None:
            return self._elsewhere(principal, number)
        state = job.visible(clock())
        release = job.future.result() if state == "done" else None
        return state, release, job.problem() if state == "failed" else None

    @allowed
    def progress(self, principal: Principal, number: str) -> tuple[float, str] | None:
        """Say how far an analysis is, from 0 to 1, and what it does; None of a query, or of another server's job."""
        job = self._job(principal, number)
        return None if job is None else job.progress(clock())

    @allowed
    async def wait(self, principal: Principal, number: str, seconds: float) -> None:
        """Wait until a question in line has ended, or so long."""
        job, until = self._job(principal, number), clock() + seconds
        if job is not None:
            await self.work.wait(job, seconds)
            return
        while (await run_in_threadpool(self._elsewhere, principal, number))[0] in ("queued", "running"):
            if clock() >= until:
                return
            await asyncio.sleep(0.25)

    @allowed
    def cancel(self, principal: Principal, number: str) -> str:
        """Cancel a question in line; if its charge was made, that stands."""
        job = self._job(principal, number)
        if job is None:
            if self.board is not None and self._elsewhere(principal, number)[0] in ("queued", "running"):
                self.board.cancel(principal.name, number)
            return self._elsewhere(principal, number)[0]
        self.work.cancel(job)
        return job.visible(clock())

    def _job(self, principal: Principal, number: str) -> Job | None:
        """Find a job of this server; None where it may be another's, if there are others."""
        job = self.work.find(number)
        if job is not None and job.owner == principal.name:
            return job
        if job is not None or self.board is None:
            raise _no_job()
        return None

    def _elsewhere(self, principal: Principal, number: str) -> tuple[str, Release | None, HubbubError | None]:
        found = None if self.board is None else self.board.find(principal.name, number)
        if found is None:
            raise _no_job()
        state, key, error = found
        if state != "done" or key is None:
            return state, None, error
        with self.current.using() as curator:
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
    ) -> Job:
        others = self.work.unseen() if self.work.quantum else frozenset()

        def run(job: Job) -> Release:
            for last in (False, True):
                with self.current.using() as curator:
                    job.stop = curator.engine.interrupt
                    try:
                        found = self._answer(curator, principal.name, question, key, header, job)
                        # whether another try of the same, whose end does not show yet, came first is not told
                        twin = any((each.owner, each.ledger_key) == (job.owner, job.ledger_key) for each in others)
                        return replace(found, replayed=True) if twin and job.ledger_key else found
                    except LedgerError as error:
                        if last or error.code != "HB312":
                            raise
                        with suppress(ConfigError):  # it names files, and who asks is not who can mend them
                            self.current.reload()  # another process changed the policy: its file is ours too
            raise AssertionError("unreachable")

        job = self.work.begin(principal.name, run, arrived=arrived, keep=keep)
        if keep and self.board is not None:
            self.board.begin(job)
        return job

    def _answer(
        self, curator: Curator, analyst: str, question: Question, key: str | None, header: str | None, job: Job
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
        if header is None:
            return curator.query(analyst, question, key=key, progress=job.advance, cancelled=lambda: job.interrupted)
        digest = digest_of(question, key)
        earlier = self.state.retries.find(analyst, header)
        if earlier is not None:
            _same(earlier[0], digest)
            job.ledger_key = earlier[1]
            release = curator.recall(analyst, earlier[1])
            if release is not None and not buys_stream(question):  # its stream may have yet to begin
                return release

        def claim(name: str) -> str:
            if job.cancelled:
                raise cancelled()
            kept, known = self.state.retries.claim(analyst, header, digest, name)
            _same(kept, digest)
            job.ledger_key = known
            charge = curator.ledger.recall(analyst, known)
            job.draws = charge is None or charge.release is None
            return known

        return curator.query(
            analyst, question, key=key, claim=claim, progress=job.advance, cancelled=lambda: job.interrupted
        )

    # --- what was asked -----------------------------------------------------------------------------------------------

    @allowed
    def releases(self, principal: Principal, *, limit: int = 50, before: int | None = None) -> tuple[Past, ...]:
        """List charges, the newest first: an analyst's own, or all."""
        with self.current.using() as curator:
            limit = numbers.integer(limit, "limit", 1, PAGE)
            return curator.releases(_own(principal), limit=limit, before=before, unseen=self._unseen())

    @allowed
    def release(self, principal: Principal, number: int) -> Release:
        """Give what a charge paid for once more, free: one of an analyst's own, or any."""
        with self.current.using() as curator:
            return curator.release(number, analyst=_own(principal), unseen=self._unseen())

    def _unseen(self) -> frozenset[tuple[str, str]]:
        """Name the charges whose release may not show yet: when it came to be tells how long the query took."""
        unseen = self.work.unseen() if self.work.quantum else ()
        jobs = ((job.owner, job.ledger_key) for job in unseen if job.draws)
        return frozenset((owner, key.rpartition(" ")[0]) for owner, key in jobs if key is not None)

    @allowed
    def history(
        self, principal: Principal, *, which: Filter, unreleased: bool = False, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Read the ledger, the newest entry first."""
        limit = numbers.integer(limit, "limit", 1, PAGE)
        with self.current.using() as curator, curator.ledger.snapshot() as snapshot:
            lines = history(snapshot, which, unreleased=unreleased, newest_first=True, limit=limit)
            return [asdict(line) for line in lines]

    @allowed
    def verify(self, principal: Principal) -> dict[str, Any]:
        """Derive everything in the ledger again; one at a time, since that is work."""
        if not self._verifying.acquire(blocking=False):
            raise AccessError("HB724", "the ledger is being verified already.", "Ask again in a moment.", 5)
        try:
            with self.current.using() as curator:
                found = curator.ledger.verify()
        finally:
            self._verifying.release()
        return {
            "sound": found.sound,
            "entries": found.entries,
            "charges": found.charges,
            "releases": found.releases,
            "caps": found.caps,
            "head": {"sequence": found.head.sequence, "hash": found.head.hash.hex()},
            "anchor": None if found.anchor is None else found.anchor.sequence,
            "problems": [asdict(each) for each in found.problems],
            "report": found.report(),
        }

    @allowed
    def review(self, principal: Principal, analyst: str, dataset: str) -> tuple[int, ...]:
        """Note that the owner looked at an analyst's failed queries on a dataset; the count starts again."""
        with self.current.using() as curator:
            return review(curator.ledger, analyst, dataset, by=principal.name)

    @allowed
    def figures(self, principal: Principal) -> str:
        """Write the metrics."""
        return self.metrics_text()

    # --- the service itself -------------------------------------------------------------------------------------------

    def metrics_text(self) -> str:
        """Write the metrics; whoever calls this has seen to it that they are for who asks."""
        running, waiting = self.work.counts()
        return self.metrics.text(
            {
                "queries_running": ("Queries that run now.", running),
                "queries_waiting": ("Queries that wait for a thread.", waiting),
            }
        )

    def close(self) -> None:
        """Stop: take nothing new, let what runs end or fail, let go of everything."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self.lab.close()
                self.work.close(patience=PATIENCE)
                if self.board is not None:
                    self.board.close()
                self.current.close()
                self.state.close()


def digest_of(question: Question, key: str | None) -> str:
    """Hash what is asked, so that a key that is used for something else is seen."""
    weights = sorted((question.weights or {}).items())
    said = (
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
        key,
    )
    return sha256(repr(said).encode(errors="backslashreplace")).hexdigest()


def _same(kept: str, digest: str) -> None:
    if kept != digest:
        raise ParameterError(
            "HB124",
            "this Idempotency-Key was used for another request. Nothing was charged.",
            "Take a new key for a new request; keep the old one to get the old answer again.",
        )


def _no_job() -> ParameterError:
    return ParameterError(
        "HB164",
        "there is no such job, or no longer.",
        "Send the same request with the same Idempotency-Key: it is charged once, and its answer is kept.",
    )


def _own(principal: Principal) -> str | None:
    return principal.name if principal.role == "analyst" else None


def _visible(curator: Curator, principal: Principal) -> tuple[str, ...]:
    return curator.datasets(principal.name) if principal.role == "analyst" else tuple(curator.tables)
