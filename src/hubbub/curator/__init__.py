"""The curator: from a query to a release. The only part that has access to both data and ledger.

    text → bind → plan → charge (durable) → seed → run → noise → finish → record → release

Everything before the charge is computed from the query, the declarations and the ledger, so its errors may give
details. After the charge every failure is one constant message.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from hubbub.accounting.calls import Charge, ChargeRequest, Remark
from hubbub.accounting.failures import Failures
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.reviews import PUBLISHED, review_sentence
from hubbub.analyses.base import EngineRun, PreparedAnalysis, Published
from hubbub.analyses.threshold import Comparison
from hubbub.answers.estimate import Estimate
from hubbub.answers.left_out import LeftOut
from hubbub.answers.options import Progress, ignore_progress
from hubbub.answers.release import Release
from hubbub.config import Config
from hubbub.config.dataset import DEFAULT_FAILURES
from hubbub.core import deadline
from hubbub.core.asked import AskedByAnalyst, for_analyst
from hubbub.core.events import Event
from hubbub.core.odds import SMALL
from hubbub.core.schema import Table
from hubbub.curator import history as past
from hubbub.curator import keys, streams, thresholds, work
from hubbub.curator import receipt as receipts
from hubbub.curator.block_versions import version_read
from hubbub.curator.columns import AnswerColumns, columns_of
from hubbub.curator.draws import Draw, Draws, no_draw, run_hash
from hubbub.curator.estimate import make_estimate
from hubbub.curator.free import only_recorded
from hubbub.curator.planner import UNSALTED
from hubbub.curator.public_query import PublicQuery, check_size
from hubbub.curator.public_rows import PublicRowsQuery, count_rows
from hubbub.curator.published import encode_published
from hubbub.curator.question import Question
from hubbub.curator.records import Records
from hubbub.curator.release_query import ReleaseQuery, release_query
from hubbub.curator.replay import ReplayKeys
from hubbub.curator.reuse import Reuse
from hubbub.curator.versions import Versions
from hubbub.engines.base import Engine
from hubbub.engines.multi_engine import engine_for
from hubbub.errors import HubbubError, QueryError, RunError, SpentError
from hubbub.sql.release_size import json_cells

#: Receives the ledger's key of a charge before it is made, and returns the key to charge under.
Claim = Callable[[str], str]

_log = logging.getLogger("hubbub.curator")


def never_cancelled() -> bool:
    """Never cancel."""
    return False


class Curator(Records):
    """Answers all analysts of one hubbub.yaml. Thread-safe."""

    def __init__(
        self,
        config: Config,
        tables: Mapping[str, Table],
        *,
        ledger: Ledger,
        engine: Engine,
        versions: Versions,
        draws: Draws,
        salt: str,
    ) -> None:
        """Use `hubbub.open`."""
        super().__init__(config, tables, ledger, engine)
        self._versions = versions
        self._draws = draws
        self._salt = salt
        self._keys = ReplayKeys(ledger)
        self._failures = Failures()
        self._reuse = Reuse(config, ledger, self._keys, self._reviews)
        self.asked = AskedByAnalyst(config.policy.analysts)

    @for_analyst
    def query(
        self,
        analyst: str,
        question: Question,
        *,
        key: str | None = None,
        claim: Claim | None = None,
        progress: Progress = ignore_progress,
        cancelled: Callable[[], bool] = never_cancelled,
        held: bool = False,
        publish: bool = False,
        unseen: past.Unseen = frozenset(),
    ) -> Release:
        """Answer a query at a privacy cost; the same query on the same data is answered from the ledger for free.

        A run that ended without a release is repeated, with the same noise, by the next call with the same charge.
        `cancelled` tells whether the end was requested, which does not count as a failure. `claim` receives the
        ledger's key before the charge and returns the key to use: an earlier one if this call retries a request. A
        stream is bought by `streams.buy`, which calls this method again while its folder is `held`. The data owner's
        own process may `publish` a profile: it is then shown to every analyst of the dataset. Releases in `unseen`
        cannot be read yet.

        Theorem (Charge before data). Whatever an analyst can observe of this call depends on the private data only
        through the released noisy integers of a plan whose event was durably charged before the engine ran, and
        through whether the run failed: once a charge, as often as the owner allows.
        Proof    Up to `charge` nothing is read but text, declarations, ledger and the data's version; the answer
                 is a function of the noisy integers (`finish`), and every exception after the charge is replaced by one
                 constant (`RunError`). The first recorded release of a charge is the only one that leaves, and all runs
                 of a charge draw the same words (`Draws`).
        Assumes  versions may be known: they count updates and, of a dataset with blocks, tell when each block was last
                 changed. Time is not observed here.
        Tested   tests/curator/test_path.py::test_the_charge_is_durable_before_the_engine_runs
                 tests/curator/test_path.py::test_every_failure_after_the_charge_is_one_constant
        """
        if thresholds.is_comparison(question):
            return self._compare(analyst, question, key=key, progress=progress, cancelled=cancelled)
        earlier_releases = self._release_query(analyst, question, unseen)
        if earlier_releases is not None:
            return earlier_releases.answer(most=json_cells(self.config.max_cells))
        public = self.planner.public_query(analyst, question)
        if public is not None:
            return self._answer_public(public)
        question = self._reuse.with_noise(analyst, question, self.planner, self._salt, self._data_versions, key)
        planned = self._plan(analyst, question.planned(), salt=self._salt)
        self._refuse_failing(analyst, planned)
        if question.free and claim is None:
            claim = only_recorded(self.ledger, analyst, lambda: unseen)
        new = key or token_hex(16)
        free = self._reuse.answer(
            analyst,
            question,
            planned,
            claim,
            unseen,
            versions=partial(self._data_versions, planned),
            insists=key is not None or publish or held,
            pay=partial(self.query, analyst, key=new, claim=claim, progress=progress, cancelled=cancelled),
        )
        if free is not None:
            released = self._release(free[0], analyst, replayed=free[1])
            return released.jointly() if question.joint else released
        key = thresholds.session_key(question) or key
        if streams.buys_stream(question) and not held:
            return streams.buy(
                self,
                planned,
                analyst=analyst,
                key=key,
                charge=lambda name: self.query(
                    analyst, question, key=name, claim=claim, progress=progress, cancelled=cancelled, held=True
                ),
            )
        text = question.text()
        versions = self._data_versions(planned)
        left_out = self._profiles.planned(planned, versions)
        earlier = None if key is not None else self._earlier_event(analyst, planned, question, text, versions)
        with thresholds.named(question):
            charges = self._charge(
                analyst, planned, text, versions, key, claim, publish=publish, event=earlier or planned.event
            )
        stored = charges[0].release
        if stored is None and earlier is not None:
            raise AssertionError("an earlier event is charged only where its release is recorded")
        if stored is None:
            stored = self._answer(
                planned, text, charges, versions, left_out, progress=progress, cancelled=cancelled, silent=held
            )
        self._draws.seeds.erase(charges[0].entry)
        self.refuse_held(charge.entry for charge in charges)
        release = self._release(stored, analyst, replayed=charges[0].release is not None)
        return release.jointly() if question.joint else release

    def _compare(
        self,
        analyst: str,
        question: Question,
        *,
        key: str | None,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> Release:
        """Answer one question of a session of above threshold, which was charged before."""
        planned = self._plan_comparison(analyst, question, salt=self._salt, key=key)
        self._refuse_failing(analyst, planned)
        versions = self._data_versions(planned)
        left_out = self._profiles.planned(planned, versions)

        def ask(compared: Comparison, text: str, name: str) -> Release:
            charges = self._charge(analyst, compared, text, versions, name, None, publish=False, event=compared.event)
            stored = charges[0].release or self._answer(
                compared, text, charges, versions, left_out, progress=progress, cancelled=cancelled
            )
            self._draws.seeds.erase(charges[0].entry)
            return self._release(stored, analyst, replayed=charges[0].release is not None)

        return thresholds.compare(
            self.ledger,
            thresholds.folder(self.config),
            planned,
            analyst=analyst,
            question=question,
            versions=versions,
            recorded=lambda entry: self.release(entry.sequence, analyst=analyst),
            ask=ask,
        )

    def _plan_comparison(self, analyst: str, question: Question, *, salt: str, key: str | None = None) -> Comparison:
        """Plan a question of a session with the terms of the session."""
        if key is not None:
            raise QueryError("HB672", "A comparison takes no key.", "Leave it out: an answer can be read again.")
        self.datasets(analyst)
        planned = self._plan(analyst, thresholds.for_session(self.ledger, analyst, question), salt=salt)
        if not isinstance(planned, Comparison):
            raise TypeError("not a comparison")
        return planned

    @for_analyst
    def estimate(self, analyst: str, question: Question, *, unseen: past.Unseen = frozenset()) -> Estimate:
        """Estimate the privacy cost and the errors of a query; free, and without reading private data."""
        if thresholds.is_comparison(question):
            return thresholds.estimate(self._plan_comparison(analyst, question, salt=UNSALTED))
        earlier_releases = self._release_query(analyst, question, unseen)
        if earlier_releases is not None:
            return earlier_releases.estimate()
        public = self.planner.public_query(analyst, question)
        if public is not None:
            return public.estimate()
        chosen = self.planner.noise(analyst, question)
        question = replace(question, noise=chosen.noise or question.noise)
        planned = self._plan(analyst, question, salt=UNSALTED)
        with self.ledger.one_snapshot():
            self._refuse_failing(analyst, planned)
            units, rows = self._sizes(planned)
            return make_estimate(
                planned,
                statuses=[status for table in planned.private for status in self._budgets.of(analyst, table)],
                within=str(question.within or "").strip(),
                left_out=self._profiles.planned(planned),
                units=units,
                # a join multiplies rows, so that the profile of one table does not tell how many there are
                rows=rows if len(planned.tables) == 1 else None,
                free=self._reuse.offer(analyst, planned, unseen),
                review=review_sentence(
                    self.config.policy, [table.name for table in planned.private], planned.event, question.text
                ),
                choice=chosen.reason,
                work=work.describe(planned, self.config.limits),
            )

    @for_analyst
    def columns(self, analyst: str, question: Question, *, unseen: past.Unseen = frozenset()) -> AnswerColumns | None:
        """Give the names and kinds of an answer's columns; free, and without reading private data."""
        query = self._release_query(analyst, question, unseen) or self.planner.public_query(analyst, question)
        return columns_of(query or self._plan(analyst, question.planned(), salt=UNSALTED), self._answer_public)

    def _sizes(self, planned: PreparedAnalysis) -> tuple[int | None, int | None]:
        """Give the numbers of privacy units and rows of the dataset, if it has a profile or they are public."""
        if len(planned.private) == 1 and planned.private[0].public_rows and planned.epsilon <= SMALL:
            # counted only where the number may show that nothing can be learned
            rows = self.public_rows(planned.private[0].name)
            return rows, rows
        profiles = [self._profiles.find(table.name) for table in planned.private]
        profile = next((each for each in profiles if each is not None), None)
        return (None, None) if profile is None else (round(profile.units().value), round(profile.rows().value))

    def under(self, config: Config, tables: Mapping[str, Table], engine: Engine) -> "Curator":
        """Give a curator for another hubbub.yaml with the same ledger, seeds and versions."""
        same: dict[str, Any] = {"versions": self._versions, "draws": self._draws, "salt": self._salt}
        curator = Curator(config, tables, ledger=self.ledger, engine=engine, **same)
        curator._failures, curator._profiles = self._failures, self._profiles
        return curator

    def close(self) -> None:
        """Close data and ledger."""
        self.engine.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def public_rows(self, dataset: str) -> int | None:
        """Give the number of rows of a dataset where it is public, and None elsewhere; free."""
        table = self.tables[dataset]
        return count_rows(table, engine_for(self.engine, [dataset])) if table.public_rows else None

    def _release_query(self, analyst: str, question: Question, unseen: past.Unseen) -> ReleaseQuery | None:
        """Read a query over earlier releases of this analyst; None for every other query."""
        visible = {name: self.tables[name] for name in self.datasets(analyst)}
        with deadline.limit_planning():
            return release_query(question, visible, lambda n: self.release(n, analyst=analyst, unseen=unseen))

    def _answer_public(self, query: PublicQuery | PublicRowsQuery) -> Release:
        """Answer a query on public tables, or for the public number of rows, exactly and for free."""
        if isinstance(query, PublicRowsQuery):
            name = query.table.name
            return query.answer(engine_for(self.engine, [name]).run, self._version(name))
        views = [self.config.datasets[table.name].view for table in query.tables]
        versions = {table.name: self._version(table.name) for table in query.tables}
        release = query.answer(views, lambda name: engine_for(self.engine, [name]), versions, self.config.limits)
        return check_size(release, most=json_cells(self.config.max_cells))

    def _plan(self, analyst: str, question: Question, *, salt: str) -> PreparedAnalysis:
        return self.planner.plan(analyst, question, salt=salt)

    def _charge(
        self,
        analyst: str,
        planned: PreparedAnalysis,
        text: str,
        versions: Mapping[str, str],
        key: str | None,
        claim: Claim | None,
        *,
        publish: bool,
        event: Event,
    ) -> list[Charge]:
        """Charge every private dataset that the plan reads; return when all charges are durable."""
        key = self._keys.key(analyst, planned, text, versions, event) if key is None else f"key {key}"
        key, tables = f"{PUBLISHED} {key}" if publish else key, planned.private
        if claim is not None:
            key = claim(f"{key} {tables[0].name}").removesuffix(f" {tables[0].name}")
        requests = [
            ChargeRequest(analyst, each.name, versions[each.name], event, text, f"{key} {each.name}", each.read_blocks)
            for each in tables
        ]
        return self.ledger.charge_all(requests)

    def _earlier_event(
        self, analyst: str, planned: PreparedAnalysis, question: Question, text: str, versions: Mapping[str, str]
    ) -> Event | None:
        """Give the event under which an earlier version charged this query and recorded a release, if one did."""
        if not planned.private:
            return None
        # without groups to select, or with Laplace noise, it may have used no δ where it could have used some
        deltas = {self.planner.delta(analyst, planned.tables, question), planned.delta, Fraction(0)}
        return self._keys.earlier_event(analyst, planned, text, versions, deltas)

    def _answer(
        self,
        planned: PreparedAnalysis,
        text: str,
        charges: Sequence[Charge],
        versions: Mapping[str, str],
        left_out: LeftOut,
        *,
        progress: Progress,
        cancelled: Callable[[], bool] = never_cancelled,
        silent: bool = False,
    ) -> bytes:
        """Run, add noise, record; every failure becomes one constant error. A `silent` run draws no noise."""

        def released() -> bytes | None:
            with self.ledger.snapshot() as snapshot:
                return snapshot.body(charges[0].sequence)

        rendering = (self._salt, self.config.hashing, engine_for(self.engine, versions).dialect)
        fingerprint = run_hash(planned, text, versions, rendering)
        draw = no_draw() if silent else self._draws.begin(charges, fingerprint, lambda: released() is not None)
        if draw is None:
            return released() or b""
        failure = ""
        spent: SpentError | None = None
        try:
            paper = receipts.receipt(
                planned, query=text, charges=[c.entry for c in charges], versions=versions, left_out=left_out
            )
            body = encode_published(self._run(planned, draw, progress), paper, planned.tables, versions)
            # a retry uses the noise of the first run, so it must have read the same data
            if not draw.retried or self._data_versions(planned) == versions:
                return self.ledger.record(charges[0], body)
            spent = self._draws.spoil(charges[0].entry)
        except Exception as error:  # noqa: BLE001 - its text may contain data
            failure = type(error).__name__
        # raised outside of the handler, so that no error with data in it becomes the context of this one
        if spent is not None:
            raise spent
        _log.info("Charge %d has no release: %s", charges[0].sequence, failure)
        if not cancelled():
            self._note_failure(charges)
        raise RunError

    def _run(self, planned: PreparedAnalysis, draw: Draw, progress: Progress) -> Published:
        """Run the analysis on the engine."""
        engine = engine_for(self.engine, [table.name for table in planned.tables])
        return planned.run(EngineRun(engine.run, draw.source, progress))

    def _refuse_failing(self, analyst: str, planned: PreparedAnalysis) -> None:
        """Reject an analyst whose runs failed too often on a dataset that the plan reads."""
        with self.ledger.snapshot() as snapshot:
            self._failures.take_in(snapshot)
            self._profiles.take_in(snapshot)
        for table in planned.private:
            declared = self.config.datasets.get(table.name)
            self._failures.refuse(analyst, table.name, DEFAULT_FAILURES if declared is None else declared.failures)

    def _note_failure(self, charges: Sequence[Charge]) -> None:
        failed = [Remark(each.entry.analyst, each.entry.dataset, each.sequence) for each in charges]
        try:
            self._failures.note(self.ledger, failed)
        except HubbubError as error:  # it still counts in this process
            _log.warning("The failure of charge %d could not be recorded: %s", charges[0].sequence, error.code)

    def _data_versions(self, planned: PreparedAnalysis) -> dict[str, str]:
        """Give the versions of all tables that a plan reads."""
        return {table.name: version_read(table, self.tables, self.engine, self._versions) for table in planned.tables}

    def _version(self, name: str) -> str:
        return keys.current_version(self.tables[name], self.tables, self.engine, self._versions)
